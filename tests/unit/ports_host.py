"""A node as the components of its NICs see it: eight ports at most, built by hand.

Rail r is the NIC at 0000:1R:00.0 with the RDMA device mlx5_R.
"""

import json
from collections.abc import Mapping, Sequence

from railwright.schema import EffectsSpec, FirmwareSpec, Node, Rail, RailPlan, RailsSpec
from railwright.schema.fabric import InfinibandFabric, RoceFabric
from railwright.settings import Effect, Setting
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, records
from tests.unit.units import unit

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
EVERY = frozenset(Effect)
BOOT = "b0000000-0000-4000-8000-000000000001"
ETHERNET, INFINIBAND = "1", "32"


def pci(rail: int) -> str:
    return f"0000:1{rail}:00.0"


def node(
    fabric: RoceFabric | InfinibandFabric | None = None,
    *,
    rails: int = 2,
    allow: frozenset[Effect] = LIVE,
    rate_gbps: int | None = None,
    firmware: Mapping[str, int | str] | None = None,
    addresses: Sequence[str] = (),
) -> Node:
    """``addresses`` are those of the NICs, by rail; by default rail r is at ``pci(r)``."""
    at = addresses or [pci(rail) for rail in range(rails)]
    prefix = {"prefix": "10.64.0.0/12", "rail_prefix_length": 20, "routed": True}
    return Node(
        name="gpu012",
        fabric=fabric or RoceFabric(),
        rails=RailsSpec(
            nics={rail: Rail(pci=address) for rail, address in enumerate(at)},
            plan=RailPlan.model_validate(prefix),
            rate_gbps=rate_gbps,
        ),
        firmware=FirmwareSpec.model_validate({"keys": dict(firmware or {})}),
        effects=EffectsSpec(allow=allow),
    )


def status(
    device: str,
    *,
    state: str = "4: ACTIVE",
    phys: str = "5: LinkUp",
    rate: str = "400 Gb/sec (4X NDR)",
    link: str = "Ethernet",
    sm_lid: str = "0x0",
) -> str:
    return (
        f"Infiniband device '{device}' port 1 status:\n\tbase lid:\t 0x0\n\tsm lid:\t {sm_lid}\n"
        f"\tstate:\t {state}\n\tphys state:\t {phys}\n\trate:\t {rate}\n\tlink_layer:\t {link}\n"
    )


def gids(device: str, address: str, netdev: str, v2_index: int = 3) -> str:
    """The table of a RoCE port with one IPv4 address; v1 of it comes right before v2."""
    octets = [int(octet) for octet in address.split(".")]
    mapped = "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}".format(*octets)
    rows = [
        (0, "fe80:0000:0000:0000:0242:aaff:fe10:0001", "IB/RoCE v1"),
        (1, "fe80:0000:0000:0000:0242:aaff:fe10:0001", "RoCE v2"),
        (v2_index - 1, mapped, "IB/RoCE v1"),
        (v2_index, mapped, "RoCE v2"),
    ]
    base = f"{device}/ports/1"
    lines = [f"{base}/gids/{index}:{gid}" for index, gid, _ in rows]
    lines += [f"{base}/gid_attrs/types/{index}:{kind}" for index, _, kind in rows]
    lines += [f"{base}/gid_attrs/ndevs/{index}:{netdev}" for index, _, _ in rows]
    return "\n".join(lines) + "\n"


def host(
    *,
    rails: int = 2,
    infiniband: bool = False,
    ports: Mapping[int, str] | None = None,
    tables: Mapping[int, str] | None = None,
    images: Mapping[int, str] | None = None,
    addresses: Sequence[str] = (),
    speeds: Mapping[int, str] | None = None,
    mtus: Mapping[int, int] | None = None,
    way_in: str | None = "eth9",
    container: bool = False,
    sections: Mapping[str, Section] | None = None,
) -> Snapshot:
    """``ports`` are rail to its status, ``tables`` rail to its keys and GIDs."""
    at = addresses or [pci(rail) for rail in range(rails)]
    layer = "InfiniBand" if infiniband else "Ethernet"
    made = {r: status(f"mlx5_{r}", link=layer, sm_lid="0x1") for r in range(len(at))}
    made.update(ports or {})
    table = "".join(
        f"mlx5_{r}/device:/sys/devices/pci0000:00/{address}\n"
        f"mlx5_{r}/sys_image_guid:{(images or {}).get(r, f'b83f:d203:0000:000{r}')}\n"
        for r, address in enumerate(at)
    )
    if not infiniband:
        given = {r: gids(f"mlx5_{r}", planned_address(r), f"eth{r}") for r in range(len(at))}
        tables = given | dict(tables or {})
    texts = {
        "identity": f"boot_id={BOOT}\nkernel=6.1.0\n" + ("container=podman\n" if container else ""),
        "nic_ports": _nic_ports(at, INFINIBAND if infiniband else ETHERNET, speeds, mtus),
        **_network(len(at), infiniband, way_in),
        "port_status": "".join(made.values()),
        "port_tables": table + "".join((tables or {}).values()),
        "ipoib_files": "",
        "ipoib": "".join(f"mode eth{r} datagram\n" for r in range(len(at)) if infiniband),
        "opensm_files": "",
        "opensm_units": unit("opensm.service", "inactive", file="", load="not-found"),
        "opensm": "installer=apt-get\n",
        "nic_firmware": "",
        "nic_firmware_ledger": "",
        "nic_firmware_storage": "var=ext2/ext3\n",
    }
    taken = {name: Section(stdout=text, rc=0) for name, text in texts.items()}
    taken["port_mtu"] = Section(stdout="", rc=127)
    return Snapshot(host="gpu012", marker=MARKER, sections={**taken, **(sections or {})})


def _nic_ports(
    at: Sequence[str],
    kind: str,
    speeds: Mapping[int, str] | None,
    mtus: Mapping[int, int] | None,
) -> str:
    """The NICs at the PCI addresses ``at``, and the one of the management network."""
    lines = [
        f"port net eth{rail} /sys/devices/pci0000:00/{address} mlx5_core b8:3f:d2:00:00:0{rail} "
        f"{(mtus or {}).get(rail, 9000)} up {(speeds or {}).get(rail, '400000')} 0 {kind}"
        for rail, address in enumerate(at)
    ]
    lines.append(
        "port net eth9 /sys/devices/pci0000:00/0000:05:00.0 ixgbe 02:00:00:00:00:09 1500 up "
        "10000 0 1"
    )
    lines += [
        f"rdma mlx5_{rail} b83f:d203:0000:000{rail} /sys/devices/pci0000:00/{address}"
        for rail, address in enumerate(at)
    ]
    return "\n".join(lines) + "\n"


def _network(count: int, infiniband: bool, way_in: str | None) -> dict[str, str]:
    links = [
        {"ifname": f"mlx5_{r}", "port": 1, "state": "ACTIVE", "physical_state": "LINK_UP"}
        | ({} if infiniband else {"netdev": f"eth{r}"})
        for r in range(count)
    ]
    lan = {"ifname": "eth9", "addr_info": [], "flags": ["UP"]}
    lan["addr_info"] = [{"local": "192.0.2.9", "prefixlen": 24, "scope": "global"}]
    others = [{"ifname": f"eth{r}", "addr_info": [], "flags": ["UP"]} for r in range(count)]
    route = json.dumps([{"dst": "192.0.2.1", "dev": way_in}])
    return {
        "nic_rdma": json.dumps(links),
        "nic_addresses": json.dumps([lan, *others]),
        "way_in": "" if way_in is None else f"ssh 192.0.2.1 50000 192.0.2.8 22\n{route}\n",
    }


def planned_address(rail: int) -> str:
    """The address of rail ``rail`` of gpu012: the thirteenth after the subnet's own and gateway."""
    return f"10.64.{16 * rail}.13"


def files(contents: Mapping[str, str]) -> Section:
    return Section(stdout=records(contents), rc=0)


def by_key(settings: Sequence[Setting]) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings}
