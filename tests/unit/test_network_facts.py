"""What is read of a node's network configuration, and which file decides an interface."""

import json
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.network import (
    SECTIONS,
    parse_arp,
    parse_networkctl,
    parse_nmcli,
    parse_routes,
    parse_rules,
    parse_udev,
    read_network,
)
from railwright.files import FileRecord
from railwright.resolve.network import manager_of
from railwright.resolve.networkd import Device, winner
from railwright.snapshot import Section
from tests.unit.rails_host import host
from tests.unit.units import unit

DEVICE = Device(
    name="rail0",
    mac="b8:3f:d2:00:00:01",
    permanent_mac="b8:3f:d2:00:00:01",
    path="pci-0000:1a:00.0",
    driver="mlx5_core",
    type="ether",
)


def test_rules_with_their_source_table_and_priority() -> None:
    # As iproute2 6.1 prints them with -N.
    text = (
        '[{"priority":0,"src":"all","table":"255"},'
        '{"priority":1000,"src":"10.64.0.2","table":"100","protocol":"4"},'
        '{"priority":1001,"src":"10.64.16.0","srclen":20,"table":"101"},'
        '{"priority":900,"src":"10.64.0.2","fwmark":"0x1","table":"7"},'
        '{"priority":32766,"src":"all","table":"254"}]'
    )
    found = parse_rules(text)
    assert [(r.source, r.table, r.priority, r.plain) for r in found[1:4]] == [
        ("10.64.0.2", "100", 1000, True),
        ("10.64.16.0/20", "101", 1001, True),
        ("10.64.0.2", "7", 900, False),
    ]


def test_routes_with_their_table_which_main_leaves_out() -> None:
    text = (
        '[{"dst":"default","gateway":"192.0.2.1","dev":"eth0","flags":[]},'
        '{"dst":"10.64.0.0/20","dev":"rail0","table":"100","scope":"253","flags":["linkdown"]},'
        '{"dst":"10.9.0.1","gateway":"10.64.0.1","dev":"rail0","table":"100","flags":[]}]'
    )
    assert [(r.to, r.via, r.device, r.table) for r in parse_routes(text)] == [
        ("default", "192.0.2.1", "eth0", "254"),
        ("10.64.0.0/20", None, "rail0", "100"),
        ("10.9.0.1/32", "10.64.0.1", "rail0", "100"),
    ]


@given(st.text(max_size=80))
def test_any_other_text_is_refused_in_words(text: str) -> None:
    for parse in (parse_rules, parse_routes, parse_networkctl):
        try:
            found = parse(text)
        except ValueError as error:
            assert "expected" in str(error)  # noqa: PT017
        else:
            assert len(found) == 0


def test_what_networkd_manages_and_by_which_file() -> None:
    answer = {
        "Interfaces": [
            {"Name": "lo", "AdministrativeState": "unmanaged"},
            {"Name": "eth0", "AdministrativeState": "configured", "NetworkFile": "/run/a.network"},
            {"Name": "rail0", "AdministrativeState": "configuring"},
        ]
    }
    assert parse_networkctl(json.dumps(answer)) == {
        "lo": (False, None),
        "eth0": (True, "/run/a.network"),
        "rail0": (True, None),
    }
    assert parse_networkctl("") == {}


def test_what_network_manager_manages() -> None:
    text = (
        "eth0:connected:Wired\nrail0:unavailable:\nlo:connected (externally):lo\n"
        "docker0:unmanaged:\na\\:b:disconnected:\n"
    )
    assert parse_nmcli(text) == {"eth0", "rail0", "a:b"}


def test_what_udev_knows_of_each_interface() -> None:
    text = (
        "DEVPATH=/devices/a/net/rail0\nID_NET_DRIVER=mlx5_core\nID_PATH=pci-0000:1a:00.0\n"
        "INTERFACE=rail0\nDEVPATH=/devices/b/net/x\nINTERFACE=x\n"
    )
    found = parse_udev(text)
    assert (found["rail0"].path, found["rail0"].driver) == ("pci-0000:1a:00.0", "mlx5_core")
    assert found["x"].path is None


def test_the_effective_value_is_the_larger_of_all_and_the_interface() -> None:
    network = read_network(host(arp={"all": (1, 0), "rail0": (0, 2)}))
    assert network.effective_arp("rail0", "arp_ignore") == 1
    assert network.effective_arp("rail0", "arp_announce") == 2
    assert network.effective_arp("rail1", "arp_announce") == 0
    with pytest.raises(ValueError, match="arp_ignore"):
        parse_arp("all/rp_filter:1\n")


def test_when_networkd_was_started() -> None:
    assert read_network(host()).networkd_since == 1_700_000_010


def file(path: str, content: str) -> FileRecord:
    return FileRecord(path=path, kind="file", content=content, size=len(content))


MATCHES = {
    "Name=rail*": True,
    "Name=!rail*": False,
    "Name=eth0 rail0": True,
    "Path=pci-0000:1a:*": True,
    "Path=pci-0000:1b:*": False,
    "Driver=mlx5_core": True,
    "Driver=!mlx5_core": False,
    "Type=ether": True,
    "MACAddress=B8-3F-D2-00-00-01": True,
    "PermanentMACAddress=b8:3f:d2:00:00:02": False,
    "Kind=!*": True,
    "Kind=bond": False,
    "Name=rail0\nDriver=ice": False,
    "Name=eth0\nName=rail0": True,
    "": True,
}


@pytest.mark.parametrize("match", MATCHES)
def test_a_match_section_fits_or_does_not(match: str) -> None:
    files = [file("/etc/systemd/network/10-x.network", f"[Match]\n{match}\n[Network]\nDHCP=yes\n")]
    assert (winner(files, "network", DEVICE) is not None) is MATCHES[match]


def test_what_is_not_known_may_fit_and_is_said_so() -> None:
    files = [file("/etc/systemd/network/10-x.network", "[Match]\nHost=gpu001\nName=rail0\n")]
    found = winner(files, "network", DEVICE)
    assert found is not None
    assert not found.surely


def test_the_first_name_over_all_directories_decides_and_masks_hide() -> None:
    low = file("/usr/lib/systemd/network/05-x.network", "[Match]\nName=*\n")
    high = file("/etc/systemd/network/10-y.network", "[Match]\nName=rail0\n")
    found = winner([high, low], "network", DEVICE)
    assert found is not None
    assert found.path == low.path
    mask = FileRecord(
        path="/etc/systemd/network/05-x.network", kind="link", target="/dev/null", content=""
    )
    found = winner([high, low, mask], "network", DEVICE)
    assert found is not None
    assert found.path == high.path
    dark = FileRecord(path="/etc/systemd/network/00-a.network", kind="unreadable")
    with pytest.raises(ValueError, match=r"00-a\.network cannot be read"):
        winner([high, dark], "network", DEVICE)


def test_secrets_of_foreign_files_stay_on_the_node(tmp_path: object) -> None:
    (script,) = (s.script for s in SECTIONS if s.name == "network_files")
    mask = script.split("sed -E '")[1].split("'")[0]
    text = (
        'psk=topsecret\n  password: "topsecret"\n\twpa-psk topsecret\nwep-key0=topsecret\n'
        "private-key-password=topsecret\naddress1=10.64.0.2/20\n      mtu: 9000\n"
    )
    shown = subprocess.run(["sed", "-E", mask], input=text, capture_output=True, text=True)
    assert shown.returncode == 0
    assert "topsecret" not in shown.stdout
    assert "address1=10.64.0.2/20\n      mtu: 9000\n" in shown.stdout


@pytest.mark.parametrize(
    ("state", "container", "manager"),
    [(("active", "enabled"), False, "networkd"), (("inactive", "enabled"), True, "networkd")],
)
def test_the_manager_is_found_though_other_units_are_not_there(
    state: tuple[str, str], container: bool, manager: str
) -> None:
    # As a node answers on which networking.service, which comes last, is not installed.
    units = "\n".join(
        (
            unit("systemd-networkd.service", *state),
            unit("NetworkManager.service", "inactive", "", "not-found"),
            unit("networking.service", "inactive", "", "not-found"),
        )
    )
    seen = host(container=container)
    section = Section(stdout=units, rc=0)
    seen = seen.model_copy(update={"sections": {**seen.sections, "network_units": section}})
    assert manager_of(read_network(seen), [], container).name == manager
