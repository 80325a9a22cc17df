"""An answer for people: sections of figures, what limits, and sweeps with their knee."""

from collections.abc import Iterable

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from railwright.sizing.document import Answer, Limit, Line, Report, Sweep, WhatIf
from railwright.sizing.rules import RuleResult

_INDENT = 2


def print_report(report: Report, console: Console, *, rules: bool) -> None:
    """Print ``report``; ``rules`` adds the rules of thumb with what they leave out."""
    answer = report.answer
    console.print(Text(answer.question, style="bold"), soft_wrap=True)
    if answer.facts:
        _print_lines("What it goes by", answer.facts, console)
    for section in answer.sections:
        _print_lines(section.title, section.lines, console)
    if answer.limit is not None:
        _print_limit(answer.limit, console)
    if report.sweep is not None:
        _print_sweep(report.sweep, console)
    if report.what_if is not None:
        _print_what_if(report.what_if, answer, console)
    if rules:
        _print_rules(answer.rules, console)
    for note in answer.notes:
        console.print(Text(f"note: {note}", style="dim"), soft_wrap=True)


def _title(text: str, console: Console) -> None:
    console.print(Text(f"\n{text}", style="bold"))


def _grid(columns: int, right: Iterable[int] = ()) -> Table:
    table = Table(box=None, show_header=False, padding=(0, 2, 0, 0), pad_edge=False)
    for column in range(columns):
        table.add_column(justify="right" if column in set(right) else "left", overflow="fold")
    return table


def _print_lines(title: str, lines: Iterable[Line], console: Console) -> None:
    _title(title, console)
    table = _grid(3, right=(1,))
    for line in lines:
        amount = str(line.amount) if line.amount is not None else ""
        if amount:
            table.add_row(line.name, amount, line.says)
        else:
            table.add_row(line.name, "", line.says)
    console.print(Padding(table, (0, 0, 0, _INDENT)))


def _print_limit(limit: Limit, console: Console) -> None:
    _title("What limits", console)
    console.print(
        Text.assemble("  ", (limit.fact, "bold yellow"), f": {limit.why}"), soft_wrap=True
    )
    if not limit.changes:
        return
    table = _grid(4)
    for change in limit.changes:
        table.add_row(change.fact, f"{change.now} → {change.then}", change.brings)
    console.print(Padding(table, (0, 0, 0, 2 * _INDENT)))


def _print_sweep(sweep: Sweep, console: Console) -> None:
    _title(f"Over {sweep.name}", console)
    names = list(next((point.results for point in sweep.points if point.results), {}))
    efficient = any(point.efficiency is not None for point in sweep.points)
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for name in (sweep.name, *names, *(["efficiency"] if efficient else []), ""):
        table.add_column(name, justify="left" if not name else "right", overflow="fold")
    for point in sweep.points:
        if point.refused is not None:
            continue
        cells = [str(point.results.get(name, "")) for name in names]
        if efficient:
            cells.append("" if point.efficiency is None else f"{point.efficiency:.1%}")
        mark = "← knee" if point.value == sweep.knee else ""
        table.add_row(point.value, *cells, mark)
    console.print(Padding(table, (0, 0, 0, _INDENT)))
    for point in sweep.points:
        if point.refused is not None:
            line = Text.assemble("  ", (f"{point.value}: ", "yellow"), point.refused)
            console.print(line, soft_wrap=True)
    if efficient:
        told = f"knee at {sweep.knee}: more bring less than half of what they should"
        told = told if sweep.knee else "no knee in this range"
        console.print(Text(f"  {told}", style="dim"), soft_wrap=True)


def _print_what_if(what_if: WhatIf, base: Answer, console: Console) -> None:
    changed = ", ".join(f"{name} = {value}" for name, value in what_if.changed.items())
    _title(f"What if {changed}", console)
    table = _grid(4)
    for name, amount in what_if.answer.results.items():
        moved = what_if.moved.get(name)
        before = base.results.get(name)
        share = "" if moved is None else f"{moved:+.1%}"
        table.add_row(name, f"{before} →" if before else "", str(amount), share)
    console.print(Padding(table, (0, 0, 0, _INDENT)))


def _print_rules(rules: Iterable[RuleResult], console: Console) -> None:
    _title("Rules of thumb, which are not used above", console)
    for rule in rules:
        head = Text.assemble("  ", (rule.rule, "bold"), f"  {rule.formula} = {rule.gives}")
        console.print(head, soft_wrap=True)
        for left in rule.leaves_out:
            console.print(Text(f"    leaves out {left}", style="dim"), soft_wrap=True)
