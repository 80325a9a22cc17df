"""What is made of iproute2's ``dcb``. The recorded corpus is read in test_parse.py."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.dcb import (
    App,
    Buffer,
    Dcbx,
    Ets,
    Pfc,
    Refusal,
    parse_app,
    parse_buffer,
    parse_dcb,
    parse_dcbx,
    parse_ets,
    parse_pfc,
    refusal,
)
from facts.dcb_text import PCPS
from railwright.model import Model

CORPUS = Path(__file__).parents[1] / "corpus" / "dcb"
WORDS = sorted({word for file in CORPUS.glob("*.txt") for word in file.read_text().split()})

PRIORITY = st.integers(0, 7)
EIGHT_BITS = st.lists(st.booleans(), min_size=8, max_size=8)
EIGHT_COUNTS = st.lists(st.integers(0, 2**64 - 1), min_size=8, max_size=8)
EIGHT_PRIORITIES = st.lists(PRIORITY, min_size=8, max_size=8)
TSAS = st.sampled_from(["strict", "cbs", "ets", "vendor", "???"])


def plain(fields: Mapping[str, object]) -> str:
    """As dcb prints it without ``-j``."""
    lines = []
    for key, value in fields.items():
        values = [value]
        if isinstance(value, list):
            pairs = value if value and isinstance(value[0], list) else enumerate(value)
            values = [f"{name}:{word(entry)}" for name, entry in pairs]
        lines.append(f"{key.replace('_', '-')} {' '.join(word(entry) for entry in values)} ")
    return "\n".join(lines) + "\n"


def word(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


@given(st.booleans(), st.integers(0, 65535), EIGHT_BITS, EIGHT_COUNTS, EIGHT_COUNTS)
def test_pfc_says_the_same_in_text_and_in_json(
    macsec: bool, delay: int, bits: list[bool], sent: list[int], received: list[int]
) -> None:
    fields = {
        "pfc_cap": 8,
        "macsec_bypass": macsec,
        "delay": delay,
        "prio_pfc": bits,
        "requests": sent,
        "indications": received,
    }
    found = parse_pfc(json.dumps(fields))
    assert found == parse_dcb(json.dumps(fields)) == parse_dcb(plain(fields))
    assert found.pfc_enabled == tuple(prio for prio in range(8) if bits[prio])
    assert (found.delay, found.macsec_bypass, found.pfc_cap) == (delay, macsec, 8)
    assert found.requests == dict(enumerate(sent))
    assert found.indications == dict(enumerate(received))


@given(
    st.booleans(),
    st.lists(st.integers(0, 100), min_size=8, max_size=8),
    st.lists(TSAS, min_size=8, max_size=8),
    EIGHT_PRIORITIES,
)
def test_ets_says_the_same_in_text_and_in_json(
    willing: bool, bandwidths: list[int], tsas: list[str], classes: list[int]
) -> None:
    fields = {
        "willing": willing,
        "ets_cap": 8,
        "cbs": False,
        "tc_bw": bandwidths,
        "pg_bw": [0] * 8,
        "tc_tsa": tsas,
        "prio_tc": classes,
        "reco_tc_bw": [1] * 8,
        "reco_tc_tsa": ["strict"] * 8,
        "reco_prio_tc": [7] * 8,
    }
    found = parse_ets(json.dumps(fields))
    assert found == parse_dcb(json.dumps(fields)) == parse_dcb(plain(fields))
    assert found.willing is willing
    assert found.tc_bw == dict(enumerate(bandwidths))
    assert found.tc_tsa == {tc: None if tsa == "???" else tsa for tc, tsa in enumerate(tsas)}
    assert found.prio_tc == dict(enumerate(classes))
    assert found.reco_prio_tc == dict.fromkeys(range(8), 7)


@given(
    st.dictionaries(st.integers(0, 63), PRIORITY),
    st.dictionaries(st.sampled_from(PCPS), PRIORITY),
    st.lists(PRIORITY, unique=True),
    st.booleans(),
)
def test_app_says_the_same_in_text_and_in_json(
    dscps: dict[int, int], pcps: dict[str, int], default: list[int], separator: bool
) -> None:
    behind = [" "] if separator else []
    mappings = {"dscp_prio": dscps.items(), "pcp_prio": pcps.items()}
    fields = {key: [[*pair, *behind] for pair in pairs] for key, pairs in mappings.items() if pairs}
    text = plain({key: [pair[:2] for pair in pairs] for key, pairs in fields.items()})
    if default:
        text += f"default-prio {' '.join(map(str, default))} \n"
    found = parse_app(json.dumps({**fields, **({"default_prio": default} if default else {})}))
    assert found == App(dscp2prio=dscps, pcp2prio=pcps, default_prio=tuple(default))
    if text.strip():
        assert parse_dcb(text) == found


def test_codepoints_by_name_as_dcb_writes_them_without_numeric() -> None:
    text = "default-prio 0 \ndscp-prio default:0 CS1:1 AF31:3 EF:5 CS6:6 59:5 \n"
    expected = {0: 0, 8: 1, 26: 3, 46: 5, 48: 6, 59: 5}
    assert parse_dcb(text) == App(dscp2prio=expected, default_prio=(0,))


def test_ethertypes_are_hexadecimal_in_text_alone() -> None:
    expected = App(ethtype2prio={0x8906: 3}, port2prio={4791: 3})
    assert parse_dcb("ethtype-prio 8906:3 \nport-prio 4791:3 \n") == expected
    text = '{"ethtype_prio":[[35078,3]],"port_prio":[[4791,3]]}'
    assert parse_app(text) == parse_dcb(text) == expected


def test_of_several_priorities_of_one_codepoint_the_highest_counts() -> None:
    assert parse_app('{"dscp_prio":[[26,3],[26,5],[26,1]]}').dscp2prio == {26: 5}


def test_a_numeric_pcp_is_named() -> None:
    assert parse_app('{"pcp_prio":[[3,3],[11,2],["7de",1]]}').pcp2prio == {
        "3nd": 3,
        "3de": 2,
        "7de": 1,
    }


def test_a_table_without_entries_is_told_by_its_json_alone() -> None:
    assert parse_dcb("{ }\n") == parse_app("{}") == App()
    with pytest.raises(ValueError, match="dcb exited 0 and showed ''"):
        parse_dcb("\n")


def test_buffers_in_bytes() -> None:
    fields = {
        "prio_buffer": [0, 0, 0, 1, 0, 0, 0, 0],
        "buffer_size": [20016, 156096, 0, 0, 0, 0, 0, 0],
        "total_size": 4151808,
    }
    found = parse_buffer(json.dumps(fields))
    assert found == parse_dcb(json.dumps(fields))
    assert found == Buffer(
        prio_buffer=dict(enumerate(fields["prio_buffer"])),  # type: ignore[arg-type]
        buffer_size=dict(enumerate(fields["buffer_size"])),  # type: ignore[arg-type]
        total_size=4151808,
    )


def test_the_text_writes_round_sizes_in_kb_and_mb() -> None:
    found = parse_dcb(
        "prio-buffer 0:0 1:0 2:0 3:1 4:0 5:0 6:0 7:0 \n"
        "buffer-size 0:20016b 1:152Kb 2:2Mb 3:0b 4:0b 5:0b 6:0b 7:0b \ntotal-size 1.5e+06Kb \n"
    )
    assert isinstance(found, Buffer)
    assert (found.buffer_size[0], found.buffer_size[1]) == (20016, 155648)
    assert (found.buffer_size[2], found.total_size) == (2097152, 1536000000)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("host ieee \n", ("host", "ieee")),
        ("lld-managed cee static \n", ("lld_managed", "cee", "static")),
        ('{"host":true,"ieee":true}', ("host", "ieee")),
        ('Unknown DCBX bit 0x20.\n{"lld_managed":true}', ("lld_managed",)),
    ],
)
def test_who_runs_dcbx(text: str, flags: tuple[str, ...]) -> None:
    found = parse_dcb(text)
    assert isinstance(found, Dcbx)
    assert found.flags == flags
    assert found.to_json() == {"flags": list(flags), **dict.fromkeys(flags, True)}


def test_dcbx_by_its_json() -> None:
    assert parse_dcbx('{"host":true,"cee":false}').flags == ("host",)
    assert parse_dcbx("{}").flags == ()


def test_remarks_on_stderr_leave_the_answer_as_it_is() -> None:
    remark = "Unknown attribute in DCB_ATTR_IEEE_APP_TABLE: 2\n"
    assert parse_dcb(remark + "dscp-prio 26:3 \n") == App(dscp2prio={26: 3})


REFUSALS = [
    ("Attribute read: Operation not supported\n", 1, "dcb_not_supported"),
    ("Attribute read: Operation not supported\nAttribute not found: Success\n", 1, None),
    ("Attribute not found: Success\n", 1, "attribute_missing"),
    ("Attribute not found: No such file or directory\n", 1, "attribute_missing"),
    ("Attribute read: No such device\n", 1, "no_such_device"),
    ("Attribute read: Operation not permitted\n", 1, "not_permitted"),
    ("Attribute read: Invalid argument\n", 1, "failed"),
    ("Wrong len 20, expected 24\n", 1, "failed"),
    ('Object "apptrust" is unknown\n', 1, "unknown_object"),
    ("sh: 1: dcb: not found\n", 127, "not_installed"),
]


@pytest.mark.parametrize(("text", "rc", "kind"), REFUSALS)
def test_a_driver_without_dcb_is_told_from_other_failures(
    text: str, rc: int, kind: str | None
) -> None:
    found = parse_dcb(text, rc)
    assert isinstance(found, Refusal)
    assert found.error == (kind or "dcb_not_supported")
    # With -j an empty line is on stdout besides.
    assert refusal("\n" + text, rc) is not None


def test_an_answer_is_no_refusal() -> None:
    assert refusal('{"host":true}', 0) is None


Reader = Callable[[str], Model]
PFC = '{"prio_pfc":[true,true,true,true,true,true,true,true]}'
BROKEN: list[tuple[Reader, str, str]] = [
    (parse_pfc, "", "expected JSON"),
    (parse_pfc, "[]", "expected an object, got list"),
    (parse_pfc, "{}", "expected prio_pfc"),
    (parse_pfc, '{"prio_pfc":[true]}', "expected 8 values, got 1"),
    (parse_pfc, '{"prio_pfc":{}}', "expected a list"),
    (parse_pfc, PFC.replace("[true", "[1"), "expected true or false, got 1"),
    (parse_pfc, PFC.replace("}", ',"delay":true}'), "delay: expected a number, got True"),
    (parse_pfc, PFC.replace("}", ',"delay":-1}'), "delay: expected a number, got -1"),
    (parse_app, '{"dscp_prio":[[26]]}', "expected a key and a priority"),
    (parse_app, '{"dscp_prio":[[64,0]]}', "expected 0 to 63, got 64"),
    (parse_app, '{"dscp_prio":[[26,8]]}', "expected 0 to 7, got 8"),
    (parse_app, '{"default_prio":3}', "expected a list"),
    (parse_app, '{"pcp_prio":[["8de",0]]}', "expected a number"),
    (parse_app, '{"order":["dscp"]}', "expected mappings to priorities"),
    (parse_ets, PFC, "expected tc_bw, tc_tsa and prio_tc"),
    (parse_buffer, PFC, "expected prio_buffer, buffer_size"),
    (parse_dcbx, PFC, "expected host, lld_managed"),
    (parse_dcb, "not a thing", "expected pfc, app, ets, buffer or dcbx"),
    (parse_dcb, "order: dscp pcp", "expected pfc, app, ets, buffer or dcbx"),
    (parse_dcb, "prio-pfc 0:on 2:on", "expected 1:VALUE of dcb, got '2:on'"),
    (parse_dcb, "prio-pfc 0:maybe", "expected on or off"),
    (parse_dcb, "pfc-cap eight", "expected a number of dcb, got 'eight'"),
    (parse_dcb, "pfc-cap 8 8", "expected one value"),
    (parse_dcb, "dscp-prio AF99:3", "expected a number of dcb, got 'AF99'"),
    (parse_dcb, "ethtype-prio xyz:3", "expected an EtherType"),
    (parse_dcb, "total-size 1Gb", "expected a size"),
    (parse_dcb, "total-size 4096Mb", "below 4 GiB"),
    (parse_dcb, "host maybe", "expected a flag of DCBX"),
]


@pytest.mark.parametrize(("read", "text", "words"), BROKEN)
def test_what_cannot_be_read_is_a_value_error(read: Reader, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read(text)


def test_an_answer_of_a_dcb_that_failed_is_not_taken() -> None:
    with pytest.raises(ValueError, match="dcb exited 1"):
        parse_dcb(PFC, 1)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 70) | st.sampled_from(["???", "ets", "3nd"]),
    lambda inner: st.lists(inner, max_size=9) | st.lists(st.lists(inner, max_size=3), max_size=3),
    max_leaves=20,
)
KEYS = st.sampled_from(
    [
        "prio_pfc",
        "delay",
        "requests",
        "dscp_prio",
        "pcp_prio",
        "default_prio",
        "tc_bw",
        "tc_tsa",
        "prio_tc",
        "willing",
        "prio_buffer",
        "buffer_size",
        "total_size",
        "host",
        "ieee",
    ]
)


@given(
    st.dictionaries(KEYS, JSON).map(json.dumps)
    | st.lists(st.sampled_from(WORDS) | st.text()).map(" ".join)
)
def test_nothing_but_a_value_error_is_raised(text: str) -> None:
    for read in (parse_dcb, parse_pfc, parse_app, parse_ets, parse_buffer, parse_dcbx):
        try:
            found = read(text)
        except ValueError:
            continue
        assert isinstance(found, Pfc | App | Ets | Buffer | Dcbx | Refusal)
        assert json.loads(json.dumps(found.to_json())) is not None
