"""The files of each network manager: their exact content, and that they are read as written."""

from ipaddress import IPv4Address, IPv4Interface, IPv4Network

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from railwright.netconfig import WRITERS, ManagerName, Match, RailConfig, Said
from railwright.netconfig.ifupdown import sources_directory, stanzas_of
from railwright.netconfig.ini import ini_sections, section_of
from railwright.netconfig.netplan import renderer_of
from railwright.netconfig.networkd import link_content, name_of
from railwright.owned import HEADER
from railwright.rails import Route

PATH = "pci-0000:1a:00.0"
RAIL = RailConfig(
    key="rail0",
    name="rail0",
    match=Match(path=PATH),
    mtu=9000,
    address=IPv4Interface("10.64.0.2/20"),
    table=100,
    rule_priority=1000,
    routes=(
        Route(to=IPv4Network("10.64.0.0/20")),
        Route(to=IPv4Network("10.64.0.0/12"), via=IPv4Address("10.64.0.1")),
    ),
)
BARE = RAIL.model_copy(update={"address": None, "routes": ()})

NETWORKD = """\
[Match]
Path=pci-0000:1a:00.0

[Link]
# A rail that is down must not hold up the boot.
RequiredForOnline=no
MTUBytes=9000

[Network]
DHCP=no
IPv6AcceptRA=no
LinkLocalAddressing=ipv6
# The address, and with it the index of its GID, outlasts a loss of the link.
ConfigureWithoutCarrier=yes
Address=10.64.0.2/20

[RoutingPolicyRule]
From=10.64.0.2
Table=100
Priority=1000

[Route]
Destination=10.64.0.0/20
Scope=link
Table=100

[Route]
Destination=10.64.0.0/12
Gateway=10.64.0.1
Table=100
"""
NETPLAN = """\
network:
  version: 2
  ethernets:
    rail0:
      dhcp4: false
      dhcp6: false
      accept-ra: false
      link-local:
      - ipv6
      optional: true
      ignore-carrier: true
      mtu: 9000
      addresses:
      - 10.64.0.2/20
      routes:
      - to: 10.64.0.0/20
        scope: link
        table: 100
      - to: 10.64.0.0/12
        via: 10.64.0.1
        table: 100
      routing-policy:
      - from: 10.64.0.2
        table: 100
        priority: 1000
"""
KEYFILE = """\
[connection]
id=railwright-rail0
uuid=bc413b42-f1d7-5696-8473-03c26e01fa4f
type=ethernet
autoconnect=true
autoconnect-priority=900

[ethernet]
mtu=9000

[match]
path=pci-0000:1a:00.0;

[ipv4]
method=manual
address1=10.64.0.2/20
never-default=true
route1=10.64.0.0/20
route1_options=scope=253,table=100
route2=10.64.0.0/12,10.64.0.1
route2_options=table=100
routing-rule1=priority 1000 from 10.64.0.2 table 100

[ipv6]
method=link-local
"""
IFUPDOWN = """\
auto rail0
iface rail0 inet static
    address 10.64.0.2/20
    mtu 9000
    pre-up sysctl -q -w net.ipv6.conf.$IFACE.accept_ra=0 || true
    up ip -4 rule del from 10.64.0.2 lookup 100 priority 1000 || true
    up ip -4 rule add from 10.64.0.2 lookup 100 priority 1000
    up ip -4 route replace 10.64.0.0/20 dev $IFACE table 100
    up ip -4 route replace 10.64.0.0/12 via 10.64.0.1 dev $IFACE table 100
    down ip -4 rule del from 10.64.0.2 lookup 100 priority 1000 || true
"""
GOLDEN: dict[ManagerName, tuple[str, str, str]] = {
    "networkd": ("/etc/systemd/network/00-railwright-rail0.network", "644", NETWORKD),
    "netplan": ("/etc/netplan/90-railwright-rail0.yaml", "600", NETPLAN),
    "NetworkManager": (
        "/etc/NetworkManager/system-connections/railwright-rail0.nmconnection",
        "600",
        KEYFILE,
    ),
    "ifupdown": ("/etc/network/interfaces.d/railwright-rail0", "644", IFUPDOWN),
}
SAID = Said(
    mtu="9000",
    address="10.64.0.2/20",
    rule="from 10.64.0.2 table 100 priority 1000",
    routes="10.64.0.0/20 table 100, 10.64.0.0/12 via 10.64.0.1 table 100",
)


@pytest.mark.parametrize("manager", GOLDEN)
def test_the_file_of_each_manager_is_just_this(manager: ManagerName) -> None:
    writer, (path, mode, content) = WRITERS[manager], GOLDEN[manager]
    assert (writer.path("rail0"), writer.mode) == (path, mode)
    assert writer.content(RAIL) == HEADER + content


def test_the_link_file_names_by_the_path_and_keeps_the_old_names_beside() -> None:
    content = link_content(RAIL)
    assert content == HEADER + (
        "[Match]\nPath=pci-0000:1a:00.0\n\n"
        "[Link]\nName=rail0\nAlternativeNamesPolicy=database onboard slot path\n"
    )
    assert name_of(content) == "rail0"


def test_there_is_one_writer_for_each_manager_and_a_golden_file_for_each() -> None:
    assert WRITERS.keys() == GOLDEN.keys()


@pytest.mark.parametrize("manager", GOLDEN)
def test_no_file_asks_for_dhcp_or_sets_a_default_route(manager: ManagerName) -> None:
    for rail in (RAIL, BARE):
        content = WRITERS[manager].content(rail) or ""
        for word in ("DHCP=yes", "dhcp4: true", "method=auto", "inet dhcp", "0.0.0.0", "gateway "):
            assert word not in content


@pytest.mark.parametrize("manager", GOLDEN)
def test_a_rail_without_an_address_has_its_mtu_alone(manager: ManagerName) -> None:
    content = WRITERS[manager].content(BARE)
    assert content is not None
    assert WRITERS[manager].read(content) == Said(mtu="9000")


@pytest.mark.parametrize("manager", ["netplan", "ifupdown"])
def test_managers_that_know_no_path_need_the_name(manager: ManagerName) -> None:
    assert WRITERS[manager].content(RAIL.model_copy(update={"name": None})) is None


def test_a_driver_or_a_mac_stands_in_the_match_where_it_is_needed() -> None:
    driver = RAIL.model_copy(update={"match": Match(path=PATH, driver="mlx5_core")})
    mac = RAIL.model_copy(update={"match": Match(mac="b8:3f:d2:00:00:01")})
    assert "Path=pci-0000:1a:00.0\nDriver=mlx5_core\n" in link_content(driver)
    keyfile = WRITERS["NetworkManager"].content
    assert "[match]\ndriver=mlx5_core;\npath=" in (keyfile(driver) or "")
    assert "[Match]\nPermanentMACAddress=b8:3f:d2:00:00:01\n" in link_content(mac)
    assert "mac-address=b8:3f:d2:00:00:01\n" in (keyfile(mac) or "")


def test_a_profile_of_infiniband_is_of_that_type() -> None:
    rail = RAIL.model_copy(update={"is_infiniband": True, "mtu": 2044})
    content = WRITERS["NetworkManager"].content(rail) or ""
    assert "type=infiniband\n" in content
    assert "[infiniband]\ntransport-mode=datagram\nmtu=2044\n" in content
    assert WRITERS["NetworkManager"].read(content).mtu == "2044"


ADDRESSES = st.builds(
    lambda value, length: IPv4Interface((value, length)),
    st.integers(2**24, 2**32 - 2**28),
    st.integers(8, 31),
)
ROUTES = st.lists(
    st.builds(
        Route,
        to=ADDRESSES.map(lambda a: a.network),
        via=st.none() | ADDRESSES.map(lambda a: a.ip),
    ),
    min_size=1,
    max_size=4,
)
CONFIGS = st.builds(
    RailConfig,
    key=st.just("rail3"),
    name=st.just("gpu3"),
    match=st.just(Match(path=PATH)),
    mtu=st.none() | st.integers(576, 9978),
    address=ADDRESSES,
    table=st.integers(1, 2**31),
    rule_priority=st.integers(1, 32765),
    routes=ROUTES.map(tuple),
)


@pytest.mark.parametrize("manager", GOLDEN)
@given(config=CONFIGS)
def test_what_is_written_is_read_again(manager: ManagerName, config: RailConfig) -> None:
    content = WRITERS[manager].content(config)
    assert content is not None
    assert content.startswith(HEADER)
    assert content.endswith("\n")
    assert WRITERS[manager].read(content) == config.said


def test_what_a_rail_has_to_say() -> None:
    assert RAIL.said == SAID


@pytest.mark.parametrize("manager", GOLDEN)
@given(text=st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_a_file_of_any_content_is_read_or_refused_in_words(manager: ManagerName, text: str) -> None:
    try:
        yaml.safe_load(text)
    except yaml.YAMLError:
        if manager == "netplan":
            with pytest.raises(ValueError, match="expected YAML"):
                WRITERS[manager].read(text)
            return
    assert isinstance(WRITERS[manager].read(text), Said)


def test_the_yaml_is_yaml_of_version_2() -> None:
    document = yaml.safe_load(WRITERS["netplan"].content(RAIL) or "")
    assert document["network"]["version"] == 2
    assert list(document["network"]["ethernets"]) == ["rail0"]


def test_the_renderer_is_the_one_that_a_file_names_for_all() -> None:
    assert renderer_of("network: {renderer: NetworkManager}\n") == "NetworkManager"
    assert renderer_of("network: {ethernets: {eth0: {renderer: NetworkManager}}}\n") is None
    with pytest.raises(ValueError, match="expected YAML"):
        renderer_of("network: [\n")


def test_an_empty_value_drops_those_before_it() -> None:
    text = "x=1\n[Match]\nName=a\nName=\nName=b\n# Name=c\n[Link]\nMTUBytes=9000\n"
    assert section_of(ini_sections(text), "Match").values == {"Name": ("b",)}
    assert section_of(ini_sections(text), "Link").last("MTUBytes") == "9000"


def test_interfaces_reads_the_directory_by_either_word() -> None:
    for line in (
        "source /etc/network/interfaces.d/*",
        "source interfaces.d/*",
        "source-directory /etc/network/interfaces.d",
        "source-directory interfaces.d/",
    ):
        assert sources_directory(f"auto lo\n{line}\n"), line
    for line in ("# source interfaces.d/*", "source /etc/network/interfaces.d/*.cfg", ""):
        assert not sources_directory(f"auto lo\n{line}\n"), line


def test_stanzas_are_told_with_their_line() -> None:
    text = "auto a\niface a inet dhcp\niface a inet6 auto\n iface b inet static\n"
    assert stanzas_of(text) == [(2, "a"), (4, "b")]
