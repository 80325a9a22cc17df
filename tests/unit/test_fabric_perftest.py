"""ib_write_bw: its command lines, the shell around them on a node, and what it prints."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.fabric import perftest
from railwright.fabric.ends import End
from railwright.fabric.perftest import (
    Bandwidth,
    Failure,
    Load,
    client_command,
    client_section,
    parse_bandwidth,
    result_of,
    server_command,
    server_section,
)
from railwright.schema.fabric import RoceQos
from railwright.snapshot import Section
from tests.unit.fabric_host import result


def end(host: str = "gpu001", rail: int = 3, **given: object) -> End:
    fields = {
        "host": host,
        "rail": rail,
        "interface": f"rail{rail}",
        "device": f"mlx5_{rail}",
        "port": 1,
        "address": "10.64.3.2",
        "rate_gbps": 400,
        "gid_index": 5,
        "qos": RoceQos(),
    }
    return End.model_validate(fields | given)


INFINIBAND = {"gid_index": None, "qos": None, "interface": None, "address": "10.1.0.2"}


def test_a_roce_client_names_its_device_its_gid_and_the_traffic_class() -> None:
    found = client_command(end(), end("gpu002", address="10.64.3.3"), Load(seconds=7))
    assert " ".join(found) == (
        "ib_write_bw -d mlx5_3 -i 1 -p 18518 -s 65536 -D 7 -x 5 --tclass=106 -F --report_gbits "
        "10.64.3.3"
    )


def test_the_two_ends_have_gid_indices_of_their_own() -> None:
    one, two = end(gid_index=3), end("gpu002", gid_index=7)
    assert "-x 3" in " ".join(client_command(one, two, Load()))
    assert "-x 7" in " ".join(server_command(two, Load()))


def test_infiniband_has_neither_gid_nor_traffic_class() -> None:
    found = " ".join(client_command(end(**INFINIBAND), end("gpu002", **INFINIBAND), Load()))
    assert "-x" not in found
    assert "tclass" not in found
    assert found.endswith("10.1.0.2")


def test_iterations_take_the_place_of_the_duration() -> None:
    found = " ".join(server_command(end(), Load(size=8, iterations=1000)))
    assert "-s 8 -n 1000 -x" in found
    assert "-D" not in found


def test_a_result_in_gigabits() -> None:
    assert parse_bandwidth(result(391.27)) == Bandwidth(
        size=65536, iterations=15000, peak_gbps=None, average_gbps=391.27, mpps=0.010101
    )


def test_a_result_in_mebibytes_is_converted() -> None:
    text = (
        " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
        " 65536      5000             2768.07            2767.25 \t\t   0.044276\n"
    )
    found = parse_bandwidth(text)
    # 2767.25 × 2^20 × 8 / 10^9
    assert found.average_gbps == pytest.approx(23.2134, abs=1e-3)
    assert found.peak_gbps == pytest.approx(23.2203, abs=1e-3)


def test_a_result_below_a_tenth_of_a_gigabit_has_six_decimals() -> None:
    text = (
        " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
        " 8          100           0.012345            0.011111            0.173611\n"
    )
    assert parse_bandwidth(text).average_gbps == 0.011111


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "expected the result of ib_write_bw"),
        (result().partition(" 65536")[0], "expected the result of ib_write_bw"),
        (result().replace("Gb/sec", "Tb/sec"), "expected bandwidth in Gb/sec or MB/sec"),
        (result().replace("95.00  ", "-nan   "), "expected a bandwidth of 0 or more"),
        (result().replace("95.00  ", "-95.00 "), "expected a bandwidth of 0 or more"),
        (result(iterations=0), "expected a bandwidth of 0 or more"),
    ],
)
def test_what_is_no_result_is_told(text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parse_bandwidth(text)


@given(st.text())
def test_any_text_is_a_result_or_a_value_error(text: str) -> None:
    try:
        found = parse_bandwidth(text)
    except ValueError:
        return
    assert found.average_gbps >= 0


@pytest.mark.parametrize(
    ("answer", "reason", "kind"),
    [
        (Section(stdout="", rc=127), "ib_write_bw is not installed (package perftest)", "broken"),
        (Section(stdout="", rc=None, ended="deadline"), "hangs (deadline)", "failed"),
        (Section(stdout="", rc=75), "no client came within 20 s", "failed"),
        (Section(stdout="", rc=124), "no result, killed when overdue", "failed"),
        (
            Section(
                stdout=" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n"
                "scnt=128, ccnt=0\n",
                rc=1,
            ),
            "Completion with error at client / Failed status 12: wr_id 0 syndrom 0x81",
            "failed",
        ),
        (Section(stdout="", rc=3), "exit 3", "failed"),
        (Section(stdout="", rc=143), "was terminated (SIGTERM)", "broken"),
        (Section(stdout="nothing", rc=0), "expected the result of ib_write_bw", "failed"),
    ],
)
def test_a_failure_says_why(answer: Section, reason: str, kind: str) -> None:
    found = result_of(answer, perftest.CLIENT)
    assert isinstance(found, Failure)
    assert found.reason.startswith(f"client: {reason}")
    assert found.kind == kind


def test_a_server_that_ended_well_has_nothing_to_tell() -> None:
    assert result_of(Section(stdout="", rc=0), perftest.SERVER) is None


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """Where a stand-in for ib_write_bw is put, found by the sections before any other."""
    return tmp_path / "ib_write_bw"


def run(script: str, stub: Path, body: str, shell: str = "sh") -> tuple[int, str, float]:
    """The section ``script`` as a probe runs it, over a stand-in with this ``body``."""
    stub.write_text(f"#!/bin/sh\n{body}\n")
    stub.chmod(0o755)
    started = time.monotonic()
    done = subprocess.run(
        [shell, "-c", f"s_x() {{\n{script}\n}}\ns_x"],
        env=os.environ | {"PATH": f"{stub.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, time.monotonic() - started


def test_a_client_tries_again_until_its_server_listens(stub: Path) -> None:
    marks = stub.with_name("tries")
    body = (
        f"echo x >>{marks}\n"
        f'[ $(wc -l <{marks}) -ge 3 ] || {{ echo "Couldn\'t connect to x:1" >&2; exit 1; }}\n'
        f"cat <<'END'\n{result(42.5)}END"
    )
    rc, out, _ = run(client_section(end(), end("gpu002"), Load()).script, stub, body)
    assert rc == 0
    assert parse_bandwidth(out).average_gbps == 42.5
    assert len(marks.read_text().splitlines()) == 3


def test_a_client_that_fails_otherwise_is_not_tried_again(stub: Path) -> None:
    body = f"echo x >>{stub.with_name('tries')}\necho ' Unable to open the device' >&2; exit 1"
    rc, out, _ = run(client_section(end(), end("gpu002"), Load()).script, stub, body)
    assert rc == 1
    assert "Unable to open the device" in out
    assert stub.with_name("tries").read_text() == "x\n"


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize(("body", "rc"), [("exit 0", 0), ("exit 1", 1), ("sleep 2; exit 3", 3)])
def test_a_server_passes_on_how_it_ended(stub: Path, body: str, rc: int, shell: str) -> None:
    found, _, took = run(server_section(end(), Load()).script, stub, body, shell)
    assert found == rc
    assert took < 8


def test_a_server_that_no_client_comes_to_is_ended_and_not_left_behind(
    stub: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(perftest, "START_S", 2)
    pid = stub.with_name("pid")
    section = server_section(end(), Load())
    rc, _, took = run(section.script, stub, f"echo $$ >{pid}; exec sleep 30 >/dev/null 2>&1")
    assert rc == 75
    assert took < 8
    for _ in range(20):
        if not Path("/proc", pid.read_text().strip()).exists():
            return
        time.sleep(0.1)
    pytest.fail("the server is still there")


def test_a_server_with_a_client_runs_on(stub: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perftest, "START_S", 2)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(perftest, "BASE_PORT", port - 3)
        with socket.create_connection(("127.0.0.1", port)):
            rc, _, _ = run(server_section(end(), Load()).script, stub, "sleep 4; exit 0")
    assert rc == 0


def test_a_missing_tool_is_exit_127(tmp_path: Path) -> None:
    section = client_section(end(), end("gpu002"), Load())
    done = subprocess.run(
        ["sh", "-c", f"s_x() {{\n{section.script}\n}}\ns_x"], capture_output=True, check=False
    )
    assert done.returncode == 127


def gone(pid: Path, within_s: float) -> bool:
    """Whether the process that wrote the file ``pid`` ends in that time."""
    end = time.monotonic() + within_s
    while Path("/proc", pid.read_text().strip()).exists():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("side", [perftest.SERVER, perftest.CLIENT])
def test_a_test_ends_when_the_one_who_asked_has_hung_up(stub: Path, side: str, shell: str) -> None:
    section = (
        server_section(end(), Load(seconds=3600))
        if side == perftest.SERVER
        else client_section(end(), end("gpu002"), Load(seconds=3600))
    )
    pid = stub.with_name("pid")
    stub.write_text(f"#!/bin/sh\necho $$ >{pid}.new; mv {pid}.new {pid}; exec sleep 30\n")
    stub.chmod(0o755)
    probe = f"s_x() {{\n{section.script}\n}}\ns_x"
    # What stands for sshd: it starts the probe and is gone without a word to it.
    asker = subprocess.Popen(
        [sys.executable, "-c", CONNECTION, shell, probe],
        env=os.environ | {"PATH": f"{stub.parent}:{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(pid.exists)
        # It runs for as long as there is somebody to be told.
        assert not gone(pid, within_s=1.5)
    finally:
        asker.kill()
        asker.wait()
    assert gone(pid, within_s=10)


CONNECTION = "import subprocess, sys; subprocess.run([sys.argv[1], '-c', sys.argv[2]])"


def wait_until(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_test_that_nobody_waits_for_does_not_begin(stub: Path) -> None:
    mark = stub.with_name("mark")
    stub.write_text(f"#!/bin/sh\necho x >{mark}\n")
    stub.chmod(0o755)
    said, parent = stub.with_name("said"), stub.with_name("parent")
    section = client_section(end(), end("gpu002"), Load())
    # The shell outlives the one who started it, and only then goes on.
    script = (
        'while grep -q "^PPid:[^0-9]*$1$" /proc/$$/status; do sleep 0.1; done\n'
        f"sed -n 's/^PPid:[^0-9]*//p' /proc/$$/status >{parent}\n"
        f"s_x() {{\n{section.script}\n}}\ns_x\necho $? >{said}.new; mv {said}.new {said}"
    )
    subprocess.run(
        ["sh", "-c", 'sh -c "$1" sh $$ >/dev/null 2>&1 & sleep 0.3', "sh", script],
        env=os.environ | {"PATH": f"{stub.parent}:{os.environ['PATH']}"},
        check=True,
    )
    wait_until(said.exists)
    # On a desktop the session's own systemd takes such a process up, and not process 1.
    orphaned = parent.read_text().strip() == "1"
    assert (said.read_text().strip() == "143") == orphaned
    assert mark.exists() != orphaned
