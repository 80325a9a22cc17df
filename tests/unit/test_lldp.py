"""What is made of ``lldpctl -f json`` and ``json0``. test_parse.py reads the corpus."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.lldp import Neighbour, Neighbours, Refusal, parse_lldp

NAMES = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=12)
NEIGHBOUR = st.builds(
    Neighbour,
    switch=st.none() | NAMES,
    chassis_id=NAMES,
    mgmt=st.lists(NAMES, max_size=3).map(tuple),
    capabilities=st.sampled_from([(), ("Bridge",), ("Bridge", "Router")]),
    port=NAMES,
    port_type=st.sampled_from(["ifname", "mac", "local"]),
    port_descr=st.none() | NAMES,
    mfs=st.none() | st.integers(0, 65535),
    via=st.sampled_from(["LLDP", "CDPv2"]),
)
NEIGHBOURS = st.dictionaries(NAMES, st.lists(NEIGHBOUR, min_size=1, max_size=2).map(tuple)).map(
    lambda interfaces: Neighbours(interfaces=interfaces)
)


def json0(found: Neighbours) -> dict[str, Any]:
    """What lldpctl collects, as ``-f json0`` writes it."""
    interfaces = [
        {
            "name": name,
            "via": neighbour.via,
            "chassis": [
                {
                    "id": [{"type": "mac", "value": neighbour.chassis_id}],
                    **listed("name", neighbour.switch),
                    **listed("mgmt-ip", *neighbour.mgmt),
                    "capability": [
                        {"type": kind, "enabled": kind in neighbour.capabilities}
                        for kind in ("Bridge", "Router", "Wlan")
                    ],
                }
            ],
            "port": [
                {
                    "id": [{"type": neighbour.port_type, "value": neighbour.port}],
                    **listed("descr", neighbour.port_descr),
                    **listed("mfs", neighbour.mfs),
                }
            ],
        }
        for name, neighbours in found.interfaces.items()
        for neighbour in neighbours
    ]
    return {"lldp": [{"interface": interfaces} if interfaces else {}]}


def listed(key: str, *values: object) -> dict[str, Any]:
    texts = [{"value": str(value)} for value in values if value is not None]
    return {key: texts} if texts else {}


def collapse(value: Any) -> Any:
    """What ``-f json`` makes of it: ``json_element_cleanup`` of lldpd."""
    if isinstance(value, list):
        return collapse(value[0]) if len(value) == 1 else [collapse(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if list(value) == ["value"]:
        return value["value"]
    inner = {key: collapse(entry) for key, entry in value.items()}
    name = inner.pop("name", None)
    return inner if name is None else {name: inner}


@given(NEIGHBOURS)
def test_what_lldpctl_prints_is_read_back_in_both_forms(found: Neighbours) -> None:
    assert parse_lldp(json.dumps(json0(found))) == found
    assert parse_lldp(json.dumps({"lldp": collapse(json0(found)["lldp"])})) == found


ETH0 = '"eth0": {"chassis": {"leaf%d": {"id": {"type": "mac", "value": "m%d"}}}}'


def test_one_interface_is_no_list() -> None:
    found = parse_lldp(f'{{"lldp": {{"interface": {{{ETH0 % (1, 1)}}}}}}}')
    assert found.to_json() == {
        "eth0": {"switch": "leaf1", "chassis_id": "m1", "mgmt": [], "capabilities": []}
    }


@pytest.mark.parametrize("between", ["}, {", ", "])
def test_two_neighbours_on_one_interface_are_both_kept(between: str) -> None:
    entries = f"{{{ETH0 % (1, 1)}{between}{ETH0 % (2, 2)}}}"
    found = parse_lldp(f'{{"lldp": {{"interface": [{entries}]}}}}')
    assert isinstance(found, Neighbours)
    assert [neighbour.switch for neighbour in found.interfaces["eth0"]] == ["leaf1", "leaf2"]
    assert [entry["switch"] for entry in found.to_json()["eth0"]] == ["leaf1", "leaf2"]


def test_a_switch_without_a_name_and_one_that_is_called_id() -> None:
    nameless = '{"lldp":{"interface":{"eth0":{"chassis":{"id":{"type":"mac","value":"m1"}}}}}}'
    found = parse_lldp(nameless)
    assert isinstance(found, Neighbours)
    assert found.interfaces["eth0"] == (Neighbour(chassis_id="m1"),)
    called = parse_lldp(nameless.replace('{"id"', '{"id":{"id"').replace('"m1"}', '"m1"}}'))
    assert isinstance(called, Neighbours)
    assert called.interfaces["eth0"] == (Neighbour(switch="id", chassis_id="m1"),)


@pytest.mark.parametrize(
    ("text", "rc", "kind"),
    [
        ("[WARN/lldpctl] unable to connect to socket /run/lldpd.socket", 1, "no_daemon"),
        (
            "[WARN/lldpctl] unable to connect to socket /run/lldpd.socket: Permission denied",
            1,
            "not_permitted",
        ),
        ("sh: 1: lldpctl: not found", 127, "not_installed"),
    ],
)
def test_no_answer_of_lldpd_is_not_no_neighbours(text: str, rc: int, kind: str) -> None:
    found = parse_lldp(text, rc)
    assert isinstance(found, Refusal)
    assert found.error == kind
    assert parse_lldp('{"lldp": {}}') == Neighbours()


BROKEN = [
    ("", 0, "expected JSON"),
    ("[]", 0, "expected an object, got list"),
    ('{"lldp": {}}', 1, "lldpctl exited 1"),
    ('{"interface": {}}', 0, "expected lldp"),
    ('{"lldp": {"interface": "eth0"}}', 0, "expected an object, got str"),
    ('{"lldp": {"interface": {"eth0": 1}}}', 0, "eth0: expected an object, got int"),
    ('{"lldp": {"interface": {"e": {"port": {"mfs": "big"}}}}}', 0, "mfs as a number, got 'big'"),
    ('{"lldp": {"interface": {"e": {"port": {"descr": {}}}}}}', 0, "descr: expected a text"),
    (
        '{"lldp": {"interface": {"e": {"chassis": {"descr": "x", "mgmt-ip": "y"}}}}}',
        0,
        "expected the id of a chassis",
    ),
]


@pytest.mark.parametrize(("text", "rc", "words"), BROKEN)
def test_what_cannot_be_read_is_a_value_error(text: str, rc: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_lldp(text, rc)


KEYS = st.sampled_from(
    [
        "lldp",
        "interface",
        "eth0",
        "name",
        "via",
        "chassis",
        "id",
        "type",
        "value",
        "mgmt-ip",
        "capability",
        "enabled",
        "port",
        "descr",
        "mfs",
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 9) | st.sampled_from(["mac", "9236"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
)


@given(JSON.map(lambda inner: json.dumps({"lldp": {"interface": inner}})) | st.text())
def test_nothing_but_a_value_error_is_raised(text: str) -> None:
    try:
        found = parse_lldp(text)
    except ValueError:
        return
    assert json.loads(json.dumps(found.to_json())) is not None
