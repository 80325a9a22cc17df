"""The engine and the three forms of its report."""

import itertools
from io import StringIO
from xml.etree import ElementTree

import pytest
from rich.console import Console

from railwright.drift import HostReport, judge, reason
from railwright.reading import Unread
from railwright.report.document import Outcome, document, outcome
from railwright.report.junit import junit
from railwright.report.table import print_report
from railwright.schema import Node
from railwright.settings import (
    PERSISTED_STANDINGS,
    RUNNING_STANDINGS,
    Effect,
    Setting,
    State,
    Verdict,
    is_drift,
)
from tests.unit import fake_site


def judged(**lines: tuple[str, ...]) -> list[HostReport]:
    nodes = [Node(name=name) for name in lines]
    readings = {name: fake_site.snapshot(name, *found) for name, found in lines.items()}
    return judge(nodes, readings, fake_site.COMPONENTS)


def table(command: str, reports: list[HostReport]) -> str:
    out = StringIO()
    report = document(command, reports, accept_pending=False)  # type: ignore[arg-type]
    print_report(report, Console(file=out, width=100, highlight=False))
    return out.getvalue()


def test_a_node_without_a_reading_is_an_error() -> None:
    (report,) = judge([Node(name="gpu001")], {}, fake_site.COMPONENTS)
    assert (report.error, report.findings) == ("was not read", ())


@pytest.mark.parametrize("verdict", Verdict)
def test_only_ok_and_not_applicable_are_fine(verdict: Verdict) -> None:
    assert (outcome(verdict) is Outcome.FINE) == (not is_drift(verdict))


def test_what_a_run_leaves_is_never_more_than_what_it_found() -> None:
    """Over all pairs of standings: a run that changes nothing leaves the verdict as it was, and
    a setting that was fine stays so."""
    looked_at = 0
    for persisted, running, effect in itertools.product(
        PERSISTED_STANDINGS, RUNNING_STANDINGS, (Effect.LIVE, Effect.REBOOT)
    ):
        line = f"vm.k {persisted.value} {running.value} {effect.value}"
        (finding,) = judged(gpu001=(line,))[0].findings
        looked_at += 1
        if not finding.changes:
            assert finding.left is finding.verdict, line
        if not is_drift(finding.verdict):
            assert finding.changes == (), line
        if finding.verdict is Verdict.WRONG and effect is Effect.LIVE:
            assert finding.changes, line
    assert looked_at == len(PERSISTED_STANDINGS) * len(RUNNING_STANDINGS) * 2


def test_the_reason_names_who_decides_and_what_to_do() -> None:
    (finding,) = judged(gpu001=("vm.o overridden wrong",))[0].findings
    assert finding.left is Verdict.OVERRIDDEN
    assert reason(finding.setting, finding.verdict) == (
        "decided by /etc/sysctl.d/99-site.conf:3; remove the line, or ask for its value"
    )


def test_drift_table_folds_what_is_equal_on_many_hosts() -> None:
    many = {f"gpu{number:03}": ("vm.d wrong wrong", "vm.a right right") for number in range(1, 501)}
    many["gpu007"] = ("vm.d wrong wrong", "vm.p right wrong reboot", "vm.u right unreadable")
    many["gpu009"] = ("vm.a right right",)
    reports = judged(**many)
    reports[11] = HostReport(host="gpu012", error="Could not connect (timed out)")
    assert table("drift", reports) == (
        """\
gpu012: not read: Could not connect (timed out)
    setting                             verdict       desired        persisted      running
gpu[001-008,010-011,013-500]  (498 hosts)
  sysctl
    vm.d                                wrong         10             60             60
      ↳ decided by /etc/sysctl.d/99-site.conf:3
gpu007
  sysctl
    vm.p                                pending       10             10             60
      ↳ persisted by /etc/sysctl.d/99-site.conf:3; waits for reboot
    vm.u                                unreadable    10             10             unreadable
      ↳ persisted by /etc/sysctl.d/99-site.conf:3
500 hosts, 998 settings looked at: 498 ok, 498 drift, 1 pending, 2 errors; not read: gpu012
"""
    )


def test_plan_table_has_changes_and_what_is_left() -> None:
    reports = judged(
        gpu001=("vm.d absent wrong", "vm.r wrong wrong reboot", "vm.o overridden right"),
        gpu002=("vm.d absent wrong",),
    )
    assert table("plan", reports) == (
        """\
    setting                            state     from                    to
gpu[001-002]  (2 hosts)
  sysctl
    vm.d                               persisted absent                  10
    vm.d                               running   60                      10
gpu001
  sysctl
    vm.r                               persisted 60                      10

What a run does not put right:
    setting                                                                        stays
gpu001
  sysctl
    vm.o                                                                           overridden
      ↳ decided by /etc/sysctl.d/99-site.conf:3; remove the line, or ask for its value
    vm.r                                                                           pending
      ↳ decided by /etc/sysctl.d/99-site.conf:3; waits for reboot
2 hosts, 4 settings looked at: 0 ok, 5 changes by a run, 0 errors
"""
    )


def test_a_site_in_order_is_one_line() -> None:
    assert table("drift", judged(gpu001=("vm.a right right",))) == (
        "1 host, 1 settings looked at: 1 ok, 0 drift, 0 pending, 0 errors\n"
    )


def test_table_prints_brackets_and_long_values_as_they_are() -> None:
    state = State.model_validate({"standing": "wrong", "value": "[red]always [madvise] never"})
    setting = Setting(
        component="kernel",
        key="thp",
        desired="always [madvise]",
        persisted=state,
        running=state,
    )
    component = fake_site.Component(
        name="kernel",
        sections=(),
        settings=lambda _node, _snapshot: [setting],
        actions=fake_site.no_actions,
    )
    text = table("drift", judge([Node(name="a")], {"a": fake_site.snapshot("a")}, (component,)))
    assert "[red]always" in text
    assert max(map(len, text.splitlines())) <= 100


def test_names_of_other_connectors_are_folded_too() -> None:
    error = Unread(host="x", error="no container").error
    reports = [HostReport(host=f"@podman/node-{n}", error=error) for n in (1, 2)]
    assert table("drift", reports).startswith("@podman/node-[1-2]: not read: no container\n")


def test_junit_stays_xml_whatever_a_host_says() -> None:
    reports = [HostReport(host="gpu001", error="\x1b[31mno <route> & \x00 no way")]
    root = ElementTree.fromstring(junit("drift", reports, accept_pending=False))
    (error,) = root.iter("error")
    assert error.text == "?[31mno <route> & ? no way"
    assert root.get("errors") == "1"


def test_every_exit_code_of_drift_is_what_the_counts_say() -> None:
    codes = {
        "vm.a right right": (0, 0),
        "vm.p right wrong reboot": (2, 0),
        "vm.d absent right": (2, 2),
        "vm.u unreadable right": (1, 1),
    }
    for line, (plain, accepting) in codes.items():
        reports = judged(gpu001=(line,))
        assert document("drift", reports, accept_pending=False).exit_code == plain
        assert document("drift", reports, accept_pending=True).exit_code == accepting
