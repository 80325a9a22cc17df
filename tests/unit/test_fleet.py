"""Reading many hosts: pyinfra's fake connector in this process, real ssh in another."""

import itertools
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from railwright import fleet
from railwright.drift import judge
from railwright.reading import Unread, load
from railwright.report.document import document
from railwright.schema import Node
from railwright.settings import Verdict
from railwright.snapshot import Snapshot
from tests.unit import fake_site
from tests.unit.ssh_server import SshServer


def fake(stdout: str = "", stderr: str = "", success: bool = True) -> dict[str, object]:
    """Host data for pyinfra's ``@fake`` connector that answers every command like this."""
    response = {"stdout": stdout, "stderr": stderr, "success": success}
    return {"fake_delay": 0, "fake_delay_jitter": 0, "fake_responses": {"": response}}


TWELVE = {
    "vm.k right right": Verdict.OK,
    "vm.k right not_applicable": Verdict.OK,
    "vm.k not_applicable not_applicable": Verdict.NOT_APPLICABLE,
    "vm.k right wrong": Verdict.NOT_RUNNING,
    "vm.k absent right": Verdict.NOT_PERSISTED,
    "vm.k absent wrong": Verdict.WRONG,
    "vm.k overridden right": Verdict.OVERRIDDEN,
    "vm.k stale wrong reboot": Verdict.NOT_GENERATED,
    "vm.k right wrong reboot": Verdict.PENDING,
    "vm.k right late": Verdict.PENDING,
    "vm.k right degraded": Verdict.DEGRADED,
    "vm.k unreadable right": Verdict.UNREADABLE,
}


def test_500_hosts_over_twelve_snapshots_get_their_verdicts_and_failures_are_named() -> None:
    nodes = [Node(name=f"@fake/gpu{number:03}") for number in range(500)]
    lines = dict(zip((node.name for node in nodes), itertools.cycle(TWELVE), strict=False))
    answers = {name: fake(fake_site.probe_output(line)) for name, line in lines.items()}
    answers["@fake/gpu007"] = fake(stderr="sudo: not allowed", success=False)
    answers["@fake/gpu008"] = fake("Welcome to gpu008")
    answers["@fake/gpu009"] = fake(fake_site.probe_output("a right right").replace("m done", ""))
    found = fleet.read(nodes, fake_site.COMPONENTS, lambda node: answers[node.name])
    reports = judge(nodes, found, fake_site.COMPONENTS)
    assert [report.host for report in reports] == [node.name for node in nodes]
    errors = {
        "@fake/gpu007": "the probe failed: sudo: not allowed",
        "@fake/gpu008": "expected 'railwright-probe 1 MARKER', got 'Welcome to gpu008'",
        "@fake/gpu009": "the probe's output breaks off",
    }
    assert {report.host: report.error for report in reports if report.error} == errors
    for report in reports:
        if report.host not in errors:
            (finding,) = report.findings
            assert finding.verdict is TWELVE[lines[report.host]], report.host
    report = document("drift", reports, accept_pending=False)
    assert report.exit_code == 1
    assert report.summary.unread == tuple(errors)
    assert report.summary.settings == 497
    fine = [r for r in reports if r.host not in errors and TWELVE[lines[r.host]] is Verdict.OK]
    assert document("drift", fine, accept_pending=False).exit_code == 0


def test_an_unknown_connector_is_told() -> None:
    with pytest.raises(fleet.FleetError, match="Invalid connector: nosuch"):
        fleet.read([Node(name="@nosuch/x")], fake_site.COMPONENTS)


def test_no_container_is_started_to_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    podman = tmp_path / "podman"
    podman.write_text(f'#!/bin/sh\necho "$@" >>{log}\necho "no such container" >&2\nexit 125\n')
    podman.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    found = fleet.read([Node(name="@podman/debian")], fake_site.COMPONENTS)
    reading = found["@podman/debian"]
    assert isinstance(reading, Unread)
    assert reading.error == "no container debian is running (podman)"
    assert log.read_text().splitlines() == ["container inspect --format {{.State.Running}} debian"]


def test_this_machine_is_read_by_the_real_probe() -> None:
    found = fleet.read([Node(name="@local")], ())["@local"]
    assert isinstance(found, Snapshot)
    assert found.facts("identity")["kernel"]


@pytest.fixture
def login(tmp_path: Path) -> tuple[paramiko.PKey, Path]:
    key = paramiko.ECDSAKey.generate()
    path = tmp_path / "login_key"
    key.write_private_key_file(str(path))
    return key, path


@pytest.fixture
def server(login: tuple[paramiko.PKey, Path]) -> Iterator[SshServer]:
    with SshServer(login[0]) as running:
        yield running


def site(directory: Path, hosts: dict[str, dict[str, object]]) -> Path:
    """A YAML site of these hosts with these ssh specs (JSON is YAML)."""
    path = directory / "site.yaml"
    groups = {"rack": {"hosts": list(hosts)}}
    specs = {name: {"ssh": ssh} for name, ssh in hosts.items()}
    path.write_text(json.dumps({"groups": groups, "hosts": specs}))
    return path


ROOT = Path(__file__).parents[2]
FAKED = """
import sys
from gevent import monkey
monkey.patch_all()
import deploys.components
from tests.unit import fake_site
deploys.components.COMPONENTS = fake_site.COMPONENTS
from railwright.cli import main
sys.exit(main(sys.argv[1:]))
"""


PLAIN = "import sys; from railwright.cli import main; sys.exit(main(sys.argv[1:]))"


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """The command line in a process of its own, which gevent may patch."""
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )


def snapshot(path: Path, out: Path) -> "subprocess.CompletedProcess[str]":
    return run(PLAIN, "snapshot", str(path), "--out", str(out))


def test_drift_with_one_of_three_hosts_down(
    tmp_path: Path, login: tuple[paramiko.PKey, Path], server: SshServer
) -> None:
    ssh: dict[str, object] = {
        "address": "127.0.0.1",
        "port": server.port,
        "user": "root",
        "key_file": str(login[1]),
        "known_hosts_file": str(server.known_hosts(tmp_path / "known_hosts")),
    }
    with socket.create_server(("127.0.0.1", 0)) as closed:
        down = ssh | {"port": closed.getsockname()[1]}
    path = site(tmp_path, {"gpu001": ssh, "gpu002": ssh, "gpu003": down})
    done = run(FAKED, "drift", str(path))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("gpu003: not read: Could not connect")
    assert "gpu[001-002]  (2 hosts)" in lines
    assert lines[-1] == (
        "3 hosts, 4 settings looked at: 2 ok, 2 drift, 0 pending, 1 error; not read: gpu003"
    )
    assert len(server.commands) == 2
    assert run(FAKED, "drift", str(path), "--limit", "gpu[001-002]").returncode == 2


def test_ssh_in_one_command_and_each_failure_by_its_name(
    tmp_path: Path, login: tuple[paramiko.PKey, Path], server: SshServer
) -> None:
    right = server.known_hosts(tmp_path / "right")
    wrong = server.known_hosts(tmp_path / "wrong", paramiko.ECDSAKey.generate())
    (tmp_path / "none").write_text("")
    stranger = tmp_path / "stranger"
    paramiko.ECDSAKey.generate().write_private_key_file(str(stranger))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        closed_port = closed.getsockname()[1]
    ssh: dict[str, object] = {
        "address": "127.0.0.1",
        "port": server.port,
        "user": "root",
        "key_file": str(login[1]),
        "known_hosts_file": str(right),
    }
    hosts = {
        "good1": ssh,
        "good2": ssh,
        "changed": ssh | {"known_hosts_file": str(wrong)},
        "unknown": ssh | {"known_hosts_file": str(tmp_path / "none")},
        "refused": ssh | {"key_file": str(stranger)},
        "keyless": ssh | {"key_file": str(tmp_path / "nowhere")},
        "down": ssh | {"port": closed_port},
        "nameless": ssh | {"address": "nosuch.invalid"},
    }
    out = tmp_path / "out"
    done = snapshot(site(tmp_path, hosts), out)
    assert done.returncode == 1
    assert done.stdout == f"2 of 8 hosts saved in {out}\n"
    errors = dict(line.split(": not read: ", 1) for line in done.stderr.splitlines())
    assert set(errors) == set(hosts) - {"good1", "good2"}
    assert "Host key for 127.0.0.1" in errors["changed"]
    assert "does not match" in errors["changed"]
    assert "found in known_hosts" in errors["unknown"]
    assert "Authentication error" in errors["refused"]
    assert "No such private key file" in errors["keyless"]
    assert "Could not connect" in errors["down"]
    assert "Could not resolve hostname" in errors["nameless"]
    assert len(server.commands) == 2
    good = load("good2", out)
    assert isinstance(good, Snapshot)
    assert good.facts("identity")["kernel"]
    down = load("down", out)
    assert isinstance(down, Unread)
    assert down.error == errors["down"]


def test_a_host_that_says_nothing_does_not_hold_up_the_others(
    tmp_path: Path, login: tuple[paramiko.PKey, Path], server: SshServer
) -> None:
    with SshServer(login[0], silent=True) as silent:
        ssh = {"address": "127.0.0.1", "user": "root", "key_file": str(login[1])}
        hosts: dict[str, dict[str, object]] = {
            "mute": ssh
            | {"port": silent.port, "known_hosts_file": str(silent.known_hosts(tmp_path / "a"))},
            "good": ssh
            | {"port": server.port, "known_hosts_file": str(server.known_hosts(tmp_path / "b"))},
        }
        start = time.monotonic()
        done = snapshot(site(tmp_path, hosts), tmp_path / "out")
    assert done.returncode == 1
    assert done.stdout.startswith("1 of 2 hosts saved")
    assert done.stderr.startswith("mute: not read: ")
    assert "Traceback" not in done.stderr
    assert time.monotonic() - start < 60
