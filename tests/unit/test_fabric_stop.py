"""``railwright fabric test`` that is stopped by Ctrl-C: what was tested is not lost."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from junitparser import Error, JUnitXml

from railwright.cli import main
from railwright.fleet import Question
from railwright.reading import Reading
from tests.unit.fabric_host import node
from tests.unit.test_fabric_run import Nodes


class Stopped(Nodes):
    """Nodes whose tests somebody stops while the step number ``at`` (from 1) runs."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    def __call__(self, questions: Sequence[Question]) -> dict[str, Reading]:
        answers = super().__call__(questions)
        if len(self.asked) == self.at:
            raise KeyboardInterrupt
        return answers


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr("railwright.cli.fabric_test.patch_sockets", lambda: None)
    path = tmp_path / "site.yaml"
    spec = node().model_dump(mode="json", include={"fabric", "rails"}, exclude_unset=True)
    path.write_text(json.dumps({"groups": {"rack": {"hosts": "gpu[001-004]", **spec}}}))
    return str(path)


def stop(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    monkeypatch.setattr("railwright.fleet.ask", Stopped(at))


def test_what_was_tested_is_reported_and_the_rest_as_not_run(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Two rails of three rounds of two pairs each; the third round of rail 0 is cut off.
    stop(monkeypatch, at=3)
    assert main(["fabric", "test", site, "--yes"]) == 1
    out, err = capsys.readouterr()
    assert "stopped: this is what was tested until now" in err
    assert out.splitlines()[0] == "rail0  4 tests, 4 fine, 95.00 to 95.00 Gb/s"
    assert "rail0: 2 tests of 1 round not run: stopped" in out
    assert "rail1: 6 tests of 3 rounds not run: stopped" in out
    assert out.splitlines()[-1] == "4 hosts, 4 tests: 4 fine, 0 failed, 0 not judged, 8 not run"


def test_json_and_junit_have_what_was_not_run(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(monkeypatch, at=6)
    assert main(["fabric", "test", site, "--yes", "--format", "json"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert (report["exit_code"], len(report["trials"])) == (1, 10)
    (left,) = report["not_run"]
    assert (left["rail"], left["round"], len(left["pairs"])) == (1, 3, 2)
    stop(monkeypatch, at=1)
    assert main(["fabric", "test", site, "--yes", "--format", "junit"]) == 1
    document = JUnitXml.fromstring(capsys.readouterr().out.encode())
    assert (document.tests, document.errors) == (12, 12)
    assert isinstance(next(iter(next(iter(document)))).result[0], Error)


def test_a_run_that_was_not_stopped_leaves_nothing_out(
    site: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stop(monkeypatch, at=7)
    assert main(["fabric", "test", site, "--yes", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_run"] == []


ASK = """
from gevent import monkey

monkey.patch_all()
from facts.probe import Section
from railwright import fleet
from railwright.schema import Node

sections = (Section(name="said", script="echo x >{mark}; sleep 2"),)
try:
    fleet.ask([fleet.Question(Node(name="@local"), sections)])
except KeyboardInterrupt:
    print("stopped")
"""


def test_ctrl_c_reaches_the_one_who_asks_though_others_wait_for_the_nodes(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    asking = subprocess.Popen(
        [sys.executable, "-c", ASK.replace("{mark}", str(mark))], stdout=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 30
    while not mark.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    asking.send_signal(signal.SIGINT)
    out, _ = asking.communicate(timeout=30)
    assert out == "stopped\n"
    assert asking.returncode == 0
