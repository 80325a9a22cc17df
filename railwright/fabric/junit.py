"""The report on a fabric for CI: a test suite per rail, a test case per pair of nodes."""

from junitparser import Error, Failure, JUnitXml, TestCase, TestSuite

from railwright.fabric.document import FabricReport
from railwright.fabric.judge import Trial, Verdict
from railwright.report.junit import clean, result_of


def junit(report: FabricReport) -> str:
    """The JUnit XML of ``report``: findings are failures, what could not be judged is an error."""
    document = JUnitXml(name=f"railwright {report.command}")
    for host, error in report.unread.items():
        document.add_testsuite(_suite(host, [_case("probe", Error, "unread", error)]))
    rails = {end.rail for end in report.untested} | {left.rail for left in report.not_run}
    for rail in sorted(rails | {one.rail for one in report.rails}):
        cases = [_trial(trial) for trial in report.trials if trial.rail == rail]
        cases += [
            _case(end.host, Failure, "untested", end.reason)
            for end in report.untested
            if end.rail == rail
        ]
        cases += [
            _case(f"{client} → {server}", Error, "not_run", "the run was stopped before its end")
            for left in report.not_run
            if left.rail == rail
            for client, server in left.pairs
        ]
        document.add_testsuite(_suite(f"rail{rail}", cases))
    document.update_statistics()  # type: ignore[no-untyped-call]
    xml: bytes = document.tostring()  # type: ignore[no-untyped-call]
    return xml.decode()


def _suite(name: str, cases: list[TestCase]) -> TestSuite:
    suite = TestSuite(clean(name))
    suite.add_testcases(cases)
    return suite


def _case(name: str, kind: type[Error | Failure], what: str, text: str) -> TestCase:
    case = TestCase(clean(name), classname="railwright.fabric")
    case.result = [result_of(kind, what, text)]
    return case


def _trial(trial: Trial) -> TestCase:
    name = f"{trial.client} → {trial.server}"
    told = [f"{check.name}: {check.detail}" for check in trial.checks]
    if trial.verdict is Verdict.FINE:
        case = TestCase(clean(name), classname="railwright.fabric")
    else:
        wrong = [
            f"{check.name}: {check.detail}"
            for check in trial.checks
            if check.verdict in (Verdict.FAILED, Verdict.UNKNOWN)
        ]
        kind = Error if trial.verdict is Verdict.UNKNOWN else Failure
        case = _case(name, kind, trial.verdict.value, "\n".join(wrong))
    case.system_out = clean("\n".join(told))
    return case
