"""The reports on a fabric for people: a rail at a time, and every test that was not fine."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from railwright.fabric.document import (
    CountersReport,
    FabricReport,
    NotRun,
    RailCounters,
    RailSummary,
)
from railwright.fabric.gid_report import GidReport, rail_number
from railwright.fabric.judge import Check, Trial, Verdict
from railwright.fabric.link_report import LinksReport
from railwright.fabric.meaning import meaning_of
from railwright.hosts import fold

_STYLES = {
    Verdict.FINE: "green",
    Verdict.NOTED: "dim",
    Verdict.FAILED: "bold red",
    Verdict.UNKNOWN: "bold magenta",
}


def print_fabric(report: FabricReport, console: Console) -> None:
    """Print ``report`` to ``console``, the summary last."""
    _print_unread(report.unread, console)
    for rail in report.rails:
        trials = [trial for trial in report.trials if trial.rail == rail.rail]
        _print_rail(rail, trials, console)
    _print_untested(report, console)
    _print_not_run(report.not_run, console)
    console.print(Text(_summary_line(report)), soft_wrap=True)


def _print_unread(unread: Mapping[str, str], console: Console, what: str = "not read") -> None:
    for error, hosts in _folded((error, host) for host, error in unread.items()).items():
        line = Text.assemble((f"{fold(hosts)}: {what}: ", "bold magenta"), error)
        console.print(line, soft_wrap=True)


def _folded(entries: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """What is said, and of whom."""
    found: dict[str, list[str]] = {}
    for said, of in entries:
        found.setdefault(said, []).append(of)
    return found


def _print_rail(rail: RailSummary, trials: Sequence[Trial], console: Console) -> None:
    rates = ""
    if rail.least_gbps is not None and rail.most_gbps is not None:
        rates = f", {rail.least_gbps:.2f} to {rail.most_gbps:.2f} Gb/s"
    counts = f"{_count(rail.tests, 'test')}, {rail.fine} fine{rates}"
    console.print(Text.assemble((f"rail{rail.rail}", "bold"), f"  {counts}"), soft_wrap=True)
    if rail.share_percent:
        _note(f"bytes by priority: {_shares(rail.share_percent)}", console)
    for name, value in rail.moved.items():
        meaning = meaning_of(name)
        _note(f"{name} +{value}{f': {meaning.says}' if meaning else ''}", console)
    for trial in trials:
        if trial.verdict is not Verdict.FINE:
            _print_trial(trial, console)


def _print_trial(trial: Trial, console: Console) -> None:
    verdict = trial.verdict
    head = f"  {trial.client} → {trial.server}  "
    console.print(Text.assemble(head, (verdict.value, _STYLES[verdict])), soft_wrap=True)
    for check in trial.checks:
        if check.verdict in (Verdict.FAILED, Verdict.UNKNOWN):
            _print_check(check, console)


def _print_check(check: Check, console: Console) -> None:
    line = Text.assemble((f"{check.name}: ", _STYLES[check.verdict]), check.detail)
    console.print(Padding(line, (0, 0, 0, 4), expand=False))


def _note(text: str, console: Console) -> None:
    console.print(Padding(Text(f"↳ {text}", style="dim"), (0, 0, 0, 2), expand=False))


def _shares(shares: Mapping[int, float]) -> str:
    most_first = sorted(shares.items(), key=lambda entry: -entry[1])
    return ", ".join(f"{priority}: {share:.2f} %" for priority, share in most_first)


def _print_untested(report: FabricReport, console: Console) -> None:
    said = _folded(
        (f"rail{end.rail}: not tested: {end.reason}", end.host) for end in report.untested
    )
    for text, hosts in said.items():
        console.print(Text.assemble((f"{fold(hosts)} ", "bold red"), text), soft_wrap=True)


def _print_not_run(left: Sequence[NotRun], console: Console) -> None:
    for rail in sorted({one.rail for one in left}):
        rounds = [one for one in left if one.rail == rail]
        tests = _count(sum(len(one.pairs) for one in rounds), "test")
        line = f": {tests} of {_count(len(rounds), 'round')} not run: stopped"
        console.print(Text.assemble((f"rail{rail}", "bold magenta"), line), soft_wrap=True)


def _summary_line(report: FabricReport) -> str:
    found = Counter(trial.verdict for trial in report.trials)
    counts = [f"{found[Verdict.FINE]} fine", f"{found[Verdict.FAILED]} failed"]
    counts.append(f"{found[Verdict.UNKNOWN]} not judged")
    if report.untested:
        counts.append(f"{_count(len(report.untested), 'rail')} not tested")
    if report.not_run:
        counts.append(f"{sum(len(one.pairs) for one in report.not_run)} not run")
    unread = _unread(report.unread)
    tests = _count(len(report.trials), "test")
    return f"{_count(report.hosts, 'host')}, {tests}: {', '.join(counts)}{unread}"


def _unread(unread: Mapping[str, str]) -> str:
    return f"; not read: {fold(unread)}" if unread else ""


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def print_counters(report: CountersReport, console: Console) -> None:
    """Print ``report`` to ``console``."""
    _print_unread(report.unread, console)
    table = Table(box=None, pad_edge=False, header_style="underline")
    for name in ("host", "rail", "tx Gb/s", "rx Gb/s", "bytes by priority"):
        table.add_column(name, justify="right" if "Gb/s" in name else "left", overflow="fold")
    for rail in report.rails:
        rates = (_rate(rail.tx_gbps), _rate(rail.rx_gbps))
        table.add_row(rail.host, f"rail{rail.rail}", *rates, _shares(rail.share_percent))
    console.print(table)
    for rail in report.rails:
        _print_moved(rail, console)
    failing = sum(bool(rail.failing) for rail in report.rails)
    line = f"{_count(len(report.rails), 'rail')} of {_count(_hosts(report), 'host')} looked at"
    console.print(Text(f"{line}: {failing} with losses"), soft_wrap=True)


def _hosts(report: CountersReport) -> int:
    return len({rail.host for rail in report.rails})


def _rate(gbps: float | None) -> str:
    return "?" if gbps is None else f"{gbps:.2f}"


def _print_moved(rail: RailCounters, console: Console) -> None:
    lines = [(f"{name} is not known: reset or gone", Verdict.UNKNOWN) for name in rail.unknown]
    lines += [(error, Verdict.UNKNOWN) for error in rail.errors]
    for name, value in rail.moved.items():
        meaning = meaning_of(name)
        rate = f" ({value / rail.seconds:.1f} /s)" if rail.seconds > 0 else ""
        verdict = Verdict.FAILED if name in rail.failing else Verdict.NOTED
        lines.append((f"{name} +{value}{rate}: {meaning.says if meaning else ''}", verdict))
    for text, verdict in lines:
        where = f"{rail.host} rail{rail.rail} "
        console.print(Text.assemble(where, (text, _STYLES[verdict])), soft_wrap=True)


def print_gids(report: GidReport, console: Console) -> None:
    """Print ``report`` to ``console``: each index with the hosts that have it, then findings."""
    _print_unread(report.unread, console)
    _print_unread(report.unread_before, console, "earlier reading not read")
    if report.indices:
        console.print(_indices(report))
    for text, hosts in _folded((str(one), one.host) for one in report.findings).items():
        console.print(Text.assemble((f"{fold(hosts)} ", "bold red"), text), soft_wrap=True)
    rails = _count(sum(len(indices) for indices in report.indices.values()), "rail")
    line = f"{rails} of {_count(len(report.indices), 'host')} looked at: "
    findings = _count(len(report.findings), "finding")
    console.print(Text(f"{line}{findings}{_unread(report.unread)}"), soft_wrap=True)


def _indices(report: GidReport) -> Table:
    hosts_of: dict[str, dict[int | None, list[str]]] = {}
    for host, indices in report.indices.items():
        for rail, index in indices.items():
            hosts_of.setdefault(rail, {}).setdefault(index, []).append(host)
    table = Table(box=None, pad_edge=False, header_style="underline")
    for name in ("rail", "GID index", "hosts"):
        table.add_column(name, justify="right" if name == "GID index" else "left", overflow="fold")
    for rail in sorted(hosts_of, key=rail_number):
        for index, hosts in sorted(hosts_of[rail].items(), key=lambda one: -len(one[1])):
            usual = index is not None and index == report.usual.get(rail)
            cell = Text("none" if index is None else str(index), style="" if usual else "bold red")
            table.add_row(rail, cell, fold(hosts))
    return table


def print_links(report: LinksReport, console: Console) -> None:
    """Print ``report`` to ``console``."""
    _print_unread(report.unread, console)
    for warning in report.warnings:
        said = Text.assemble((f"{report.host}: iblinkinfo: ", "bold magenta"), warning)
        console.print(said, soft_wrap=True)
    for problem in report.problems:
        kind = (problem.kind.replace("_", " "), _STYLES[Verdict.FAILED])
        console.print(Text.assemble(kind, f"  {problem}"), soft_wrap=True)
    if report.host is None:
        console.print(Text("no host told anything of the fabric"))
        return
    found = Counter(problem.kind for problem in report.problems)
    counts = f"{found['down']} down, {found['slow']} slow, {found['not_active']} not active"
    expected = "" if report.expected is None else f" ({report.expected} expected)"
    rate = "any rate" if report.rate_gbps is None else f"{report.rate_gbps} Gb/s"
    where = f"{report.host} {report.port}" if report.port else report.host
    line = f"{_count(report.cables, 'cable')}{expected} seen from {where}, {rate} asked for"
    console.print(Text(f"{line}: {counts}"), soft_wrap=True)
