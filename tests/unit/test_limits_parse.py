"""What is made of the output of ulimit, /proc/PID/limits and systemctl show."""

import subprocess
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.limits import LOGIN, parse_proc_limits, read_login, read_running, read_units
from facts.probe import Focus, script
from facts.ulimit import parse_ulimit
from railwright.rlimits import UNLIMITED, Pair
from railwright.snapshot import Section, parse_probe
from tests.unit.limits_host import Host, proc_limits, unit

BASH = """\
real-time non-blocking time  (microseconds, -R) unlimited
core file size              (blocks, -c) 0
data seg size               (kbytes, -d) unlimited
max locked memory           (kbytes, -l) 8192
open files                          (-n) 20000
pipe size                (512 bytes, -p) 8
POSIX message queues         (bytes, -q) 819200
stack size                  (kbytes, -s) 8192
max user processes                  (-u) 96364
"""
DASH = """\
time(seconds)        unlimited
file(blocks)         unlimited
stack(kbytes)        8192
memory(kbytes)       unlimited
locked memory(kbytes) 64
process              96364
nofiles              20000
"""
ZSH = """\
-t: cpu time (seconds)              unlimited
-s: stack size (kbytes)             8192
-l: locked-in-memory size (kbytes)  unlimited
-n: file descriptors                1024
-N 15: rt cpu time (microseconds)   unlimited
"""
KSH = "locked address space   (Kibytes)   (-l)  64\nopen files (-n) 1024\n"
CSH = "memorylocked 64 kbytes\ndescriptors  1024\nmaxproc 500\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            BASH,
            {
                "rttime": "unlimited",
                "core_blocks": 0,
                "data": "unlimited",
                "memlock_kb": 8192,
                "nofile": 20000,
                "pipe_512b": 8,
                "msgqueue_bytes": 819200,
                "stack_kb": 8192,
                "nproc": 96364,
                "ok": False,
            },
        ),
        (DASH, {"memlock_kb": 64, "rss": "unlimited", "nproc": 96364, "nofile": 20000}),
        (ZSH, {"memlock": "unlimited", "memlock_kb": "unlimited", "nofile": 1024, "ok": True}),
        (KSH, {"memlock_kb": 64, "nofile": 1024, "ok": False}),
        (CSH, {"memlock_kb": 64, "nofile": 1024, "nproc": 500, "ok": False}),
        ("8192\n", {"memlock_kb": 8192, "ok": False}),
        ("unlimited\n", {"memlock": "unlimited", "ok": True}),
        (
            proc_limits("unlimited"),
            {
                "memlock_soft": "unlimited",
                "memlock_hard": "unlimited",
                "nofile_soft": 1024,
                "nofile_hard": 1048576,
                "stack_soft_bytes": 8388608,
                "nice_soft": 0,
                "ok": True,
            },
        ),
        (
            "/proc/9/limits:Max locked memory         65536      unlimited      bytes\n",
            {"memlock_soft_bytes": 65536, "memlock_hard": "unlimited", "ok": False},
        ),
    ],
)
def test_ulimit(text: str, expected: dict[str, Any]) -> None:
    found = parse_ulimit(text).to_json()
    assert {key: found.get(key) for key in expected} == expected


def test_no_word_on_memlock_is_not_ok() -> None:
    assert "ok" not in parse_ulimit("open files (-n) 1024\n").to_json()


@pytest.mark.parametrize("text", ["", "sh: ulimit: bad option\n", "8192\n64\n", "12 13\n"])
def test_rubbish_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no limit"):
        parse_ulimit(text)


@given(st.text())
def test_ulimit_reads_or_refuses(text: str) -> None:
    try:
        found = parse_ulimit(text)
    except ValueError:
        return
    assert found.amounts


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("which", ["-Sa", "-Ha"])
def test_the_shells_of_this_machine(shell: str, which: str) -> None:
    said = subprocess.run([shell, "-c", f"ulimit {which}"], capture_output=True, text=True)
    kernel = subprocess.run(["cat", "/proc/self/limits"], capture_output=True, text=True)
    pair = parse_proc_limits(kernel.stdout)["memlock"]
    value = pair.soft if which == "-Sa" else pair.hard
    found = parse_ulimit(said.stdout).to_json()["memlock_kb"]
    assert found == ("unlimited" if value == UNLIMITED else value // 1024)


def test_the_probe_reads_its_own_login() -> None:
    output = subprocess.run(
        ["sh"], input=script((LOGIN,), Focus()), capture_output=True, text=True, check=True
    )
    login = read_login(parse_probe(output.stdout, "here"))
    kernel = subprocess.run(["cat", "/proc/self/limits"], capture_output=True, text=True)
    assert login.limits == parse_proc_limits(kernel.stdout)
    assert login.nr_open is not None
    assert login.nr_open > 1024


def test_running_services() -> None:
    host = Host(services={"b.service": "64", "a.service": "unlimited"})
    running = read_running(host.snapshot())
    assert running.defaults["memlock"] == Pair(soft=8388608, hard=8388608)
    assert running.defaults["stack"] == Pair(soft=8388608, hard=UNLIMITED)
    found = [(s.unit, s.pid, s.limits["memlock"].hard) for s in running.services]
    assert found == [("a.service", 101, UNLIMITED), ("b.service", 100, 64)]


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        (Section(stdout="", stderr="not booted with systemd", rc=1), "not booted with systemd"),
        (Section(stdout="", rc=None, ended="deadline"), "deadline"),
        (Section(stdout="DefaultLimitNOFILE=1\n", rc=0), "DefaultLimitMEMLOCK"),
    ],
)
def test_no_answer_of_systemd_is_no_default(section: Section, reason: str) -> None:
    host = Host()
    host.more["limits_running"] = section
    with pytest.raises(ValueError, match=reason):
        read_running(host.snapshot())


def test_units() -> None:
    (found,) = read_units(Host(units=unit(own="LimitMEMLOCK=64K")).snapshot())
    assert found.names == {"slurmd.service", "alias-of-slurmd.service"}
    assert found.limits["memlock"] == Pair(soft=8388608, hard=8388608)
    assert [(line.limit, line.line, line.value) for line in found.lines] == [
        ("nofile", 7, "131072"),
        ("memlock", 2, "64K"),
    ]
