"""The report on tests of the direct path for people: a line a host, and why where it is not fine.

What is said of many hosts alike is said once, under all their names.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from railwright.gds.choice import Reason
from railwright.gds.document import GdsReport
from railwright.gds.judge import Outcome, Trial
from railwright.hosts import by_what, fold

_SAID: dict[Outcome, str] = {
    "direct": "direct",
    "host": "through the host",
    "failed": "failed",
    "not_proven": "not proven",
}
_STYLES: dict[Outcome, str] = {
    "direct": "green",
    "host": "bold red",
    "failed": "bold red",
    "not_proven": "bold magenta",
}
_MIB = 1 << 20


def print_gds(report: GdsReport, console: Console) -> None:
    """Print ``report`` to ``console``, the summary last."""
    for error, hosts in by_what((error, host) for host, error in report.unread.items()).items():
        line = Text.assemble((f"{fold(hosts)}: not read: ", "bold magenta"), error)
        console.print(line, soft_wrap=True)
    print_trials(report.trials, console)
    if report.not_run:
        line = Text.assemble((fold(report.not_run), "bold magenta"), ": not run: stopped")
        console.print(line, soft_wrap=True)
    console.print(Text(_summary(report)), soft_wrap=True)


def print_trials(trials: Sequence[Trial], console: Console) -> None:
    """Print ``trials`` to ``console``: a line a host, and what there is to say of it."""
    if trials:
        console.print(_hosts(trials))
    for style, text, hosts in _lines(trials):
        console.print(Text.assemble((f"{fold(hosts)} ", style), text), soft_wrap=True)
    for reason, hosts in by_what((one, t.host) for t in trials for one in t.causes).items():
        _print_reason(reason, hosts, console)


def _hosts(trials: Sequence[Trial]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="underline")
    for name in ("host", "IO", "way"):
        table.add_column(name, overflow="fold")
    for name in ("write GiB/s", "read GiB/s", "moved", "not seen"):
        table.add_column(name, justify="right", overflow="fold")
    for trial in trials:
        way = trial.way if trial.outcome in ("direct", "host") else ""
        table.add_row(
            trial.host,
            Text(_SAID[trial.outcome], style=_STYLES[trial.outcome]),
            "part of it" if way == "both" else "" if way == "host" else way,
            *(
                "" if rate is None else f"{rate:.2f}"
                for rate in (trial.rate.write, trial.rate.read)
            ),
            _mib(trial.done.read + trial.done.written),
            "" if trial.unseen_bytes is None else _mib(trial.unseen_bytes),
        )
    return table


def _mib(size: int) -> str:
    return f"{size // _MIB} MiB" if size else "0"


def _lines(trials: Sequence[Trial]) -> Iterator[tuple[str, str, list[str]]]:
    """What is told of each test: its style, the text, and the hosts that have it."""
    for outcome, style in _STYLES.items():
        shown = by_what((t.shows, t.host) for t in trials if t.outcome == outcome)
        yield from ((style, f"{_SAID[outcome]}: {text}", of) for text, of in shown.items())
    for text, hosts in by_what((note, t.host) for t in trials for note in t.notes).items():
        yield "dim", f"note: {text}", hosts
    for text, hosts in by_what((one, t.host) for t in trials for one in t.left).items():
        yield "bold magenta", f"left behind: {text}", hosts


def _print_reason(reason: Reason, hosts: list[str], console: Console) -> None:
    console.print(Text.assemble((f"{fold(hosts)} ", "bold red"), reason.text), soft_wrap=True)
    for label, text in (("remedy", reason.remedy), ("source", reason.source)):
        if text is not None:
            line = Text(f"↳ {label}: {text}", style="dim")
            console.print(Padding(line, (0, 0, 0, 2), expand=False))


def _summary(report: GdsReport) -> str:
    found = Counter(trial.outcome for trial in report.trials)
    counts = [f"{found[outcome]} {said}" for outcome, said in _SAID.items()]
    if report.not_run:
        counts.append(f"{len(report.not_run)} not run")
    unread = f"; not read: {fold(report.unread)}" if report.unread else ""
    return f"{report.hosts} host{'' if report.hosts == 1 else 's'}: {', '.join(counts)}{unread}"
