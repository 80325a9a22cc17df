"""Storage on virtual nodes: mounted for real, and there again after reboots and failures."""

import hashlib
import json
import secrets
import time
from pathlib import Path

import pytest

from tests.lab.demo import run
from tests.lab.lab import Lab
from tests.storage.conftest import Mounted, pyinfra, site
from tests.storage.site import AUTHENTICATED, CLIENT, DISTRO, KEY_FILE, SERVER

COMES = ("nvmeof connections of ", "nvmeof namespace of ")
"""What is seen once a path is there, which is announced."""
MOUNTS = ("/mnt/rdma", "/mnt/tcp", "/mnt/nfs", "/scratch")


def mounts(lab: Lab) -> dict[str, tuple[str, str]]:
    """File system and options by directory, as the client's kernel has them."""
    lines = lab.run(CLIENT, "cat /proc/self/mounts").stdout.splitlines()
    found = {words[1]: (words[2], words[3]) for words in map(str.split, lines)}
    return {where: found[where] for where in MOUNTS if where in found}


def write(lab: Lab, where: str) -> tuple[str, str]:
    """Write a pattern of 8 MiB and fsync it; its file and its digest."""
    path = f"{where}/pattern-{secrets.token_hex(4)}"
    script = f"openssl rand {8 << 20} 2>/dev/null || head -c {8 << 20} /dev/urandom"
    done = lab.run(CLIENT, f"{{ {script}; }} | dd of={path} conv=fsync status=none bs=1M")
    assert done.returncode == 0, done.stderr
    return path, digest(lab, path)


def digest(lab: Lab, path: str) -> str:
    """The file as the disk has it, not as the page cache does."""
    done = lab.run(CLIENT, f"sync -f {path}; echo 3 >/proc/sys/vm/drop_caches; sha256sum {path}")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[0]


def undrifted(seconds: float = 120) -> dict[str, object]:
    """The summary of drift, once it is 0 or the time is over."""
    end = time.monotonic() + seconds
    while True:
        summary = dict(site("all").drift()["summary"])
        if summary["drift"] == 0 or time.monotonic() > end:
            return summary


def test_one_run_mounts_all_as_it_announced(mounted: Mounted, served: Lab) -> None:
    assert mounted.announced == mounted.dry
    assert sorted(mounted.dry - mounted.changed) == []
    assert [one for one in mounted.changed - mounted.dry if not one[1].startswith(COMES)] == []
    assert mounted.second == {CLIENT: 0, SERVER: 0}
    assert mounted.drift["drift"] == 0, mounted.drift
    assert mounted.failures == frozenset()
    found = mounts(served)
    assert {where: fstype for where, (fstype, _) in found.items()} == {
        "/mnt/rdma": "xfs",
        "/mnt/tcp": "ext4",
        "/mnt/nfs": "nfs4",
        "/scratch": "xfs",
    }
    assert "proto=rdma" in found["/mnt/nfs"][1].split(",")


def test_connections_go_by_the_transport_that_was_asked_for(mounted: Mounted, served: Lab) -> None:
    script = "cd /sys/class/nvme; for c in */; do cat $c/transport $c/subsysnqn | paste - -; done"
    lines = served.run(CLIENT, script).stdout.splitlines()
    by_nqn = {words[1]: words[0] for words in map(str.split, lines) if len(words) == 2}
    assert by_nqn["nqn.2014-08.lab:rdma"] == "rdma"
    assert by_nqn["nqn.2014-08.lab:tcp"] == "tcp"


# Elsewhere no key is asked for, and the test could not fail: test_clients has a secret there.
if AUTHENTICATED:

    def test_the_key_is_told_nowhere(mounted: Mounted, served: Lab, folder: Path) -> None:
        key = KEY_FILE.read_text().strip()
        body = key.split(":")[2]
        digests = {hashlib.sha256(text.encode()).hexdigest() for text in (key, f"{key}\n")}
        said = [mounted.output, json.dumps(site("all").drift())]
        dry = pyinfra("all", "--dry", "--diff", "-vvv")
        said.append(dry.stdout + dry.stderr)
        said += [path.read_text() for path in sorted(folder.rglob("*.json"))]
        said.append(served.run(CLIENT, "journalctl --no-pager; cat /var/log/*.log").stdout)
        for text in said:
            assert text
            assert body not in text
            assert not any(one in text for one in digests)
        modes = served.run(CLIENT, f"grep -rlsF {body} /etc | xargs stat -c '%a %U'").stdout.split()
        assert set(zip(modes[::2], modes[1::2], strict=True)) == {("600", "root")}


def test_each_mount_is_measured_and_left_as_it_was(mounted: Mounted, served: Lab) -> None:
    listed = f"ls -A {' '.join(MOUNTS)}"
    before = served.run(CLIENT, listed).stdout
    words = ("storage", "test", site("all").inventory, "--limit", CLIENT, "--format", "json")
    done = run(("railwright", *words, "--seconds", "2", "--max-gib", "1"), DISTRO)
    results = {one["mount"]: one for one in json.loads(done.stdout)["results"]}
    outcomes = {where: (one["outcome"], one["reason"]) for where, one in results.items()}
    assert outcomes == {
        "/mnt/rdma": ("ok", None),
        "/mnt/tcp": ("not_judged", None),
        "/mnt/nfs": ("not_judged", None),
        "/scratch": ("not_judged", None),
    }
    assert all(one["write"]["gb_s"] > 0 < one["read"]["gb_s"] for one in results.values())
    assert done.returncode == 0, done.stderr
    assert served.run(CLIENT, listed).stdout == before


def test_a_reboot_of_the_client_brings_all_back(mounted: Mounted, served: Lab) -> None:
    written = dict(write(served, where) for where in MOUNTS)
    served.reboot(CLIENT)
    assert undrifted()["drift"] == 0
    assert set(mounts(served)) == set(MOUNTS)
    assert {path: digest(served, path) for path in written} == written


@pytest.mark.parametrize("where", ["/mnt/rdma", "/mnt/tcp"])
def test_a_reboot_of_the_server_loses_nothing_that_was_fsynced(
    where: str, mounted: Mounted, served: Lab
) -> None:
    path, before = write(served, where)
    served.reboot(SERVER)
    other, after = write(served, where)
    assert digest(served, path) == before
    assert digest(served, other) == after
    assert undrifted()["drift"] == 0
