"""What a test between two nodes on one rail says: bandwidth, priorities, losses, settings."""

from collections.abc import Iterator, Mapping
from enum import Enum

from railwright.fabric.ends import End, lossless_priority
from railwright.fabric.meaning import Kind, fails, meaning_of
from railwright.fabric.perftest import Bandwidth, Failure
from railwright.fabric.window import PRIORITIES, Window
from railwright.model import Model
from railwright.schema.fabric import RoceQos

LOSSLESS_PERCENT = 99
"""Share of a test's bytes that must be on the lossless priority; the rest is ARP and the like."""
ANSWER_PERCENT = 90
"""Share of the packets that answer: acknowledgements are few, and TCP that arranges the test is
among them, on its own priority."""
MIN_PERCENT = 90
"""Share of the link's rate that a port must reach. Public checks ask for 90 % (Azure, H200), 95 %
(Azure, H100) and 96 % (OCI) of 400 Gb/s."""


class Verdict(str, Enum):
    """What a check found. ``noted`` is for information; ``unknown`` could not be judged."""

    FINE = "fine"
    NOTED = "noted"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Check(Model):
    """One check of a test, and in words what it found."""

    name: str
    verdict: Verdict
    detail: str


class Observation(Model):
    """What one node has to tell of a test: its side's result, and how its rails' counters grew."""

    result: Bandwidth | Failure | None
    windows: dict[int, Window]


class Trial(Model):
    """One test: ``client`` wrote to ``server`` on ``rail``; ``moved`` is by host, then counter."""

    rail: int
    round: int
    client: str
    server: str
    gbps: float | None
    checks: tuple[Check, ...]
    moved: dict[str, dict[str, int]]

    @property
    def verdict(self) -> Verdict:
        """The worst of its checks: what could not be judged outranks what failed."""
        found = {check.verdict for check in self.checks}
        ranked = (Verdict.UNKNOWN, Verdict.FAILED)
        return next((one for one in ranked if one in found), Verdict.FINE)


def unjudged(rail: int, turn: int, client: str, server: str, reason: str) -> Trial:
    """A test that a node could not take part in."""
    return Trial(
        rail=rail,
        round=turn,
        client=client,
        server=server,
        gbps=None,
        checks=(Check(name="test", verdict=Verdict.UNKNOWN, detail=reason),),
        moved={},
    )


def judge(
    turn: int,
    client: End,
    server: End,
    seen: Mapping[str, Observation],
    min_percent: int = MIN_PERCENT,
) -> Trial:
    """The verdict on one test; ``seen`` is what each of the two hosts has to tell."""
    results = [seen[end.host].result for end in (client, server)]
    measured = next((result for result in results if isinstance(result, Bandwidth)), None)
    checks = [*_settings(client, server), *_results(client, server, seen)]
    if measured is not None:
        checks.append(_bandwidth(client, server, measured, min_percent))
        checks += _priorities(client, server, seen, measured)
    checks += [check for end in (client, server) for check in _counters(end, seen[end.host])]
    return Trial(
        rail=client.rail,
        round=turn,
        client=client.host,
        server=server.host,
        gbps=measured.average_gbps if measured else None,
        checks=tuple(checks),
        moved={
            end.host: found.moved()
            for end in (client, server)
            if (found := seen[end.host].windows.get(end.rail)) is not None
        },
    )


def _settings(client: End, server: End) -> Iterator[Check]:
    """What is set on the two ends, whatever the traffic did."""
    if client.qos is None or server.qos is None:
        return
    for what, one, two in (
        ("fabric.qos.traffic_class", client.qos.traffic_class, server.qos.traffic_class),
        ("the ToS of rdma_cm connections", client.cma_tos, server.cma_tos),
    ):
        if one is not None and two is not None and one != two:
            detail = f"{what} is not the same: {client.host} {one}, {server.host} {two}"
            yield Check(name="traffic class", verdict=Verdict.FAILED, detail=detail)
    for end, qos in ((client, client.qos), (server, server.qos)):
        yield _pfc(end, qos)
        if end.forced_class is not None and end.forced_class != qos.traffic_class:
            yield Check(
                name="traffic class",
                verdict=Verdict.FAILED,
                detail=f"{end.host}: the driver forces {end.forced_class} (DSCP "
                f"{end.forced_class >> 2}) on {end.rdma_port}, fabric.qos.traffic_class is "
                f"{qos.traffic_class} (DSCP {qos.traffic_class >> 2})",
            )


def _pfc(end: End, qos: RoceQos) -> Check:
    priority = lossless_priority(qos)
    name, where = "PFC", f"{end.host} {end.interface}"
    if end.pfc is None:
        return Check(name=name, verdict=Verdict.UNKNOWN, detail=f"{where}: {end.pfc_error}")
    on = _list(end.pfc) or "none"
    if priority in end.pfc:
        return Check(name=name, verdict=Verdict.FINE, detail=f"{where}: on for priority {on}")
    detail = f"{where}: on for priority {on}, but traffic class {qos.traffic_class} has {priority}"
    return Check(name=name, verdict=Verdict.FAILED, detail=detail)


def _results(client: End, server: End, seen: Mapping[str, Observation]) -> Iterator[Check]:
    for end in (client, server):
        result = seen[end.host].result
        if isinstance(result, Failure):
            verdict = Verdict.UNKNOWN if result.kind == "broken" else Verdict.FAILED
            yield Check(name="test", verdict=verdict, detail=f"{end.host}: {result.reason}")
    if not any(isinstance(seen[end.host].result, Bandwidth | Failure) for end in (client, server)):
        yield Check(name="test", verdict=Verdict.UNKNOWN, detail="there is no result")


def _bandwidth(client: End, server: End, measured: Bandwidth, min_percent: int) -> Check:
    rates = [end.rate_gbps for end in (client, server) if end.rate_gbps is not None]
    got = f"{measured.average_gbps:.2f} Gb/s"
    if not rates:
        detail = f"{got}; rails.rate_gbps says nothing to hold it against"
        return Check(name="bandwidth", verdict=Verdict.NOTED, detail=detail)
    least = min(rates) * min_percent / 100
    verdict = Verdict.FINE if measured.average_gbps >= least else Verdict.FAILED
    detail = f"{got} of {min(rates)}, at least {least:.1f} ({min_percent} %) is asked for"
    return Check(name="bandwidth", verdict=verdict, detail=detail)


def _priorities(
    client: End, server: End, seen: Mapping[str, Observation], measured: Bandwidth
) -> Iterator[Check]:
    """Whether the test ran on the lossless priority, both ways, and on this rail only."""
    for end, data, answers in ((client, "tx", "rx"), (server, "rx", "tx")):
        if end.qos is None:
            continue
        found = seen[end.host].windows.get(end.rail)
        if found is None:
            detail = f"{end.host}: no counters of {end.interface or end.device}"
            yield Check(name="priority", verdict=Verdict.UNKNOWN, detail=detail)
            continue
        yield _share(end, end.qos, found, f"{data} bytes", LOSSLESS_PERCENT, measured.sent_bytes)
        yield _share(end, end.qos, found, f"{answers} packets", ANSWER_PERCENT, 1)
        yield from _other_rails(end, end.qos, seen[end.host].windows)


def _share(end: End, qos: RoceQos, found: Window, what: str, percent: int, expected: int) -> Check:
    """Whether ``percent`` of ``what`` (``tx bytes``) was on the lossless priority.

    At least half of ``expected`` must have been counted at all: a port that does not count by
    priority proves nothing.
    """
    way, unit = what.split(" ")
    priority = lossless_priority(qos)
    names = {number: f"{way}_prio{number}_{unit}" for number in PRIORITIES}
    total = found.of(names.values())
    where = f"{end.host} {end.interface} {what}"
    if total is None:
        lost = [name for name in names.values() if name not in found.values]
        why = "; ".join(found.errors) or f"{lost[0]} is not counted, or was reset"
        return Check(name="priority", verdict=Verdict.UNKNOWN, detail=f"{where}: {why}")
    if total * 2 < expected:
        detail = f"{where}: {total} were counted, {expected} were sent: counters stand still"
        return Check(name="priority", verdict=Verdict.UNKNOWN, detail=detail)
    shares = {number: 100 * found.values[name] / total for number, name in names.items()}
    if unit == "packets" and qos.cnp_priority != priority:
        # Congestion notifications are answers too, and have a priority of their own.
        shares[priority] += shares.pop(qos.cnp_priority)
    verdict = Verdict.FINE if shares[priority] >= percent else Verdict.FAILED
    told = f"{where}: {shares[priority]:.2f} % on priority {priority}"
    others = {n: share for n, share in shares.items() if n != priority and share > 100 - percent}
    if verdict is Verdict.FAILED:
        on = ", ".join(f"{share:.2f} % on {number}" for number, share in others.items())
        told += f", at least {percent} % is asked for" + (f"; {on}" if on else "")
    return Check(name="priority", verdict=verdict, detail=told)


def _other_rails(end: End, qos: RoceQos, windows: Mapping[int, Window]) -> Iterator[Check]:
    priority = lossless_priority(qos)
    for rail, found in sorted(windows.items()):
        if rail == end.rail:
            continue
        strayed = found.of(f"{way}_prio{priority}_packets" for way in ("tx", "rx"))
        where = f"{end.host} rail{rail}"
        if strayed is None:
            detail = f"{where}: " + ("; ".join(found.errors) or "no packets by priority counted")
            yield Check(name="other rails", verdict=Verdict.UNKNOWN, detail=detail)
        elif strayed:
            detail = f"{where}: {strayed} packets on priority {priority} while rail{end.rail} ran"
            yield Check(name="other rails", verdict=Verdict.FAILED, detail=detail)


def _counters(end: End, seen: Observation) -> Iterator[Check]:
    """Counters that may not grow, that are worth a word, and that were lost on the way."""
    found = seen.windows.get(end.rail)
    if found is None:
        return
    if found.unknown:
        detail = f"{end.host} rail{end.rail}: reset or gone during the test: {_list(found.unknown)}"
        yield Check(name="counters", verdict=Verdict.UNKNOWN, detail=detail)
    lossless = None if end.qos is None else lossless_priority(end.qos)
    for name, value in found.moved().items():
        meaning = meaning_of(name)
        if meaning is None or meaning.kind is Kind.TRAFFIC or name.endswith(_DERIVED):
            continue
        verdict = Verdict.FAILED if fails(name, lossless) else Verdict.NOTED
        detail = f"{end.host} rail{end.rail}: {name} +{value}: {meaning.says}"
        yield Check(name=meaning.kind.value, verdict=verdict, detail=detail)


_DERIVED = ("_pause_duration", "_pause_transition")
"""Counted along with the pause frames themselves."""


def _list(values: frozenset[int] | frozenset[str]) -> str:
    return ", ".join(str(value) for value in sorted(values))
