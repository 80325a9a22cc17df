"""Faults of the field that BeeGFS's client has, each beside a healthy twin."""

from dataclasses import replace

import pytest

from railwright.schema.beegfs import STOCK_CONFIG
from railwright.settings import Standing, Verdict
from tests.unit.beegfs_host import (
    REMOUNT,
    WHERE,
    World,
    answer,
    commands,
    converged,
    done,
    found,
    node,
    stock,
    value,
    verdicts,
    written,
)

RDMA = {"rdma": True, "rails": "all"}
KEY = f"transport {WHERE}"
GOOD = "stor01 [ID: 3]\n   Connections: RDMA: 8 (10.77.3.23:8003); \n"
FALLBACK = "stor02 [ID: 4]\n   Connections: TCP: 6 (10.20.0.24:8003 [fallback route]); \n"
SILENT = "stor02 [ID: 4]\n   Connections: TCP: 6 (10.20.0.24:8003); \n"
IDLE = "stor03 [ID: 5]\n   Connections: <none>\n"


def host(storage: str, **more: str) -> World:
    return replace(converged(node({WHERE: RDMA}), stock()), storage=storage, **more)  # type: ignore[arg-type]


def test_bug_49_tcp_in_place_of_rdma_is_degraded_and_the_server_is_named() -> None:
    setting = found(node({WHERE: RDMA}), host(GOOD + FALLBACK + IDLE))[KEY]
    assert verdicts(node({WHERE: RDMA}), host(GOOD + FALLBACK + IDLE))[KEY] is Verdict.DEGRADED
    assert setting.running.detail == "storage stor02 [4]: TCP 6 by a fallback route"
    assert setting.remedy is not None
    assert "tcp_fallback" in setting.remedy
    healthy = found(node({WHERE: RDMA}), host(GOOD + IDLE))[KEY]
    assert (healthy.running.standing, healthy.running.detail) == (Standing.RIGHT, None)


def test_bug_49_tcp_without_a_mark_of_fallback_is_degraded_too() -> None:
    assert verdicts(node({WHERE: RDMA}), host(SILENT))[KEY] is Verdict.DEGRADED


def test_bug_49_what_the_server_offers_tells_why() -> None:
    text = (
        "stor02 [ID: 4]\n   Ports: UDP: 8003; TCP: 8003\n   Interfaces: \n"
        "   + eno1[ip addr: 10.20.0.24; type: TCP]\n\nNumber of nodes: 1\n"
    )
    world = host(FALLBACK, servers=answer("0A-65-n1", "storage", text))
    detail = found(node({WHERE: RDMA}), world)[KEY].running.detail
    assert detail == "storage stor02 [4]: TCP 6 by a fallback route, and it offers no RDMA"


def test_bug_49_the_fallback_can_be_turned_off() -> None:
    text = written(node({WHERE: {**RDMA, "tcp_fallback": False}}), stock())
    assert value(text, "connTCPFallbackEnabled") == "false"
    assert value(written(node({WHERE: RDMA}), stock()), "connTCPFallbackEnabled") == "true"


def test_servers_without_connections_are_idle_and_management_is_always_by_tcp() -> None:
    setting = found(node({WHERE: RDMA}), host(IDLE))[KEY]
    assert setting.running.standing is Standing.RIGHT
    assert setting.running.detail == "no server has a connection at the moment"


def test_where_rdma_is_not_asked_for_nobody_looks() -> None:
    assert KEY not in found(node(), host(FALLBACK))


def test_servers_that_are_reached_by_tcp_as_they_are_asked_to_be_are_no_fault() -> None:
    other = {"connTcpOnlyFilterFile": "/etc/beegfs/tcp-only"}
    asked = node({WHERE: {**RDMA, "other": other}})
    assert found(asked, host(SILENT))[KEY].running.standing is Standing.RIGHT
    assert found(asked, host(FALLBACK))[KEY].running.standing is Standing.DEGRADED


def test_what_is_not_mounted_has_no_transport() -> None:
    assert verdicts(node({WHERE: RDMA}), stock())[KEY] is Verdict.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("told", "rdma", "standing"),
    [
        (("rail0", "rail1"), ("rail0", "rail1"), Standing.RIGHT),
        (("rail0",), ("rail0",), Standing.DEGRADED),
        (("eno1",), (), Standing.WRONG),
    ],
)
def test_interfaces_that_the_client_really_takes(
    told: tuple[str, ...], rdma: tuple[str, ...], standing: Standing
) -> None:
    asked = node({WHERE: RDMA})
    world = replace(converged(asked, stock()), interfaces=(told, rdma))
    there = found(asked, world)
    ours = "/etc/railwright/beegfs/beegfs-client"
    assert there[f"{ours}.interfaces"].running.standing is standing
    assert there[f"{ours}.rdma-interfaces"].running.standing is standing


def test_a_switch_that_is_written_otherwise_means_the_same() -> None:
    asked = node({WHERE: RDMA})
    world = converged(asked, stock())
    conf = world.files[STOCK_CONFIG].replace(
        "connUseRDMA                   = true", "connUseRDMA=Yes"
    )
    there = replace(world, files={**world.files, STOCK_CONFIG: conf})
    assert verdicts(asked, there)["beegfs-client.conf connUseRDMA"] is Verdict.OK


@pytest.mark.parametrize(
    ("asked", "key", "shown", "standing"),
    [
        ({"client_port": 8004}, "connClientPort", "8104", Standing.NOT_APPLICABLE),
        ({"rdma_buf_size": 8192}, "connRDMABufSize", "65536", Standing.NOT_APPLICABLE),
        ({"rdma_buf_size": 8192}, "connRDMABufSize", "4096", Standing.WRONG),
        ({"rdma_fragment_size": "page"}, "connRDMAFragmentSize", "4096", Standing.NOT_APPLICABLE),
        ({"management": "mgmt01"}, "sysMgmtdHost", "10.20.0.21", Standing.NOT_APPLICABLE),
        ({"management": "10.1.1.1"}, "sysMgmtdHost", "10.20.0.21", Standing.WRONG),
        ({"other": {"sysXAttrsEnabled": False}}, "sysXAttrsEnabled", "1", Standing.NOT_APPLICABLE),
        ({"file_cache_type": "native"}, "tuneFileCacheType", "buffered", Standing.WRONG),
    ],
)
def test_what_the_client_shows_otherwise_than_it_is_written_is_not_mounted_anew_for_ever(
    asked: dict[str, object], key: str, shown: str, standing: Standing
) -> None:
    wanted = node({WHERE: asked}, allow=REMOUNT)
    world = converged(wanted, stock())
    clients = {path: {**config, key: shown} for path, config in world.clients.items()}
    there = replace(world, clients=clients)
    assert found(wanted, there)[f"beegfs-client.conf {key}"].running.standing is standing
    assert bool(commands(done(wanted, there))) == (standing is Standing.WRONG)
