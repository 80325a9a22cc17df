"""What is made of ``lnetctl net show -v`` and /etc/lnet.conf. test_parse.py reads the corpus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lnetctl import Lnet, LnetNi, parse_lnet_conf, parse_net_show
from tests.unit.lustre_host import BOTH, net_show, ni

LOOPBACK = "lo"
NET_IS_DOWN = """\
show:
    - net:
          errno: -100
          descr: "cannot get networks: Network is down"
"""
# As lnetctl 2.16 and later print it, which have another emitter of YAML.
EMITTED = """\
net:
-     net type: lo
      local NI(s):
      -     nid: 0@lo
            status: up
-     net type: tcp
      local NI(s):
      -     nid: 192.0.2.5@tcp
            status: up
            interfaces:
                  0: eth0
"""


def test_interfaces_are_told_by_network_without_the_loopback() -> None:
    found = parse_net_show(BOTH)
    assert list(found.nets) == ["o2ib"]
    rail = found.ni("o2ib", "rail1")
    assert rail is not None
    assert rail.nid == "10.64.16.2@o2ib"
    assert (rail.peer_credits, rail.peer_credits_hiw, rail.concurrent_sends) == (32, 16, 64)
    assert (rail.health, rail.fatal, rail.tos) == (1000, 0, None)
    assert found.down == []


def test_tunables_of_o2ib_among_the_common_ones_are_read_too() -> None:
    text = BOTH.replace("          lnd tunables:\n", "")
    found = parse_net_show(text).ni("o2ib", "rail0")
    assert found is not None
    assert found.peer_credits_hiw == 16


def test_the_newer_emitter_is_read() -> None:
    assert parse_net_show(EMITTED).nets == {
        "tcp": (LnetNi(nid="192.0.2.5@tcp", iface="eth0", status="up"),)
    }


def test_an_interface_that_is_not_up_is_told() -> None:
    text = net_show(o2ib=ni("10.64.0.2@o2ib", "rail0", "down"))
    assert parse_net_show(text).down == ["10.64.0.2@o2ib"]


def test_cpts_behind_an_interface_are_no_part_of_its_name() -> None:
    text = "net:\n- net type: o2ib0\n  local NI(s):\n  - interfaces:\n      0: ib0[0,1]\n"
    assert parse_lnet_conf(text).ni("o2ib", "ib0") is not None


def test_lnet_that_is_down_is_no_error_of_reading() -> None:
    assert parse_net_show(NET_IS_DOWN, 156) == Lnet(error="lnet_down", errno=-100)


def test_another_refusal_is_told_in_lnetctls_words() -> None:
    text = NET_IS_DOWN.replace("-100", "-1").replace("Network is down", "not permitted")
    assert parse_net_show(text, 255).error == "cannot get networks: not permitted"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "net: 3",
        "net:\n    - local NI(s): []",
        "net:\n    - net type: o2ib\n      local NI(s): 4",
        "net:\n    - net type: o2ib\n      local NI(s):\n        - 7",
        BOTH.replace("peer_credits: 32", "peer_credits: many"),
        BOTH.replace("peer_credits: 32", "peer_credits: true"),
        "show:\n    - net:\n          descr: no number\n",
        "net: [",
        "just words",
        "net: 2001-99-99",
        "[" * 2000,
    ],
)
def test_what_cannot_be_read_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_net_show(text)


def test_networks_of_a_tool_that_failed_are_not_taken() -> None:
    with pytest.raises(ValueError, match="exit 1"):
        parse_net_show(BOTH, 1)


def test_a_file_of_comments_has_no_networks() -> None:
    assert parse_lnet_conf("# lnet.conf\n# net:\n#     - net type: o2ib1\n") == Lnet()


def test_tunables_may_stand_once_for_a_network() -> None:
    text = """\
net:
    - net type: tcp
      tunables:
          peer_credits: 16
      local NI(s):
        - interfaces:
              0: eth0
"""
    found = parse_lnet_conf(text).ni("tcp", "eth0")
    assert found is not None
    assert found.peer_credits == 16


@given(st.text() | st.sampled_from([BOTH, NET_IS_DOWN]).map(lambda text: text[3:-4]))
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (parse_net_show, parse_lnet_conf):
        try:
            found = read(text)
        except ValueError:
            continue
        assert LOOPBACK not in found.nets
