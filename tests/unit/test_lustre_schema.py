"""What an inventory may say of Lustre, and what it may not."""

from typing import Any

import pytest
from pydantic import ValidationError

from railwright.schema.drivers import OfedSpec, PlatformSpec
from railwright.schema.lustre import LnetNetwork, LnetTunables, LustreMount, LustreSpec
from railwright.schema.lustre_consistency import lustre_findings
from railwright.schema.modules import ModulesSpec
from railwright.schema.rails import RailsSpec

RAILS = RailsSpec.model_validate(
    {
        "nics": {0: {"pci": "0000:1a:00.0"}, 1: {"pci": "0000:3d:00.0"}},
        "plan": {"prefix": "10.64.0.0/12", "rail_prefix_length": 20},
    }
)
O2IB = LustreSpec(networks={"o2ib": LnetNetwork(rails="all")})
MOUNT = LustreMount(mgs=(("10.77.3.1@o2ib", "10.20.0.1@tcp"), ("10.77.3.2@o2ib",)), fsname="scr")


def found(
    lustre: LustreSpec = O2IB,
    mounts: dict[str, LustreMount] | None = None,
    *,
    rails: RailsSpec = RAILS,
    ofed: str | None = "inbox",
    modules: dict[str, Any] | None = None,
    platform: dict[str, Any] | None = None,
) -> list[tuple[str, str]]:
    """Where something does not fit, and what would."""
    return [
        (".".join(finding.path), finding.expected)
        for finding in lustre_findings(
            lustre,
            {"/mnt/scr": MOUNT} if mounts is None else mounts,
            rails,
            OfedSpec.model_validate({"kind": ofed}),
            ModulesSpec.model_validate(modules or {}),
            PlatformSpec.model_validate(platform or {}),
        )
    ]


def test_a_node_that_fits_together_has_no_findings() -> None:
    assert found() == []


def test_a_device_has_nodes_by_colons_and_their_nids_by_commas() -> None:
    assert MOUNT.device == "10.77.3.1@o2ib,10.20.0.1@tcp:10.77.3.2@o2ib:/scr"
    below = MOUNT.model_copy(update={"subdirectory": "/users"})
    assert below.device.endswith(":/scr/users")
    assert "kind" in MOUNT.model_fields_set


@pytest.mark.parametrize("name", ["o2ib", "o2ib1", "tcp", "tcp65535"])
def test_networks_are_named_as_lnet_prints_them(name: str) -> None:
    assert name in LustreSpec.model_validate({"networks": {name: {"rails": "all"}}}).networks


@pytest.mark.parametrize("name", ["o2ib0", "tcp0", "ib", "o2ib65536", "o2ib01", "tcp ", "kfi"])
def test_other_names_are_no_networks(name: str) -> None:
    with pytest.raises(ValidationError, match="o2ib or tcp"):
        LustreSpec.model_validate({"networks": {name: {"rails": "all"}}})


@pytest.mark.parametrize(
    "nid", ["10.77.3.1", "10.77.3.1@o2ib0", "mgs1@o2ib", "10.77.3@tcp", "10.77.3.1@", "@tcp"]
)
def test_a_nid_is_an_address_at_a_network(nid: str) -> None:
    with pytest.raises(ValidationError, match="a NID ADDRESS@NETWORK"):
        LustreMount(mgs=((nid,),), fsname="scr")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"mgs": (), "fsname": "scr"}, "a node at least"),
        ({"mgs": ((),), "fsname": "scr"}, "a node at least"),
        ({"mgs": (("10.0.0.1@tcp",), ("10.0.0.1@tcp",)), "fsname": "scr"}, "each NID once"),
        ({"mgs": (("10.0.0.1@tcp",),), "fsname": "scratch01"}, "at most 8"),
        ({"mgs": (("10.0.0.1@tcp",),), "fsname": "scr", "subdirectory": "a"}, "such as /users"),
        ({"mgs": (("10.0.0.1@tcp",),), "fsname": "scr", "subdirectory": "/../x"}, "such as /users"),
        ({"mgs": (("10.0.0.1@tcp",),), "fsname": "scr", "options": ("flock",)}, "it in flock"),
    ],
)
def test_a_mount_that_cannot_be_is_refused(given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        LustreMount.model_validate(given)


@pytest.mark.parametrize(
    "given",
    [
        {"peer_credits": 32, "peer_credits_hiw": 16, "concurrent_sends": 64, "tos": 106},
        {"peer_credits": 128, "peer_credits_hiw": 127, "concurrent_sends": 64, "credits": 1024},
        {"ntx": 2048, "fmr_pool_size": 512, "conns_per_peer": 4},
        {"concurrent_sends": 16, "peer_timeout": 0},
    ],
)
def test_tunables_within_their_ranges_are_taken(given: dict[str, int]) -> None:
    assert LnetTunables.model_validate(given).given == given


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"peer_credits": 256}, "less than or equal to 255"),
        ({"peer_credits": 64, "credits": 32}, "at most 32, as credits has it"),
        ({"peer_credits": 32, "peer_credits_hiw": 15}, "16 to 31"),
        ({"peer_credits": 32, "peer_credits_hiw": 32}, "16 to 31"),
        ({"peer_credits_hiw": 16}, "4 to 7"),
        ({"concurrent_sends": 64}, "4 to 16"),
        ({"peer_credits": 32, "concurrent_sends": 65}, "16 to 64"),
        ({"ntx": 2052}, "513 at least"),
        ({"tos": 256}, "less than or equal to 255"),
        ({"conns_per_peer": 0}, "greater than or equal to 1"),
        ({"map_on_demand": 0}, "Extra inputs are not permitted"),
        ({"peer_credits": True}, "valid integer"),
    ],
)
def test_what_o2iblnd_would_change_without_a_word_is_refused(
    given: dict[str, int], match: str
) -> None:
    with pytest.raises(ValidationError, match=match):
        LnetTunables.model_validate(given)


@pytest.mark.parametrize(
    ("name", "tunables", "match"),
    [
        ("tcp", {"peer_credits": 8, "peer_credits_hiw": 4}, "none: tcp is no o2ib"),
        ("tcp1", {"ntx": 512}, "none: tcp1 is no o2ib"),
        ("o2ib", {"peer_credits": 4}, "8 at least"),
    ],
)
def test_tunables_are_those_of_the_network(name: str, tunables: dict[str, int], match: str) -> None:
    network = {"rails": "all", "tunables": tunables}
    with pytest.raises(ValidationError, match=match):
        LustreSpec.model_validate({"networks": {name: network}})


def test_a_network_lies_on_rails_or_on_interfaces() -> None:
    with pytest.raises(ValidationError, match="either rails or interfaces"):
        LnetNetwork(rails="all", interfaces=("eth0",))
    with pytest.raises(ValidationError, match="each of them once"):
        LnetNetwork(rails=(0, 0))
    nothing = LustreSpec(networks={"tcp": LnetNetwork()})
    assert ("lustre.networks.tcp.rails", "'all', numbers of rails, or interfaces") in found(
        nothing, {}
    )


@pytest.mark.parametrize(
    "name", ["osc.*.max_rpcs_in_flight", "at_max", "ldlm.namespaces.*.lru_size"]
)
def test_parameters_are_named_as_lctl_has_them(name: str) -> None:
    assert LustreSpec.model_validate({"parameters": {name: 32}}).parameters == {name: 32}


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"osc/*/max_rpcs_in_flight": 8}, "a parameter, such as"),
        ({"osc.*.x y": 8}, "a parameter, such as"),
        ({"osc.*.checksums": True}, "valid"),
        ({"osc.*.checksum_type": "crc32c; reboot"}, "without blanks"),
        (
            {"mdc.*.max_rpcs_in_flight": 32, "mdc.*.max_mod_rpcs_in_flight": 32},
            "less than max_rpcs_in_flight, which is 32",
        ),
    ],
)
def test_other_parameters_are_refused(parameters: dict[str, Any], match: str) -> None:
    with pytest.raises(ValidationError, match=match):
        LustreSpec.model_validate({"parameters": parameters})


def test_o2ib_needs_an_rdma_stack_in_use() -> None:
    ((path, expected),) = found(ofed=None)
    assert path == "ofed.kind"
    assert "lustre.networks o2ib is built on it" in expected
    tcp = LustreSpec(networks={"tcp": LnetNetwork(interfaces=("eth0",))})
    assert found(tcp, {}, ofed=None) == []


def test_a_network_over_rails_needs_those_rails() -> None:
    third = LustreSpec(networks={"o2ib": LnetNetwork(rails=(0, 2))})
    assert found(third) == [("lustre.networks.o2ib.rails", "a rail of rails.nics, which has 0, 1")]
    assert found(rails=RailsSpec()) == [
        ("lustre.networks.o2ib.rails", "rails.nics beside it: the node has no rails")
    ]


def test_a_rail_without_an_address_has_no_nid() -> None:
    rails = RailsSpec.model_validate(
        {"nics": {0: {"pci": "0000:1a:00.0"}, 1: {"pci": "0000:3d:00.0", "address": "10.1.0.2/24"}}}
    )
    ((path, expected),) = found(rails=rails)
    assert path == "lustre.networks.o2ib.rails"
    assert expected.startswith("rails.plan.prefix, or rails.nics.0.address")


def test_each_node_of_the_mgs_needs_a_nid_in_a_network_of_this_node() -> None:
    other = LustreMount(mgs=(("10.77.3.1@o2ib",), ("10.20.0.1@tcp",)), fsname="scr")
    assert found(mounts={"/mnt/scr": other}) == [
        ("storage.mounts./mnt/scr.mgs", "a NID in one of lustre.networks, which has o2ib")
    ]
    without = found(LustreSpec())
    assert [path for path, _ in without] == ["storage.mounts./mnt/scr.mgs"] * 2


def test_parameters_need_a_mount_that_sets_them() -> None:
    asked = O2IB.model_copy(update={"parameters": {"osc.*.checksums": 0}})
    assert found(asked) == []
    ((path, _),) = found(asked, {})
    assert path == "lustre.parameters"


@pytest.mark.parametrize(
    ("modules", "path"),
    [
        ({"options": {"lnet": {"networks": "o2ib0(ib0)"}}}, "modules.options.lnet.networks"),
        ({"options": {"lnet": {"ip2nets": "tcp 10.*.*.*"}}}, "modules.options.lnet.ip2nets"),
        ({"options": {"ko2iblnd": {"peer_credits": 16}}}, "modules.options.ko2iblnd.peer_credits"),
        ({"blacklist": ["ko2iblnd"]}, "modules.blacklist.ko2iblnd"),
    ],
)
def test_networks_have_one_place(modules: dict[str, Any], path: str) -> None:
    tuned = LnetNetwork(rails="all", tunables=LnetTunables(peer_credits=32))
    asked = LustreSpec(networks={"o2ib": tuned})
    assert [where for where, _ in found(asked, modules=modules)] == [path]


def test_other_options_of_the_modules_are_the_modules_own() -> None:
    options = {"libcfs": {"cpu_pattern": "N"}, "ko2iblnd": {"keepalive": 30}}
    assert found(modules={"options": options}) == []


@pytest.mark.parametrize(
    ("packages", "ofed", "expected"),
    [
        ({"lustre-client-modules-dkms": "2.16.1-1"}, "inbox", None),
        ({"lustre-client": "2.16.10-1.el9"}, "inbox", "2.16.1, as lustre.version says"),
        ({"lustre-client-utils": "2.15.7-1"}, "inbox", "2.16.1, as lustre.version says"),
        ({"libyaml-0-2": "0.2.5-1"}, "inbox", None),
        (
            {"kmod-lustre-client-lnet-in-kernel-o2iblnd": "2.16.1-1.el9"},
            "doca_ofed",
            "kmod-lustre-client-lnet-o2iblnd in its place: ofed.kind is doca_ofed",
        ),
        ({"kmod-lustre-client-lnet-o2iblnd": "2.16.1-1.el9"}, "doca_ofed", None),
        (
            {"kmod-lustre-client-lnet-o2iblnd": "2.16.1-1.el9"},
            "inbox",
            "kmod-lustre-client-lnet-in-kernel-o2iblnd in its place: ofed.kind is inbox",
        ),
    ],
)
def test_packages_are_of_the_version_and_of_the_rdma_stack(
    packages: dict[str, str], ofed: str, expected: str | None
) -> None:
    asked = O2IB.model_copy(update={"version": "2.16.1", "packages": packages})
    told = [said for path, said in found(asked, ofed=ofed) if path.startswith("lustre.packages")]
    assert told == ([] if expected is None else [expected])


def test_modules_that_come_built_are_of_the_kernel() -> None:
    packages = {"lustre-client-modules-6.8.0-60-generic": "2.16.1-1"}
    asked = O2IB.model_copy(update={"packages": packages})
    assert found(asked, platform={"kernel": "6.8.0-60-generic"}) == []
    ((path, expected),) = found(asked, platform={"kernel": "6.8.0-71-generic"})
    assert path.endswith("lustre-client-modules-6.8.0-60-generic")
    assert expected.startswith("lustre-client-modules-6.8.0-71-generic")
