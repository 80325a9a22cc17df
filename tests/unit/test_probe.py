"""The probe, run by a real shell on this machine, and its output read back."""

import contextlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts import gpu_driver
from facts.probe import Focus, Section, script
from railwright.files import FileRecord, effective_files
from railwright.focus import focus_of
from railwright.schema import HoldsSpec, ModulesSpec, Node, OfedSpec, PlatformSpec
from railwright.schema.repositories import DnfRepository
from railwright.snapshot import Section as RecordedSection
from railwright.snapshot import Snapshot, SnapshotError, parse_files, parse_probe
from tests.unit.replay import probe_output

PROBE_SH = Path(__file__).parents[2] / "facts" / "probe.sh"


def run(*sections: Section, shell: str = "sh", focus: Focus | None = None) -> Snapshot:
    done = subprocess.run(
        [shell, "-c", script(sections, focus or Focus())], capture_output=True, timeout=60
    )
    assert done.stderr == b""
    return parse_probe(done.stdout.decode("ascii"), host="here")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_output_exit_code_and_errors_come_back_exactly(shell: str) -> None:
    body = "printf 'a\\tb\\n\\n'; printf 'oops\\nagain\\n' >&2; printf 'no end'; return 3"
    section = run(Section(name="x", script=body), shell=shell).section("x")
    assert section.stdout == "a\tb\n\nno end"
    assert section.stderr == "oops\nagain"
    assert (section.rc, section.ended) == (3, "exit")


def test_who_it_is() -> None:
    facts = run().facts("identity")
    assert facts["boot_id"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert facts["machine"] == os.uname().machine
    assert {"kernel", "time", "uid", "os", "os_version"} <= facts.keys()


def test_a_section_that_hangs_is_abandoned_and_the_others_are_read() -> None:
    start = time.monotonic()
    found = run(
        Section(name="hangs", script="echo begun; trap '' TERM; sleep 30", deadline_s=1),
        Section(name="after", script="echo here"),
    )
    # Three deadlines, far from the thirty seconds that waiting for it would take.
    assert time.monotonic() - start < 15
    assert found.section("hangs").ended == "deadline"
    assert found.text("after") == "here\n"
    with pytest.raises(SnapshotError, match="ended by deadline"):
        found.text("hangs")


def test_a_section_that_never_stops_writing_is_cut() -> None:
    section = run(Section(name="x", script="cat /dev/zero", cap_bytes=1000)).section("x")
    assert (section.ended, section.rc) == ("capped", None)


def test_bytes_that_are_no_text_do_not_break_the_answer(tmp_path: Path) -> None:
    odd = tmp_path / "odd"
    odd.write_bytes(b"caf\xc3\xa9 \xff\x00 end\n")
    (record,) = run(Section(name="x", script=f"files '{odd}'")).files("x")
    assert record.content == "caf?? ?? end\n"


def test_files_with_content_links_and_masks(tmp_path: Path) -> None:
    (tmp_path / "a b.conf").write_text("no end")
    (tmp_path / "empty").touch()
    (tmp_path / "link").symlink_to("a b.conf")
    (tmp_path / "mask").symlink_to("/dev/null")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "folder").mkdir()
    records = {
        record.name: record
        for record in run(
            Section(name="x", script=f"files '{tmp_path}'/* '{tmp_path}/missing'")
        ).files("x")
    }
    assert records["a b.conf"].content == "no end"
    assert records["a b.conf"].owner == "root"
    assert records["empty"].content == ""
    assert records["empty"].masks
    assert (records["link"].target, records["link"].content) == (f"{tmp_path}/a b.conf", "no end")
    assert records["mask"].masks
    assert records["dangling"].kind == "link"
    assert records["dangling"].content is None
    assert records["folder"].kind == "directory"
    assert "missing" not in records


def test_nothing_is_written(tmp_path: Path) -> None:
    shutil.copy("/etc/os-release", tmp_path)
    before = {path: path.stat() for path in tmp_path.iterdir()}
    run(Section(name="x", script=f"files '{tmp_path}'/*"))
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == {
        path: stat.st_mtime_ns for path, stat in before.items()
    }


def test_it_works_with_a_path_that_holds_nothing() -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", script([Section(name="x", script="echo fine")], Focus())],
        capture_output=True,
        env={"PATH": "/nonexistent"},
    )
    assert parse_probe(done.stdout.decode(), host="here").text("x") == "fine\n"


def test_inventory_data_is_quoted() -> None:
    focus = Focus(modules=("a; touch /tmp/x", "$(id)"))
    section = Section(name="x", script="printf '%s' \"$RW_MODULES\"")
    assert run(section, focus=focus).text("x") == "a; touch /tmp/x $(id)"


def test_the_focus_of_a_node() -> None:
    node = Node(
        name="gpu1",
        modules=ModulesSpec(options={"nvme-core": {"multipath": False}}),
        holds=HoldsSpec(packages={"bb": None, "aa": "1.0"}),
    )
    focus = focus_of(node)
    assert "nvme_core" in focus.modules
    assert focus.packages == ("aa=1.0", "bb")


DRIVERS = Section(name="x", script="echo looked", for_drivers=True)
BOTH = Section(name="x", script="echo looked", for_drivers=True, for_rails=True)


def test_a_node_that_asks_for_no_drivers_has_no_section_of_them() -> None:
    assert "x" not in run(DRIVERS).sections
    assert run(DRIVERS).left_over("x") == []
    assert run(DRIVERS, focus=Focus(drivers=True)).text("x") == "looked\n"
    # What rails and drivers share is there, and empty where neither is asked for.
    assert run(BOTH).text("x") == ""
    for focus in (Focus(drivers=True), Focus(rails=True)):
        assert run(BOTH, focus=focus).text("x") == "looked\n"


@pytest.mark.parametrize(
    "path",
    [
        "apt/sources.list.d/railwright-doca.sources",
        "apt/preferences.d/railwright-doca.pref",
        "apt/keyrings/railwright-doca.asc",
        "yum.repos.d/railwright-doca.repo",
        "pki/rpm-gpg/RPM-GPG-KEY-railwright-doca",
        gpu_driver.PLAN_PATH,
        gpu_driver.UNIT.path,
        gpu_driver.UNIT.link,
        gpu_driver.DROP_IN,
        gpu_driver.SCRIPT_PATH,
    ],
)
@pytest.mark.parametrize("dangling", [False, True])
def test_files_of_ours_for_drivers_are_seen_where_none_are_asked_for_any_more(
    path: str, dangling: bool, tmp_path: Path
) -> None:
    file = tmp_path / path.removeprefix("/etc/").lstrip("/")
    file.parent.mkdir(parents=True)
    if dangling:
        file.symlink_to("nowhere")
    else:
        file.touch()
    moved = script([DRIVERS], Focus()).replace("/etc/", f"{tmp_path}/")
    moved = moved.replace(" /usr/local/sbin/", f" {tmp_path}/usr/local/sbin/")
    done = subprocess.run(["sh", "-c", moved], capture_output=True, text=True, timeout=60)
    assert parse_probe(done.stdout, host="here").text("x") == "looked\n"


def test_a_list_of_what_is_left_over_that_could_not_be_made_is_not_an_empty_one() -> None:
    failed = RecordedSection(stdout="", rc=127)
    snapshot = Snapshot(host="gpu1", marker="m", sections={"x": failed})
    with pytest.raises(SnapshotError, match="is no list of files"):
        snapshot.left_over("x")


def test_drivers_are_asked_for_by_any_part_of_them() -> None:
    assert not focus_of(Node(name="gpu1", platform=PlatformSpec(release="24.04"))).drivers
    assert focus_of(Node(name="gpu1", ofed=OfedSpec(kind="inbox"))).drivers
    key = {"key": "/k.asc", "fingerprint": "0" * 40, "url": "https://r.example/x"}
    repository = DnfRepository.model_validate(key)
    assert focus_of(Node(name="gpu1", repositories={"r": repository})).drivers


@pytest.mark.parametrize(
    ("output", "what"),
    [
        ("", "expected 'railwright-probe 1 MARKER'"),
        ("sudo: a password is required", "expected 'railwright-probe 1 MARKER'"),
        ("railwright-probe 2 m\n", "expected 'railwright-probe 1 MARKER'"),
        ("railwright-probe 1 m\n\nm begin a\nx", "has no end"),
        ("railwright-probe 1 m\n\nm begin a\nx\nm rc 0\n\nm end a 0\n", "breaks off"),
    ],
)
def test_what_is_no_probe_output_is_refused(output: str, what: str) -> None:
    with pytest.raises(SnapshotError, match=what):
        parse_probe(output, host="here")


def test_a_missing_section_is_told() -> None:
    snapshot = parse_probe("railwright-probe 1 m\n\nm done\n", host="gpu1")
    with pytest.raises(SnapshotError, match="gpu1 has no section 'sysctl'"):
        snapshot.text("sysctl")


@given(st.text())
def test_rubbish_is_refused_or_read_but_never_breaks(text: str) -> None:
    with contextlib.suppress(ValueError):
        parse_probe(text, host="here")
    parse_files(text, "marker-that-is-not-in-it")


def test_a_snapshot_survives_saving() -> None:
    found = run(Section(name="x", script="printf 'a\\n'"))
    assert Snapshot.model_validate_json(found.model_dump_json()) == found


def record(path: str, **more: object) -> FileRecord:
    return FileRecord.model_validate(
        {"path": path, "kind": "file", "content": "", "size": 1} | more
    )


def test_drop_ins_are_sorted_over_all_folders_and_masked_by_name() -> None:
    found = effective_files(
        [
            record("/usr/lib/x.d/50-b.conf"),
            record("/usr/lib/x.d/40-a.conf"),
            record("/etc/x.d/40-a.conf"),
            record("/usr/lib/x.d/10-z.conf"),
            record("/etc/x.d/10-z.conf", kind="link", target="/dev/null"),
            record("/run/x.d/60-c.conf"),
        ],
        ["/etc/x.d", "/run/x.d", "/usr/lib/x.d"],
    )
    assert [file.path for file in found] == [
        "/etc/x.d/40-a.conf",
        "/usr/lib/x.d/50-b.conf",
        "/run/x.d/60-c.conf",
    ]


def test_the_script_is_clean_sh() -> None:
    done = subprocess.run(["shellcheck", "-s", "sh", str(PROBE_SH)], capture_output=True, text=True)
    assert done.stdout == ""


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        st.builds(
            RecordedSection,
            stdout=st.text(st.characters(codec="ascii", exclude_characters="\r\x1c\x1d\x1e\x85")),
            stderr=st.sampled_from(["", "oops", "oops\nagain"]),
            rc=st.integers(0, 255),
        ),
        max_size=3,
    )
)
def test_what_is_played_back_is_what_was_read(sections: dict[str, RecordedSection]) -> None:
    snapshot = Snapshot(host="gpu1", marker="0a0b-marker", sections=sections)
    assert parse_probe(probe_output(snapshot), host="gpu1") == snapshot


@pytest.mark.parametrize(("stdout", "rc"), [("", 127), ("sh: cannot fork\n", 0), ("", 1)])
def test_no_list_of_files_is_not_a_list_of_no_files(stdout: str, rc: int) -> None:
    section = RecordedSection(stdout=stdout, rc=rc)
    snapshot = Snapshot(host="gpu1", marker="m", sections={"x": section})
    with pytest.raises(SnapshotError, match="is no list of files"):
        snapshot.files("x")
