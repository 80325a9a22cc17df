"""Virtual nodes with storage: a client and a server, joined by rails of soft-RoCE.

What is mounted is the kernel's own: NVMe over RDMA and TCP, NFS over RDMA, RAID of spare disks. The
steps are fixtures that need each other, so that the nodes are booted once a session.
RAILWRIGHT_LAB_KEEP=1 takes the nodes as they run, for work on single tests.
"""

import base64
import os
import secrets
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.lab.commands import Changes, Commands, announced
from tests.lab.demo import changes, run
from tests.lab.lab import Lab
from tests.storage.site import (
    AUTHENTICATED,
    CLIENT,
    DISTRO,
    KEY_FILE,
    SECRET_FILE,
    SERVER,
    server_address,
)

HERE = Path(__file__).parent
COMPONENTS = ("scratch", "nvmeof", "nfs")

ARGUMENTS = "/var/tmp/lab-arguments"
_WORDS = "/dev/shm/lab-words"

_EXPORT = "/srv/export *(rw,no_root_squash,fsid=1,no_subtree_check)\n"
_RDMA = "[nfsd]\nrdma=y\nrdma-port=20049\n"


def site(inventory: str) -> Commands:
    """The project's commands on tests/storage/inventories/``inventory``.py."""
    return Commands(DISTRO, f"tests/storage/inventories/{inventory}.py")


def pyinfra(inventory: str, *options: str) -> subprocess.CompletedProcess[str]:
    """A run, whatever becomes of it."""
    return run(("pyinfra", *options, site(inventory).inventory, "deploys/gpu_node.py"), DISTRO)


def said(done: subprocess.CompletedProcess[str]) -> str:
    """All that a run printed, each blank a single one."""
    return " ".join((done.stdout + done.stderr).split())


def put(lab: Lab, name: str, path: str, content: str, mode: str = "644") -> None:
    script = f"mkdir -p $(dirname {path}) && cat >{path} && chmod {mode} {path}"
    done = lab.run(name, script, stdin=content)
    assert done.returncode == 0, done.stderr


@contextmanager
def watched(lab: Lab, *words: str) -> Iterator[None]:
    """Note in ``ARGUMENTS`` which of ``words`` are in arguments of the client's processes."""
    put(lab, CLIENT, _WORDS, "".join(f"{word}\n" for word in words), "600")
    find = f"grep -ohasF -f {_WORDS} /proc/[0-9]*/cmdline >>{ARGUMENTS}"
    loop = f"while :; do {find}; sleep 0.2; done"
    started = lab.run(CLIENT, f'systemd-run -q --unit=lab-watch sh -c "{loop}"')
    assert started.returncode == 0, started.stderr
    try:
        yield
    finally:
        lab.run(CLIENT, f"systemctl stop lab-watch; rm {_WORDS}")


def dhchap_key() -> str:
    """A key as ``nvme gen-dhchap-key`` makes it: 32 bytes and their CRC-32, little endian.

    Source: NVM Express Base Specification 2.0, 8.13.5.8.
    """
    key = secrets.token_bytes(32)
    check = zlib.crc32(key).to_bytes(4, "little")
    return f"DHHC-1:00:{base64.b64encode(key + check).decode()}:"


@pytest.fixture(scope="session")
def lab() -> Lab:
    """Both nodes as their image has them: clients and servers of storage, and nothing mounted."""
    found = Lab(DISTRO, "storage")
    if not os.environ.get("RAILWRIGHT_LAB_KEEP"):
        found.down()
        found = Lab.up(DISTRO, 2, print, kind="storage", spares=3)
        KEY_FILE.write_text(f"{dhchap_key()}\n")
        SECRET_FILE.write_text(f"{secrets.token_hex(32)}\n")
    return found


@pytest.fixture(scope="session")
def railed(lab: Lab) -> Lab:
    """Both nodes with their rails."""
    site("rails").converge()
    return lab


@pytest.fixture(scope="session")
def served(railed: Lab) -> Lab:
    """The server serves, and will after each boot."""
    unit = (HERE / "target.service").read_text()
    unit = unit.replace("@ADDRESS@", server_address())
    unit = unit.replace("@KEY@", "/etc/lab-target.key" if AUTHENTICATED else "")
    put(railed, SERVER, "/etc/exports", _EXPORT)
    put(railed, SERVER, "/etc/nfs.conf.d/lab.conf", _RDMA)
    put(railed, SERVER, "/etc/lab-target.key", KEY_FILE.read_text().strip(), "600")
    put(railed, SERVER, "/usr/local/sbin/lab-target", (HERE / "target.sh").read_text(), "755")
    put(railed, SERVER, "/etc/systemd/system/lab-target.service", unit)
    done = railed.run(SERVER, "systemctl daemon-reload && systemctl enable --now lab-target")
    assert done.returncode == 0, railed.run(SERVER, "journalctl -u lab-target -n 30").stdout
    return railed


@dataclass(frozen=True)
class Mounted:
    """The client before and after the run that mounts all, and what a second one does."""

    dry: Changes
    announced: Changes
    changed: Changes
    output: str
    second: dict[str, int]
    drift: dict[str, object]
    failures: frozenset[str]


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("storage")


@pytest.fixture(scope="session")
def mounted(served: Lab, folder: Path) -> Mounted:
    asked = site("all")
    before = asked.snapshot(folder / "before")
    dry = asked.dry()
    output = asked.converge()
    after = asked.snapshot(folder / "after")
    components = [word for name in COMPONENTS for word in ("--component", name)]
    return Mounted(
        dry=dry,
        announced=announced(output),
        changed=asked.differences(before, after),
        output=output,
        second=dict(changes(asked.converge())),
        drift=asked.drift()["summary"],
        failures=asked.failures(*components),
    )
