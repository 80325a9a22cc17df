"""The files that keep a rail's address, rule and routes, for each network manager.

Pure: from a rail's plan to the file's content, and from a file to what it says.
"""

from railwright.netconfig import ifupdown, netplan, networkd, networkmanager
from railwright.netconfig.plan import ManagerName, Match, RailConfig, Said, Writer

__all__ = ["WRITERS", "ManagerName", "Match", "RailConfig", "Said", "Writer"]

WRITERS: dict[ManagerName, Writer] = {
    "networkd": networkd.WRITER,
    "netplan": netplan.WRITER,
    "NetworkManager": networkmanager.WRITER,
    "ifupdown": ifupdown.WRITER,
}
