"""Which line decides for a source. The order was watched on chrony 4.3: a line with the address
of one that is taken is refused ("Could not add source"), whatever its port and options.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.files import FileRecord
from railwright.resolve.chrony import Configuration, canonical_address, configuration

MAIN = "/etc/chrony/chrony.conf"
DIRECTORY = "/etc/chrony/sources.d"
OURS = f"{DIRECTORY}/railwright.sources"
DEBIAN = "confdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\n"
READS = f"sourcedir /run/chrony-dhcp\nsourcedir {DIRECTORY}\n"


def read(**contents: str) -> Configuration:
    names = {
        "main": MAIN,
        "conf": "/etc/chrony/conf.d/site.conf",
        "ours": OURS,
        "other": f"{DIRECTORY}/aaa.sources",
        "readme": f"{DIRECTORY}/README",
        "odd": "/etc/chrony/conf.d/site.conf.bak",
    }
    records = [
        FileRecord(path=names[key], kind="file", content=text, size=len(text))
        for key, text in contents.items()
    ]
    return configuration(records, MAIN, OURS)


def test_debian_reads_our_file() -> None:
    found = read(main=DEBIAN + READS, ours="# c\nserver 10.0.0.1 iburst\n", readme="server x\n")
    assert found.source_dirs == ("/run/chrony-dhcp", DIRECTORY)
    line = found.deciding("10.0.0.1")
    assert line is not None
    assert (line.text, line.where) == ("server 10.0.0.1 port 123 iburst", f"{OURS}:2")
    assert found.deciding("x") is None
    assert [s.address for s in found.sources] == ["2.debian.pool.ntp.org", "10.0.0.1"]


def test_rhel_does_not_read_it() -> None:
    found = read(
        main="pool 2.rhel.pool.ntp.org iburst\nsourcedir /run/chrony-dhcp\n", ours="server a"
    )
    assert DIRECTORY not in found.source_dirs
    assert found.deciding("a") is None


@pytest.mark.parametrize("spelling", ["server 10.0.0.1 prefer", "PEER 10.0.0.1", "pool 10.0.0.1"])
def test_the_main_file_is_taken_first(spelling: str) -> None:
    found = read(main=f"{READS}{spelling}\n", ours="server 10.0.0.1 iburst\n")
    line = found.deciding("10.0.0.1")
    assert line is not None
    assert line.where == f"{MAIN}:3"


def test_confdir_stands_in_its_place() -> None:
    conf = "server 10.0.0.1 port 1123\n"
    before = read(main=f"confdir /etc/chrony/conf.d\n{READS}server 10.0.0.1\n", conf=conf)
    after = read(main=f"server 10.0.0.1\n{READS}confdir /etc/chrony/conf.d\n", conf=conf, odd=conf)
    assert [s.port for s in before.sources] == [1123, 123]
    assert [s.port for s in after.sources] == [123, 1123]


@pytest.mark.parametrize(
    ("other", "ours_decides"),
    [
        ("server 10.0.0.1 port 122\n", False),
        ("server 10.0.0.1 port 124\n", True),
        ("server 10.0.0.1\n", False),
        ("pool 10.0.0.1\n", True),
        ("server 10.0.0.2\n", True),
    ],
)
def test_source_files_are_one_sorted_list(other: str, ours_decides: bool) -> None:
    line = read(main=READS, other=other, ours="server 10.0.0.1 iburst\n").deciding("10.0.0.1")
    assert line is not None
    assert (line.path == OURS) == ours_decides


def test_options_are_compared_by_meaning() -> None:
    one = read(main="server NTP1.example  prefer   port 123 maxpoll 6 iburst\n").sources[0]
    two = read(main="server ntp1.example iburst maxpoll 6 prefer\n").sources[0]
    assert one.text == two.text == "server ntp1.example port 123 iburst maxpoll 6 prefer"
    assert canonical_address("2001:DB8:0::1") == canonical_address("2001:db8::1")


def test_comments_stand_at_the_start_of_a_line() -> None:
    found = read(main="! server a\n; server b\n% server c\n  # server d\nserver e\nserver\n\n")
    assert [s.address for s in found.sources] == ["e"]


def test_a_port_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match=r"chrony\.conf:1: expected a port"):
        read(main="server a port x\n")


addresses = st.sampled_from(["10.0.0.1", "10.0.0.2", "ntp1.example"])
lines = st.builds(
    "{} {} port {}".format, st.sampled_from(["server", "pool"]), addresses, st.integers(1, 300)
)


@given(st.lists(lines), st.lists(lines), st.lists(lines), addresses)
def test_some_line_decides_and_the_main_file_comes_first(
    main: list[str], other: list[str], ours: list[str], address: str
) -> None:
    found = read(
        main="\n".join((*main, READS)), other="\n".join(other), ours="\n".join(ours)
    ).deciding(address)
    mentions = [line for line in (*main, *other, *ours) if f" {address} " in line]
    assert (found is None) == (not mentions)
    if found is not None:
        assert found.text in mentions
        first = [line for line in main if f" {address} " in line]
        assert not first or (found.path, found.text) == (MAIN, first[0])
