"""Running tests/verify against nodes: over one shared ssh connection per node, in a subprocess.

The tests need a checkout: they stand beside the packages and are not installed with them.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from junitparser import Error, JUnitXml, TestCase, TestSuite

from railwright.schema import Node

CONNECT_S = 10
PARALLEL = 32
WORKERS = 16
"""Nodes that are tested at a time: each takes a Python process, which mostly waits for its node."""

_USER_CONFIG = "~/.ssh/config"


class VerifyError(ValueError):
    """What has to be there to verify is not."""


def verify(nodes: Sequence[Node], components: Iterable[str], junit: Path | None = None) -> int:
    """Run the tests of ``components`` on ``nodes`` and return 0 where all passed, else 1.

    A skipped test, and a run in which nothing was tested, did not pass. A node that cannot be
    reached is named at once and fails the run; the others are tested all the same. ``junit`` gets
    the results as JUnit XML. Raises VerifyError where there are no tests for a component.
    """
    root = _checkout()
    tests = _test_files(root, components)
    # A short path: the name of a socket has at most about 100 bytes.
    # A master that is told to go removes its socket when it likes.
    temporary = TemporaryDirectory(prefix="rw-", ignore_cleanup_errors=True)
    with temporary as name, _connections(nodes, Path(name)) as config:
        unreached = _unreached(nodes, config)
        for host, error in unreached.items():
            click.echo(f"{host}: cannot be reached: {error}", err=True)
        results = Path(name) / "junit.xml"
        reached = [node for node in nodes if node.name not in unreached]
        code = _pytest(root, tests, reached, config, results) if reached else 1
        document = _results(results)
        if junit is not None:
            _save(document, unreached, junit)
    skipped = sum(suite.skipped for suite in document)
    if skipped:
        click.echo(f"{skipped} skipped: what was not looked at was not verified", err=True)
    if unreached:
        click.echo(f"not verified, cannot be reached: {', '.join(unreached)}", err=True)
    return 1 if code or skipped or unreached else 0


def _checkout() -> Path:
    import deploys

    root = Path(deploys.__file__).parents[1]
    if not (root / "tests" / "verify" / "conftest.py").is_file():
        raise VerifyError(f"there is no tests/verify in {root}: verify needs a checkout")
    return root


def _test_files(root: Path, components: Iterable[str]) -> list[str]:
    files = {name: f"tests/verify/test_{name}.py" for name in components}
    missing = [name for name, file in files.items() if not (root / file).is_file()]
    if missing or not files:
        raise VerifyError(f"no tests in tests/verify for: {', '.join(missing) or 'no component'}")
    return list(files.values())


@contextmanager
def _connections(nodes: Sequence[Node], directory: Path) -> Iterator[Path]:
    """An ssh_config for ``nodes``; the master connections that come of it are closed at the end."""
    config = directory / "ssh_config"
    reached_by_ssh = [node for node in nodes if not node.name.startswith("@")]
    config.write_text(ssh_config(reached_by_ssh, directory), encoding="utf-8")
    try:
        yield config
    finally:
        for number, node in enumerate(reached_by_ssh):
            if _socket(directory, number).exists():
                subprocess.run(
                    ["ssh", "-F", str(config), "-O", "exit", node.name],
                    capture_output=True,
                    check=False,
                )


def ssh_config(nodes: Iterable[Node], directory: Path) -> str:
    """An OpenSSH client configuration with a block per node, sockets in ``directory``.

    What a node's spec does not say comes from its own configuration file, or the user's.
    """
    return "\n".join(
        block for number, node in enumerate(nodes) for block in _block(node, number, directory)
    )


def _block(node: Node, number: int, directory: Path) -> Iterator[str]:
    ssh = node.ssh
    yield f"Host {node.name}"
    given = {
        "HostName": ssh.address,
        "Port": ssh.port,
        "User": ssh.user,
        "IdentityFile": _absolute(ssh.key_file),
        "IdentitiesOnly": "yes" if ssh.key_file else None,
        "UserKnownHostsFile": _absolute(ssh.known_hosts_file),
        "StrictHostKeyChecking": "yes",
        "BatchMode": "yes",
        "ConnectTimeout": CONNECT_S,
        "ControlMaster": "auto",
        "ControlPath": _socket(directory, number),
        "ControlPersist": 60,
        # In this block, so that it holds for this node only.
        "Include": _absolute(ssh.config_file) or _USER_CONFIG,
    }
    for key, value in given.items():
        if value is not None:
            yield f'    {key} "{value}"'
    yield ""


def _absolute(path: str | None) -> Path | None:
    """pytest runs in another directory than the one that the inventory's paths start from."""
    return None if path is None else Path(path).expanduser().absolute()


def _socket(directory: Path, number: int) -> Path:
    return directory / str(number)


def _unreached(nodes: Sequence[Node], config: Path) -> dict[str, str]:
    """The nodes that cannot be reached, and why; those that can have their connection open then."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        errors = pool.map(lambda node: _connect(node, config), nodes)
        return {node.name: error for node, error in zip(nodes, errors, strict=True) if error}


def _connect(node: Node, config: Path) -> str | None:
    """Why ``node`` cannot be reached; None where it can."""
    if node.name.startswith("@podman/"):
        command = ["podman", "exec", node.name.removeprefix("@podman/"), "true"]
    elif node.name.startswith("@"):
        return "only ssh and @podman hosts can be verified"
    else:
        command = ["ssh", "-F", str(config), node.name, "true"]
    # To a file, not a pipe: the master that stays behind would keep a pipe open.
    errors = config.with_name(f"{config.name}-{id(node)}.err")
    with errors.open("wb") as stream:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                timeout=3 * CONNECT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {3 * CONNECT_S} s"
        except OSError as error:
            return f"{command[0]}: {error.strerror}"
    said = errors.read_text(encoding="utf-8", errors="replace").split("\n")
    lines = [line.strip() for line in said if line.strip()]
    return None if done.returncode == 0 else " / ".join(lines[-2:]) or f"exit {done.returncode}"


def _pytest(
    root: Path, tests: Sequence[str], nodes: Sequence[Node], config: Path, results: Path
) -> int:
    listing = config.with_name("nodes.json")
    listing.write_text(
        json.dumps([node.model_dump(mode="json") for node in nodes]), encoding="utf-8"
    )
    command = [sys.executable, "-m", "pytest", *tests, "-q", "-p", "no:cacheprovider"]
    if len(nodes) > 1:
        command += ["-n", str(min(len(nodes), WORKERS))]
    environment = os.environ | {
        "RAILWRIGHT_NODES": str(listing),
        "RAILWRIGHT_SSH_CONFIG": str(config),
    }
    return subprocess.run(
        [*command, f"--junitxml={results}"], cwd=root, env=environment, check=False
    ).returncode


def _results(path: Path) -> JUnitXml:
    return JUnitXml.fromfile(str(path)) if path.is_file() else JUnitXml()


def _save(document: JUnitXml, unreached: Mapping[str, str], path: Path) -> None:
    for host, error in unreached.items():
        suite, case = TestSuite(host), TestCase("connection", classname="railwright")
        case.result = [Error("cannot be reached", "cannot be reached")]
        case.result[0].text = error
        suite.add_testcase(case)
        document.add_testsuite(suite)
    try:
        document.write(str(path))
    except OSError as error:
        raise VerifyError(f"--junit {path}: {error.strerror}") from error
