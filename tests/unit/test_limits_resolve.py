"""Which line decides: pam_limits' rule, and systemd's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.files import FileRecord
from railwright.resolve.limits import (
    ORDINARY,
    Bound,
    Decision,
    Subject,
    decide,
    exceptions,
    pam_files,
    pam_lines,
)
from railwright.resolve.manager import assignments, decide_default, decide_own, parse_rlimit
from railwright.rlimits import UNLIMITED, LimitName, Pair, pair_text, systemd_value

ROOT = Subject(root=True, wildcard=False)
ROOT_ON_RHEL = Subject(root=True)
D = "/etc/security/limits.d"


def records(files: dict[str, str]) -> list[FileRecord]:
    return [
        FileRecord(path=path, kind="file", content=text, size=len(text))
        for path, text in files.items()
    ]


def pam(files: dict[str, str], bound: Bound, subject: Subject) -> tuple[int | None, str] | None:
    found = decide(pam_lines(records(files)), "memlock", bound, subject)
    return found and (found.value, found.decider)


@pytest.mark.parametrize(
    ("text", "bound", "subject", "expected"),
    [
        ("* soft memlock 64", "soft", ORDINARY, (65536, 1)),
        ("* soft memlock 64", "hard", ORDINARY, None),
        ("* - memlock 64", "hard", ORDINARY, (65536, 1)),
        ("* - memlock 64", "hard", ROOT, None),
        ("* - memlock 64", "hard", ROOT_ON_RHEL, (65536, 1)),
        ("root - memlock 1\n* - memlock 64", "hard", ROOT_ON_RHEL, (1024, 1)),
        ("* - memlock 1\n* - memlock 2", "hard", ORDINARY, (2048, 2)),
        # Who is named by uid is not reached by the wildcard, whichever comes last.
        ("1000: - memlock 1\n* - memlock 2", "hard", ORDINARY, (1024, 1)),
        (":0 - memlock 1\nroot - memlock 2\n0: - memlock 3", "hard", ROOT, (3072, 3)),
        ("2000: - memlock 1\n* - memlock 2", "hard", ORDINARY, (2048, 2)),
        # A "-" line that loses by its soft bound is dropped whole (seen with pam 1.5.2).
        ("1000: soft memlock 9\n* - memlock 5", "hard", ORDINARY, None),
        ("1000: hard memlock 9\n* - memlock 5", "soft", ORDINARY, (5120, 2)),
        # The hard limit cuts the soft one.
        ("* soft memlock unlimited\n* hard memlock 64", "soft", ORDINARY, (65536, 2)),
        # A line without item and value frees of all limits, not so with the wildcard.
        ("root hard memlock 64\nroot -", "hard", ROOT, (None, 2)),
        ("* hard memlock 64\n* -", "hard", ORDINARY, (65536, 1)),
        # What pam_limits passes over.
        ("#* hard memlock 64", "hard", ORDINARY, None),
        ("* hard memlock", "hard", ORDINARY, None),
        ("* firm memlock 64", "hard", ORDINARY, None),
        ("* hard memlock lots", "hard", ORDINARY, None),
        ("% hard memlock 64", "hard", ORDINARY, None),
        ("somebody hard memlock 64", "hard", ORDINARY, None),
        # What it reads nevertheless.
        ("  *\tHARD MemLock 64kb # c", "hard", ORDINARY, (65536, 1)),
        ("* hard memlock -1", "hard", ORDINARY, (UNLIMITED, 1)),
        ("* hard memlock Infinity", "hard", ORDINARY, (UNLIMITED, 1)),
        ("* hard memlock 99999999999999999999", "hard", ORDINARY, (UNLIMITED, 1)),
    ],
)
def test_one_file(
    text: str, bound: Bound, subject: Subject, expected: tuple[int | None, int] | None
) -> None:
    path = f"{D}/x.conf"
    wanted = expected and (expected[0], f"{path}:{expected[1]}")
    assert pam({path: text}, bound, subject) == wanted


def test_order_of_files() -> None:
    files = {
        f"{D}/b.conf": "* hard memlock 2",
        f"{D}/B.conf": "* hard memlock 1",
        "/etc/security/limits.conf": "* hard memlock 3",
        f"{D}/z.conf.bak": "* hard memlock 4",
        f"{D}/.z.conf": "* hard memlock 5",
    }
    assert pam(files, "hard", ORDINARY) == (2048, f"{D}/b.conf:1")


def test_vendor_files_give_way_to_those_of_the_same_name() -> None:
    files = {
        "/usr/share/security/limits.conf": "* hard memlock 1",
        "/etc/security/limits.conf": "",
        f"{D}/a.conf": "",
        "/usr/share/security/limits.d/a.conf": "* hard memlock 2",
        "/usr/share/security/limits.d/b.conf": "* hard memlock 3",
    }
    found = [record.path for record in pam_files(records(files))]
    assert found == [
        "/etc/security/limits.conf",
        f"{D}/a.conf",
        "/usr/share/security/limits.d/b.conf",
    ]


@pytest.mark.parametrize(
    ("text", "bound", "expected"),
    [
        ("@students hard memlock 64", "hard", [("@students", 65536)]),
        ("@students hard memlock 64", "soft", [("@students", 65536)]),
        ("@students soft memlock 64", "hard", []),
        ("@students - memlock 64\n@students - memlock unlimited", "hard", []),
        ("5000:6000 - memlock 64", "soft", [("5000:6000", 65536)]),
        ("root - memlock 64", "hard", []),
        ("oracle -", "hard", [("oracle", None)]),
        ("% -\n@students hard nofile 4", "hard", []),
    ],
)
def test_who_gets_less(text: str, bound: Bound, expected: list[tuple[str, int | None]]) -> None:
    lines = pam_lines(records({f"{D}/x.conf": text}))
    found = exceptions(lines, "memlock", bound, UNLIMITED)
    assert [(domain, decision.value) for domain, decision in found] == expected


domains = st.sampled_from(["*", "root", "@g", "bob", "1000:", ":0", "#"])
kinds = st.sampled_from(["soft", "hard", "-"])
lines_of = st.lists(st.tuples(domains, kinds, st.integers(1, 999)), max_size=8)
OURS = "* soft memlock unlimited\n* hard memlock unlimited\n"
OURS += "root soft memlock unlimited\nroot hard memlock unlimited\n"


@given(lines_of, st.sampled_from(["soft", "hard"]))
def test_ours_last_wins_unless_uids_are_named(
    lines: list[tuple[str, str, int]], bound: Bound
) -> None:
    foreign = "\n".join(f"{domain} {kind} memlock {n}" for domain, kind, n in lines)
    both = pam_lines(records({f"{D}/50.conf": foreign, f"{D}/99-zz.conf": OURS}))
    root = decide(both, "memlock", bound, ROOT)
    assert root is not None
    assert root.value == UNLIMITED
    if "1000:" not in {domain for domain, _, _ in lines}:
        ordinary = decide(both, "memlock", bound, ORDINARY)
        assert ordinary is not None
        assert ordinary.value == UNLIMITED


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for line in pam_lines(records({f"{D}/x.conf": text})):
        assert line.number <= text.count("\n") + 1
    for said in assignments(text, "Manager"):
        assert said.number <= text.count("\n") + 1


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("memlock", "infinity", (UNLIMITED, UNLIMITED)),
        ("memlock", "64M", (64 << 20, 64 << 20)),
        ("memlock", "64K:1G", (65536, 1 << 30)),
        ("memlock", "1.5K", (1536, 1536)),
        ("memlock", "1G 512M", ((1 << 30) + (512 << 20),) * 2),
        ("memlock", "512M 1G", None),
        ("memlock", "unlimited", None),
        ("memlock", "2G:1G", None),
        ("memlock", "64MiB", None),
        ("memlock", "1:", None),
        ("nofile", "1024:524288", (1024, 524288)),
        ("nofile", "64K", None),
        ("nofile", "0x10", (16, 16)),
        ("nofile", "010", (8, 8)),
        ("nofile", "-1", None),
        ("nproc", "infinity", (UNLIMITED, UNLIMITED)),
    ],
)
def test_rlimit(name: LimitName, text: str, expected: tuple[int, int] | None) -> None:
    found = parse_rlimit(name, text)
    assert (found and (found.soft, found.hard)) == expected


@given(
    st.sampled_from(["memlock", "nofile", "nproc", "stack"]),
    st.lists(st.integers(1, 2**40) | st.just(UNLIMITED), min_size=2, max_size=2),
)
def test_rlimit_reads_what_is_written(name: LimitName, values: list[int]) -> None:
    soft, hard = sorted(v if v == UNLIMITED else v * 1024 for v in values)
    pair = Pair(soft=soft, hard=hard)
    assert parse_rlimit(name, systemd_value(name, pair)) == pair
    assert pair_text(name, pair)


E = "/etc/systemd/system.conf"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({E: "[Manager]\nDefaultLimitMEMLOCK=1K\n"}, (1024, f"{E}:2")),
        ({E: "[Manager]\n#DefaultLimitMEMLOCK=1K\n"}, None),
        ({E: "[Service]\nDefaultLimitMEMLOCK=1K\n"}, None),
        (
            {E: "[Manager]\nDefaultLimitMEMLOCK=1K\nDefaultLimitMEMLOCK=junk\n"},
            (1024, f"{E}:2"),
        ),
        ({E: "[Manager]\nDefaultLimitMEMLOCK=1K\nDefaultLimitMEMLOCK=\n"}, None),
        ({E: "[Manager]\nDefaultLimitMEMLOCK=\\\n# c\n 2K\n"}, (2048, f"{E}:2")),
        (
            {
                E: "[Manager]\nDefaultLimitMEMLOCK=1K\n",
                "/etc/systemd/system.conf.d/b.conf": "[Manager]\nDefaultLimitMEMLOCK=2K\n",
                "/usr/lib/systemd/system.conf.d/c.conf": "[Manager]\nDefaultLimitMEMLOCK=3K\n",
                "/usr/lib/systemd/system.conf.d/b.conf": "[Manager]\nDefaultLimitMEMLOCK=4K\n",
            },
            (3072, "/usr/lib/systemd/system.conf.d/c.conf:2"),
        ),
        (
            {
                "/etc/systemd/system.conf.d/c.conf": "",
                "/usr/lib/systemd/system.conf.d/c.conf": "[Manager]\nDefaultLimitMEMLOCK=3K\n",
            },
            None,
        ),
        ({"/etc/systemd/user.conf": "[Manager]\nDefaultLimitMEMLOCK=1K\n"}, None),
    ],
)
def test_default(files: dict[str, str], expected: tuple[int, str] | None) -> None:
    found = decide_default(records(files), "system", "memlock")
    assert (found and (found.pair.hard, found.decider)) == expected


def test_own_lines_of_a_unit() -> None:
    found = decide_own("memlock", [("a:1", "infinity"), ("b:1", "64K"), ("c:1", "nonsense")])
    assert found is not None
    assert (found.pair.hard, found.decider) == (65536, "b:1")
    assert decide_own("memlock", [("a:1", "infinity"), ("b:1", "")]) is None


def test_decision_of_a_freed_login_has_no_value() -> None:
    line = pam_lines(records({f"{D}/x.conf": "root -"}))
    assert decide(line, "stack", "soft", ROOT) == Decision(value=None, decider=f"{D}/x.conf:1")
