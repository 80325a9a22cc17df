"""What the rails component decides and does."""

from typing import Any

import pytest

from deploys.rails import COMPONENT, settings
from railwright.actions import Action, InstallFile, RemoveFile, RunScript, render
from railwright.component import settings_of
from railwright.converge import unmet
from railwright.schema import Effect, Node
from railwright.settings import Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.rails_host import (
    ADDRESS,
    BOOT,
    LINK,
    LIVE,
    MAC,
    MANAGED,
    PCI,
    ROUTES,
    RULES,
    Port,
    bare,
    converged,
    done,
    entry,
    found,
    host,
    installed,
    node,
    rule,
    set_up,
    told,
    verdicts,
)

every = pytest.mark.parametrize("how", MANAGED.values(), ids=MANAGED)


def on(how: dict[str, Any], **more: Any) -> Snapshot:
    return host(**{**how, **more})


def test_no_rails_and_nothing_of_ours_is_no_setting() -> None:
    assert settings(node(rails=()), host()) == []
    assert done(node(rails=()), host()) == []


@every
def test_a_converged_node_is_ok_and_left_alone(how: dict[str, Any]) -> None:
    seen = converged(node(), **how)
    assert set(verdicts(node(), seen).values()) == {Verdict.OK}
    assert len(verdicts(node(), seen)) == 2 * 9
    assert done(node(), seen) == []


@every
def test_what_is_announced_of_a_bare_node_is_what_the_run_makes_of_it(
    how: dict[str, Any],
) -> None:
    before, after = found(node(), on(how)), found(node(), converged(node(), **how))
    assert before.keys() - after.keys() == set()
    for key, setting in before.items():
        assert unmet(after.values(), key, changes(setting, LINK)) == []
        if not key.startswith("/"):
            expected = {change.state for change in changes(setting, LINK)}
            assert expected >= {"running"}, key
    assert verdicts(node(), on(how))["rail0 address"] is Verdict.WRONG


def test_a_bare_node_under_networkd_is_renamed_and_configured() -> None:
    assert told(node(), host()) == [
        f"rename {PCI[0]} rail0",
        f"rename {PCI[1]} rail1",
        "reload",
        f"reconfigure {PCI[0]} 10.64.0.2/20 100",
        f"reconfigure {PCI[1]} 10.64.16.2/20 101",
    ]
    assert [a.action for a in done(node(), host())] == ["install"] * 4 + ["script"]


BY_MANAGER = {
    "NetworkManager": [
        f"profile {PCI[0]} /etc/NetworkManager/system-connections/railwright-rail0.nmconnection"
        " railwright-rail0"
    ],
    "netplan-nm": [
        "generate",
        f"profile {PCI[0]} /run/NetworkManager/system-connections/netplan-rail0.nmconnection"
        " netplan-rail0",
    ],
    "ifupdown": [f"ifup {PCI[0]}"],
    # A reload after netplan generate would reach the interface of ssh.
    "netplan": [
        f"mtu {PCI[0]} 9000",
        f"up {PCI[0]}",
        f"address {PCI[0]} 10.64.0.2/20",
        "rule 10.64.0.2 100 1000",
        f"route {PCI[0]} 100 10.64.0.0/20",
        f"route {PCI[0]} 100 10.64.0.0/12 10.64.0.1",
    ],
}


@pytest.mark.parametrize("name", BY_MANAGER)
def test_each_manager_is_told_of_the_rails_alone(name: str) -> None:
    one = node(rails=(0,))
    assert told(one, on(MANAGED[name])) == [f"rename {PCI[0]} rail0", *BY_MANAGER[name]]


@every
def test_no_manager_is_restarted_and_no_other_interface_named(how: dict[str, Any]) -> None:
    words = " ".join(told(node(), on(how)))
    assert "eth0" not in words
    assert "0000:01:00.0" not in words
    script = render(done(node(), on(how)))
    assert "netplan apply" not in script
    assert "systemctl" not in script


def test_a_rename_waits_for_its_effect_and_the_address_does_not() -> None:
    asked = node(allow=LIVE)
    assert verdicts(asked, host())["rail0 name"] is Verdict.WRONG
    assert told(asked, host())[0] == "reload"
    files = installed(asked, host())
    seen = converged(
        asked,
        ports=(set_up(0, "enp0s0np0"), set_up(1)),
        files=files,
        routes=[{**r, "dev": "enp0s0np0" if r["dev"] == "rail0" else r["dev"]} for r in ROUTES],
    )
    assert verdicts(asked, seen)["rail0 name"] is Verdict.PENDING
    assert told(asked, seen) == []
    # With the effect allowed it is renamed, and what it loses by that is set again.
    assert told(node(), seen) == [
        f"rename {PCI[0]} rail0",
        f"route {PCI[0]} 100 10.64.0.0/20",
        f"route {PCI[0]} 100 10.64.0.0/12 10.64.0.1",
    ]


def test_two_rails_that_have_each_others_names_are_renamed_and_a_foreign_holder_is_not() -> None:
    swapped = host((bare(0, "rail1"), bare(1, "rail0")))
    assert told(node(), swapped)[:2] == [f"rename {PCI[0]} rail0", f"rename {PCI[1]} rail1"]
    taken = host(others=(entry("rail0"),))
    setting = found(node(), taken)["rail0 name"]
    assert (setting.acts, setting.remedy) == (False, "another interface is called rail0")
    assert not [line for line in told(node(), taken) if line.startswith(f"rename {PCI[0]}")]


def test_the_mtu_of_a_rail_in_use_waits_for_link_and_of_a_bare_one_does_not() -> None:
    asked = node(allow=LIVE)
    seen = converged(asked, ports=(set_up(0, mtu=1500), set_up(1)))
    setting = found(asked, seen)["rail0 mtu"]
    assert (setting.effect, verdict(setting, LIVE)) == (Effect.LINK, Verdict.PENDING)
    assert told(asked, seen) == []
    assert told(node(), seen) == [f"mtu {PCI[0]} 9000"]
    assert found(asked, host())["rail0 mtu"].effect is Effect.LIVE


def test_a_lost_rule_and_a_lost_route_are_set_without_the_manager() -> None:
    seen = converged(node(), rules=RULES[1:], routes=ROUTES[1:])
    assert {k for k, v in verdicts(node(), seen).items() if v is not Verdict.OK} == {
        "rail0 rule",
        "rail0 routes",
    }
    assert told(node(), seen) == [
        "rule 10.64.0.2 100 1000",
        f"route {PCI[0]} 100 10.64.0.0/20",
        f"route {PCI[0]} 100 10.64.0.0/12 10.64.0.1",
    ]


def test_a_rule_of_an_old_plan_is_replaced() -> None:
    seen = converged(node(), rules=[rule("10.64.0.2", 200, 900), *RULES])
    setting = found(node(), seen)["rail0 rule"]
    assert setting.running.value is not None
    assert "table 200" in setting.running.value
    assert told(node(), seen) == ["unrule 10.64.0.2 200 900"]
    mark = {**rule("10.64.0.2", 200, 900), "fwmark": "0x1"}
    assert told(node(), converged(node(), rules=[mark, *RULES])) == []


def test_a_foreign_address_is_reported_and_left() -> None:
    seen = host((Port("rail0", PCI[0], MAC[0], "10.9.9.9/24", up=True), bare(1)))
    setting = found(node(), seen)["rail0 address"]
    assert (setting.running.standing, setting.running.value) == (Standing.WRONG, "10.9.9.9/24")
    assert not setting.acts
    assert not [line for line in told(node(), seen) if line.startswith(f"address {PCI[0]}")]
    beside = converged(node(), ports=(set_up(0, None, 9000, "10.9.9.9/24"), set_up(1)))
    assert verdicts(node(), beside)["rail0 other addresses"] is not Verdict.OK
    assert verdicts(node(), beside)["rail0 address"] is Verdict.OK
    assert done(node(), beside) == []


def test_an_address_that_another_interface_has_is_not_set_twice() -> None:
    seen = host(others=(entry("br0", "10.64.0.2/16"),))
    setting = found(node(), seen)["rail0 address"]
    assert (setting.acts, setting.remedy) == (False, "br0 has 10.64.0.2: take it off there")


def test_a_default_route_by_a_rail_is_told() -> None:
    route = {"dst": "default", "gateway": "10.64.0.1", "dev": "rail0"}
    seen = converged(node(), routes=[*ROUTES, route])
    assert found(node(), seen)["rail0 default route"].running.value == "via 10.64.0.1"
    assert done(node(), seen) == []


BY_RAIL = 'ssh 192.0.2.9 50000 192.0.2.7 22\n[{"dst":"192.0.2.9","dev":"enp0s0np0"}]\n'


@pytest.mark.parametrize("way_in", [BY_RAIL, ""])
def test_the_port_that_ssh_came_in_by_is_never_touched(way_in: str) -> None:
    seen = host(way_in=way_in)
    mine = {k: s for k, s in found(node(), seen).items() if "rail0" in k}
    assert {s.acts for s in mine.values() if verdict(s, LINK) is not Verdict.OK} == {False}
    assert (mine["rail0 name"].remedy or "").startswith("refused: ")
    assert not [line for line in told(node(), seen) if PCI[0] in line]
    assert not [path for path in installed(node(), seen) if "rail0" in path]
    # A file of an earlier run is not taken away either.
    later = converged(node(), way_in=way_in.replace("enp0s0np0", "rail0"))
    assert done(node(rails=(0, 1)), later) == []


def test_the_other_rails_go_on_where_one_is_refused() -> None:
    assert [line for line in told(node(), host(way_in=BY_RAIL)) if PCI[1] in line]


def test_an_address_in_the_subnet_of_the_way_in_is_refused() -> None:
    near = 'ssh 10.64.0.77 50000 192.0.2.5 22\n[{"dst":"10.64.0.77","dev":"eth0"}]\n'
    seen = host(way_in=near)
    setting = found(node(), seen)["rail0 address"]
    assert not setting.acts
    assert "ssh came from 10.64.0.77" in (setting.remedy or "")
    assert "/etc/systemd/network/00-railwright-rail0.network" not in installed(node(), seen)
    assert "/etc/systemd/network/00-railwright-rail0.link" in installed(node(), seen)
    assert [line for line in told(node(), seen) if PCI[0] in line] == [f"rename {PCI[0]} rail0"]


def test_a_missing_nic_is_one_setting_and_the_others_go_on() -> None:
    seen = host((bare(1),))
    mine = {k: s for k, s in found(node(), seen).items() if "rail0" in k}
    assert mine.keys() == {"rail0 nic"}
    assert mine["rail0 nic"].running.detail == f"there is no NIC at {PCI[0]}"
    assert verdict(mine["rail0 nic"], LINK) is Verdict.NOT_RUNNING
    assert [line for line in told(node(), seen) if PCI[1] in line]
    gone = converged(node(), ports=(set_up(1),))
    assert done(node(), gone) == []


def test_two_managers_of_which_none_has_the_rails_are_told() -> None:
    seen = host(managers=("systemd-networkd", "networking"))
    setting = found(node(), seen)["rail0 address"]
    assert verdict(setting, LINK) is Verdict.UNREADABLE
    assert "ifupdown and systemd-networkd run" in (setting.persisted.detail or "")
    # The name does not hang on it.
    assert told(node(), seen) == [f"rename {PCI[0]} rail0", f"rename {PCI[1]} rail1"]
    stanza = {"/etc/network/interfaces": "source interfaces.d/*\niface enp0s0np0 inet dhcp\n"}
    claimed = host(managers=("systemd-networkd", "networking"), files=stanza)
    assert verdicts(node(), claimed)["rail0 address"] is Verdict.WRONG


def test_networkd_is_not_reloaded_where_that_reaches_further() -> None:
    young = {"/etc/systemd/network/50-mgmt.network": BOOT + 300}
    files = {"/etc/systemd/network/50-mgmt.network": "[Match]\nName=eth0\n"}
    seen = host(files=files, mtimes=young)
    assert "reload" not in told(node(), seen)
    assert f"address {PCI[0]} 10.64.0.2/20" in told(node(), seen)
    assert "reload" in told(node(), host(files=files))
    # Nor where a rail that has its address would lose it.
    in_use = host((set_up(0), bare(1)), rules=RULES[:1], routes=ROUTES[:2])
    assert "reload" not in told(node(), in_use)
    assert f"address {PCI[1]} 10.64.16.2/20" in told(node(), in_use)


def test_what_is_not_asked_for_any_more_is_removed() -> None:
    seen = converged(node())
    paths = {a.path for a in done(node(rails=()), seen) if isinstance(a, RemoveFile)}
    assert paths == {
        f"/etc/systemd/network/00-railwright-rail{n}.{kind}"
        for n in (0, 1)
        for kind in ("link", "network")
    }
    for setting in settings(node(rails=()), seen):
        assert unmet([], setting.key, changes(setting, LINK)) == []
    # The files of another manager go where the manager changes.
    moved = converged(node(), managers=("NetworkManager",), files=installed(node(), host()))
    removed = [a.path for a in done(node(), moved) if isinstance(a, RemoveFile)]
    assert removed == [f"/etc/systemd/network/00-railwright-rail{n}.network" for n in (0, 1)]


def test_in_a_container_the_files_alone_are_written() -> None:
    seen = host((), container=True, way_in="")
    assert [a.action for a in done(node(), seen)] == ["install"] * 4
    running = [c for s in settings(node(), seen) for c in changes(s, LINK) if c.state == "running"]
    assert running == []
    after = host((), files=installed(node(), seen), container=True, way_in="")
    assert set(verdicts(node(), after).values()) == {Verdict.OK, Verdict.NOT_APPLICABLE}
    assert done(node(), after) == []


@pytest.mark.parametrize(
    "name", ["network_routes", "network_rules", "nic_addresses", "network_networkd", "network_udev"]
)
def test_a_tool_that_failed_is_unreadable_and_nothing_is_done(name: str) -> None:
    mute = Section(stdout="", stderr="ip: not found", rc=127)
    (setting,) = settings_of(COMPONENT, node(), host(**{name: mute}))
    assert verdict(setting, LINK) is Verdict.UNREADABLE
    assert "ip: not found" in (setting.persisted.detail or "")


def test_a_drifted_file_is_put_back_and_says_what_it_says_now() -> None:
    path = "/etc/systemd/network/00-railwright-rail0.network"
    files = installed(node(), host())
    files[path] = files[path].replace("MTUBytes=9000", "MTUBytes=1500")
    seen = converged(node(), files=files)
    assert [type(a) for a in done(node(), seen)] == [InstallFile]
    assert found(node(), seen)["rail0 mtu"].persisted.value == "1500"
    assert verdicts(node(), seen)["rail0 mtu"] is Verdict.NOT_PERSISTED
    assert verdicts(node(), seen)["rail0 address"] is Verdict.OK


ROW_14 = (
    Port("ens2f0np0", PCI[0], MAC[0], "10.77.1.11/24", up=True),
    Port("ens3f0np0", PCI[1], MAC[1], "10.77.1.12/24", up=True),
)


def row_14() -> Node:
    return node(rails=(0,), name=None, plan={"prefix": None})


def test_bug_14_two_interfaces_in_one_prefix_without_the_arp_plan() -> None:
    setting = found(row_14(), host(ROW_14))["rail0 subnet"]
    assert setting.running.standing is Standing.WRONG
    assert "10.77.1.11/24 and 10.77.1.12/24 of ens3f0np0 lie in one subnet" in (
        setting.running.detail or ""
    )
    assert "arp_ignore of ens2f0np0 is 0" in (setting.running.detail or "")
    assert not setting.acts
    assert verdict(setting, LINK) is Verdict.NOT_RUNNING


@pytest.mark.parametrize("arp", [{"all": (1, 2)}, {"ens2f0np0": (2, 2), "ens3f0np0": (1, 2)}])
def test_bug_14_twin_bound_to_the_port_or_with_a_subnet_each(
    arp: dict[str, tuple[int, int]],
) -> None:
    assert verdicts(row_14(), host(ROW_14, arp=arp))["rail0 subnet"] is Verdict.OK
    apart = (ROW_14[0], Port("ens3f0np0", PCI[1], MAC[1], "10.77.2.12/24", up=True))
    assert verdicts(row_14(), host(apart))["rail0 subnet"] is Verdict.OK


def test_a_driver_is_matched_where_two_interfaces_have_one_path() -> None:
    seen = host()
    below = f"DEVPATH=/x\nINTERFACE=eth9\nID_PATH=pci-{PCI[0]}\nID_NET_DRIVER=virtio_net\n"
    udev = Section(stdout=seen.text("network_udev") + below, rc=0)
    files = installed(node(), host(network_udev=udev))
    match = f"[Match]\nPath=pci-{PCI[0]}\nDriver=mlx5_core\n"
    assert match in files["/etc/systemd/network/00-railwright-rail0.link"]
    assert match in files["/etc/systemd/network/00-railwright-rail0.network"]
    assert "Driver" not in files["/etc/systemd/network/00-railwright-rail1.link"]


def test_the_script_gets_no_word_but_what_it_was_planned() -> None:
    scripts: list[Action] = [a for a in done(node(), host()) if isinstance(a, RunScript)]
    assert len(scripts) == 1
    assert ADDRESS[0] in render(scripts)
