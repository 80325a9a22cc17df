"""Files of others that decide a rail's name or address in place of ours."""

import pytest

from railwright.settings import Verdict, verdict
from tests.unit.rails_host import LINK, MAC, MANAGED, converged, found, node, verdicts

RIVALS = {
    "networkd": ("/etc/systemd/network/00-all.network", "[Match]\nName=rail* en*\n"),
    "NetworkManager": (
        "/etc/NetworkManager/system-connections/all.nmconnection",
        "[connection]\nid=all\ntype=ethernet\nautoconnect-priority=950\n",
    ),
    "netplan": (
        "/etc/netplan/99-x.yaml",
        "network:\n  ethernets:\n    rail0:\n      addresses: [10.9.0.1/24]\n",
    ),
    "ifupdown": ("/etc/network/interfaces.d/old", "iface rail0 inet dhcp\n"),
}


@pytest.mark.parametrize("name", RIVALS)
def test_a_file_that_wins_over_ours_is_named(name: str) -> None:
    how = {k: v for k, v in MANAGED[name].items() if k != "files"}
    base: dict[str, str] = MANAGED[name].get("files", {})  # type: ignore[assignment]
    path, content = RIVALS[name]
    seen = converged(node(), **how, files={**base, path: content})
    setting = found(node(), seen)["rail0 address"]
    assert verdict(setting, LINK) is Verdict.OVERRIDDEN
    assert (setting.persisted.decider or "").startswith(path)
    assert path in (setting.remedy or "")


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/etc/systemd/network/00-zz.network", "[Match]\nName=*\n"),
        ("/etc/systemd/network/00-all.network", "[Match]\nName=eth0\n"),
        ("/etc/systemd/network/00-all.network", "[Match]\nMACAddress=52:54:00:00:00:01\n"),
    ],
)
def test_a_file_that_sorts_later_or_matches_another_port_is_no_rival(
    path: str, content: str
) -> None:
    seen = converged(node(), files={path: content})
    assert verdicts(node(), seen)["rail0 address"] is Verdict.OK


def test_a_link_file_that_wins_over_ours_is_named() -> None:
    path = "/etc/systemd/network/00-a.link"
    seen = converged(node(), files={path: f"[Match]\nPermanentMACAddress={MAC[0].upper()}\n"})
    setting = found(node(), seen)["rail0 name"]
    assert (verdict(setting, LINK), setting.persisted.decider) == (Verdict.OVERRIDDEN, path)
    assert verdicts(node(), seen)["rail1 name"] is Verdict.OK


def test_interfaces_that_does_not_read_the_directory_is_named() -> None:
    how = {"managers": ("networking",), "files": {"/etc/network/interfaces": "auto lo\n"}}
    setting = found(node(), converged(node(), **how))["rail0 address"]
    assert verdict(setting, LINK) is Verdict.OVERRIDDEN
    assert setting.persisted.decider == "/etc/network/interfaces"
