"""``railwright gds test``: what it asks, what it prints, and how it ends."""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from railwright.cli import main
from railwright.fleet import FleetError, Question
from railwright.reading import Reading, Unread
from railwright.snapshot import Section, Snapshot
from tests.unit.gds_io_host import STOCK, Host, counters, result, sections


class Nodes:
    """Nodes that answer as those do whose IO is direct, but for what is given by host."""

    def __init__(self, **first: dict[str, str | Section]) -> None:
        self.first = first
        self.second: dict[str, Reading | str] = {}
        self.stops_at = 0
        self.asked: list[dict[str, str]] = []

    def __call__(self, questions: Sequence[Question]) -> dict[str, Reading]:
        names = [question.sections[0].name for question in questions]
        assert len(set(names)) == 1
        self.asked.append({q.node.name: q.sections[0].script for q in questions})
        if len(self.asked) == self.stops_at:
            raise KeyboardInterrupt
        reply = self._test if names[0] == "gds_test" else self._look
        return {question.node.name: reply(question.node.name) for question in questions}

    def _look(self, host: str) -> Reading:
        place = "tools=/t\nconfig=/etc/cufile.json\nfstype=ext4\ntarget=/data\navail=42949672960\n"
        told: dict[str, str | Section] = {
            "identity": "kernel=6.8.0\n",
            "gds_place": place,
            "gds_in_force": base64.b64encode(STOCK.encode()).decode(),
            "gds_check": Section(stdout="", rc=127),
            "gds_mounts": "",
            "gds_environment": "",
            "gds_platform": "",
        }
        told |= self.first.get(host, {})
        return Snapshot(host=host, marker="m", sections=sections(**told))

    def _test(self, host: str) -> Reading:
        found = self.second.get(host, answer())
        if not isinstance(found, str):
            return found
        return Snapshot(host=host, marker="m", sections=sections(gds_test=found))


def answer(read: int = 1024, written: int = 1024) -> str:
    """What a test's section prints of which nvidia-fs counted so many MiB."""
    parts = {
        "before": counters(5, 5),
        "write": result("write", 1024 << 10, 4.5),
        "read": result("read", 1024 << 10, 6.25),
        "after": counters(5 + read, 5 + written),
    }
    return "".join(f"\nm port gds {name}\n{text}\nm exit 0\n" for name, text in parts.items())


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Nodes:
    found = Nodes()
    monkeypatch.setattr("railwright.cli.gds.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", found)
    return found


@pytest.fixture
def site(tmp_path: Path) -> str:
    path = tmp_path / "site.yaml"
    path.write_text('groups:\n  rack:\n    hosts: "gpu[001-003]"\n')
    return str(path)


def gds_test(site: str, *arguments: str) -> int:
    return main(["gds", "test", site, "--directory", "/data", *arguments])


def test_a_healthy_fleet(nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert gds_test(site) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:4]] == [
        [f"gpu00{n}", "direct", "nvidia-fs", "4.50", "6.25", "2048", "MiB", "0"] for n in (1, 2, 3)
    ]
    assert lines[4] == (
        "gpu[001-003] direct: nvidia-fs moved 1024 of 1024 MiB read, 1024 of 1024 MiB written"
    )
    assert lines[-1] == "3 hosts: 3 direct, 0 through the host, 0 failed, 0 not proven"


def test_io_through_the_host_is_a_finding_with_its_cause(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    mounts = "ext4 /dev/mapper/vg dm-0 rw /data\n"
    nodes.first = {"gpu002": {"gds_mounts": mounts}}
    nodes.second["gpu002"] = answer(read=0, written=0)
    assert gds_test(site) == 2
    out = capsys.readouterr().out
    assert "gpu002 through the host: nvidia-fs moved 0 of 1024 MiB read" in out
    assert "gpu002 /dev/mapper/vg is of the device mapper (dm-0)" in out
    assert "↳ remedy: a file system on the NVMe drive itself" in out
    assert "↳ source: NVIDIA/gds-nvidia-fs#62" in out
    assert "3 hosts: 2 direct, 1 through the host, 0 failed, 0 not proven" in out


def test_a_node_without_gdsio_is_an_error_of_that_node(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = "tools=\nconfig=/etc/cufile.json\nfstype=ext4\ntarget=/data\navail=42949672960\n"
    nodes.first = {"gpu003": {"gds_place": bare}}
    assert gds_test(site) == 1
    out = capsys.readouterr().out
    assert "gpu003 not proven: gdsio is not installed (gds-tools of CUDA" in out
    assert "3 hosts: 2 direct" in out
    assert sorted(nodes.asked[1]) == ["gpu001", "gpu002"]


def test_an_error_outranks_findings_and_both_are_told(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.first = {"gpu001": {"gds_place": Section(stdout="", stderr="no directory", rc=66)}}
    nodes.second["gpu002"] = Unread(host="gpu002", error="gave no answer within 400 s")
    nodes.second["gpu003"] = answer(read=0)
    assert gds_test(site) == 1
    out = capsys.readouterr().out
    assert "gpu001: not read: no directory" in out
    assert "gpu002 not proven: gave no answer within 400 s" in out
    assert "gpu003 through the host" in out
    assert out.splitlines()[-1] == (
        "3 hosts: 0 direct, 1 through the host, 0 failed, 1 not proven; not read: gpu001"
    )


def test_json_has_what_the_table_has(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    nodes.second["gpu003"] = answer(read=0)
    assert gds_test(site, "--format", "json", "--limit", "gpu[002-003]") == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["command"], report["exit_code"]) == (1, "gds test", 2)
    assert [one["host"] for one in report["trials"]] == ["gpu002", "gpu003"]
    last = report["trials"][-1]
    assert (last["outcome"], last["way"], last["unseen_bytes"]) == ("host", "both", 1 << 30)
    assert last["rate"] == {"write": 4.5, "read": 6.25}


@pytest.mark.parametrize("at", [1, 2])
def test_ctrl_c_leaves_a_report_of_what_was_not_run(
    nodes: Nodes, site: str, capsys: pytest.CaptureFixture[str], at: int
) -> None:
    nodes.stops_at = at
    nodes.first = {"gpu001": {"gds_place": Section(stdout="", stderr="no directory", rc=66)}}
    assert gds_test(site) == 1
    out, err = capsys.readouterr()
    assert "stopped" in err
    rest = "gpu[001-003]" if at == 1 else "gpu[002-003]"
    assert f"{rest}: not run: stopped" in out


def test_nodes_are_asked_for_the_file_the_gpu_and_the_time(nodes: Nodes, site: str) -> None:
    arguments = ["--file", "/data/it's mine", "--gpu", "5", "--seconds", "7"]
    assert main(["gds", "test", site, *arguments]) == 0
    first, second = nodes.asked
    assert "\ndirectory=/data\n" in first["gpu001"]
    script = second["gpu001"]
    assert (
        "\ndirectory=''\nfile='/data/it'\"'\"'s mine'\ngpu=5\nsize_mib=1024\nseconds=7\n" in script
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "either --directory DIR or --file PATH"),
        (["--directory", "/a", "--file", "/a/b"], "either --directory DIR or --file PATH"),
        (["--directory", "data"], "expected an absolute path"),
        (["--file", "/data/"], "expected a file, got a directory"),
        (["--directory", "/a\nb"], "expected an absolute path"),
        (["--directory", "/a", "--gpu", "-1"], "Invalid value for '--gpu'"),
        (["--directory", "/a", "--limit", "gpu009"], "no host or group 'gpu009'"),
    ],
)
def test_wrong_usage(
    nodes: Nodes,
    site: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert main(["gds", "test", site, *arguments]) == 1
    assert words in capsys.readouterr().err
    assert nodes.asked == []


def test_a_connector_that_is_not_there_is_told(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(questions: Sequence[Question]) -> dict[str, Reading]:
        raise FleetError("no such connector")

    monkeypatch.setattr("railwright.cli.gds.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", refuse)
    assert gds_test(site) == 1
    assert "no such connector" in capsys.readouterr().err


WHOLE = """
import sys
from railwright.cli import main
from railwright.gds import gdsio

root = sys.argv[1]
gdsio.STATS, gdsio.SWITCH, gdsio.TOOLS = root + "/stats", root + "/switch", (root + "/tools",)
sys.exit(main(["gds", "test", root + "/site.yaml", "--directory", root + "/storage",
               "--seconds", "1", "--format", "json"]))
"""


@pytest.mark.parametrize(
    ("direct", "outcome", "code"), [(1, "direct", 0), (0, "host", 2), (0.5, "host", 2)]
)
def test_the_whole_way_over_a_real_connector(
    tmp_path: Path, direct: float, outcome: str, code: int
) -> None:
    host = Host(tmp_path, direct=direct)
    (tmp_path / "site.yaml").write_text('groups:\n  rack:\n    hosts: "@local"\n')
    done = subprocess.run(
        [sys.executable, "-c", WHOLE, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={key: value for key, value in os.environ.items() if not key.startswith("CUFILE_")},
    )
    assert done.returncode == code, done.stderr
    (trial,) = json.loads(done.stdout)["trials"]
    assert (trial["host"], trial["outcome"]) == ("@local", outcome)
    moved = trial["done"]["read"] + trial["done"]["written"]
    assert trial["unseen_bytes"] == pytest.approx(moved * (1 - direct), abs=2 << 20)
    assert (host.switch, list(host.storage.iterdir())) == ("0", [])
