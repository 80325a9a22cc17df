"""What is read of BeeGFS: its servers by three tools, and what the client tells of itself."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.beegfs import (
    SECTIONS,
    parse_client_config,
    parse_client_info,
    read_clients,
    read_files,
    read_module,
    read_offers,
)
from facts.beegfs_nodes import (
    Connections,
    parse_listnodes,
    parse_net,
    parse_node_list,
    parse_nodes,
)
from railwright.cli.parsed_beegfs import beegfs
from railwright.snapshot import Section, Snapshot
from tests.unit.beegfs_host import answer, snapshot, stock
from tests.unit.records import MARKER

CORPUS = Path(__file__).parents[1] / "corpus" / "beegfs"


def recorded(name: str) -> tuple[str, Any, str]:
    """What was printed, what a correct reader finds in it, and the command."""
    first, second = (CORPUS / f"{name}.meta").read_text().split("\n")[:2]
    expected = json.loads(first.partition("| expect: ")[2])
    return (CORPUS / f"{name}.txt").read_text(), expected, second.removeprefix("command: ")


def lacks(expected: Any, found: Any) -> bool:
    """Whether ``found`` is no superset of ``expected``; what is empty is expected as it is."""
    if not (isinstance(expected, dict) and isinstance(found, dict) and expected):
        return bool(expected != found)
    return any(lacks(value, found.get(key)) for key, value in expected.items())


@pytest.mark.parametrize("name", sorted(path.stem for path in CORPUS.glob("*.txt")))
def test_tools_as_recorded(name: str) -> None:
    text, expected, command = recorded(name)
    assert not lacks(expected, beegfs(text, 0, command))


def test_what_else_is_in_the_recorded_outputs() -> None:
    (net,) = parse_net(recorded("01-net-7-rdma-and-fallback")[0])
    assert net.management[0].connections[0].transport == "TCP"
    assert net.storage[1].connections[0].peer == "10.20.0.24:8003"
    assert net.storage[2].connections == ()
    listed = parse_listnodes(recorded("03-listnodes-details")[0])
    assert [nic.name for nic in listed[0].nics] == ["ib0", "ib0", "eno1"]
    assert [offer.has_rdma for offer in listed] == [True, False]
    nodes = {o.alias: o for o in parse_node_list(recorded("05-node-list-8-multiline-cell")[0])}
    assert nodes["node_storage_1"].nics[1].address == "10.77.3.23:8003"
    assert nodes["node_management"].nics[0].address == "10.20.0.21,8010"


def test_several_mounts_in_beegfs_net_are_told_apart() -> None:
    text, *_ = recorded("01-net-7-rdma-and-fallback")
    first, second = parse_net(f"{text}\n           ###################\n{text}")
    assert first == second


def test_a_root_and_connections_of_two_transports() -> None:
    (one,) = parse_nodes(
        "mds-1.x [ID: 1]\n   Root: <yes>\n"
        "   Connections: TCP: 1 (192.168.64.2:8005 [fallback route]); RDMA: 63 (fe80::1:8005); \n"
    )
    assert one.connections == (
        Connections(transport="TCP", count=1, peer="192.168.64.2:8005", fallback=True),
        Connections(transport="RDMA", count=63, peer="fe80::1:8005"),
    )
    assert parse_nodes("a [ID: 1]\n   Connections: TCP: 2; \n")[0].connections[0].peer is None
    assert parse_nodes("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "   Connections: <none>\n",
        "a [ID: x]\n",
        "a [ID: 1]\n   Connections not available [Error: Out of memory]\n",
        "a [ID: 1]\n   Connections: UDP: 4 (1.2.3.4:1);\n",
    ],
)
def test_servers_that_cannot_be_read_are_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_nodes(text)


def test_nothing_mounted_is_an_error_of_beegfs_net() -> None:
    with pytest.raises(ValueError, match="No active BeeGFS mounts"):
        parse_net("No active BeeGFS mounts found.\n", 1)
    with pytest.raises(ValueError, match="expected the servers"):
        parse_net("\n")


def test_listnodes_with_addresses_and_routes() -> None:
    text = (
        "meta01 [ID: 2]\n   Ports: UDP: 8005; TCP: 8005\n   Interfaces: \n"
        "   + ens2[ip addr: 10.0.0.2; type: RDMA]\n   + ens2[ip addr: 10.0.0.2; type: TCP]\n"
        "   Reachable: <yes>\n   Route: 10.0.0.2:8005 (protocol: RDMA)\n\n"
        "Number of nodes: 1\nRoot: 2\n"
    )
    (found,) = parse_listnodes(text, kind="meta")
    assert [(nic.name, nic.address, nic.transport) for nic in found.nics] == [
        ("ens2", "10.0.0.2", "RDMA"),
        ("ens2", "10.0.0.2", "TCP"),
    ]


def test_a_list_that_breaks_off_and_a_tool_that_failed_are_errors() -> None:
    text, *_ = recorded("03-listnodes-details")
    with pytest.raises(ValueError, match="expected a number of nodes, got 2"):
        parse_listnodes(text.replace("Number of nodes: 2\n", ""))
    with pytest.raises(ValueError, match="exited 1: cannot reach"):
        parse_listnodes("cannot reach\n", 1)
    with pytest.raises(ValueError, match="exited 1: unable to proceed"):
        parse_node_list("unable to proceed\n", 1)
    with pytest.raises(ValueError, match="expected the header"):
        parse_node_list("nothing\n")
    with pytest.raises(ValueError, match="expected an ID"):
        parse_node_list("ID    TYPE     ALIAS  NICS\nx     storage  a      \n")


def test_node_list_without_interfaces_and_with_a_repeated_header() -> None:
    header = "ID   TYPE     ALIAS\n"
    text = f"{header}s:1  storage  a\n{header}m:2  meta     b\nr:3  remote   c\n"
    assert [(o.kind, o.number, o.nics) for o in parse_node_list(text)] == [
        ("storage", 1, ()),
        ("meta", 2, ()),
        (None, 3, ()),
    ]


def test_tcp_has_two_names() -> None:
    text = "ID   TYPE     ALIAS  NICS\ns:1  storage  a      tcp:eno1 (10.0.0.1:8003)\n"
    assert parse_node_list(text)[0].nics[0].transport == "TCP"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_in_words(text: str) -> None:
    for parse in (parse_nodes, parse_net, parse_listnodes, parse_node_list, parse_client_info):
        with suppress(ValueError):
            assert isinstance(parse(text), tuple | dict)


def test_what_is_in_force_and_the_interfaces() -> None:
    assert parse_client_config("cfgFile = /x\nconnAuthFile = \nconnUseRDMA = 1\n") == {
        "cfgFile": "/x",
        "connAuthFile": "",
        "connUseRDMA": "1",
    }
    with pytest.raises(ValueError, match="expected KEY"):
        parse_client_config("no key\n")
    info = (
        "ClientID: 1-2-n1\nInterfaces:\n+ ib0[ip addr: 1.2.3.4; type: RDMA]\n"
        "+ ib0[ip addr: 1.2.3.4; type: TCP]\n+ eno1[ip addr: 1.2.3.5; type: TCP]\n"
        "Outbound RDMA Interfaces:\n+ Any\n"
    )
    assert parse_client_info(info) == {
        "Interfaces": ("ib0", "eno1"),
        "Outbound RDMA Interfaces": ("Any",),
    }


def _with(name: str, text: str, **more: Any) -> Snapshot:
    seen = snapshot(stock())
    section = Section.model_validate({"stdout": text, "rc": 0, **more})
    return seen.model_copy(update={"sections": {**seen.sections, name: section}})


def test_a_client_that_did_not_answer_is_an_error_in_words() -> None:
    with pytest.raises(ValueError, match="did not answer within 5 s"):
        read_clients(_with("beegfs_proc", "", rc=None, ended="deadline"))
    with pytest.raises(ValueError, match="config: Permission denied"):
        read_clients(_with("beegfs_proc", answer("a", "config", "Permission denied", 1)))


def test_servers_that_do_not_answer_explain_nothing_and_break_nothing() -> None:
    text, *_ = recorded("05-node-list-8-multiline-cell")
    good = answer("c1", "list", text)
    assert len(read_offers(_with("beegfs_servers", good))["c1"]) == 3
    assert read_offers(_with("beegfs_servers", answer("c1", "list", "Killed", 137))) == {}
    cut = _with("beegfs_servers", good.rpartition("\n")[0][:-9], rc=None, ended="deadline")
    assert read_offers(cut) == {}


def test_files_are_read_with_whatever_is_in_them() -> None:
    seen = snapshot(stock(7, "autobuild"))
    files = read_files(seen)
    assert files.keys() == {
        "/etc/beegfs/beegfs-client.conf",
        "/etc/beegfs/beegfs-client-autobuild.conf",
        "/etc/beegfs/beegfs-mounts.conf",
        "/etc/beegfs/beegfs-helperd.conf",
    }
    assert (files["/etc/beegfs/beegfs-mounts.conf"].text or "").startswith("/mnt/beegfs ")
    link = f"\n{MARKER} file link - - - - /etc/beegfs/x.conf\n{MARKER} target \n"
    lost = read_files(_with("beegfs_files", link))["/etc/beegfs/x.conf"]
    assert lost.error == "expected a file that can be read, got link"
    with pytest.raises(ValueError, match="/etc/beegfs"):
        read_files(_with("beegfs_files", "", rc=2))


def test_the_module_as_it_is_loaded_and_on_disk() -> None:
    module = read_module(snapshot(stock()))
    assert [m.version for m in module.dkms.modules] == ["8.3.1"]
    assert not module.is_outdated
    text = "loaded_srcversion=A\ndisk_srcversion=B\n"
    assert read_module(_with("beegfs_module", text)).is_outdated
    assert not read_module(_with("beegfs_module", text)).dkms.installed


def test_what_asks_the_client_or_its_servers_has_a_short_time() -> None:
    deadlines = {section.name: section.deadline_s for section in SECTIONS}
    assert deadlines["beegfs_proc"] == deadlines["beegfs_servers"] == 5
    assert all(section.for_storage for section in SECTIONS)
