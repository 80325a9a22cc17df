"""What the probe's sections print of a tree like the kernel's, and what is read of that."""

import os
import subprocess
from pathlib import Path

from facts.beegfs import SECTIONS, read_clients, read_offers
from facts.probe import Focus, script
from railwright.snapshot import Snapshot, parse_probe

CONFIG_7 = "cfgFile = /etc/beegfs/a.conf\nsysMgmtdHost = mgmt01\nconnUseRDMA = 1\n"
CONFIG_8 = """\
cfgFile = /etc/beegfs/b.conf
sysMgmtdHost = 10.20.0.21
connMgmtdGrpcPort = 8010
connAuthFile = /etc/beegfs/b.auth
connDisableAuthentication = false
"""
SLOW = "stor02 [ID: 4]\n   Connections: TCP: 6 (10.20.0.24:8003 [fallback route]); \n"
GOOD = "meta01 [ID: 2]\n   Root: <yes>\n   Connections: RDMA: 4 (10.77.3.22:8005); \n"
CTL = """\
#!/bin/sh
echo "$*" >>"$RW_CALLS"
case $* in *storage*) printf 'stor02 [ID: 4]\\n   + eno1[ip addr: 1.2.3.4; type: TCP]\\n' ;; esac
case $* in *storage*) echo 'Number of nodes: 1' ;; *) echo 'Number of nodes: 0' ;; esac
"""
GO = """\
#!/bin/sh
echo "$*" >>"$RW_CALLS"
echo 'ID    TYPE     ALIAS   NICS                             '
echo 's:4   storage  stor02  ethernet:eno1 (10.20.0.24:8003)  '
"""
ASKS_8 = (
    "--mgmtd-addr 10.20.0.21:8010 --auth-file /etc/beegfs/b.auth --tls-disable "
    "node list --with-nics"
)


def probe(root: Path, config: str, storage: str, tools: dict[str, str]) -> Snapshot:
    client, folder = root / "proc" / "1A-65-n1", root / "bin"
    client.mkdir(parents=True)
    folder.mkdir()
    texts = {"config": config, "mgmt_nodes": "", "meta_nodes": GOOD, "storage_nodes": storage}
    for name, text in {**texts, "client_info": "ClientID: 1A-65-n1\nInterfaces:\n"}.items():
        (client / name).write_text(text)
    for name, text in tools.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    wanted = [s for s in SECTIONS if s.name in ("beegfs_proc", "beegfs_servers")]
    text = script(wanted, Focus(storage=True)).replace("/proc/fs/beegfs", str(root / "proc"))
    text = text.replace("PATH=/usr/sbin:", f"PATH={folder}:/usr/sbin:", 1)
    text = text.replace("/etc/beegfs/cert.pem", str(root / "cert.pem"))
    done = subprocess.run(
        ["sh", "-c", text], text=True, capture_output=True, check=True,
        env={**os.environ, "RW_CALLS": str(root / "calls")},
    )  # fmt: skip
    return parse_probe(done.stdout, "n1")


def test_a_client_of_7_and_what_its_servers_offer(tmp_path: Path) -> None:
    seen = probe(tmp_path, CONFIG_7, SLOW, {"beegfs-ctl": CTL})
    (client,) = read_clients(seen)
    assert client.config["cfgFile"] == "/etc/beegfs/a.conf"
    assert client.nodes.storage[0].connections[0].fallback
    (offer,) = read_offers(seen)[client.id]
    assert (offer.kind, offer.number, offer.has_rdma) == ("storage", 4, False)
    assert (tmp_path / "calls").read_text().splitlines() == [
        f"--cfgFile=/etc/beegfs/a.conf --listnodes --nodetype={kind} --nicdetails"
        for kind in ("meta", "storage")
    ]


def test_a_client_of_8_and_what_its_servers_offer(tmp_path: Path) -> None:
    seen = probe(tmp_path, CONFIG_8, SLOW, {"beegfs": GO})
    (offer,) = read_offers(seen)["1A-65-n1"]
    assert (offer.alias, offer.has_rdma) == ("stor02", False)
    assert (tmp_path / "calls").read_text() == f"{ASKS_8}\n"


def test_where_all_is_by_rdma_no_server_is_asked(tmp_path: Path) -> None:
    seen = probe(tmp_path, CONFIG_8, SLOW.replace("TCP", "RDMA"), {"beegfs": GO})
    assert len(read_clients(seen)) == 1
    assert read_offers(seen) == {}
    assert not (tmp_path / "calls").exists()


def test_tools_that_hang_are_left_behind(tmp_path: Path) -> None:
    seen = probe(tmp_path, CONFIG_8, SLOW, {"beegfs": "#!/bin/sh\nexec sleep 30\n"})
    assert len(read_clients(seen)) == 1
    assert read_offers(seen) == {}
