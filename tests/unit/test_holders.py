"""May a driver be reloaded now? What carries ssh, the root file system and mounts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.block_path import BlockStack, Controller, Mount
from facts.device_chain import Bound, Device, Devices, Kind
from facts.modinfo import LoadedModule
from facts.nics import Interface, Nics
from railwright.drivers.carried import Carried, carried
from railwright.drivers.holders import plan_reload, unload_order

ROOT_DISK, RAIL, ADMIN, HBA = "0000:01:00.0", "0000:1a:00.0", "0000:41:00.0", "0000:61:00.0"

DRIVERS = {
    ROOT_DISK: "nvme", RAIL: "mlx5_core", ADMIN: "tg3", HBA: "mpt3sas",
}  # fmt: skip


def pci(address: str, rest: str) -> str:
    return f"/sys/devices/pci0000:00/{address}/{rest}"


def devices(*more: Device) -> Devices:
    entries: list[tuple[Kind, str, str]] = [
        ("net", "eno1", pci(ADMIN, "net/eno1")),
        ("net", "ens1", pci(RAIL, "net/ens1")),
        ("net", "bond0", "/sys/devices/virtual/net/bond0"),
        ("block", "nvme0n1", pci(ROOT_DISK, "nvme/nvme0/nvme0n1")),
        ("block", "nvme0n1p2", pci(ROOT_DISK, "nvme/nvme0/nvme0n1/nvme0n1p2")),
        ("nvme", "nvme0", pci(ROOT_DISK, "nvme/nvme0")),
        ("block", "sda", pci(HBA, "host0/target0:0:0/0:0:0:0/block/sda")),
        ("block", "md0", "/sys/devices/virtual/block/md0"),
        ("block", "dm-0", "/sys/devices/virtual/block/dm-0"),
        ("block", "loop0", "/sys/devices/virtual/block/loop0"),
        ("block", "nvme1n1", "/sys/devices/virtual/nvme-subsystem/nvme-subsys1/nvme1n1"),
        ("auxiliary", "mlx5_core.rdma.0", pci(RAIL, "mlx5_core.rdma.0")),
    ]
    drivers = {
        f"/sys/devices/pci0000:00/{address}": Bound(driver=driver, module=driver)
        for address, driver in DRIVERS.items()
    }
    drivers[pci(RAIL, "mlx5_core.rdma.0")] = Bound(driver="mlx5_ib.rdma", module="mlx5_ib")
    drivers[pci(HBA, "host0/target0:0:0/0:0:0:0")] = Bound(driver="sd", module="sd_mod")
    found = [
        Device(kind=kind, name=name, path=path, type="bond" if name == "bond0" else None)
        for kind, name, path in entries
    ]
    return Devices(devices=(*found, *more), drivers=drivers)


def interface(name: str, address: str, driver: str) -> Interface:
    return Interface(
        name=name, pci=address, is_function=True, driver=driver, mac="02:00:00:00:00:01",
        permanent_mac="02:00:00:00:00:01", mtu=1500, operstate="up", speed_mbps=1000,
        numa_node=0, is_infiniband=False, addresses=(), is_up=True,
    )  # fmt: skip


def nics(*way_in: str) -> Nics:
    """Two interfaces; ssh came in by ``way_in``, by no known one where there is none."""
    return Nics(
        interfaces={
            "eno1": interface("eno1", ADMIN, "tg3"),
            "ens1": interface("ens1", RAIL, "mlx5_core"),
        },
        rdma={},
        lowers={"bond0": ("ens1",)},
        holders={},
        way_in=frozenset(way_in) or None,
    )


ROOT = Mount(target="/", fstype="ext4", source="/dev/nvme0n1p2", number="259:2")


def stack(*mounts: Mount, **more: object) -> BlockStack:
    values: dict[str, object] = {
        "mounts": (ROOT, *mounts),
        "devices": devices(),
        "numbers": {
            "nvme0n1": "259:0", "nvme0n1p2": "259:2", "sda": "8:0", "md0": "9:0",
            "dm-0": "253:0", "nvme1n1": "259:5", "loop0": "7:0",
        },
        "under": {"nvme0n1p2": ("nvme0n1",)},
        "controllers": {"nvme0": Controller(transport="pcie", address=ROOT_DISK)},
    }  # fmt: skip
    return BlockStack.model_validate(values | more)


def module(refcnt: int | None, *holders: str, state: str = "live") -> LoadedModule:
    return LoadedModule(refcnt=refcnt, holders=holders, initstate=state)


def loaded(**modules: str) -> dict[str, LoadedModule]:
    """``REFERENCES USER...``; the usual modules of an RDMA node, and what is named."""
    usual = {
        "mlx_compat": "5 mlx5_core ib_core mlx5_ib rdma_cm nvme_rdma",
        "ib_core": "3 mlx5_ib rdma_cm nvme_rdma",
        "rdma_cm": "1 nvme_rdma",
        "mlx5_core": "1 mlx5_ib",
        "mlx5_ib": "0",
        "nvme_rdma": "0",
        "nvme": "3",
        "tg3": "0",
        "nvidia": "2 nvidia_uvm nvidia_modeset",
        "nvidia_uvm": "0",
        "nvidia_modeset": "0",
    }
    found = {}
    for name, text in (usual | modules).items():
        references, *users = text.split()
        found[name] = module(int(references), *users)
    return found


OFED = ("mlx_compat", "ib_core", "mlx5_core", "mlx5_ib")


def what(things: tuple[Carried, ...], name: str) -> Carried:
    return next(thing for thing in things if thing.what == name)


def test_users_go_before_what_they_use_and_come_back_after_it() -> None:
    plan = plan_reload(OFED, loaded(), carried(nics("eno1"), stack()))
    assert plan.live
    order = plan.unload
    for name, entry in loaded().items():
        for user in entry.holders:
            if name in order:
                assert order.index(user) < order.index(name)
    assert plan.load == tuple(reversed(order))
    assert set(order) == {"mlx_compat", "ib_core", "rdma_cm", "mlx5_core", "mlx5_ib", "nvme_rdma"}
    assert plan.words.startswith("mlx_compat, ib_core, mlx5_core, mlx5_ib can be reloaded now")


def test_peers_5_8_ssh_came_in_by_a_port_of_the_driver() -> None:
    plan = plan_reload(OFED, loaded(), carried(nics("ens1"), stack()))
    assert not plan.live
    assert plan.reasons == (f"ssh goes over ens1 ({RAIL}), by mlx5_core",)
    assert "staged for reboot" in plan.words
    # ssh by a port of another driver: the very same reload is done now.
    assert plan_reload(OFED, loaded(), carried(nics("eno1"), stack())).live


def test_interfaces_without_devices_are_not_taken_for_such_as_nothing_carries() -> None:
    def without(*kinds: str) -> BlockStack:
        kept = tuple(one for one in devices().devices if one.kind not in kinds)
        return stack(devices=devices().model_copy(update={"devices": kept}))

    for way_in in (("eno1",), ()):
        with pytest.raises(ValueError, match="the drivers of network interfaces are not known"):
            carried(nics(*way_in), without("net"))
        assert carried(nics(*way_in), without("auxiliary"))
    with pytest.raises(ValueError, match="the drivers of eno9 are not known"):
        carried(nics("eno9"), stack())


def test_ssh_over_a_bond_goes_over_its_ports() -> None:
    things = carried(nics("bond0", "ens1"), stack())
    assert what(things, "ssh").modules == {"bonding", "mlx5_core"}


def test_ssh_over_ipoib_goes_over_the_modules_of_rdma_too() -> None:
    found = nics("ens1")
    ib = found.interfaces["ens1"].model_copy(update={"is_infiniband": True})
    over_ib = found.model_copy(update={"interfaces": {**found.interfaces, "ens1": ib}})
    way = what(carried(over_ib, stack()), "ssh")
    assert way.modules == {"mlx5_core", "mlx5_ib", "ib_ipoib"}
    assert not plan_reload(["mlx5_ib"], loaded(), [way]).live
    # Over Ethernet mlx5_ib may go.
    assert plan_reload(["mlx5_ib"], loaded(), [what(carried(found, stack()), "ssh")]).live


def test_a_way_in_that_is_not_known_refuses_every_nic_driver_and_no_other() -> None:
    things = carried(nics(), stack())
    for module in ("mlx5_core", "tg3"):
        plan = plan_reload([module], loaded(), things)
        assert plan.reasons == (f"ssh goes over an interface that is not known, by {module}",)
    assert plan_reload(["nvidia"], loaded(), things).live


def test_peers_5_9_the_root_disk_is_nvme_of_the_stack_that_is_swapped() -> None:
    modules = loaded(nvme_core="2 nvme nvme_rdma", nvme="0")
    plan = plan_reload(["nvme_core"], modules, carried(nics("eno1"), stack()))
    assert plan.reasons == (
        f"the root file system goes over nvme0n1p2 on nvme0n1 on nvme0 ({ROOT_DISK}), by nvme, "
        "which uses nvme_core",
    )
    on_sata = stack(numbers={"sda": "8:0", "nvme0n1p2": "1:1"}).model_copy(
        update={"mounts": (ROOT.model_copy(update={"number": "8:0", "source": "/dev/sda"}),)}
    )
    assert plan_reload(["nvme_core"], modules, carried(nics("eno1"), on_sata)).live


def test_peers_5_11_mlx_compat_is_held_by_the_nvme_of_the_root_disk() -> None:
    modules = loaded(
        mlx_compat="5 mlx5_core ib_core mlx5_ib rdma_cm nvme_core",
        nvme_core="2 nvme nvme_rdma",
        nvme="0",
        ib_core="3 mlx5_ib rdma_cm nvme_rdma",
    )
    plan = plan_reload(OFED, modules, carried(nics("eno1"), stack()))
    assert plan.reasons == (
        f"the root file system goes over nvme0n1p2 on nvme0n1 on nvme0 ({ROOT_DISK}), by nvme, "
        "which uses nvme_core over mlx_compat",
    )
    assert plan_reload(OFED, loaded(), carried(nics("eno1"), stack())).live


def test_a_mount_over_nvme_over_rdma_goes_over_the_port_to_its_target() -> None:
    md = Mount(target="/scratch", fstype="xfs", source="/dev/md0", number="9:0")
    far = stack(
        md,
        under={"nvme0n1p2": ("nvme0n1",), "md0": ("nvme1n1",)},
        levels={"md0": "raid0"},
        subsystems={"nvme-subsys1": ("nvme1",)},
        controllers={
            "nvme0": Controller(transport="pcie", address=ROOT_DISK),
            "nvme1": Controller(transport="rdma", address="traddr=10.1.0.7,trsvcid=4420"),
        },
        routes={"10.1.0.7": "bond0"},
    )
    thing = what(carried(nics("eno1"), far), "the mount /scratch")
    assert thing.over == "md0 on nvme1n1 on bond0 to 10.1.0.7 (nvme1)"
    assert thing.modules == {
        "xfs", "md_mod", "raid0", "bonding", "mlx5_core", "nvme_rdma",
    }  # fmt: skip
    assert not plan_reload(OFED, loaded(), carried(nics("eno1"), far)).live


@pytest.mark.parametrize(
    ("mount", "cuts"),
    [
        (Mount(target="/l", fstype="lustre", source="10.0.0.1@o2ib:/f", number="0:5"), True),
        (
            Mount(target="/h", fstype="nfs4", source="s:/h", number="0:6", server="10.0.0.5"),
            False,
        ),
        (
            Mount(target="/h", fstype="nfs4", source="s:/h", number="0:6", server="10.1.0.5"),
            True,
        ),
        (Mount(target="/z", fstype="zfs", source="tank/z", number="0:7"), True),
        (Mount(target="/d", fstype="xfs", source="/dev/sda", number="8:0"), False),
        (Mount(target="/t", fstype="tmpfs", source="tmpfs", number="0:8"), False),
    ],
)
def test_mounts_that_a_reload_of_ofed_would_cut(mount: Mount, cuts: bool) -> None:
    routes = {"10.0.0.5": "eno1", "10.1.0.5": "ens1"}
    plan = plan_reload(OFED, loaded(), carried(nics("eno1"), stack(mount, routes=routes)))
    assert plan.live != cuts
    assert not cuts or f"the mount {mount.target} goes over" in plan.reasons[0]


def test_a_disk_of_an_hba_stands_on_both_of_its_drivers() -> None:
    disk = Mount(target="/d", fstype="xfs", source="/dev/sda", number="8:0")
    thing = what(carried(nics("eno1"), stack(disk)), "the mount /d")
    assert thing.modules == {"xfs", "sd_mod", "mpt3sas"}
    assert thing.over == f"sda ({HBA})"


def test_a_loop_device_goes_over_the_mount_of_its_file() -> None:
    snap = Mount(target="/snap", fstype="squashfs", source="/dev/loop0", number="7:0")
    things = carried(nics("eno1"), stack(snap, loops={"loop0": "/var/lib/x.img"}))
    assert what(things, "the mount /snap").modules == {"squashfs", "loop", "nvme"}


def test_encrypted_swap_and_btrfs_over_two_disks() -> None:
    data = Mount(target="/b", fstype="btrfs", source="/dev/sda", number="0:9")
    things = carried(
        nics("eno1"),
        stack(
            data,
            btrfs=(("sda", "nvme0n1p2"),),
            swaps=("/dev/dm-0",),
            under={"nvme0n1p2": ("nvme0n1",), "dm-0": ("sda",)},
            dm={"dm-0": "CRYPT-LUKS2-x"},
        ),
    )
    assert what(things, "the mount /b").modules == {"btrfs", "sd_mod", "mpt3sas", "nvme"}
    swap = what(things, "the swap /dev/dm-0")
    assert swap.modules == {"dm_mod", "dm_crypt", "sd_mod", "mpt3sas"}


def test_a_disk_of_iscsi_may_go_over_any_network() -> None:
    session = "/sys/devices/platform/host3/session1/target3:0:0/3:0:0:1"
    disk = Device(kind="block", name="sdz", path=f"{session}/block/sdz")
    found = stack(
        Mount(target="/i", fstype="xfs", source="/dev/sdz", number="65:144"),
        devices=devices(disk),
        numbers={"nvme0n1p2": "259:2", "sdz": "65:144"},
    )
    assert what(carried(nics("eno1"), found), "the mount /i").modules >= {"mlx5_core", "tg3"}


def test_a_module_that_programs_use_is_not_unloaded() -> None:
    plan = plan_reload(["nvidia"], loaded(nvidia="14 nvidia_uvm nvidia_modeset"), [])
    assert plan.reasons == (
        "nvidia is in use 12 times by what is no module (a program, a mount, a device)",
    )
    assert plan_reload(["nvidia"], loaded(), []).live


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (module(None), "how often x is in use was not read"),
        (module(0, state="going"), "x is in the state going"),
        (module(1, "y"), "x is held by y, of which nothing was read"),
    ],
)
def test_a_module_that_cannot_go(entry: LoadedModule, said: str) -> None:
    plan = plan_reload(["x"], {"x": entry}, [])
    assert said in plan.reasons[0]


def test_what_is_built_in_or_not_loaded() -> None:
    builtin = plan_reload(["nvme"], {}, [], frozenset({"nvme"}))
    assert (builtin.live, builtin.load) == (False, ())
    fresh = plan_reload(["nvidia_peermem"], {}, [])
    assert (fresh.live, fresh.unload, fresh.load) == (True, (), ("nvidia_peermem",))
    assert fresh.words == "nvidia_peermem: not loaded, nothing to unload"


@given(
    st.lists(
        st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] < pair[1]),
        max_size=20,
    ),
    st.sets(st.integers(0, 7), min_size=1),
)
def test_the_order_of_unloading_holds_for_any_graph(
    edges: list[tuple[int, int]], asked: set[int]
) -> None:
    users: dict[str, set[str]] = {f"m{n}": set() for n in range(8)}
    for lower, upper in edges:
        users[f"m{lower}"].add(f"m{upper}")
    modules = {name: module(len(found), *found) for name, found in users.items()}
    order = unload_order([f"m{n}" for n in asked], modules)
    assert len(set(order)) == len(order)
    assert {f"m{n}" for n in asked} <= set(order)
    for name in order:
        assert all(order.index(user) < order.index(name) for user in users[name])
