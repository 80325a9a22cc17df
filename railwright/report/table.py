"""The report for people: what is equal on many hosts is said once, under all their names."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from railwright.hosts import fold
from railwright.report.document import Entry, HostEntry, Outcome, Report
from railwright.settings import Standing, State, is_drift

PLAIN_WIDTH = 100
"""Columns where the output is no terminal."""

_INDENT = 4

_STYLES = {
    Outcome.FINE: "dim",
    Outcome.DRIFT: "bold red",
    Outcome.PENDING: "yellow",
    Outcome.ERROR: "bold magenta",
}


class Row(NamedTuple):
    """One line of the table under its component, and what is to be said under it."""

    component: str
    cells: tuple[str, ...]
    note: str
    style: str


class Layout(NamedTuple):
    """The columns' names, and their share of the width."""

    names: tuple[str, ...]
    shares: tuple[int, ...]
    styled: int


_DRIFT = Layout(("setting", "verdict", "desired", "persisted", "running"), (37, 14, 15, 15, 15), 1)
_PLAN = Layout(("setting", "state", "from", "to"), (36, 10, 25, 25), 1)
_LEFT = Layout(("setting", "stays"), (80, 16), 1)


def console() -> Console:
    """The terminal, or standard output at a fixed width where it is none."""
    found = Console(highlight=False, emoji=False, markup=False)
    return found if found.is_terminal else Console(width=PLAIN_WIDTH, highlight=False)


def print_report(report: Report, console: Console) -> None:
    """Print ``report`` to ``console``, the summary last."""
    _print_told(report, console)
    if report.command == "drift":
        _print_rows(console, _DRIFT, report.hosts, _drift_rows)
    else:
        _print_rows(console, _PLAN, report.hosts, _change_rows)
        if any(_left_rows(host) for host in report.hosts):
            console.print(Text("\nWhat a run does not put right:", style="bold"))
            _print_rows(console, _LEFT, report.hosts, _left_rows)
    console.print(Text(_summary_line(report)), soft_wrap=True)


def _print_told(report: Report, console: Console) -> None:
    """What is said of whole hosts, each once: not read, refused, not known."""
    hosts = report.hosts
    unread = ((host.error, host.host) for host in hosts if host.error is not None)
    refused = ((line, host.host) for host in hosts for line in host.refused)
    unknown = ((line, host.host) for host in hosts for line in host.warnings)
    _print_lines(console, "not read", _STYLES[Outcome.ERROR], unread)
    _print_lines(console, "refused", _STYLES[Outcome.DRIFT], refused)
    _print_lines(console, "warning", _STYLES[Outcome.PENDING], unknown)


def _print_lines(console: Console, what: str, style: str, lines: Iterable[tuple[str, str]]) -> None:
    hosts_of: dict[str, list[str]] = {}
    for line, host in lines:
        hosts_of.setdefault(line, []).append(host)
    for line, hosts in hosts_of.items():
        text = Text.assemble((f"{fold(hosts)}: {what}: ", style), line)
        console.print(text, soft_wrap=True)


def _print_rows(
    console: Console,
    layout: Layout,
    hosts: Iterable[HostEntry],
    rows_of: Callable[[HostEntry], list[Row]],
) -> None:
    groups = _folded({host.host: rows_of(host) for host in hosts})
    if not groups:
        return
    widths = _widths(layout.shares, console.width)
    console.print(_line(layout.names, widths, ["underline"] * len(widths)))
    for names, rows in groups:
        count = f"  ({len(names)} hosts)" if len(names) > 1 else ""
        console.print(Text(f"{fold(names)}{count}", style="bold"), soft_wrap=True)
        component = ""
        for row in rows:
            if row.component != component:
                component = row.component
                console.print(Text(f"  {component}"))
            styles = [row.style if i == layout.styled else "" for i in range(len(widths))]
            console.print(_line(row.cells, widths, styles))
            if row.note:
                note = Text(f"↳ {row.note}", style="dim")
                console.print(Padding(note, (0, 0, 0, _INDENT + 2), expand=False))


def _folded(rows: dict[str, list[Row]]) -> list[tuple[tuple[str, ...], list[Row]]]:
    """Rows under the hosts that have them: each row once, each set of hosts once."""
    hosts_of: dict[Row, list[str]] = {}
    for host, found in rows.items():
        for row in found:
            hosts_of.setdefault(row, []).append(host)
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row, hosts in hosts_of.items():
        groups.setdefault(tuple(hosts), []).append(row)
    return list(groups.items())


def _widths(shares: tuple[int, ...], width: int) -> list[int]:
    free = width - _INDENT - len(shares)
    return [share * free // sum(shares) for share in shares]


def _line(cells: Iterable[str], widths: list[int], styles: list[str]) -> Padding:
    table = Table.grid(padding=(0, 1, 0, 0))
    for width, style in zip(widths[:-1], styles[:-1], strict=True):
        table.add_column(width=width, overflow="fold", style=style)
    table.add_column(max_width=widths[-1], overflow="fold", style=styles[-1])
    table.add_row(*(Text(cell) for cell in cells))
    return Padding(table, (0, 0, 0, _INDENT), expand=False)


def _drift_rows(host: HostEntry) -> list[Row]:
    return [
        Row(
            component=entry.component,
            cells=(
                entry.key,
                entry.verdict.value,
                entry.desired,
                _state(entry.persisted),
                _state(entry.running),
            ),
            note=_note(entry),
            style=_STYLES[entry.outcome],
        )
        for entry in host.findings
        if entry.outcome is not Outcome.FINE
    ]


def _note(entry: Entry) -> str:
    """Who decides, told even where it decides rightly, and why."""
    decider = entry.persisted.decider
    right = entry.persisted.standing is Standing.RIGHT
    parts = [f"persisted by {decider}" if decider and right else "", entry.reason]
    return "; ".join(part for part in parts if part)


def _state(state: State) -> str:
    if state.standing is Standing.NOT_APPLICABLE:
        return "–"
    return state.value if state.value is not None else state.standing.value


def _change_rows(host: HostEntry) -> list[Row]:
    return [
        Row(
            component=entry.component,
            cells=(
                entry.key,
                change.state,
                change.before if change.before is not None else "absent",
                change.after,
            ),
            note="",
            style="",
        )
        for entry in host.findings
        for change in entry.changes
    ]


def _left_rows(host: HostEntry) -> list[Row]:
    return [
        Row(
            component=entry.component,
            cells=(entry.key, entry.left.value),
            note=entry.reason,
            style=_STYLES[_left_outcome(entry)],
        )
        for entry in host.findings
        if is_drift(entry.left)
    ]


def _left_outcome(entry: Entry) -> Outcome:
    return Outcome.ERROR if entry.outcome is Outcome.ERROR else Outcome.PENDING


def _summary_line(report: Report) -> str:
    found = report.summary
    counts = [_count(found.ok, "ok")]
    if report.command == "plan":
        counts.append(f"{found.changes} change{'' if found.changes == 1 else 's'} by a run")
    else:
        accepted = " accepted" if report.accept_pending else ""
        counts += [_count(found.drift, "drift"), f"{found.pending} pending{accepted}"]
    if found.not_applicable:
        counts.append(f"{found.not_applicable} not applicable")
    errors = found.unreadable + len(found.unread)
    counts.append(f"{errors} error{'' if errors == 1 else 's'}")
    unread = f"; not read: {fold(found.unread)}" if found.unread else ""
    refused = f"; refused: {fold(found.refused)}" if found.refused else ""
    hosts = f"{found.hosts} host{'' if found.hosts == 1 else 's'}"
    return f"{hosts}, {found.settings} settings looked at: {', '.join(counts)}{unread}{refused}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}"
