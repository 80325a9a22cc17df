"""NVMe over Fabrics as sysfs shows it, read from text and by the probe's own sections."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.nvme import (
    FILES,
    FOREIGN,
    SYSFS,
    cpu_count,
    names_on_node,
    parse_foreign,
    parse_sysfs,
    read_foreign,
    read_nvmeof,
)
from facts.probe import Focus, Section, script
from railwright.files import FileRecord
from railwright.snapshot import Snapshot, parse_probe
from tests.unit.nvme_host import (
    AUTH,
    BOTH,
    CONNECTED,
    DEVICE,
    HOST_NQN,
    LINK,
    NAME,
    NQN,
    SUBSYSTEM,
    UUID,
    controller,
    namespace,
)


def test_a_controller_of_a_fabric() -> None:
    one, _ = parse_sysfs(BOTH).controllers
    assert (one.name, one.portal, one.host_traddr) == (
        "nvme1",
        ("10.64.0.9", "4420"),
        "10.64.0.2",
    )
    assert (one.io_queues, one.keep_alive, one.reconnect_delay, one.ctrl_loss) == (4, 5, 10, 1800)
    assert one.is_live
    (lost,) = parse_sysfs(controller(state="connecting", loss="off", kato="-")).controllers
    assert (lost.is_live, lost.ctrl_loss, lost.keep_alive) == (False, None, None)


def test_a_namespace_by_each_of_its_identifiers() -> None:
    text = "\t".join(
        ["ns", DEVICE, NQN, "3", UUID, "0A0B0C0D-0102-0304-0506-0708090A0B0C", "00 25 38 52 31 0a 0b 0c", "8"]  # noqa: E501
    )  # fmt: skip
    (one,) = parse_sysfs(text).namespaces
    assert one.is_named("uuid", UUID)
    assert one.is_named("nguid", "0a0b0c0d0102030405060708090a0b0c")
    assert one.is_named("eui64", "00253852310a0b0c")
    assert one.is_named("nsid", "3")
    assert not one.is_named("nsid", "30")
    assert (one.sectors, one.holds) == (8, None)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (namespace(holds="?"), None),
        (namespace(holds=""), ""),
        (namespace(holds="xfs"), "xfs"),
        (namespace(holds="table gpt"), "partition table gpt"),
        (
            namespace(holds="") + f"holds\t{DEVICE}\tID_FS_AMBIVALENT\tfilesystem:ext4 raid:x\n",
            "several signatures (filesystem:ext4 raid:x)",
        ),
    ],
)
def test_what_a_namespace_holds(text: str, holds: str | None) -> None:
    assert parse_sysfs(text).namespaces[0].holds == holds


def test_what_the_kernel_takes() -> None:
    assert "dhchap_secret" in (parse_sysfs(f"options\t{AUTH}\n").options or ())
    assert parse_sysfs("options\tinstance=-1,cntlid=-1,nqn=%s\n").options == {
        "instance",
        "cntlid",
        "nqn",
    }
    assert parse_sysfs("options\t-\n").options is None
    assert parse_sysfs("").options is None


def test_the_rest() -> None:
    seen = parse_sysfs(f"{SUBSYSTEM}{LINK}multipath\tN\ncpus\t0-3,8\n")
    assert seen.iopolicies == {"nvme-subsys1": (NQN, "numa")}
    assert seen.links == {f"/dev/railwright/{NAME}": DEVICE}
    assert (seen.multipath, seen.cpus) == (False, 5)
    assert parse_sysfs("multipath\t-\n").multipath is None


@pytest.mark.parametrize("line", ["what is this", "ctrl\tnvme1", "ns\ta\tb", "cpus\t1\t2"])
def test_another_line_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="expected a controller or namespace"):
        parse_sysfs(line)


@pytest.mark.parametrize(("text", "count"), [("0", 1), ("0-63", 64), ("0-1,4-5", 4), ("-", None)])
def test_processors(text: str, count: int | None) -> None:
    assert cpu_count(text) == count


PIECES = [BOTH, CONNECTED, "ctrl\t", "ns\t", "\t", "\n", "holds\tx\ty\tz", "options\t-"]


@given(st.lists(st.sampled_from(PIECES) | st.text()).map("".join))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        seen = parse_sysfs(text)
    except ValueError:
        return
    assert all(one.name for one in seen.controllers) or "ctrl\t\t" in text


@given(
    st.lists(st.sampled_from(["file /a\n", "3 nqn.x\n", "version nvme"]) | st.text()).map("".join)
)
def test_any_mention_is_read_or_refused(text: str) -> None:
    try:
        found = parse_foreign(text)
    except ValueError:
        return
    assert all(mention.place.startswith("/") for mention in found.mentions)


def test_volumes_that_files_are_for() -> None:
    paths = (
        "/etc/railwright/nvmeof/mnt:a.conf",
        "/etc/railwright/nvmeof/mnt:b.keys",
        "/etc/systemd/system/railwright-nvmeof-mnt:c.service",
        "/etc/systemd/system/multi-user.target.wants/railwright-nvmeof-mnt:d.service",
        "/etc/nvme/hostnqn",
    )
    files = [FileRecord(path=path, kind="file") for path in paths]
    assert names_on_node(files) == {"mnt:a", "mnt:b", "mnt:c", "mnt:d"}


def run(section: Section, root: Path, shell: str) -> Snapshot:
    """The section over the tree at ``root``, with an udevadm and an nvme of our own."""
    text = script((section,), Focus(storage=True))
    text = re.sub(
        r"/(sys|dev|etc|run)/(class|module|devices|railwright|nvme)", rf"{root}/\1/\2", text
    )
    text = text.replace("PATH=/usr/sbin", f"PATH={root}/bin:/usr/sbin")
    done = subprocess.run([shell, "-c", text], capture_output=True, timeout=60)
    return parse_probe(done.stdout.decode("ascii"), host="here")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    def put(path: str, text: str) -> None:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    fields = {
        "transport": "rdma", "state": "live", "subsysnqn": NQN, "hostnqn": HOST_NQN,
        "hostid": "x", "queue_count": "5", "kato": "5", "reconnect_delay": "10",
        "ctrl_loss_tmo": "1800", "numa_node": "1", "address": "traddr=10.0.0.9,trsvcid=4420",
    }  # fmt: skip
    for name, value in fields.items():
        put(f"sys/class/nvme/nvme1/{name}", value)
    put("sys/class/nvme/nvme0/transport", "pcie")
    put("sys/class/nvme/nvme0/subsysnqn", "nqn.local with  blanks")
    put("sys/class/nvme-subsystem/nvme-subsys1/subsysnqn", NQN)
    put("sys/class/nvme-subsystem/nvme-subsys1/iopolicy", "round-robin")
    for disk, nqn in ((DEVICE, NQN), ("nvme0n1", "nqn.local with  blanks"), ("nvme1c1n1", NQN)):
        for name, value in (("nsid", "1"), ("uuid", UUID), ("nguid", "0"), ("eui", "0 0")):
            put(f"sys/class/block/{disk}/{name}", value)
        put(f"sys/class/block/{disk}/device/subsysnqn", nqn)
        put(f"sys/class/block/{disk}/size", "2048")
    put("sys/class/block/nvme1c1n1/hidden", "1")
    put(f"sys/class/block/{DEVICE}p1/partition", "1")
    put(f"sys/class/block/{DEVICE}p1/nsid", "1")
    put("sys/class/nvme-fabrics/ctl/dev", "10:123")
    put("sys/module/nvme_core/parameters/multipath", "Y")
    put("sys/devices/system/cpu/online", "0-3")
    put("dev/nvme-fabrics", AUTH)
    (tmp_path / "dev/railwright").mkdir()
    (tmp_path / f"dev/{DEVICE}").touch()
    (tmp_path / f"dev/railwright/{NAME}").symlink_to(f"../{DEVICE}")
    told = "echo USEC_INITIALIZED=1; echo ID_FS_TYPE=ext4; echo DEVNAME=x"
    put("bin/udevadm", f'#!/bin/sh\necho "$*" >>{tmp_path}/asked\n{told}')
    put("bin/nvme", '#!/bin/sh\necho "nvme version 2.3 (git 2.3)"\necho "libnvme version 1.3"')
    for tool in ("udevadm", "nvme"):
        (tmp_path / "bin" / tool).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_what_a_controller_was_given_is_its_own_and_none_befores(root: Path, shell: str) -> None:
    def given() -> str | None:
        (one,) = read_nvmeof(run(SYSFS, root, shell)).controllers
        return one.given

    note = root / "run/railwright/nvmeof/nvme1"
    note.parent.mkdir(parents=True)
    assert given() is None
    inode = (root / "sys/class/nvme/nvme1").stat().st_ino
    note.write_text(f"{inode} nr_io_queues=16,ctrl_loss_tmo=1800\n")
    assert given() == "nr_io_queues=16,ctrl_loss_tmo=1800"
    note.write_text(f"{inode}0 nr_io_queues=16,ctrl_loss_tmo=1800\n")
    assert given() is None


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_section_reads_fabrics_and_no_local_drive(root: Path, shell: str) -> None:
    snapshot = run(SYSFS, root, shell)
    assert snapshot.section(SYSFS.name).stderr == ""
    seen = read_nvmeof(snapshot)
    (one,) = seen.controllers
    assert (one.name, one.nqn, one.portal) == ("nvme1", NQN, ("10.0.0.9", "4420"))
    assert (one.hostnqn, one.io_queues, one.numa_node) == (HOST_NQN, 4, 1)
    (disk,) = seen.namespaces
    assert (disk.device, disk.nqn, disk.uuid, disk.holds) == (
        DEVICE,
        NQN,
        UUID.replace("-", ""),
        "ext4",
    )
    assert seen.links == {f"{root}/dev/railwright/{NAME}": DEVICE}
    assert (seen.multipath, seen.cpus) == (True, 4)
    assert "dhchap_secret" in (seen.options or ())
    # No drive of the node's own is asked about, and none is opened.
    assert (root / "asked").read_text().splitlines() == [
        f"info --query=property --name=/dev/{DEVICE}"
    ]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_of_foreign_configuration_no_key_comes_back(root: Path, shell: str) -> None:
    folder = root / "etc/nvme"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(
        '[{"hostnqn":"nqn.2014-08.org.nvmexpress:uuid:1","dhchap_key":"DHHC-1:00:secret:",\n'
        f'"subsystems":[{{"nqn":"{NQN}",\n"ports":[{{"traddr": "10.0.0.9"}}]}}]}}]\n'
    )
    (folder / "discovery.conf").write_text(
        "# --transport=rdma --traddr=10.0.0.1\n"
        "--transport=tcp --traddr=10.0.0.2 --dhchap-secret=DHHC-1:00:secret:\n-t tcp -a 10.0.0.3\n"
    )
    (folder / "nvme-fabrics.conf").write_text(
        f"[Subsystem]\nnqn = {NQN}\ncontroller = transport=tcp;traddr=10.0.0.4;trsvcid=4420\n"
        "dhchap-secret = DHHC-1:00:secret:\n"
    )
    snapshot = run(FOREIGN, root, shell)
    assert "secret" not in snapshot.text(FOREIGN.name)
    found = read_foreign(snapshot)
    assert found.version == "2.3"
    told = [(m.place.removeprefix(str(folder)), m.word) for m in found.mentions]
    assert told == [
        ("/config.json:1", "nqn.2014-08.org.nvmexpress:uuid:1"),
        ("/config.json:2", NQN),
        ("/config.json:3", "10.0.0.9"),
        ("/discovery.conf:2", "10.0.0.2"),
        ("/discovery.conf:3", "10.0.0.3"),
        ("/nvme-fabrics.conf:2", NQN),
        ("/nvme-fabrics.conf:3", "10.0.0.4"),
    ]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_a_node_without_any_of_it_answers_with_nothing(tmp_path: Path, shell: str) -> None:
    seen = read_nvmeof(run(SYSFS, tmp_path, shell))
    assert (seen.controllers, seen.namespaces, seen.options) == ((), (), None)
    assert read_foreign(run(FOREIGN, tmp_path, shell)).mentions == ()
    files = run(FILES, tmp_path, shell)
    assert files.section(FILES.name).stderr == ""
    assert not [file for file in files.files(FILES.name) if "railwright" in file.path]


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_of_keys_no_more_is_read_than_that_they_are_there(tmp_path: Path, shell: str) -> None:
    folder = tmp_path / "etc/railwright/nvmeof"
    folder.mkdir(parents=True)
    (folder / "mnt:a.conf").write_text("nqn x\n")
    (folder / "mnt:a.keys").write_text("dhchap_secret=DHHC-1:00:secret:\n")
    snapshot = run(FILES, tmp_path, shell)
    assert "secret" not in snapshot.text(FILES.name)
    content = {file.name: file.content for file in snapshot.files(FILES.name)}
    assert content["mnt:a.conf"] == "nqn x\n"
    assert content["mnt:a.keys"] is None
