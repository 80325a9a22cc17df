"""``railwright storage test``: what it asks, what it prints, and how it ends."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from railwright.cli import main
from railwright.cli.commands import railwright as commands
from railwright.cli.storage import mounts_of as of_inventory
from railwright.cli.storage import storage
from railwright.fleet import FleetError, Question
from railwright.reading import Reading, Unread
from railwright.schema import Node
from railwright.schema.mounted import Throughput
from railwright.snapshot import Section, Snapshot
from railwright.storage.run import targets_of
from railwright.storage.sizes import Kind
from tests.unit.gds_io_host import STOCK, counters, sections
from tests.unit.gds_io_host import result as gdsio_result
from tests.unit.storage_host import result


@dataclass(frozen=True)
class Asked:
    """A mount as an inventory has it."""

    kind: Kind
    expected: Throughput


NOTHING = Throughput()
EXPECTED = Throughput(write_gb_s=1.5, read_gb_s=3.0)
MOUNTS = {"/mnt/nfs": Asked("nfs", EXPECTED), "/scratch": Asked("scratch", EXPECTED)}
PROC = (
    "server:/x /mnt/nfs nfs4 rw,proto=tcp 0 0\n/dev/md0 /scratch xfs rw,noatime 0 0\n"
    "/dev/sda1 /mnt/dark ext4 rw 0 0\n"
)


class Nodes:
    """Nodes whose mounts reach 2 GB/s writing and 4 reading, but for what is given by host."""

    def __init__(self) -> None:
        self.first: dict[str, dict[str, str | Section]] = {}
        self.second: dict[tuple[str, str], Reading | str] = {}
        self.stops_at = 0
        self.asked: list[tuple[str, dict[str, str]]] = []

    def __call__(self, questions: Sequence[Question]) -> dict[str, Reading]:
        (name,) = {question.sections[0].name for question in questions}
        self.asked.append((name, {q.node.name: _scripts(q) for q in questions}))
        if len(self.asked) == self.stops_at:
            raise KeyboardInterrupt
        replies = {
            "storage_tools": self._look,
            "storage_test": self._test,
            "gds_place": self._gds_look,
            "gds_test": self._gds_test,
        }
        return {question.node.name: replies[name](question) for question in questions}

    def _look(self, question: Question) -> Reading:
        host = question.node.name
        asked = re.findall(r"^asked (\d+) ", _scripts(question), re.MULTILINE)
        told: dict[str, str | Section] = {
            "storage_tools": "memory=1048576\nfio=fio-3.33\n",
            "storage_places": "".join(f"{n} 0 1099511627776\n" for n in asked),
            "mounts": PROC,
            "gds_mounts": "xfs /dev/md0 md0 rw,noatime /scratch\n",
        }
        told |= self.first.get(host, {})
        return Snapshot(host=host, marker="m", sections=sections(**told))

    def _test(self, question: Question) -> Reading:
        host = question.node.name
        mount = next(mount for mount in MOUNTS if f"\nmount={mount}\n" in _scripts(question))
        found = self.second.get((host, mount), answer())
        if not isinstance(found, str):
            return found
        return Snapshot(host=host, marker="m", sections=sections(storage_test=found))

    def _gds_look(self, question: Question) -> Reading:
        place = "tools=/t\nconfig=/c\nfstype=xfs\ntarget=/scratch\navail=42949672960\n"
        parts: dict[str, str | Section] = {
            "identity": "kernel=6.8.0\n",
            "gds_place": place,
            "gds_in_force": base64.b64encode(STOCK.encode()).decode(),
            "gds_check": Section(stdout="", rc=127),
            "gds_mounts": "",
            "gds_environment": "",
            "gds_platform": "",
        }
        return Snapshot(host=question.node.name, marker="m", sections=sections(**parts))

    def _gds_test(self, question: Question) -> Reading:
        parts = {
            "before": counters(5, 5),
            "write": gdsio_result("write", 1024 << 10, 4.5),
            "read": gdsio_result("read", 1024 << 10, 6.25),
            "after": counters(5, 5),
        }
        text = "".join(f"\nm port gds {name}\n{said}\nm exit 0\n" for name, said in parts.items())
        return Snapshot(host=question.node.name, marker="m", sections=sections(gds_test=text))


def _scripts(question: Question) -> str:
    return "\n".join(part.script for part in question.sections)


def answer(write: float = 2.0, read: float = 4.0, **rcs: int) -> str:
    """What a test's section prints."""
    parts = {"write": result("write", write), "read": result("read", read)}
    return "".join(
        f"\nm port storage {way}\n{text}\nm exit {rcs.get(way, 0)}\n" for way, text in parts.items()
    )


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(commands.commands, "storage", storage)
    monkeypatch.setattr("railwright.cli.storage.mounts_of", mounts_of)


def mounts_of(node: Node) -> Mapping[str, Asked]:
    return {} if node.name == "login1" else MOUNTS


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    found = Nodes()
    monkeypatch.setattr("railwright.cli.storage.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", found)
    return found


@pytest.fixture
def site(tmp_path: Path) -> str:
    path = tmp_path / "site.yaml"
    path.write_text('groups:\n  rack:\n    hosts: "gpu[001-003]"\n  login:\n    hosts: "login1"\n')
    return str(path)


def storage_test(site: str, *arguments: str) -> int:
    return main(["storage", "test", site, *arguments])


def test_mounts_are_those_of_the_inventory() -> None:
    scratch = {
        "kind": "scratch",
        "raid": None,
        "disks": ["nvme-eui.1"],
        "expected": {"read_gb_s": 5},
    }
    node = Node.model_validate({"name": "gpu001", "storage": {"mounts": {"/scratch": scratch}}})
    (found,) = targets_of(of_inventory(node), [])
    assert (found.mount, found.directory, found.kind) == ("/scratch", "/scratch", "scratch")
    assert found.expected == Throughput(read_gb_s=5)


def test_a_healthy_fleet(nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert storage_test(site) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert [line.split() for line in lines[1:7]] == [
        [f"gpu00{n}", mount, kind, "ok", "2.00", "1.50", "4.00", "3.00", "3"]
        for mount, kind in (("/mnt/nfs", "nfs"), ("/scratch", "scratch"))
        for n in (1, 2, 3)
    ]
    assert lines[7] == (
        "gpu[001-003] /mnt/nfs: 16 streams of 1 MiB blocks, direct, 34944 MiB in all"
    )
    assert lines[-1] == "3 hosts, 6 tests: 6 ok, 0 below, 0 not judged, 0 not measured"
    assert err.splitlines() == ["/mnt/nfs: 3 hosts at once", "/scratch: 3 hosts at once"]


def test_below_is_a_finding_that_says_how_many_ran_at_once(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.second["gpu002", "/mnt/nfs"] = answer(read=2.4)
    assert storage_test(site) == 2
    out = capsys.readouterr().out
    assert "gpu002 /mnt/nfs: read below: 80 % of 3.00 GB/s" in out
    assert "gpu002 /mnt/nfs: note: several hosts ran at once" in out
    assert "3 hosts, 6 tests: 5 ok, 1 below" in out


def test_serial_is_one_node_after_the_other(nodes: Nodes, site: str) -> None:
    assert storage_test(site, "--serial", "--mount", "/mnt/nfs") == 0
    assert [list(scripts) for _, scripts in nodes.asked] == [
        ["gpu001", "gpu002", "gpu003"],
        ["gpu001"],
        ["gpu002"],
        ["gpu003"],
    ]
    # Alone, each may take what the three had to share.
    assert "file_mib=4096\n" in nodes.asked[1][1]["gpu001"]


def test_what_is_wrong_with_a_mount_is_its_own_row(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    read_only = PROC.replace("rw,noatime", "ro,noatime")
    nodes.first = {
        "gpu001": {"mounts": PROC.replace("/mnt/nfs", "/mnt/other")},
        "gpu002": {"storage_places": Section(stdout="1 0 1099511627776\n", rc=None)},
        "gpu003": {"mounts": read_only, "storage_tools": "memory=1048576\nfio=\n"},
    }
    assert storage_test(site) == 1
    out = capsys.readouterr().out
    for line in (
        "gpu001 /mnt/nfs: not measured: not mounted",
        "gpu002 /mnt/nfs: not measured: does not answer (df)",
        "gpu003 /mnt/nfs: not measured: fio is not installed (package fio)",
        "gpu003 /scratch: not measured: mounted read-only",
        "3 hosts, 6 tests: 2 ok, 0 below, 0 not judged, 4 not measured",
    ):
        assert line in out
    assert [list(scripts) for _, scripts in nodes.asked[1:]] == [["gpu001", "gpu002"]]


def test_a_node_that_is_lost_costs_its_own_test(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.first = {"gpu001": {"storage_tools": ""}}
    lost = Unread(host="gpu002", error="gave no answer within 300 s")
    nodes.second["gpu002", "/mnt/nfs"] = lost
    nodes.second["gpu003", "/scratch"] = answer(write=2, read=0, read_rc=0)
    assert storage_test(site) == 1
    out = capsys.readouterr().out
    assert "gpu001: not read: expected MemTotal" in out
    assert "gpu002 /mnt/nfs: not measured: gave no answer within 300 s" in out
    assert "gpu003 /scratch: not measured: read: fio moved nothing" in out
    assert out.splitlines()[-1] == (
        "3 hosts, 4 tests: 2 ok, 0 below, 0 not judged, 2 not measured; not read: gpu001"
    )


def test_what_nothing_is_expected_of_is_not_judged(
    nodes: Nodes, site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = {"/scratch": Asked("scratch", NOTHING)}
    monkeypatch.setattr("railwright.cli.storage.mounts_of", lambda _: bare)
    assert storage_test(site, "--limit", "gpu001") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split() == [
        "gpu001", "/scratch", "scratch", "not", "judged", "2.00", "-", "4.00", "-", "1"
    ]  # fmt: skip
    assert "note: nothing is expected of it: write, read" in lines[2]
    assert lines[-1] == "1 host, 1 test: 0 ok, 0 below, 1 not judged, 0 not measured"


def test_json_has_what_the_table_has(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.second["gpu003", "/scratch"] = answer(write=1.0)
    arguments = ["--format", "json", "--limit", "gpu[002-003]", "--mount", "/scratch/"]
    assert storage_test(site, *arguments) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["command"], report["exit_code"]) == (1, "storage test", 2)
    assert [(one["host"], one["outcome"]) for one in report["results"]] == [
        ("gpu002", "ok"),
        ("gpu003", "below"),
    ]
    last = report["results"][-1]
    assert last["write"] == {"gb_s": 1.0, "expected": 1.5, "outcome": "below"}
    assert (last["at_once"], last["mount"], last["size_mib"]) == (2, "/scratch", 65536)


@pytest.mark.parametrize(("at", "left"), [(1, 6), (2, 6), (3, 3)])
def test_ctrl_c_leaves_a_report_of_what_it_has(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str], at: int, left: int
) -> None:
    nodes.stops_at = at
    assert storage_test(site) == 1
    out, err = capsys.readouterr()
    assert "stopped" in err
    assert "gpu[001-003] /scratch: not run: stopped" in out
    assert ("gpu[001-003] /mnt/nfs: not run: stopped" in out) == (left == 6)
    assert f"{6 - left} tests: {6 - left} ok" in out
    assert f"{left} not run" in out


def test_nodes_are_asked_for_directory_size_and_time(nodes: Nodes, site: str) -> None:
    arguments = ["--mount", "/scratch/it's mine", "--seconds", "7", "--max-gib", "8"]
    assert storage_test(site, *arguments) == 0
    (_, first), (_, second) = nodes.asked
    assert "asked 0 '/scratch/it'\"'\"'s mine' &" in first["gpu001"]
    script = second["gpu001"]
    assert "\nmount=/scratch\ndirectory='/scratch/it'\"'\"'s mine'\n" in script
    assert "\nengine=libaio\ndirect=1\nfile_mib=1024\nseconds=7\nlimit_s=67\n" in script


def test_buffered_takes_twice_the_memory(nodes: Nodes, site: str) -> None:
    assert storage_test(site, "--buffered", "--mount", "/scratch") == 0
    script = nodes.asked[1][1]["gpu001"]
    assert "\nengine=psync\ndirect=0\nfile_mib=257\nseconds=''\n" in script


@pytest.mark.parametrize(
    ("gds", "code"), [("", 0), ("    gds: {mode: auto}\n    gpu_driver: {version: 580.95.05}\n", 2)]
)
def test_from_a_gpu_it_counts_where_gds_is_asked_for(
    nodes: Nodes, tmp_path: Path, capsys: pytest.CaptureFixture[str], gds: str, code: int
) -> None:
    path = tmp_path / "gds.yaml"
    path.write_text(f'groups:\n  rack:\n    hosts: "gpu[001-002]"\n{gds}')
    nodes.first = {"gpu002": {"storage_tools": "memory=1048576\nfio=fio-3.33\ngpu=yes\n"}}
    assert storage_test(str(path)) == code
    out = capsys.readouterr().out
    assert ("by gdsio, which the inventory does not ask for:" in out) == (code == 0)
    assert "gpu002 through the host: nvidia-fs moved 0 of 1024 MiB read" in out
    # NFS by TCP is no mount that libcufile reaches, nor has gpu001 a GPU.
    names = [(name, list(scripts)) for name, scripts in nodes.asked if name.startswith("gds")]
    assert names == [("gds_place", ["gpu002"]), ("gds_test", ["gpu002"])]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--mount", "/scrach"], "no mount '/scrach' (did you mean /scratch?)"),
        (["--mount", "/mnt/nfs2"], "no mount '/mnt/nfs2'"),
        (["--mount", "/mnt"], "no mount '/mnt'"),
        (["--mount", "/scratch/../etc"], "expected a path without .."),
        (["--mount", "/scratch", "--mount", "/scratch/a"], "are both on /scratch: name one"),
        (["--limit", "login1"], "none of these hosts has a mount (storage.mounts)"),
        (["--limit", "gpu009"], "no host or group 'gpu009'"),
        (["--max-gib", "0"], "Invalid value for '--max-gib'"),
    ],
)
def test_wrong_usage(
    nodes: Nodes,
    site: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert storage_test(site, *arguments) == 1
    assert words in capsys.readouterr().err
    assert nodes.asked == []


def test_a_connector_that_is_not_there_is_told(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(questions: Sequence[Question]) -> dict[str, Reading]:
        raise FleetError("no such connector")

    monkeypatch.setattr("railwright.cli.storage.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", refuse)
    assert storage_test(site) == 1
    assert "no such connector" in capsys.readouterr().err
