"""``railwright fabric gids``: the index of each rail's GID, between hosts and over time."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from railwright import reading
from railwright.cli import main
from railwright.fabric.gids import gid_differences, usual_indices
from railwright.fleet import Question
from railwright.reading import Reading, Unread
from tests.unit.fabric_host import gids, node, snapshot

NAMES = ("gpu001", "gpu002", "gpu003")


class Hosts:
    """Answers for the hosts, which have nothing wrong but what ``given`` says."""

    def __init__(self) -> None:
        self.given: dict[str, Reading] = {}
        self.asked: list[str] = []

    def __call__(self, questions: Sequence[Question]) -> dict[str, Reading]:
        names = [question.node.name for question in questions]
        self.asked += names
        return {name: self.given.get(name, snapshot(name)) for name in names}


@pytest.fixture
def hosts(monkeypatch: pytest.MonkeyPatch) -> Hosts:
    found = Hosts()
    monkeypatch.setattr("railwright.cli.fabric_look.patch_sockets", lambda: None)
    monkeypatch.setattr("railwright.fleet.ask", found)
    return found


@pytest.fixture
def site(tmp_path: Path) -> str:
    return write_site(tmp_path, node().model_dump(mode="json", exclude_unset=True))


def write_site(folder: Path, spec: dict[str, object]) -> str:
    given = {key: spec[key] for key in ("fabric", "rails") if key in spec}
    path = folder / "site.yaml"
    # JSON is YAML.
    path.write_text(json.dumps({"groups": {"rack": {"hosts": "gpu[001-003]", **given}}}))
    return str(path)


def saved(folder: Path, **others: str) -> str:
    """Snapshots of all hosts, those in ``others`` with these tables."""
    folder.mkdir()
    for name in NAMES:
        given = {"port_tables": others[name]} if name in others else {}
        reading.save(snapshot(name, **given), folder)
    return str(folder)


def test_hosts_that_are_alike_are_fine(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fabric", "gids", site]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:3]] == [
        ["rail0", "3", "gpu[001-003]"],
        ["rail1", "3", "gpu[001-003]"],
    ]
    assert lines[-1] == "6 rails of 3 hosts looked at: 0 findings"


def test_a_host_with_another_index_is_a_finding(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.given["gpu002"] = snapshot("gpu002", port_tables=gids("gpu002", index=5))
    assert main(["fabric", "gids", site, "--rail", "1"]) == 2
    out = capsys.readouterr().out
    assert "gpu002 rail1: GID index 5, others have 3" in out
    assert "rail0" not in out
    assert main(["fabric", "gids", site, "--format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["usual"] == {"rail0": 3, "rail1": 3}
    assert report["indices"]["gpu002"] == {"rail0": 5, "rail1": 5}
    assert [(one["host"], one["rail"], one["kind"]) for one in report["findings"]] == [
        ("gpu002", "rail0", "differs"),
        ("gpu002", "rail1", "differs"),
    ]
    assert main(["fabric", "gids", site, "--limit", "gpu[001,003]"]) == 0


def test_a_rail_without_its_gid_is_a_finding_even_where_no_host_has_one(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        hosts.given[name] = snapshot(name, port_tables="")
    assert main(["fabric", "gids", site]) == 2
    out = capsys.readouterr().out
    assert "gpu[001-003] rail0: no RoCE v2 GID of its address, or several" in out


def test_most_hosts_have_an_index_though_more_have_none() -> None:
    have = {"a": {"rail0": None}, "b": {"rail0": None}, "c": {"rail0": 3}}
    assert usual_indices(have) == {"rail0": 3}
    assert gid_differences(have) == {"rail0": {"a": None, "b": None}}
    assert usual_indices({"a": {"rail0": None}}) == {}


def test_what_changed_since_a_snapshot_is_told(
    hosts: Hosts, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = saved(tmp_path / "before")
    assert main(["fabric", "gids", site, "--since", before]) == 0
    # All of them changed alike, so that none differs.
    for name in NAMES:
        hosts.given[name] = snapshot(name, port_tables=gids(name, index=7))
    assert main(["fabric", "gids", site]) == 0
    capsys.readouterr()
    assert main(["fabric", "gids", site, "--since", before, "--rail", "0"]) == 2
    out = capsys.readouterr().out
    assert "gpu[001-003] rail0: GID index 3 → 7 since the earlier reading" in out
    assert "rail1" not in out


def test_a_gid_that_came_is_a_change_of_none(
    hosts: Hosts, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = saved(tmp_path / "before", gpu003="")
    assert main(["fabric", "gids", site, "--since", before]) == 2
    assert "gpu003 rail1: GID index none → 3 since" in capsys.readouterr().out


def test_saved_readings_are_replayed_and_no_host_is_asked(
    hosts: Hosts, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    now = saved(tmp_path / "now", gpu001=gids("gpu001", index=9))
    assert main(["fabric", "gids", site, "--from", now]) == 2
    assert "gpu001 rail0: GID index 9, others have 3" in capsys.readouterr().out
    assert hosts.asked == []


def test_what_cannot_be_read_outranks_findings(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.given["gpu001"] = Unread(host="gpu001", error="no route to host")
    hosts.given["gpu002"] = snapshot("gpu002", port_tables="rubbish")
    assert main(["fabric", "gids", site]) == 1
    out = capsys.readouterr().out
    assert "gpu001: not read: no route to host" in out
    assert "gpu002: not read: expected an entry of an RDMA port, got 'rubbish'" in out
    assert out.splitlines()[-1].endswith("; not read: gpu[001-002]")


def test_a_container_has_no_rails_to_read(
    hosts: Hosts, site: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hosts.given["gpu001"] = snapshot("gpu001", identity="container=podman\n")
    assert main(["fabric", "gids", site]) == 1
    assert "gpu001: not read: is a container" in capsys.readouterr().out


def test_an_earlier_reading_that_is_lost_is_an_error(
    hosts: Hosts, site: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = saved(tmp_path / "before")
    Path(before, "gpu002.json").unlink()
    assert main(["fabric", "gids", site, "--since", before]) == 1
    assert "gpu002: earlier reading not read: there is no snapshot" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--since", "/no/such"], "--since /no/such: is no directory"),
        (["--from", "/no/such"], "--from /no/such: is no directory"),
        (["--rail", "7"], "--rail 7: no host has it; there are 0, 1"),
    ],
)
def test_wrong_usage(
    hosts: Hosts,
    site: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    assert main(["fabric", "gids", site, *arguments]) == 1
    assert words in capsys.readouterr().err
    assert hosts.asked == []


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"fabric": "infiniband", "rails": {"nics": {"0": {"pci": "0000:10:00.0"}}}},
        {"fabric": "roce", "rails": {"nics": {"0": {"pci": "0000:10:00.0"}}}},
    ],
)
def test_a_site_without_such_rails_has_nothing_to_look_at(
    hosts: Hosts, tmp_path: Path, capsys: pytest.CaptureFixture[str], spec: dict[str, object]
) -> None:
    assert main(["fabric", "gids", write_site(tmp_path, spec)]) == 1
    assert "none of these hosts has a RoCE rail with an address" in capsys.readouterr().err
