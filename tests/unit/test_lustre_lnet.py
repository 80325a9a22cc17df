"""LNet: its interfaces over the rails, what is too many, and /etc/lnet.conf read back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lnetctl import SPELLINGS, parse_lnet_conf
from facts.lustre import LNET_CONF, LNET_SCRIPT
from railwright.resolve.lnet import WantedNi, conf_content
from railwright.schema.lustre import LnetTunables
from railwright.settings import Effect, Standing, Verdict
from tests.unit.lustre_host import (
    BOTH,
    DEVICE,
    LIVE,
    MOUNT_UNIT,
    REMOUNT,
    SERVICE,
    TUNED,
    commands,
    converged,
    host,
    mounted,
    net_show,
    ni,
    node,
    of,
    removed,
    verdicts,
    written,
)
from tests.unit.rails_host import ADDRESS, MAC, PCI, Port, bare, set_up
from tests.unit.units import unit

ASKED = node()
DOWN = 'show:\n    - net:\n          errno: -100\n          descr: "Network is down"\n'


def test_lnet_conf_has_the_form_that_lnetctl_imports() -> None:
    text = written(node(tunables={"peer_credits": 32, "peer_credits_hiw": 16, "tos": 106}), host())[
        LNET_CONF
    ]
    assert text.partition("\n")[2] == (
        "net:\n"
        "    - net type: o2ib\n"
        "      local NI(s):\n"
        "        - interfaces:\n"
        "              0: rail0\n"
        "          tunables:\n"
        "              peer_timeout: 180\n"
        "              peer_credits: 32\n"
        "              peer_buffer_credits: 0\n"
        "              credits: 256\n"
        "          lnd tunables:\n"
        "              peercredits_hiw: 16\n"
        "              tos: 106\n"
        "        - interfaces:\n"
        "              0: rail1\n"
        "          tunables:\n"
        "              peer_timeout: 180\n"
        "              peer_credits: 32\n"
        "              peer_buffer_credits: 0\n"
        "              credits: 256\n"
        "          lnd tunables:\n"
        "              peercredits_hiw: 16\n"
        "              tos: 106\n"
    )


def test_without_tunables_lnet_keeps_its_own_defaults() -> None:
    text = written(node(tunables={}), host())[LNET_CONF]
    assert "tunables" not in text


# lnetctl takes tunables of the network that follows for one that has none of its own.
def test_no_network_stands_before_one_whose_tunables_it_lacks() -> None:
    nis = [
        WantedNi("o2ib", "a", "a", LnetTunables()),
        WantedNi("o2ib1", "b", "b", LnetTunables(peer_credits=16)),
        WantedNi("o2ib2", "c", "c", LnetTunables(peer_credits=32, ntx=1024)),
    ]
    text = conf_content(nis) or ""
    heads = [line.split()[-1] for line in text.splitlines() if "net type:" in line]
    assert heads == ["o2ib2", "o2ib1", "o2ib"]


# lnetctl reads lnd tunables only beside tunables, and takes 0 for what these lack.
def test_tunables_of_the_lnd_are_never_alone() -> None:
    text = written(node(tunables={"conns_per_peer": 4}), host())[LNET_CONF]
    assert "peer_credits: 8\n" in text
    assert "credits: 256\n" in text
    assert "conns_per_peer: 4\n" in text


TUNABLES: dict[str, st.SearchStrategy[int | None]] = {
    "peer_credits": st.none() | st.integers(8, 255),
    "credits": st.none() | st.integers(255, 65535),
    "peer_timeout": st.none() | st.integers(0, 3600),
    "conns_per_peer": st.none() | st.integers(1, 127),
    "tos": st.none() | st.integers(0, 255),
}


@given(
    st.lists(
        st.tuples(st.sampled_from(["o2ib", "o2ib1", "tcp"]), st.sampled_from(["a", "b"])),
        unique=True,
    ),
    st.fixed_dictionaries(TUNABLES),
)
def test_what_is_written_is_read_back(nis: list[tuple[str, str]], values: dict[str, Any]) -> None:
    tunables = LnetTunables.model_validate(values)
    wanted = [WantedNi(net, iface, iface, tunables) for net, iface in nis]
    text = conf_content(wanted)
    if not nis:
        assert text is None
        return
    assert text is not None
    found = parse_lnet_conf(text)
    assert {(net, one.iface) for net, listed in found.nets.items() for one in listed} == set(nis)
    for net, iface in nis:
        read = found.ni(net, iface)
        assert read is not None
        assert {name: getattr(read, name) for name in tunables.given} == tunables.given


def test_each_tunable_has_its_spelling_in_the_file() -> None:
    assert SPELLINGS == {"peer_credits_hiw": "peercredits_hiw"}
    assert SPELLINGS.keys() < LnetTunables.model_fields.keys()


def test_bug_47_networks_that_nothing_asked_for_are_told() -> None:
    # LNet as a mount brings it up by itself: tcp over whatever comes first, and no lnet.conf.
    seen = host(
        lnet=net_show(
            tcp=ni("192.0.2.5@tcp", "eth0", peer_credits=8)
            + ni("10.64.0.2@tcp", "rail0", peer_credits=8)
        ),
        units=unit("lnet.service", "inactive", "disabled"),
    )
    found = verdicts(ASKED, seen)
    assert found[LNET_CONF] is Verdict.WRONG
    for extra in ("ni tcp eth0", "ni tcp rail0"):
        setting = of(extra, ASKED, seen)
        assert (setting.desired, setting.running.detail) == ("absent", "nothing asks for it")
        assert setting.effect is Effect.SERVICE
        assert found[extra] is Verdict.PENDING
    assert of("ni tcp eth0", ASKED, seen).running.value == "192.0.2.5@tcp"
    assert found["ni o2ib rail0"] is Verdict.WRONG
    assert "railwright-lnet-again mnt-scr.mount" in commands(node(SERVICE), seen)


def test_bug_47_the_networks_that_are_asked_for_are_none_too_many() -> None:
    assert [key for key in verdicts(ASKED, converged(ASKED)) if key.startswith("ni ")] == [
        "ni o2ib rail0",
        "ni o2ib rail1",
    ]


def test_lnet_that_is_loaded_and_not_configured_is_brought_up() -> None:
    seen = converged(
        ASKED, lnet=DOWN, lnet_rc=156, mounts="", units=unit("lnet.service", "inactive", "enabled")
    )
    assert of("ni o2ib rail0", ASKED, seen).running.detail == "LNet is not up"
    assert commands(ASKED, seen)[0] == "systemctl start lnet.service"


def test_an_interface_that_is_missing_is_added_beside_the_others() -> None:
    seen = converged(ASKED, lnet=net_show(o2ib=ni("10.64.0.2@o2ib", "rail0")))
    assert verdicts(ASKED, seen)["ni o2ib rail1"] is Verdict.NOT_RUNNING
    assert commands(ASKED, seen) == [LNET_SCRIPT]


@pytest.mark.parametrize(
    ("port", "detail"),
    [
        (Port("rail1", PCI[1], MAC[1], mtu=9000, up=True), "rail1 is down or has no IPv4 address"),
        (bare(1), "its interface is enp1s0np0 until it is renamed to rail1"),
        (None, "there is no NIC at 0000:3d:00.0"),
    ],
)
def test_an_interface_that_lnet_could_not_query_is_waited_for(
    port: Port | None, detail: str
) -> None:
    ports = (set_up(0), *((port,) if port else ()))
    seen = converged(ASKED, lnet=net_show(o2ib=ni("10.64.0.2@o2ib", "rail0")), ports=ports)
    setting = of("ni o2ib rail1", ASKED, seen)
    assert setting.running.standing is Standing.LATE
    assert setting.running.detail == detail
    # Under the name that it has after the next boot it stands in the file all the same.
    assert setting.persisted.standing is Standing.RIGHT
    assert commands(ASKED, seen) == []


def test_tunables_that_differ_wait_for_lnet_to_come_up_anew() -> None:
    lower = net_show(
        o2ib=ni("10.64.0.2@o2ib", "rail0", peer_credits=8) + ni("10.64.16.2@o2ib", "rail1")
    )
    seen = converged(ASKED, lnet=lower)
    setting = of("ni o2ib rail0", ASKED, seen)
    assert setting.running.value == "up, peer_credits 8, peer_credits_hiw 16, concurrent_sends 64"
    assert setting.effect is Effect.REMOUNT
    assert commands(ASKED, seen) == []
    assert commands(node(REMOUNT), seen) == [f"railwright-lnet-again {MOUNT_UNIT}"]
    # Where nothing is mounted nobody has to let go of it.
    assert of("ni o2ib rail0", ASKED, converged(ASKED, lnet=lower, mounts="")).effect is (
        Effect.SERVICE
    )
    # What somebody else has mounted is not taken away.
    foreign = mounted(DEVICE) + mounted("10.9.9.9@o2ib:/other", "/mnt/other")
    assert of("ni o2ib rail0", ASKED, converged(ASKED, lnet=lower, mounts=foreign)).effect is (
        Effect.REBOOT
    )
    assert (
        commands(node(LIVE | {Effect.REBOOT}), converged(ASKED, lnet=lower, mounts=foreign)) == []
    )


def test_tunables_that_are_not_asked_for_are_not_looked_at() -> None:
    asked = node(tunables={})
    assert verdicts(asked, converged(asked))["ni o2ib rail0"] is Verdict.OK


def test_a_tunable_that_lnetctl_does_not_know_is_told_and_not_tried() -> None:
    asked = node(SERVICE | REMOUNT, tunables={**TUNED, "tos": 106})
    seen = converged(asked)
    setting = of("ni o2ib rail0", asked, seen)
    assert setting.running.value is not None
    assert setting.running.value.endswith("tos none")
    assert not setting.acts
    assert setting.remedy == "install a Lustre whose lnetctl knows tos"
    assert commands(asked, seen) == []


@pytest.mark.parametrize(
    ("shown", "standing", "detail"),
    [
        (ni("10.64.0.2@o2ib", "rail0"), Standing.RIGHT, None),
        (ni("10.64.0.2@o2ib", "rail0", health="970"), Standing.RIGHT, "health value 970 of 1000"),
        (
            ni("10.64.0.2@o2ib", "rail0", health="0"),
            Standing.DEGRADED,
            "health value 0: LNet sends by it only where nothing else is left",
        ),
        (
            ni("10.64.0.2@o2ib", "rail0", "down").replace("fatal_error: 0", "fatal_error: 1"),
            Standing.DEGRADED,
            "the port has gone down",
        ),
        (
            ni("10.64.9.9@o2ib", "rail0"),
            Standing.WRONG,
            "LNet has the address that rail0 had when it was brought up",
        ),
    ],
)
def test_an_interface_that_ails_is_told(shown: str, standing: Standing, detail: str | None) -> None:
    seen = converged(ASKED, lnet=net_show(o2ib=shown + ni("10.64.16.2@o2ib", "rail1")))
    running = of("ni o2ib rail0", ASKED, seen).running
    assert (running.standing, running.detail) == (standing, detail)
    assert ADDRESS[0].startswith("10.64.0.2/")


@pytest.mark.parametrize(
    ("lnet", "rc", "said"),
    [
        ("Segmentation fault", 139, "expected"),
        (
            'show:\n    - net:\n          errno: -1\n          descr: "not permitted"\n',
            255,
            "not permitted",
        ),
        (None, 127, "there is no lnetctl"),
    ],
)
def test_an_answer_of_lnetctl_that_cannot_be_read_is_never_right(
    lnet: str | None, rc: int, said: str
) -> None:
    seen = converged(ASKED, lnet=lnet, lnet_rc=rc)
    setting = of("ni o2ib rail0", ASKED, seen)
    assert setting.running.standing is Standing.UNREADABLE
    assert setting.running.detail is not None
    assert said in setting.running.detail
    assert commands(ASKED, seen) == []


def test_what_an_administrator_has_in_lnet_conf_is_told_and_taken_over() -> None:
    theirs = "net:\n- net type: tcp\n  local NI(s):\n  - interfaces:\n      0: eth0\n"
    seen = converged(ASKED, files={LNET_CONF: theirs})
    assert verdicts(ASKED, seen)[LNET_CONF] is Verdict.WRONG
    assert of("ni o2ib rail0", ASKED, seen).persisted.standing is Standing.ABSENT
    assert LNET_CONF in written(ASKED, seen)
    broken = converged(ASKED, files={LNET_CONF: "net: ["})
    assert of("ni o2ib rail0", ASKED, broken).persisted.standing is Standing.WRONG


def test_networks_of_modprobe_d_are_told_beside_ours() -> None:
    seen = converged(
        ASKED, modprobe={"/etc/modprobe.d/lnet.conf": 'options lnet networks="tcp(eth0)"\n'}
    )
    setting = of("option lnet.networks", ASKED, seen)
    assert verdicts(ASKED, seen)["option lnet.networks"] is Verdict.OVERRIDDEN
    assert setting.persisted.decider == "/etc/modprobe.d/lnet.conf:1"
    assert setting.remedy == "take it out of /etc/modprobe.d/lnet.conf"
    healthy = converged(ASKED, modprobe={"/etc/modprobe.d/lnet.conf": "options lnet debug=0\n"})
    assert "option lnet.networks" not in verdicts(ASKED, healthy)


def test_a_network_over_interfaces_needs_no_rails() -> None:
    asked = node(networks={"tcp": {"interfaces": ["eth0"]}}, mounts={})
    text = written(asked, host())[LNET_CONF]
    assert "net type: tcp\n" in text
    assert "0: eth0\n" in text
    seen = host(lnet=net_show(tcp=ni("192.0.2.5@tcp", "eth0")))
    assert of("ni tcp eth0", asked, seen).running.standing is Standing.RIGHT
    assert BOTH.count("rail") == 2


def test_names_that_are_not_known_before_the_node_runs_are_told() -> None:
    rails = {
        "nics": {0: {"pci": PCI[0]}, 1: {"pci": PCI[1]}},
        "plan": {"prefix": "10.64.0.0/12", "rail_prefix_length": 20},
        "name": None,
    }
    asked = node(rails=rails)
    setting = of("ni o2ib rail0", asked, host(container=True))
    assert not setting.acts
    assert setting.remedy is not None
    assert "set rails.name" in setting.remedy
    assert LNET_CONF not in written(asked, host(container=True))
    # On the node itself they are those that its interfaces have.
    assert "0: enp0s0np0\n" in written(asked, host(ports=(bare(0), bare(1))))[LNET_CONF]


def test_a_nic_that_is_away_does_not_take_its_line_out_of_lnet_conf() -> None:
    rails = {
        "nics": {0: {"pci": PCI[0]}, 1: {"pci": PCI[1]}},
        "plan": {"prefix": "10.64.0.0/12", "rail_prefix_length": 20},
        "name": None,
    }
    asked = node(rails=rails, mounts={})
    files = written(asked, host(ports=(bare(0), bare(1))))
    for ports in ((bare(0),), ()):
        seen = host(files, ports=ports, units=unit("lnet.service", "active", "enabled"))
        assert LNET_CONF not in written(asked, seen)
        assert removed(asked, seen) == set()
        assert of("ni o2ib rail1", asked, seen).running.standing is Standing.LATE
