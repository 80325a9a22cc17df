"""Lustre and BeeGFS by stand-ins of packages and modules: boots, mounts that hang, secrets."""

import time

import pytest

from tests.drivers.asked import FOLDER
from tests.lab import mirror
from tests.lab.demo import changes
from tests.lab.lab import Lab
from tests.standins.build import ensure
from tests.storage.conftest import ARGUMENTS, pyinfra, site, watched
from tests.storage.site import CLIENT, SECRET_FILE, SERVER

MOUNTS = ("/mnt/lustre", "/mnt/beegfs")
UNITS = "mnt-lustre.mount mnt-beegfs.mount"
SECRET_PATH = "/etc/beegfs/conn.auth"
AWAY = "/etc/railwright-lab/server-away"


def multi_user_s(lab: Lab) -> float:
    """Seconds from the kernel's start to multi-user.target."""
    shown = "systemctl show --value -p ActiveEnterTimestampMonotonic multi-user.target"
    reached = int(lab.run(CLIENT, shown).stdout)
    # Of a target that was never reached it is 0, which is within any time.
    assert reached > 0
    return reached / 1e6


def outcomes() -> dict[str, tuple[str, str]]:
    """Verdict and reason of all of both clients that is not as it should be."""
    drift = site("clients").drift("--component", "lustre", "--component", "beegfs")
    return {
        entry["key"]: (entry["verdict"], str(entry["reason"]))
        for host in drift["hosts"]
        for entry in host["findings"]
        if entry["outcome"] != "fine"
    }


@pytest.fixture(scope="module")
def clients(railed: Lab) -> Lab:
    mirror.start(railed.layout, ensure(FOLDER) / "apt")
    return railed


@pytest.fixture(scope="module")
def converged(clients: Lab) -> str:
    """What the run said, and pyinfra's own debug output."""
    # That what is in the run's script is seen shows that a secret would be.
    with watched(clients, SECRET_FILE.read_text().strip(), SECRET_PATH):
        done = pyinfra("clients", "-y", "-vvv", "--debug")
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-5000:]
    return done.stdout + done.stderr


def test_one_run_mounts_both_and_a_second_changes_nothing(converged: str, clients: Lab) -> None:
    lines = clients.run(CLIENT, "cat /proc/self/mounts").stdout.splitlines()
    found = {words[1]: words[2] for words in map(str.split, lines)}
    assert {where: found.get(where) for where in MOUNTS} == {
        "/mnt/lustre": "lustre",
        "/mnt/beegfs": "beegfs",
    }
    assert dict(changes(site("clients").converge())) == {CLIENT: 0, SERVER: 0}
    assert outcomes() == {}
    assert site("clients").failures("--component", "lustre", "--component", "beegfs") == frozenset()


def test_the_secret_is_in_no_argument_log_report_or_snapshot(
    converged: str, clients: Lab, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = SECRET_FILE.read_text().strip()
    folder = site("clients").snapshot(tmp_path_factory.mktemp("snapshot"))
    dry = pyinfra("clients", "--dry", "--diff", "-vvv")
    places = {
        "the run": converged,
        "--dry --diff": dry.stdout + dry.stderr,
        "drift": str(site("clients").drift()),
        "snapshot": "".join(path.read_text() for path in folder.rglob("*") if path.is_file()),
        "arguments": clients.run(CLIENT, f"cat {ARGUMENTS}").stdout,
        "journal": clients.run(CLIENT, "journalctl --no-pager").stdout,
    }
    assert [name for name, text in places.items() if not text] == []
    assert [name for name, text in places.items() if secret in text] == []
    assert SECRET_PATH in places["arguments"]
    found = clients.run(CLIENT, f"grep -rlsF {secret} /etc /root /tmp /var/lib/railwright /run")
    assert found.stdout.split() == [SECRET_PATH]
    assert clients.run(CLIENT, f"stat -c '%a %U' {SECRET_PATH}").stdout == "400 root\n"


def test_a_mount_that_hangs_after_boot_is_degraded_and_holds_up_nothing(
    converged: str, clients: Lab
) -> None:
    for module, where in (("lustre", "/mnt/lustre"), ("beegfs", "/mnt/beegfs")):
        clients.run(CLIENT, f"echo 1 >/sys/module/{module}/parameters/hang")
        began = time.monotonic()
        try:
            found = outcomes()
        finally:
            clients.run(CLIENT, f"echo 0 >/sys/module/{module}/parameters/hang")
        # A probe that waited for it would end by the limit of all of its sections.
        assert time.monotonic() - began < 240
        verdict, reason = found[f"mount {where}"]
        assert (verdict, "did not come back" in reason) == ("degraded", True)
    assert outcomes() == {}


def test_the_boot_does_not_wait_for_servers_that_are_away(converged: str, clients: Lab) -> None:
    clients.run(CLIENT, f"systemctl disable {UNITS}")
    clients.reboot(CLIENT)
    without = multi_user_s(clients)
    clients.run(CLIENT, f"systemctl enable {UNITS}; mkdir -p {AWAY.rpartition('/')[0]}")
    clients.run(CLIENT, f"touch {AWAY}; ls {AWAY}")
    clients.run(SERVER, "ip link set rail0 down")
    try:
        clients.reboot(CLIENT)
        assert multi_user_s(clients) < without + 10
        waiting = clients.run(CLIENT, f"systemctl is-active {UNITS}").stdout.split()
        assert set(waiting) <= {"activating", "failed", "inactive"}
        found = outcomes()
        assert {f"mount {where}" for where in MOUNTS} <= found.keys(), found
    finally:
        clients.run(SERVER, "ip link set rail0 up")
        clients.run(CLIENT, f"rm {AWAY}; systemctl stop {UNITS}")
