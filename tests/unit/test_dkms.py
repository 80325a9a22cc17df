"""``dkms status`` of both generations. The recorded corpus is read in test_parse.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.dkms import Dkms, DkmsModule, parse_dkms

DKMS_2 = """\
mlnx-ofed-kernel, 5.4, 5.4.0-89-generic, x86_64: installed
nvidia-fs, 2.7.50, 5.4.0-77-generic, x86_64: built
nvidia-fs, 2.9.5: added
"""
DKMS_3 = """\
mlnx-ofed-kernel/25.10.OFED.25.10.1.2.8.1, 6.8.0-60-generic, x86_64: installed
nvidia/580.95.05, 6.8.0-60-generic, x86_64: installed (Original modules exist)
nvidia-fs/2.27.3, 6.8.0-60-generic, x86_64: built
lustre-client-modules/2.16.1: broken
"""
BROKEN = """

Error! lustre-client-modules/2.16.1: Missing the module source directory or the symbolic link.
Manual intervention is required!
"""
DIFF = "(WARNING! Diff between built and installed module!)"
LINES = [*DKMS_2.splitlines(), *DKMS_3.splitlines(), *BROKEN.splitlines(), f"x/1: added {DIFF}"]


def one(text: str) -> DkmsModule:
    (found,) = parse_dkms(text).modules
    return found


def test_both_generations_say_the_same() -> None:
    old = parse_dkms("nvidia, 580.95.05, 6.8.0-60-generic, x86_64: installed\n")
    new = parse_dkms("nvidia/580.95.05, 6.8.0-60-generic, x86_64: installed\n")
    assert old == new
    assert old.modules == (
        DkmsModule(
            module="nvidia",
            version="580.95.05",
            kernel="6.8.0-60-generic",
            arch="x86_64",
            state="installed",
        ),
    )


def test_what_is_only_added_has_no_kernel() -> None:
    found = parse_dkms(DKMS_2)
    assert [(m.module, m.state, m.kernel) for m in found.modules] == [
        ("mlnx-ofed-kernel", "installed", "5.4.0-89-generic"),
        ("nvidia-fs", "built", "5.4.0-77-generic"),
        ("nvidia-fs", "added", None),
    ]
    assert found.of("nvidia-fs", "5.4.0-89-generic") is None


@pytest.mark.parametrize(
    ("notes", "fields"),
    [
        (DIFF, {"differs"}),
        (f"{DIFF} {DIFF}", {"differs"}),
        ("(Differences between built and installed modules)", {"differs"}),
        ("(Built modules are missing in the kernel modules folder)", {"missing"}),
        ("(WARNING! Missing some built modules!)", {"missing"}),
        ("(original_module exists)", {"original_kept"}),
        (f"(Original modules exist) {DIFF}", {"original_kept", "differs"}),
        ("", set()),
    ],
)
def test_notes(notes: str, fields: set[str]) -> None:
    found = one(f"zfs/2.2.2, 6.8.0-60-generic, x86_64: installed {notes}".rstrip())
    told = {name for name in ("differs", "missing", "original_kept") if getattr(found, name)}
    assert told == fields
    assert found.in_place == (not fields & {"differs", "missing"})


def test_a_note_that_is_not_known_is_not_passed_over() -> None:
    with pytest.raises(ValueError, match=r"\(out of season\)"):
        parse_dkms("zfs/2.2.2, 6.8.0, x86_64: installed (out of season)")


def test_a_build_for_another_kernel_may_be_linked_to() -> None:
    found = one("kmod/1, 5.14.0-2.el9.x86_64, x86_64: installed-weak from 5.14.0-1.el9.x86_64")
    assert (found.state, found.weak_from) == ("installed-weak", "5.14.0-1.el9.x86_64")
    assert found.in_place


def test_a_broken_one_is_told_once_of_both_streams() -> None:
    found = parse_dkms(DKMS_3 + BROKEN)
    broken = [(m.module, m.version) for m in found.modules if m.state == "broken"]
    assert broken == [("lustre-client-modules", "2.16.1")]
    assert parse_dkms(BROKEN).modules == (
        DkmsModule(module="lustre-client-modules", version="2.16.1", state="broken"),
    )
    assert found.problems == ()


def test_complaints_are_kept_in_dkms_own_words() -> None:
    text = "\nError! Could not locate dkms.conf file.\nFile: /var/lib/dkms/x does not exist.\n"
    found = parse_dkms(text, 4)
    assert found.problems == ("Could not locate dkms.conf file.",)
    assert found.modules == ()


def test_an_installed_version_stands_before_a_built_one() -> None:
    kernel = "6.8.0-60-generic"
    text = f"x/2, {kernel}, x86_64: built\nx/1, {kernel}, x86_64: installed\n"
    found = parse_dkms(text).of("x", kernel)
    assert found is not None
    assert (found.version, found.state) == ("1", "installed")


def test_no_dkms_is_not_no_module() -> None:
    assert parse_dkms("", 127) == Dkms(installed=False)
    assert parse_dkms("") == Dkms()


@pytest.mark.parametrize(
    ("text", "rc", "words"),
    [
        ("nvidia: installed\n", 0, "expected a row"),
        ("nvidia/580, 6.8.0, x86_64: waiting\n", 0, "expected a row"),
        ("Segmentation fault\n", 139, "expected a row"),
        ("", 1, "exited 1"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(text: str, rc: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_dkms(text, rc)


WORD = st.from_regex(r"[a-z][a-z0-9._-]{0,11}", fullmatch=True)


@given(WORD, WORD, WORD, st.sampled_from(["built", "installed"]), st.booleans(), st.booleans())
def test_what_dkms_prints_is_read_back(
    module: str, version: str, kernel: str, state: str, old: bool, differs: bool
) -> None:
    name = f"{module}, {version}" if old else f"{module}/{version}"
    found = one(f"{name}, {kernel}, x86_64: {state}{f' {DIFF}' if differs else ''}\n")
    assert (found.module, found.version, found.kernel) == (module, version, kernel)
    assert (found.state, found.differs) == (state, differs)


@given(st.lists(st.sampled_from(LINES) | st.text()), st.sampled_from([0, 1, 127]))
def test_nothing_but_a_value_error_is_raised(lines: list[str], rc: int) -> None:
    try:
        found = parse_dkms("\n".join(lines), rc)
    except ValueError:
        return
    assert found.installed == (rc != 127 and "dkms: not found" not in "".join(lines))
