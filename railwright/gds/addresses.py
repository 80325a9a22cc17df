"""The addresses that libcufile is given for RDMA, from the plan of the rails."""

from collections.abc import Iterable
from ipaddress import IPv4Address

from railwright.rails import PlannedRail, planned
from railwright.schema import Node


def near_rails(node: Node) -> tuple[PlannedRail, ...]:
    """The rails that serve a GPU (``rails.nics.N.gpu``): those whose NIC is near to one.

    That the NIC of a rail really is the nearest to its GPU is for component pcie to tell.
    """
    return tuple(rail for rail in planned(node) if rail.nic.gpu is not None)


def rdma_addresses(node: Node, asked: str | Iterable[IPv4Address | str]) -> tuple[str, ...]:
    """The addresses that ``asked`` stands for, each once, in the order in which they are asked.

    ``rails`` stands for all near rails, ``railN`` for that one. Raises ValueError where a rail is
    not there or has no address, and where no rail is near: an empty list would turn RDMA off.
    """
    if isinstance(asked, str):
        rails = near_rails(node)
        if not rails:
            raise ValueError("expected a rail that serves a GPU (rails.nics.N.gpu), got none")
        return tuple(dict.fromkeys(_address(rail) for rail in rails))
    by_name = {f"rail{rail.rail}": rail for rail in planned(node)}
    found = []
    for one in asked:
        if isinstance(one, IPv4Address):
            found.append(str(one))
        elif one in by_name:
            found.append(_address(by_name[one]))
        else:
            raise ValueError(f"expected a rail of rails.nics, got {one}")
    return tuple(dict.fromkeys(found))


def _address(rail: PlannedRail) -> str:
    if rail.address is None:
        raise ValueError(f"expected an address of rail{rail.rail} in rails.plan, got none")
    return str(rail.address.ip)
