"""What counters mean: which belong together, and which may not grow.

Sources: kernel documentation, networking/device_drivers/ethernet/mellanox/mlx5/counters, and
Documentation/ABI/stable/sysfs-class-infiniband; soft-RoCE's are in rxe_hw_counters.c.
"""

import re
from enum import Enum
from typing import NamedTuple


class Kind(str, Enum):
    """What a counter counts."""

    TRAFFIC = "traffic"
    PAUSE = "pause"
    DISCARDS = "discards"
    CONGESTION = "congestion"
    RETRANSMISSION = "retransmission"
    LINK = "link"


class Meaning(NamedTuple):
    """Of a counter: its kind, what growth says (``{n}`` is the priority), and whether it fails."""

    kind: Kind
    says: str
    fails: bool = False


_P = "(?P<n>[0-7])"
_MEANINGS = (
    (f"[rt]x_prio{_P}_(bytes|packets)", Meaning(Kind.TRAFFIC, "traffic of priority {n}")),
    (
        f"rx_prio{_P}_pause(_duration|_transition)?",
        Meaning(Kind.PAUSE, "the switch held back priority {n}: the fabric is congested"),
    ),
    (
        f"tx_prio{_P}_pause(_duration|_transition)?",
        Meaning(Kind.PAUSE, "held back priority {n} of the switch: this host is slow to take it"),
    ),
    (
        "[rt]x_(global_pause(_duration|_transition)?|pause_ctrl_phy)",
        Meaning(Kind.PAUSE, "pause of the whole link, which stops all priorities"),
    ),
    ("tx_pause_storm_(warning|error)_events", Meaning(Kind.PAUSE, "paused for too long")),
    ("port_xmit_wait", Meaning(Kind.PAUSE, "had data and no credits: the fabric is congested")),
    (
        f"rx_prio{_P}_(discards|buf_discard|cong_discard)",
        Meaning(Kind.DISCARDS, "packets of priority {n} were dropped", fails=True),
    ),
    (
        "[rt]x_discards_phy|port_xmit_discards",
        Meaning(Kind.DISCARDS, "packets were dropped: the fabric is lossy", fails=True),
    ),
    ("rx_out_of_buffer|out_of_buffer", Meaning(Kind.DISCARDS, "no receive buffer was free")),
    ("np_ecn_marked_roce_packets", Meaning(Kind.CONGESTION, "came with an ECN mark")),
    ("np_cnp_sent", Meaning(Kind.CONGESTION, "congestion notifications sent")),
    ("rp_cnp_handled", Meaning(Kind.CONGESTION, "congestion notifications that slowed it down")),
    ("rp_cnp_ignored", Meaning(Kind.CONGESTION, "congestion notifications that it ignored")),
    (
        "out_of_sequence|local_ack_timeout_err",
        Meaning(Kind.RETRANSMISSION, "packets were lost", fails=True),
    ),
    (
        "packet_seq_err|implied_nak_seq_err|duplicate_request|roce_adp_retrans(_to)?|"
        "roce_slow_restart\\w*|out_of_seq_request|rcvd_seq_err|completer_retry_err",
        Meaning(Kind.RETRANSMISSION, "packets were sent again"),
    ),
    (
        "rnr_nak_retry_err|rcvd_rnr_err|send_rnr_err",
        Meaning(Kind.RETRANSMISSION, "the receiver was not ready"),
    ),
    (
        "retry_(rnr_)?exceeded_err|req_cqe_error|resp_cqe_error|req_remote_access_errors",
        Meaning(Kind.RETRANSMISSION, "connections broke"),
    ),
    (
        "link_down_events_phy|link_downed|link_error_recovery",
        Meaning(Kind.LINK, "the link went down", fails=True),
    ),
    (
        "rx_symbol_err_phy|rx_crc_errors_phy|rx_icrc_encapsulated|symbol_error|port_rcv_errors|"
        "local_link_integrity_errors|excessive_buffer_overrun_errors",
        Meaning(Kind.LINK, "damaged packets: look at the cable"),
    ),
)
_COMPILED = tuple((re.compile(pattern), meaning) for pattern, meaning in _MEANINGS)


def meaning_of(counter: str) -> Meaning | None:
    """What ``counter`` means; None where it says nothing of a fabric's health."""
    for pattern, meaning in _COMPILED:
        if found := pattern.fullmatch(counter):
            priority = found.groupdict().get("n") or ""
            return meaning._replace(says=meaning.says.replace("{n}", priority))
    return None


def fails(counter: str, lossless: int | None) -> bool:
    """Whether ``counter`` may not grow while ``lossless`` is the priority that may not drop.

    Drops of another priority are what a lossy one is for. None is InfiniBand, which drops nothing.
    """
    meaning = meaning_of(counter)
    found = re.match(r"[rt]x_prio([0-7])_", counter)
    lossy = found is not None and lossless is not None and int(found[1]) != lossless
    return meaning is not None and meaning.fails and not lossy
