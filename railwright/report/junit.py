"""The report for CI: a test suite per host, a test case per setting, right ones included."""

import re
from collections.abc import Iterable
from typing import Literal

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from railwright.drift import Finding, HostReport, reason
from railwright.report.document import Outcome, outcome
from railwright.settings import State, Verdict, is_drift

_NOT_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(
    command: Literal["plan", "drift"], reports: Iterable[HostReport], *, accept_pending: bool
) -> str:
    """The JUnit XML of ``reports``.

    ``drift``: drift is a failure; pending too, or where it is accepted a passed case that says so.
    ``plan``: what a run changes passes and says so, what it leaves undone is a failure. What
    cannot be read is an error; only a setting that does not apply is skipped.
    """
    document = JUnitXml(name=f"railwright {command}")
    case_of = _planned if command == "plan" else _accepting if accept_pending else _judged
    for report in reports:
        suite = TestSuite(clean(report.host))
        if report.error is not None:
            case = TestCase("probe", classname="railwright")
            case.result = [result_of(Error, "unread", report.error)]
            suite.add_testcase(case)
        suite.add_testcases(_set_cases(report))
        suite.add_testcases([case_of(finding) for finding in report.findings])
        document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    xml: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return xml.decode()


def _set_cases(report: HostReport) -> list[TestCase]:
    """Of a node whose set of drivers is refused, or not known, one case that says so."""
    if not (report.refused or report.warnings):
        return []
    case = TestCase("known set", classname="railwright")
    if report.refused:
        case.result = [result_of(Failure, "refused", "\n".join(report.refused))]
    if report.warnings:
        case.system_out = clean("\n".join(report.warnings))
    return [case]


def _planned(finding: Finding) -> TestCase:
    case = _case(finding, finding.left)
    if finding.changes:
        case.system_out = clean("\n".join(str(change) for change in finding.changes))
    return case


def _judged(finding: Finding) -> TestCase:
    return _case(finding, finding.verdict)


def _accepting(finding: Finding) -> TestCase:
    if finding.verdict is not Verdict.PENDING:
        return _judged(finding)
    case = _case(finding, Verdict.OK)
    case.system_out = clean(f"pending, accepted\n{_told(finding, finding.verdict)}")
    return case


def _case(finding: Finding, judged: Verdict) -> TestCase:
    setting = finding.setting
    case = TestCase(clean(setting.key), classname=clean(setting.component))
    found = outcome(judged)
    if judged is Verdict.NOT_APPLICABLE:
        case.result = [result_of(Skipped, judged.value, _told(finding, judged))]
    elif found is not Outcome.FINE:
        kind = Error if found is Outcome.ERROR else Failure
        case.result = [result_of(kind, judged.value, _told(finding, judged))]
    return case


def _told(finding: Finding, judged: Verdict) -> str:
    """All of a setting; the first line says in short what is wrong."""
    setting = finding.setting
    short = f"{judged.value}: desired {setting.desired}"
    lines = [
        f"{short}, persisted {_value(setting.persisted)}, running {_value(setting.running)}",
        f"persisted by {setting.persisted.decider}" if setting.persisted.decider else "",
        reason(setting, finding.left if is_drift(finding.left) else judged),
    ]
    return "\n".join(line for line in lines if line)


def _value(state: State) -> str:
    return state.value if state.value is not None else state.standing.value


def result_of(
    kind: type[Error | Failure | Skipped], what: str, text: str
) -> Error | Failure | Skipped:
    """A result of the type ``what`` whose message is the first line of ``text``."""
    result = kind(clean(text.partition("\n")[0]), what)
    result.text = clean(text)
    return result


def clean(text: str) -> str:
    """``text`` without what XML cannot carry."""
    return _NOT_XML.sub("?", text)
