"""Which line decides a key: the forms of sysctl.d(5), as systemd 252 was seen to read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.files import FileRecord
from railwright.resolve.sysctl import (
    DIRECTORIES,
    decide,
    module_of,
    normal_value,
    proc_path,
    read_sysctl_files,
    waits_for_interface,
)


def file(path: str, content: str) -> FileRecord:
    return FileRecord(path=path, kind="file", content=content, size=len(content))


def link(path: str, target: str, content: str | None = None) -> FileRecord:
    return FileRecord(path=path, kind="link", target=target, content=content)


def winner(key: str, *records: FileRecord) -> tuple[str, str | None] | None:
    found = decide(read_sysctl_files(records), key).winner
    return None if found is None else (found.place, found.value)


RP = "net.ipv4.conf.eth0.rp_filter"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["net.ipv4.conf.eth0.rp_filter = 1"], 1),
        (["net/ipv4/conf/eth0/rp_filter=1"], 1),
        (["  -net.ipv4.conf.eth0.rp_filter = 1"], 1),
        (["/net/ipv4//conf/eth0/rp_filter = 1"], 1),
        (["# net.ipv4.conf.eth0.rp_filter = 1", ";x"], None),
        # The last of two lines counts.
        ([f"{RP} = 1", f"{RP} = 2"], 2),
        # A pattern sets what no line names, whichever comes last; the last pattern counts.
        ([f"{RP} = 1", "net.ipv4.conf.*.rp_filter = 2"], 1),
        (["net.ipv4.conf.*.rp_filter = 1", "net.*.conf.eth?.rp_filter = 2"], 2),
        # A line that is repeated with its value keeps its first place.
        (["net.ipv4.conf.*.rp_filter = 1", "net.*.*.*.rp_filter = 2"] * 2, 2),
        (
            ["net.ipv4.*.*.rp_filter = 1", "net.*.*.*.rp_filter = 2", "net.ipv4.*.*.rp_filter = 1"],
            2,
        ),
        # One level of a pattern is one part of the key.
        (["net.ipv4.*.rp_filter = 1"], None),
        (["*.rp_filter = 1"], None),
    ],
)
def test_lines_of_one_file(lines: list[str], expected: int | None) -> None:
    found = winner(RP, file("/etc/sysctl.d/x.conf", "\n".join(lines)))
    assert (found and found[1]) == (None if expected is None else str(expected))


def test_an_exclusion_keeps_patterns_off_and_cancels_what_was_said() -> None:
    pattern, exclusion = "net.ipv4.conf.*.rp_filter = 2\n", f"-{RP}\n"
    for content in (pattern + exclusion, f"{RP} = 1\n{exclusion}", exclusion + pattern):
        found = winner(RP, file("/etc/sysctl.d/x.conf", content))
        assert found is not None
        assert found[1] is None


def test_dots_in_an_interface() -> None:
    key = "net.ipv4.conf.eth0/100.rp_filter"
    for line in ("net.ipv4.conf.eth0/100.rp_filter=1", "net/ipv4/conf/eth0.100/rp_filter=1"):
        assert winner(key, file("/etc/sysctl.d/x.conf", line)) == ("/etc/sysctl.d/x.conf:1", "1")
    assert proc_path(key) == "/proc/sys/net/ipv4/conf/eth0.100/rp_filter"


def test_names_are_sorted_over_all_directories() -> None:
    assert winner(
        "a.b",
        file("/etc/sysctl.d/10-x.conf", "a.b=1"),
        file("/run/sysctl.d/30-x.conf", "\n\na.b=3\n"),
        file("/usr/lib/sysctl.d/20-x.conf", "a.b=2"),
    ) == ("/run/sysctl.d/30-x.conf:3", "3")


def test_a_file_hides_the_one_of_its_name() -> None:
    lower = file("/usr/lib/sysctl.d/50-x.conf", "a.b=2")
    assert winner("a.b", lower) == ("/usr/lib/sysctl.d/50-x.conf:1", "2")
    assert winner("a.b", lower, file("/etc/sysctl.d/50-x.conf", "c.d=1")) is None
    assert winner("a.b", lower, link("/etc/sysctl.d/50-x.conf", "/dev/null", "")) is None


def test_sysctl_conf_counts_where_a_link_leads_to_it() -> None:
    conf = file("/etc/sysctl.conf", "a.b=9\n")
    before = file("/etc/sysctl.d/99-a.conf", "a.b=1\n")
    after = file("/etc/sysctl.d/99-zz-x.conf", "a.b=2\n")
    linked = link("/etc/sysctl.d/99-sysctl.conf", "/etc/sysctl.conf", "a.b=9\n")
    assert winner("a.b", conf, before) == ("/etc/sysctl.d/99-a.conf:1", "1")
    assert winner("a.b", conf, before, linked) == ("/etc/sysctl.conf:1", "9")
    found = decide(read_sysctl_files([conf, linked, after]), "a.b")
    assert found.winner is not None
    assert found.winner.path == after.path
    assert found.reload is not None
    assert found.reload.place == "/etc/sysctl.conf:1"
    assert [line.place for line in found.others] == ["/etc/sysctl.conf:1"]


def test_what_cannot_be_read_is_named() -> None:
    dark = FileRecord(path="/etc/sysctl.d/x.conf", kind="unreadable")
    long = FileRecord(path="/etc/sysctl.d/y.conf", kind="file", content="a.b=1\n", size=70000)
    assert read_sysctl_files([dark, long]).unread == (dark.path, long.path)
    gone = link("/etc/sysctl.d/z.conf", "")
    assert read_sysctl_files([gone]).unread == ()


@pytest.mark.parametrize(
    ("line", "fatal"),
    [
        ("please keep this", True),
        ("// NCCL", True),
        ("// ==========", True),
        ("// rp_filter = 1", False),
        ("//net.core.rmem_max = 5", False),
        ("= 5", True),
        ("export x.y = 5", False),
    ],
)
def test_bad_lines_are_named(line: str, fatal: bool) -> None:
    found = read_sysctl_files([file("/etc/sysctl.d/x.conf", f"# ok\n{line}\na.b = 1\n")])
    assert [(bad.line, bad.text, bad.fatal) for bad in found.bad] == [(2, line, fatal)]
    assert [one.key for one in found.read] == ["a.b"]


def test_bad_lines_of_sysctl_conf_are_told_once_and_fatal_only_where_systemd_reads_it() -> None:
    conf = file("/etc/sysctl.conf", "junk\n")
    linked = link("/etc/sysctl.d/99-sysctl.conf", "/etc/sysctl.conf", "junk\n")
    assert [bad.fatal for bad in read_sysctl_files([conf]).bad] == [False]
    assert [bad.fatal for bad in read_sysctl_files([conf, linked]).bad] == [True]


def test_the_other_of_an_exclusive_pair_is_a_rival_where_it_comes_later() -> None:
    def rival(*lines: str) -> str | None:
        files = read_sysctl_files([file("/etc/sysctl.d/x.conf", "\n".join(lines))])
        found = decide(files, "vm.dirty_bytes").rival
        return found and found.place

    size, ratio = "vm.dirty_bytes = 1073741824", "vm.dirty_ratio = 20"
    assert rival(size, ratio) == "/etc/sysctl.d/x.conf:2"
    assert rival(ratio, size) is None
    assert rival(size, "vm.dirty_ratio = 0") is None
    # Repeated, it keeps its place before the ratio.
    assert rival(size, ratio, size) == "/etc/sysctl.d/x.conf:2"


@pytest.mark.parametrize(
    ("value", "normal"),
    [
        (1, "1"),
        ((4096, 131072), "4096 131072"),
        ("4096\t131072  1", "4096 131072 1"),
        ("0x10", "16"),
        ("cubic", "cubic"),
        ("", ""),
    ],
)
def test_values_are_compared_by_meaning(value: object, normal: str) -> None:
    assert normal_value(value) == normal


def test_late_keys() -> None:
    assert module_of("net.netfilter.nf_conntrack_max") == "nf_conntrack"
    assert module_of("sunrpc.tcp_max_slot_table_entries") == "sunrpc"
    assert module_of("sunrpc.rdma_slot_table_entries") == "rpcrdma"
    assert module_of("net.netfilter.nf_log.2") is None
    known = ["net.ipv4.conf.default.rp_filter", "net.ipv4.conf.eth0.rp_filter"]
    assert waits_for_interface("net.ipv4.conf.eth7.rp_filter", known) == "eth7"
    assert waits_for_interface("net.ipv4.conf.eth0.nope", known) is None
    assert waits_for_interface("net.ipv4.conf.eth7.nope", known) is None


_NAME = st.sampled_from(["10-a", "50-b", "99-sysctl", "99-zz-railwright", "allow", "zz"])
_LINE = st.sampled_from(["a.b = 1", "a/b=2", "-a.b = 3", "a.* = 4", "# a.b = 5", "junk", "-a.c"])
_FILES = st.dictionaries(
    st.tuples(st.sampled_from(DIRECTORIES), _NAME), st.lists(_LINE, min_size=1, max_size=5)
)


@given(_FILES)
def test_the_winner_is_what_an_entry_by_entry_reading_finds(
    files: dict[tuple[str, str], list[str]],
) -> None:
    names = {name: min(DIRECTORIES.index(d) for d, n in files if n == name) for _, name in files}
    named = pattern = None
    for name in sorted(names, key=lambda name: f"{name}.conf"):
        for line in files[DIRECTORIES[names[name]], name]:
            if line in ("a.b = 1", "a/b=2", "-a.b = 3"):
                named = line[-1]
            elif line == "a.* = 4":
                pattern = "4"
    records = [file(f"{d}/{n}.conf", "\n".join(lines)) for (d, n), lines in files.items()]
    found = winner("a.b", *records)
    assert (found and found[1]) == (named or pattern)


@given(st.text(), st.text())
def test_any_content_is_read(one: str, other: str) -> None:
    found = read_sysctl_files([file("/etc/sysctl.d/x.conf", one), file("/etc/sysctl.conf", other)])
    for line in (*found.read, *found.bad):
        content = other if line.path == "/etc/sysctl.conf" else one
        assert content.split("\n")[line.line - 1].strip(" \t\r")
