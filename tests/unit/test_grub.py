"""Our GRUB drop-in against the real sh, and the resolver of /etc/default/grub."""

import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from facts.cmdline import found_in
from railwright.files import FileRecord
from railwright.resolve.grub import DEFAULTS, DROPIN, render_dropin, resolve

WORDS = ["quiet", "splash", "iommu=pt", "iommu=off", "nowatchdog", "hugepagesz=2M", "hugepages=9",
         "hugepages=0:1,1:2", "root=/x", "iommu", "*", "hugepagesx=1", "x=iommu=pt"]  # fmt: skip
TEXT = st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join)
VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
LINES = st.one_of(
    st.builds('{}="{}"'.format, st.sampled_from(VARIABLES), TEXT),
    st.builds('{0}="${0} {1}"'.format, st.sampled_from(VARIABLES), TEXT),
)
CONTENT = st.lists(LINES, max_size=3).map(lambda lines: "".join(f"{x}\n" for x in lines))
ASKED = st.lists(
    st.sampled_from(
        ["iommu=pt", "nowatchdog", "mitigations=off", "hugepagesz=2M hugepages=0:1,1:2"]
    ),
    min_size=1,
    unique=True,
).map(lambda asked: " ".join(asked).split())


def record(path: str, content: str | None) -> FileRecord:
    return FileRecord(path=path, kind="file", content=content)


def by_sh(files: list[FileRecord]) -> list[str]:
    """The words that sh leaves in the two variables after reading ``files``, as grub-mkconfig."""
    with tempfile.TemporaryDirectory() as folder:
        script = ["set -e"]
        for number, file in enumerate(files):
            path = Path(folder, str(number))
            path.write_text(file.content or "")
            script.append(f". {path}")
        script.append('printf "%s" "$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"')
        done = subprocess.run(
            ["sh", "-c", "\n".join(script)], capture_output=True, text=True, check=True
        )
    return done.stdout.split()


def texts(files: list[FileRecord]) -> list[str | None]:
    return [argument.text for argument in resolve(files).arguments]


@given(CONTENT, CONTENT, ASKED, CONTENT)
@settings(max_examples=150, deadline=None)
def test_the_resolver_says_what_sh_says(
    defaults: str, before: str, asked: list[str], after: str
) -> None:
    files = [
        record(DEFAULTS, defaults),
        record("/etc/default/grub.d/50.cfg", before),
        record(DROPIN, render_dropin(asked)),
        record("/etc/default/grub.d/zz.cfg", after),
    ]
    assert texts(files) == by_sh(files)


@given(CONTENT, CONTENT, ASKED)
@settings(max_examples=100, deadline=None)
def test_with_our_drop_in_last_each_argument_is_there_once_and_counts(
    defaults: str, before: str, asked: list[str]
) -> None:
    files = [
        record(DEFAULTS, defaults),
        record("/etc/default/grub.d/50.cfg", before),
        record(DROPIN, render_dropin(asked)),
    ]
    words = by_sh(files)
    assert all(words.count(argument) == 1 for argument in asked)
    for key in {argument.partition("=")[0] for argument in asked}:
        group = "hugepages" if key.startswith("hugepages") else key
        assert found_in(words, group) == found_in(asked, group)


@given(CONTENT, ASKED)
@settings(max_examples=30, deadline=None)
def test_sourcing_our_drop_in_twice_changes_nothing(defaults: str, asked: list[str]) -> None:
    once = [record(DEFAULTS, defaults), record(DROPIN, render_dropin(asked))]
    assert by_sh([*once, once[-1]]) == by_sh(once)


def test_our_drop_in_is_clean_sh() -> None:
    content = render_dropin(["hugepagesz=2M", "hugepages=0:1", "iommu=pt", "nowatchdog"])
    for command in (["sh", "-n"], ["shellcheck", "-s", "sh", "-e", "SC2034", "-"]):
        done = subprocess.run(command, input=content, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    # Word splitting without globbing: a * stays one.
    assert "*" in by_sh([record(DEFAULTS, "GRUB_CMDLINE_LINUX='*'\n"), record(DROPIN, content)])


def test_each_argument_names_the_line_that_brings_it_in() -> None:
    files = [
        record(DEFAULTS, 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"\nGRUB_CMDLINE_LINUX="root=x"\n'),
        record(DROPIN, render_dropin(["iommu=pt"])),
        record("/etc/default/grub.d/60.cfg", 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX a"'),
        record("/etc/default/grub.d/.hidden.cfg", "GRUB_CMDLINE_LINUX=b"),
        record("/etc/default/grub.d/other.txt", "GRUB_CMDLINE_LINUX=b"),
    ]
    found = [(argument.text, argument.origin) for argument in resolve(files).arguments]
    assert found == [
        ("root=x", f"{DEFAULTS}:2"),
        ("a", "/etc/default/grub.d/60.cfg:1"),
        ("quiet", f"{DEFAULTS}:1"),
        ("iommu=pt", f"{DROPIN}:2"),
    ]


def test_a_file_that_cannot_be_read_leaves_all_unknown() -> None:
    found = resolve(
        [record(DEFAULTS, "GRUB_CMDLINE_LINUX=a\n"), record("/etc/default/grub.d/a.cfg", None)]
    )
    assert {argument.text for argument in found.arguments} == {None}
    assert found.arguments[0].origin == "/etc/default/grub.d/a.cfg: cannot be read"


def test_a_drop_in_cut_short_is_not_taken_for_ours() -> None:
    cut = render_dropin(["iommu=pt"])[:-10]
    assert texts([record(DROPIN, cut)]) != ["iommu=pt"]
    assert texts([record(DROPIN, "")]) == []
