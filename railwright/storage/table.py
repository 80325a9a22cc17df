"""The report on tests of mounts for people: a line for each, and why where it is not fine.

What is said of many hosts alike is said once, under all their names.
"""

from collections import Counter
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from railwright.gds.table import print_trials
from railwright.hosts import by_what, fold
from railwright.storage.document import StorageReport
from railwright.storage.judge import Figure, Outcome, Result

_SAID: dict[Outcome, str] = {
    "ok": "ok",
    "below": "below",
    "not_judged": "not judged",
    "not_measured": "not measured",
}
_STYLES: dict[Outcome, str] = {
    "ok": "green",
    "below": "bold red",
    "not_judged": "yellow",
    "not_measured": "bold magenta",
}


def print_storage(report: StorageReport, console: Console) -> None:
    """Print ``report`` to ``console``, the summary last."""
    for error, hosts in by_what((error, host) for host, error in report.unread.items()).items():
        line = Text.assemble((f"{fold(hosts)}: not read: ", "bold magenta"), error)
        console.print(line, soft_wrap=True)
    if report.results:
        console.print(_results(report))
    for style, text, hosts in _lines(report):
        console.print(Text.assemble((f"{fold(hosts)} ", style), text), soft_wrap=True)
    for mount in dict.fromkeys(one.mount for one in report.gpu):
        here = [one for one in report.gpu if one.mount == mount]
        told = "" if any(one.counts for one in here) else ", which the inventory does not ask for"
        console.print(Text(f"from the GPU on {mount}, by gdsio{told}:"), soft_wrap=True)
        print_trials([one.trial for one in here], console)
    for mount, hosts in by_what((one.mount, one.host) for one in report.not_run).items():
        line = Text.assemble((fold(hosts), "bold magenta"), f" {mount}: not run: stopped")
        console.print(line, soft_wrap=True)
    console.print(Text(_summary(report)), soft_wrap=True)


def _results(report: StorageReport) -> Table:
    table = Table(box=None, pad_edge=False, header_style="underline")
    for name in ("host", "mount", "kind", "verdict"):
        table.add_column(name, overflow="fold")
    for name in ("write GB/s", "expected", "read GB/s", "expected", "at once"):
        table.add_column(name, justify="right", overflow="fold")
    for one in report.results:
        measured = one.write is not None
        table.add_row(
            one.host,
            one.mount,
            one.kind,
            Text(_SAID[one.outcome], style=_STYLES[one.outcome]),
            *_figure(one.write),
            *_figure(one.read),
            str(one.at_once) if measured else "",
        )
    return table


def _figure(figure: Figure | None) -> tuple[Text, Text]:
    """What was reached, and what is expected."""
    if figure is None:
        return Text(""), Text("")
    expected = "-" if figure.expected is None else _gb_s(figure.expected)
    return Text(_gb_s(figure.gb_s), style=_STYLES[figure.outcome]), Text(expected)


def _gb_s(value: float) -> str:
    """Slow ones with more digits, so that they are not all 0.0."""
    return f"{value:.2f}" if value >= 1 else f"{value:.4f}"


def _lines(report: StorageReport) -> Iterator[tuple[str, str, list[str]]]:
    """What is told of each test: its style, the text, and the hosts that have it."""
    several = len({one.mount for one in report.results}) > 1

    def told(one: Result, text: str) -> tuple[str, str]:
        return (f"{one.mount}: {text}" if several else text, one.host)

    results = report.results
    reasons = by_what(told(one, f"not measured: {one.reason}") for one in results if one.reason)
    yield from (("bold magenta", text, hosts) for text, hosts in reasons.items())
    below = by_what(told(one, text) for one in results for text in _shortfalls(one))
    yield from (("bold red", text, hosts) for text, hosts in below.items())
    notes = by_what(told(one, f"note: {note}") for one in results for note in one.notes)
    yield from (("dim", text, hosts) for text, hosts in notes.items())
    ways = by_what(told(one, f"{one.how}, {one.size_mib} MiB in all") for one in results if one.how)
    yield from (("dim", text, hosts) for text, hosts in ways.items())
    left = by_what(told(one, f"left behind: {what}") for one in results for what in one.left)
    yield from (("bold magenta", text, hosts) for text, hosts in left.items())


def _shortfalls(one: Result) -> Iterator[str]:
    for way, figure in (("write", one.write), ("read", one.read)):
        if figure is not None and figure.outcome == "below" and figure.expected:
            share = int(100 * figure.gb_s / figure.expected)
            yield f"{way} below: {share} % of {_gb_s(figure.expected)} GB/s"


def _summary(report: StorageReport) -> str:
    found = Counter(one.outcome for one in report.results)
    counts = [f"{found[outcome]} {said}" for outcome, said in _SAID.items()]
    if report.not_run:
        counts.append(f"{len(report.not_run)} not run")
    unread = f"; not read: {fold(report.unread)}" if report.unread else ""
    hosts = f"{report.hosts} host{'' if report.hosts == 1 else 's'}"
    tests = f"{len(report.results)} test{'' if len(report.results) == 1 else 's'}"
    return f"{hosts}, {tests}: {', '.join(counts)}{unread}"
