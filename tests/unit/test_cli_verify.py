"""``railwright verify``: what is run, what it fails on, and what it leaves behind."""

import json
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest
from junitparser import Error, JUnitXml

from railwright import verify
from railwright.cli import main
from railwright.schema import Node
from railwright.schema.node import SshSpec
from tests.unit import fake_site
from tests.unit.ssh_server import SshServer

RUNS_OVER_SSH = """
import json, os, subprocess

def test_each_node():
    config = os.environ["RAILWRIGHT_SSH_CONFIG"]
    for node in json.load(open(os.environ["RAILWRIGHT_NODES"])):
        command = ["ssh", "-F", config, node["name"], "echo", "here"]
        assert subprocess.run(command, capture_output=True).stdout == b"here\\n"
"""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout in which test_sysctl.py and test_limits.py pass, and tell nothing of nodes."""
    root = tmp_path / "checkout"
    tests = root / "tests" / "verify"
    tests.mkdir(parents=True)
    (root / "pytest.ini").write_text("[pytest]\n")
    (tests / "conftest.py").write_text("")
    for name in ("sysctl", "limits"):
        (tests / f"test_{name}.py").write_text("def test_it():\n    assert True\n")
    monkeypatch.setattr("deploys.components.COMPONENTS", fake_site.COMPONENTS)
    monkeypatch.setattr("deploys.__file__", str(root / "deploys" / "__init__.py"))
    return tests


@pytest.fixture
def key(tmp_path: Path) -> paramiko.PKey:
    found = paramiko.ECDSAKey.generate()
    found.write_private_key_file(str(tmp_path / "login_key"))
    return found


@pytest.fixture
def server(key: paramiko.PKey) -> Iterator[SshServer]:
    with SshServer(key) as running:
        yield running


def site(tmp_path: Path, server: SshServer, down: tuple[str, ...] = ()) -> str:
    """Two nodes that are the one server, and ``down``, whose host key is another."""
    stranger = paramiko.ECDSAKey.generate()
    ssh = {
        "address": "127.0.0.1",
        "port": server.port,
        "user": "root",
        "key_file": str(tmp_path / "login_key"),
        "known_hosts_file": str(server.known_hosts(tmp_path / "right")),
    }
    wrong = ssh | {"known_hosts_file": str(server.known_hosts(tmp_path / "wrong", stranger))}
    hosts = {"gpu001": ssh, "gpu002": ssh} | dict.fromkeys(down, wrong)
    path = tmp_path / "site.yaml"
    specs = {name: {"ssh": how} for name, how in hosts.items()}
    path.write_text(json.dumps({"groups": {"rack": {"hosts": list(hosts)}}, "hosts": specs}))
    return str(path)


def test_tests_share_one_connection_per_node_which_is_closed(
    tmp_path: Path,
    checkout: Path,
    server: SshServer,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    temporary = tmp_path / "t"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (checkout / "test_sysctl.py").write_text(RUNS_OVER_SSH)
    assert main(["verify", site(tmp_path, server), "--component", "sysctl"]) == 0
    assert "1 passed" in capfd.readouterr().out
    # One command each to connect, one each by the test, over two connections.
    assert server.commands == ["true", "true", "echo here", "echo here"]
    assert server.connections == 2
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    "body",
    [
        "def test_it():\n    assert False\n",
        "import pytest\ndef test_it():\n    pytest.skip('not today')\n",
        "def helper():\n    pass\n",
        "import nosuchmodule\n",
    ],
    ids=["failed", "skipped", "nothing collected", "broken"],
)
def test_what_did_not_pass_fails(
    tmp_path: Path,
    checkout: Path,
    server: SshServer,
    body: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (checkout / "test_sysctl.py").write_text(body)
    assert main(["verify", site(tmp_path, server), "--component", "sysctl"]) == 1
    capfd.readouterr()


def test_a_node_that_cannot_be_reached_is_named_and_the_others_are_tested(
    tmp_path: Path, checkout: Path, server: SshServer, capfd: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results.xml"
    (checkout / "test_sysctl.py").write_text(RUNS_OVER_SSH)
    arguments = ["verify", site(tmp_path, server, ("gpu003",)), "--junit", str(results)]
    assert main(arguments) == 1
    said = capfd.readouterr()
    assert said.err.startswith("gpu003: cannot be reached: ")
    assert "Host key verification failed." in said.err
    assert said.err.endswith("not verified, cannot be reached: gpu003\n")
    assert "2 passed" in said.out
    errors = [
        (suite.name, case.name)
        for suite in JUnitXml.fromfile(str(results))
        for case in suite
        if any(isinstance(result, Error) for result in case.result)
    ]
    assert errors == [("gpu003", "connection")]


def test_nothing_is_verified_where_no_node_is_reached(
    tmp_path: Path, checkout: Path, server: SshServer, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ["verify", site(tmp_path, server, ("gpu003",)), "--limit", "gpu003"]
    assert main(arguments) == 1
    assert "passed" not in capfd.readouterr().out


def test_a_component_without_tests_is_an_error(
    tmp_path: Path, checkout: Path, server: SshServer, capfd: pytest.CaptureFixture[str]
) -> None:
    (checkout / "test_limits.py").unlink()
    assert main(["verify", site(tmp_path, server)]) == 1
    assert "no tests in tests/verify for: limits" in capfd.readouterr().err


def test_ssh_config_of_a_plain_and_of_a_full_node(tmp_path: Path) -> None:
    full = SshSpec(
        address="10.0.0.1",
        port=2222,
        user="root",
        key_file="/keys/id",
        known_hosts_file="/keys/known hosts",
        config_file="/keys/config",
    )
    nodes = [Node(name="gpu001"), Node(name="gpu002", ssh=full)]
    assert verify.ssh_config(nodes, Path("/t")) == (
        """\
Host gpu001
    StrictHostKeyChecking "yes"
    BatchMode "yes"
    ConnectTimeout "10"
    ControlMaster "auto"
    ControlPath "/t/0"
    ControlPersist "60"
    Include "~/.ssh/config"

Host gpu002
    HostName "10.0.0.1"
    Port "2222"
    User "root"
    IdentityFile "/keys/id"
    IdentitiesOnly "yes"
    UserKnownHostsFile "/keys/known hosts"
    StrictHostKeyChecking "yes"
    BatchMode "yes"
    ConnectTimeout "10"
    ControlMaster "auto"
    ControlPath "/t/1"
    ControlPersist "60"
    Include "/keys/config"
"""
    )
