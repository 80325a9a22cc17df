"""Which network interface belongs to which RDMA port, as ``ibdev2netdev`` says it.

Formats: mlnx-tools ibdev2netdev, with and without ``-v``, and its old style without the state.
"""

import re
from typing import Literal

from pydantic import computed_field

from railwright.model import Model


class PortNetdev(Model):
    """A port and its interface.

    ``up`` is whether the interface has a carrier, None where the tool does not know; it says
    nothing of an InfiniBand port, which can be active while its IPoIB interface is down.
    """

    device: str
    port: int
    netdev: str
    up: bool | None = None


class PortDetails(PortNetdev):
    """What ``-v`` tells in addition; None where it says NA or nothing.

    ``pci_id`` is the PCI device number, which the tool calls MT4123 whoever made the device.
    ``part`` and ``description`` come from the VPD, ``state`` is that of the RDMA port.
    """

    pci: str | None = None
    pci_id: int | None = None
    part: str | None = None
    description: str | None = None
    fw: str | None = None
    state: str | None = None

    @computed_field
    def vendor_mlx(self) -> bool:
        """Whether it is a device of Mellanox (NVIDIA) by its PCI device number.

        Source: pci.ids, vendor 15b3: ConnectX-3 and later 0x1003-0x10ff, BlueField 0xa2d0-0xa2ff.
        """
        number = self.pci_id or 0
        return 0x1003 <= number <= 0x10FF or 0xA2D0 <= number <= 0xA2FF


class Netdevs(Model):
    """Ports in the order listed. ``error``: no RDMA driver is loaded."""

    ports: tuple[PortDetails | PortNetdev, ...]
    error: Literal["driver_stopped"] | None = None


_END = r"\s+port\s+([0-9]+)\s+(?:\(\s*(?P<state>[^()]*?)\s*\)\s+)?"
_TAIL = re.compile(r"(?P<head>.*)" + _END + r"(?:==>|<===>)\s+(\S+)(?:\s+\((\w*)\))?\s*")
_VERBOSE = re.compile(
    r"(?:(?P<pci>\S+)\s+)?(?P<device>\S+)\s+\((?P<id>\S+)\s+-\s+(?P<part>[^()]*)\)"
    r"(?P<description>.*)\sfw\s+(?P<fw>\S+)"
)


def parse_ibdev2netdev(text: str, rc: int = 0) -> Netdevs:
    """Read ``ibdev2netdev``, plain or ``-v``.

    It says nothing where no Mellanox interface is there, and fails without a word where no RDMA
    driver is loaded. Raises ValueError for a line of another kind.
    """
    if not text.strip():
        return Netdevs(ports=(), error="driver_stopped" if rc else None)
    return Netdevs(ports=tuple(_line(line) for line in text.splitlines() if line.strip()))


def _line(line: str) -> PortDetails | PortNetdev:
    tail = _TAIL.fullmatch(line)
    if tail is None:
        raise ValueError(f"expected DEVICE port N ==> NETDEV (STATE), got {line[:80]!r}")
    head, port, state, netdev, link = tail.groups()
    up = {"Up": True, "Down": False}.get(link or "")
    head = head.strip()
    if state is None and head and not re.search(r"\s", head):
        return PortNetdev(device=head, port=int(port), netdev=netdev, up=up)
    found = _VERBOSE.fullmatch(head)
    if found is None:
        raise ValueError(f"expected a line of ibdev2netdev -v, got {line[:80]!r}")
    number = re.fullmatch(r"MT([0-9]+)", found["id"])
    return PortDetails(
        device=found["device"],
        port=int(port),
        netdev=netdev,
        up=up,
        pci=found["pci"],
        pci_id=int(number[1]) if number else None,
        part=_known(found["part"]),
        description=_known(found["description"]),
        fw=_known(found["fw"]),
        state=_known(state or ""),
    )


def _known(value: str) -> str | None:
    return value.strip() if value.strip() not in ("", "NA") else None
