"""mdadm.conf as mdadm reads it, and its udev rule."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.mdadm import CONFIG, MdadmConfig, assembles, read_config
from facts.probe import Focus, script
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, metadata, record
from tests.unit.scratch_host import RULE

DEBIAN, EL = "/etc/mdadm/mdadm.conf", "/etc/mdadm.conf"


def read(**files: str) -> MdadmConfig:
    """Files by place: ``debian``, ``el``, ``debian_d``, ``el_d``; mdadm's rule is there."""
    paths = {
        "debian": DEBIAN,
        "el": EL,
        "debian_d": f"{DEBIAN}.d/x.conf",
        "el_d": f"{EL}.d/x.conf",
    }
    text = "".join(record(paths[key], content) for key, content in files.items())
    return config(text + metadata(RULE))


def config(text: str) -> MdadmConfig:
    sections = {CONFIG.name: Section(stdout=text, rc=0)}
    return read_config(Snapshot(host="n1", marker=MARKER, sections=sections))


def test_an_entry_is_read_with_its_tags_and_its_place() -> None:
    (entry,) = read(
        debian="# comment\nHOMEHOST <system>\n\n"
        "ARRAY /dev/md/data  metadata=1.2 UUID=11112222:33334444:55556666:77778888 \\\n"
    ).entries
    assert (entry.place, entry.device, entry.uuid) == (
        f"{DEBIAN}:4",
        "/dev/md/data",
        "11112222:33334444:55556666:77778888",
    )


@pytest.mark.parametrize(
    ("line", "device", "name", "uuid"),
    [
        ("ARRAY <ignore> UUID=1111-2222", "<ignore>", None, "11112222"),
        ("arr /dev/md9 name='Data Storage'", "/dev/md9", "Data Storage", None),
        ("ARRAY\tdata # and no more", "data", None, None),
        ("ARRAY /dev/md0\n  name=any:x\n\tuuid=AB", "/dev/md0", "any:x", "ab"),
        ('ARRAY "/dev/md/a b" name=q', "/dev/md/a b", "q", None),
    ],
)
def test_words_are_parted_as_mdadm_parts_them(
    line: str, device: str, name: str | None, uuid: str | None
) -> None:
    (entry,) = read(el=line).entries
    assert (entry.device, entry.name, entry.uuid) == (device, name, uuid)


def test_of_two_places_the_first_counts_with_its_directory() -> None:
    found = read(debian="ARRAY a\n", el="ARRAY b\n", debian_d="ARRAY c\n", el_d="ARRAY d\n")
    assert [entry.device for entry in found.entries] == ["a", "c"]
    assert [e.device for e in read(el="ARRAY b\n", el_d="ARRAY d\n").entries] == ["b", "d"]
    assert [e.device for e in read(el_d="ARRAY d\n").entries] == ["d"]


@pytest.mark.parametrize(
    ("words", "allowed"),
    [
        ("", True),
        ("+imsm +1.x -all", True),
        ("-all", False),
        ("-1.x +all", False),
        ("-1 yes", False),
        ("+0.90 no", False),
        ("yes", True),
        ("homehost -all", True),
        ("-imsm +all", True),
    ],
)
def test_what_auto_says_of_arrays_of_version_1(words: str, allowed: bool) -> None:
    assert assembles(words) is allowed


def test_the_first_auto_line_counts() -> None:
    found = read(debian="AUTO -all\nAUTO +all\n", debian_d="AUTO +all\n")
    assert found.refuses == f"{DEBIAN}:1"
    assert read(debian="AUTO +all\nAUTO -all\n").refuses is None


def test_a_rule_that_is_masked_or_not_there_is_told() -> None:
    assert config(metadata(RULE)).rule
    assert config(metadata("/usr/lib/udev/rules.d/65-md-incremental.rules")).rule
    mask = f"\n{MARKER} file link 644 root 1 0 /etc/udev/rules.d/64-md-raid-assembly.rules\n"
    assert not config(f"{mask}{MARKER} target /dev/null\n{metadata(RULE)}").rule
    assert not config("").rule


@given(st.text(alphabet="ARAYto dev/md<ignore>UUID=:'\"#\n\t -", max_size=80))
def test_any_file_is_read(text: str) -> None:
    found = read(debian=text)
    assert all(entry.place.startswith(f"{DEBIAN}:") for entry in found.entries)


def test_the_section_is_a_list_of_files_here_too() -> None:
    text = script((CONFIG,), Focus(storage=True))
    done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=60)
    assert b" rc 0\n" in done.stdout.partition(b"begin mdadm_config")[2]
