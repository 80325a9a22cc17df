"""NFS over RDMA, from the modules that a node has to what is mounted."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from facts.proc_mounts import parse_proc_mounts
from facts.rdma_modules import RdmaModules, read_rdma_modules
from railwright.mounts import OwnedMount
from railwright.resolve.rdma_modules import brings, refusal
from railwright.schema import Node
from railwright.schema.nfs import NfsRdmaMount
from railwright.settings import Standing, Verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.nvme_host import NFS, REMOUNT, done, found, host, modinfo, verdicts, with_mounts
from tests.unit.records import enablement, record

CORPUS = Path(__file__).parents[1] / "corpus" / "proc-mounts"
WHERE, UNIT = "/mnt/vol", "mnt-vol.mount"
MOUNT = {"kind": "nfs", "server": "10.64.0.9", "export": "/exp/a"}
OPTIONS = "rw,relatime,vers=4.2,rsize=1048576,wsize=1048576,namlen=255,hard,proto=rdma,port=20049"
LINE = f"10.64.0.9:/exp/a {WHERE} nfs4 {OPTIONS},timeo=600,addr=10.64.0.9 0 0\n"
KEY, MODULE = f"mount {WHERE}", "module rpcrdma"
OFED = "updates/dkms"
START = f"systemctl start {UNIT}"


def asked(more: dict[str, Any] | None = None, **changes: Any) -> Node:
    return with_mounts({WHERE: {**MOUNT, **changes}}, **(more or {}))


def mount(node: Node) -> OwnedMount:
    from deploys.nfs import mounts_of

    (one,) = mounts_of(node)
    return one


def there(node: Node, **changes: Any) -> Snapshot:
    """The node after a run."""
    one = mount(node)
    text = record(one.path, str(one.owned("nfs").content)) + enablement(one.unit)
    return host(**{"mounted": text, "mounts": LINE, "active": "active", **changes})


def test_a_mount_is_over_rdma_and_nothing_else() -> None:
    one = mount(asked(nconnect=8, rsize=1 << 20, wsize=65536, options=["noatime"]))
    assert (one.what, one.fstype) == ("10.64.0.9:/exp/a", "nfs4")
    assert one.options == (
        *("proto=rdma", "port=20049", "vers=4.2", "hard", "nconnect=8"),
        *("rsize=1048576", "wsize=65536", "noatime"),
    )
    assert one.shown == ("proto=rdma", "vers=4.2", "hard")
    third = mount(asked(version="3", hard=False))
    assert (third.fstype, third.shown) == ("nfs", ("proto=rdma", "vers=3", "soft"))


def test_over_ipv6_the_transport_has_another_name() -> None:
    """mount.nfs looks for an IPv4 address by proto=rdma, and the kernel shows rdma6."""
    node = asked(server="[fd00::9]")
    assert mount(node).options[0] == "proto=rdma6"
    line = LINE.replace("10.64.0.9:", "[fd00::9]:").replace("proto=rdma", "proto=rdma6")
    assert found(node, there(node, mounts=line), NFS)[KEY].running.standing is Standing.RIGHT
    assert done(node, there(node, mounts=line), NFS) == []


def test_a_bare_node_gets_unit_and_mount_and_a_converged_one_nothing() -> None:
    node = asked()
    assert done(node, host(), NFS) == [
        f"install /etc/systemd/system/{UNIT}",
        "systemctl daemon-reload",
        f"systemctl enable {UNIT}",
        START,
    ]
    assert done(node, there(node), NFS) == []
    assert set(verdicts(node, there(node), NFS).values()) == {Verdict.OK}


def test_bug_51_rpcrdma_of_the_kernel_next_to_ofed_is_not_mounted_over() -> None:
    node = asked()
    snapshot = host(module=modinfo(stack=OFED))
    setting = found(node, snapshot, NFS)[MODULE]
    assert setting.running.standing is Standing.WRONG
    assert setting.running.detail == (
        "rpcrdma is the kernel's own (kernel/net/sunrpc/xprtrdma/rpcrdma.ko), "
        "mlx5_core is not (updates/dkms/mlx5_core.ko)"
    )
    assert setting.remedy == "install mlnx-nfsrdma-dkms of the release that mlx5_core is of"
    assert START not in done(node, snapshot, NFS)
    late = found(node, snapshot, NFS)[KEY].running
    assert (late.standing, late.detail) == (Standing.LATE, setting.running.detail)
    healthy = host(module=modinfo(OFED, OFED))
    assert found(node, healthy, NFS)[MODULE].running.standing is Standing.RIGHT
    assert START in done(node, healthy, NFS)


def test_bug_51_after_mounting_proto_rdma_is_what_tells() -> None:
    node = asked()
    tcp = LINE.replace("proto=rdma,port=20049", "proto=tcp,mountproto=rdma")
    setting = found(node, there(node, mounts=tcp), NFS)[KEY]
    assert (setting.running.standing, setting.running.value) == (
        Standing.WRONG,
        "without proto=rdma",
    )
    healthy = LINE.replace("timeo=600", "timeo=600,mountproto=tcp")
    assert found(node, there(node, mounts=healthy), NFS)[KEY].running.standing is Standing.RIGHT


def test_what_is_mounted_over_tcp_is_mounted_anew_where_that_is_allowed() -> None:
    tcp = LINE.replace("proto=rdma", "proto=tcp")
    assert done(asked(), there(asked(), mounts=tcp), NFS) == []
    node = asked({"allow": REMOUNT})
    assert done(node, there(node, mounts=tcp), NFS) == [f"systemctl stop {UNIT}", START]
    # It would not come back.
    without = there(node, mounts=tcp, module=modinfo(stack=OFED))
    assert done(node, without, NFS) == []


def read(text: str, rc: int = 0) -> RdmaModules:
    section = Section(stdout=text, rc=rc)
    return read_rdma_modules(Snapshot(host="a", marker="m", sections={"rdma_modules": section}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (modinfo(), None),
        (modinfo(OFED, OFED), None),
        (modinfo(rpcrdma="extra/mlnx-nfsrdma", stack="extra/mlnx-ofa_kernel"), None),
        (modinfo(mlx5_core="", ib_core=""), None),
        (modinfo(mlx5_core="", ib_core=OFED), "ib_core is not"),
        (modinfo(stack=OFED), "mlx5_core is not"),
        (modinfo(rpcrdma=OFED), "another RDMA stack"),
        (modinfo(rpcrdma=""), "no module rpcrdma"),
        ("filename:       (builtin)\nname:           rpcrdma\n", None),
        ("", "no module rpcrdma"),
    ],
)
def test_the_stack_of_the_module_and_that_of_the_nic(text: str, said: str | None) -> None:
    found = refusal("rpcrdma", read(text))
    assert (found is None) == (said is None)
    assert said is None or (found is not None and said in found.found)


def test_without_modinfo_nothing_is_known() -> None:
    found = refusal("rpcrdma", read("", 127))
    assert found is not None
    assert "there is no modinfo" in found.found


@pytest.mark.parametrize("package", ["mlnx-nfsrdma-dkms", "kmod-mlnx-nfsrdma", "mlnx-nfsrdma"])
def test_packages_that_bring_the_module(package: str) -> None:
    assert brings("rpcrdma", package)
    assert not brings("nvme_rdma", package)


def test_an_image_has_the_unit_alone() -> None:
    node = asked()
    words = done(node, host(container=True), NFS)
    assert f"systemctl enable {UNIT}" in words
    assert START not in words
    assert verdicts(node, host(container=True), NFS)[MODULE] is Verdict.NOT_APPLICABLE


def test_a_node_that_asks_for_none_has_nothing() -> None:
    assert found(with_mounts({}), host(), NFS) == {}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"nconnect": 17}, "less than or equal to 16"),
        ({"rsize": 1 << 21}, "less than or equal to 1048576"),
        ({"wsize": 5000}, "a multiple of 4096"),
        ({"version": "4"}, "'4.0'"),
        ({"export": "exp"}, "absolute path of an export"),
        ({"export": "/exp/a/"}, "without a slash at its end"),
        ({"export": "/exp//a"}, "absolute path of an export"),
        ({"server": "a b"}, "a host name"),
        ({"options": ["proto=tcp"]}, "which is rdma"),
        ({"options": ["nfsvers=3"]}, "it in version"),
        ({"options": ["soft"]}, "it in hard"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        NfsRdmaMount.model_validate({**MOUNT, **changes})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"rails": {}}, "a fabric and rails.nics beside it"),
        ({"modules": {"blacklist": ["rpcrdma"]}}, f"storage.mounts {WHERE} goes over it"),
    ],
)
def test_what_does_not_fit_together(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError) as error:
        asked(more)
    assert said in str(error.value)


def test_the_mounts_of_one_server_have_one_number_of_connections() -> None:
    with pytest.raises(ValidationError, match=r"8, as storage\.mounts /mnt/a has it"):
        with_mounts({"/mnt/a": {**MOUNT, "nconnect": 8}, "/mnt/b": MOUNT})
    other = {**MOUNT, "server": "10.64.1.9"}
    assert with_mounts({"/mnt/a": {**MOUNT, "nconnect": 8}, "/mnt/b": other})


def mounts(name: str) -> Any:
    return parse_proc_mounts((CORPUS / f"{name}.txt").read_text())


def test_mountproto_tells_nothing_of_the_data() -> None:
    found = mounts("03-nfs-rdma-and-tcp")
    assert (found["/data"].proto, found["/data"].port) == ("rdma", 20049)
    assert (found["/models"].proto, found["/models"].nconnect) == ("tcp", 16)


def test_mounts_of_other_kinds_are_read_too() -> None:
    lustre = mounts("01-lustre-two-mgs")
    assert lustre["/scratch"].nids == ("10.77.3.1@o2ib", "10.77.3.2@o2ib")
    assert (lustre["/scratch"].fsname, lustre["/scratch"].flock) == ("scr", True)
    assert (lustre["/home"].net, lustre["/home"].subdir) == ("tcp", "/users")
    assert lustre["/home"].flock is False
    local = mounts("04-escaped-blank-and-ext4")
    assert local["/mnt/gds test"].data == "ordered"
    assert (local["/mnt/gds2"].data, local["/mnt/gds3"].fstype) == (None, "xfs")


@pytest.mark.parametrize(("text", "rc"), [("", 0), ("a b\n", 0), (LINE, 1)])
def test_no_mounts_are_not_read(text: str, rc: int) -> None:
    with pytest.raises(ValueError, match=r"expected|could not"):
        parse_proc_mounts(text, rc)
