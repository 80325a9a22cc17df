"""The command line: exit codes, what it says of bad input, limits and components."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped

from railwright.cli import main
from railwright.reading import Unread, path_of
from tests.unit import fake_site

FINE = "vm.a right right"
PENDING = "vm.p right wrong reboot"
DRIFT = "vm.d wrong wrong"


@pytest.fixture(autouse=True)
def _components(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deploys.components.COMPONENTS", fake_site.COMPONENTS)


def fleet(tmp_path: Path, **lines: tuple[str, ...]) -> list[str]:
    """The arguments for a site of gpu001 to gpu003 and login1, all fine but those given."""
    hosts = dict.fromkeys(("gpu001", "gpu002", "gpu003", "login1"), (FINE,)) | lines
    return [
        str(fake_site.yaml_site(tmp_path)),
        "--from",
        str(fake_site.saved(tmp_path, hosts)),
    ]


@pytest.mark.parametrize(
    ("lines", "code", "accepting"),
    [
        ((FINE,), 0, 0),
        ((DRIFT,), 2, 2),
        ((PENDING,), 2, 0),
        ((PENDING, DRIFT), 2, 2),
        (("vm.u right unreadable",), 1, 1),
        (("vm.u unreadable right", DRIFT), 1, 1),
        (("broken",), 1, 1),
        (("vm.o overridden right",), 2, 2),
        (("vm.n not_applicable not_applicable",), 0, 0),
    ],
)
def test_exit_code(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    lines: tuple[str, ...],
    code: int,
    accepting: int,
) -> None:
    arguments = fleet(tmp_path, gpu002=lines)
    assert main(["drift", *arguments]) == code
    assert main(["drift", *arguments, "--accept-pending"]) == accepting
    assert main(["plan", *arguments]) == (1 if code == 1 else 0)
    capsys.readouterr()


def test_an_error_outranks_drift_and_both_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = fleet(tmp_path, gpu001=(DRIFT,))
    path_of("gpu003", tmp_path / "snapshots").unlink()
    assert main(["drift", *arguments]) == 1
    out = capsys.readouterr().out
    assert "gpu003: not read: there is no snapshot" in out
    assert "vm.d" in out
    assert out.splitlines()[-1] == (
        "4 hosts, 3 settings looked at: 2 ok, 1 drift, 0 pending, 1 error; not read: gpu003"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--nonsense"],
        ["drift"],
        ["drift", "x.yaml", "--format", "xml"],
        ["nonsense"],
        ["parse", "nosuchtool", "-"],
        ["drift", "missing.yaml"],
        ["validate", "missing.py"],
    ],
)
def test_wrong_usage_is_an_error_and_never_drift(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert said.err + said.out
    assert "Traceback" not in said.err


def test_help_and_version_are_fine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert main(["drift", "--help"]) == 0
    assert main(["--version"]) == 0
    assert "INVENTORY" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[]", "expected an object, got list"),
        ('{"format": 2, "host": "gpu001"}', "is of format 2, this railwright reads 1"),
        ('{"format": 1, "host": "gpu001"}', "is no snapshot: marker: Field required"),
        (
            '{"format": 1, "host": "gpu9", "marker": "m", "sections": {}}',
            "is of the host 'gpu9', not of 'gpu001'",
        ),
        ('{"format": 1, "host": "gpu001", "error": "timed out"}', "not read: timed out"),
    ],
)
def test_a_bad_snapshot_is_that_hosts_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, says: str
) -> None:
    arguments = fleet(tmp_path, gpu002=(DRIFT,))
    path_of("gpu001", tmp_path / "snapshots").write_text(content)
    assert main(["drift", *arguments]) == 1
    out = capsys.readouterr().out
    assert says in out.replace("\n", " ")
    assert "gpu001" in out
    assert "vm.d" in out


def test_a_missing_directory_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = fake_site.yaml_site(tmp_path)
    assert main(["drift", str(site), "--from", str(tmp_path / "nowhere")]) == 1
    assert "is no directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "word", "says"),
    [
        ("--component", "sysctrl", "no component 'sysctrl' (did you mean sysctl?)"),
        ("--limit", "gpu010", "no host or group 'gpu010' in"),
        ("--limit", "gpu[001-009]", "no host or group 'gpu[004-009]' in"),
        ("--limit", "racks", "(did you mean rack?)"),
        ("--limit", "cpu*", "no host of"),
        ("--limit", "gpu[001", "--limit gpu[001"),
        ("--limit", "", "no host or group"),
    ],
)
def test_what_is_not_known_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str, word: str, says: str
) -> None:
    assert main(["drift", *fleet(tmp_path), option, word]) == 1
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("limits", "hosts"),
    [
        ([], ["gpu001", "gpu002", "gpu003", "login1"]),
        (["rack"], ["gpu001", "gpu002", "gpu003"]),
        (["gpu[002-003]"], ["gpu002", "gpu003"]),
        (["gpu[001,003],login1"], ["gpu001", "gpu003", "login1"]),
        (["*1"], ["gpu001", "login1"]),
        (["login1", "gpu002"], ["gpu002", "login1"]),
        (["front,gpu001"], ["gpu001", "login1"]),
    ],
)
def test_limit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], limits: list[str], hosts: list[str]
) -> None:
    options = [option for limit in limits for option in ("--limit", limit)]
    assert main(["drift", *fleet(tmp_path), "--format", "json", *options]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [host["host"] for host in report["hosts"]] == hosts


def test_component_narrows_what_is_looked_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = fleet(tmp_path, gpu001=(DRIFT,))
    assert main(["drift", *arguments, "--component", "limits"]) == 0
    assert main(["drift", *arguments, "--component", "limits", "--component", "sysctl"]) == 2
    capsys.readouterr()


def test_json_has_what_is_not_ok_and_counts_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = fleet(tmp_path, gpu001=(FINE, "vm.o overridden right", PENDING))
    assert main(["drift", *arguments, "--format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert (report["format"], report["command"], report["exit_code"]) == (1, "drift", 2)
    assert report["summary"] == {
        "hosts": 4,
        "unread": [],
        "refused": [],
        "settings": 6,
        "ok": 4,
        "not_applicable": 0,
        "drift": 1,
        "pending": 1,
        "unreadable": 0,
        "changes": 0,
    }
    first = report["hosts"][0]
    assert (first["host"], first["settings"], first["ok"]) == ("gpu001", 3, 1)
    overridden, pending = first["findings"]
    assert overridden["key"] == "vm.o"
    assert overridden["persisted"]["decider"] == "/etc/sysctl.d/99-site.conf:3"
    assert overridden["reason"] == (
        "decided by /etc/sysctl.d/99-site.conf:3; remove the line, or ask for its value"
    )
    assert (pending["verdict"], pending["outcome"], pending["reason"]) == (
        "pending",
        "pending",
        "waits for reboot",
    )
    assert report["hosts"][1]["findings"] == []


def junit_cases(text: str, tmp_path: Path) -> dict[tuple[str, str], list[object]]:
    file = tmp_path / "report.xml"
    file.write_text(text)
    return {
        (suite.name, case.name): list(case.result)
        for suite in JUnitXml.fromfile(str(file))
        for case in suite
    }


def test_junit_has_a_case_for_every_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (FINE, PENDING, DRIFT, "vm.u right unreadable", "vm.n not_applicable not_applicable")
    arguments = fleet(tmp_path, gpu001=lines)
    path_of("gpu003", tmp_path / "snapshots").unlink()

    assert main(["drift", *arguments, "--format", "junit"]) == 1
    kinds = {
        key: [type(result) for result in results]
        for key, results in junit_cases(capsys.readouterr().out, tmp_path).items()
    }
    assert kinds == {
        ("gpu001", "vm.a"): [],
        ("gpu001", "vm.d"): [Failure],
        ("gpu001", "vm.n"): [Skipped],
        ("gpu001", "vm.p"): [Failure],
        ("gpu001", "vm.u"): [Error],
        ("gpu002", "vm.a"): [],
        ("gpu003", "probe"): [Error],
        ("login1", "vm.a"): [],
    }

    assert main(["drift", *arguments, "--format", "junit", "--accept-pending"]) == 1
    text = capsys.readouterr().out
    assert junit_cases(text, tmp_path)["gpu001", "vm.p"] == []
    assert "pending, accepted" in text


def test_junit_of_a_plan_fails_what_a_run_leaves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = (DRIFT, "vm.o overridden right", "vm.r wrong wrong reboot")
    assert main(["plan", *fleet(tmp_path, gpu001=lines), "--format", "junit"]) == 0
    text = capsys.readouterr().out
    kinds = {key[1]: len(results) for key, results in junit_cases(text, tmp_path).items()}
    assert kinds == {"vm.a": 0, "vm.d": 0, "vm.o": 1, "vm.r": 1}
    assert "sysctl vm.d: running 60 → 10" in text


def test_validate_tells_all_problems_one_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = fake_site.yaml_site(tmp_path)
    assert main(["validate", str(site)]) == 0
    assert capsys.readouterr().out == f"{site}: 4 nodes in 2 groups, all valid\n"
    site.write_text(
        'groups:\n  rack:\n    hosts: "gpu[001-002]"\n    sysctrl: {}\n    fabric: eth\n'
    )
    assert main(["validate", str(site)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "2 problems in the site, no host was contacted:"
    assert len(lines) == 3
    assert all(line.startswith(f"  {site}") for line in lines[1:])


def test_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert "groups" in json.loads(capsys.readouterr().out)["properties"]


def test_an_unread_host_replays_as_the_same_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = fake_site.yaml_site(tmp_path, hosts="gpu001")
    unread = Unread(host="gpu001", error="Could not connect (timed out)")
    folder = fake_site.saved_readings(tmp_path, [unread, fake_site.snapshot("login1", FINE)])
    assert main(["drift", str(site), "--from", str(folder)]) == 1
    assert "gpu001: not read: Could not connect (timed out)" in capsys.readouterr().out


def test_500_replayed_hosts_are_judged_in_seconds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = fake_site.yaml_site(tmp_path, hosts="gpu[001-500]")
    many = tuple(f"vm.k{number:02} right right" for number in range(80))
    hosts = {f"gpu{number:03}": many for number in range(1, 501)} | {"login1": (DRIFT,)}
    folder = fake_site.saved(tmp_path, hosts)
    start = time.monotonic()
    assert main(["drift", str(site), "--from", str(folder)]) == 2
    assert time.monotonic() - start < 20
    assert "501 hosts, 40001 settings looked at: 40000 ok, 1 drift" in capsys.readouterr().out


def test_a_command_that_replays_leaves_the_standard_library_alone(tmp_path: Path) -> None:
    site = fake_site.yaml_site(tmp_path, hosts="gpu001")
    (tmp_path / "empty").mkdir()
    program = (
        "import sys\n"
        "from railwright.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "from gevent import monkey\n"
        "sys.exit(9 if monkey.saved else code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "drift", str(site), "--from", str(tmp_path / "empty")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "there is no snapshot" in done.stdout
