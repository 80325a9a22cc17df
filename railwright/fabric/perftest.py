"""ib_write_bw of perftest: its command lines, the shell around them, and what it prints.

Formats: perftest_parameters.c and .h of linux-rdma/perftest; options as of 6.06, the oldest
version that was looked at.
"""

import re
import shlex
from typing import Annotated, Literal

from pydantic import Field, StrictInt

from facts.probe import Section
from railwright.attend import ASKER, TERMINATED
from railwright.fabric.ends import End
from railwright.model import Model
from railwright.snapshot import Section as Answer

TOOL = "ib_write_bw"
NAME = "perftest"
"""The section of a probe that runs one side of a test."""
Role = Literal["client", "server"]
CLIENT: Role = "client"
SERVER: Role = "server"

BASE_PORT = 18515
"""TCP port that rail 0's test is arranged on; perftest's own default."""
START_S = 20
"""Seconds that a client waits for its server to listen, and a server for its client."""
END_S = 30
"""Seconds that the test may take beyond its duration: registering memory, warm-up, hanging up."""
_ITERATING_S = 300
_NOT_INSTALLED = 127
_TIMED_OUT = (124, 137)
_UNMET = 75
"""Exit code of a server that no client came to (EX_TEMPFAIL of sysexits.h)."""


class Load(Model):
    """How much is sent: messages of ``size`` bytes, for ``seconds``, or ``iterations`` of them.

    64 KiB is what public checks of a port's bandwidth use (OCI's multi-node health check).
    """

    size: Annotated[StrictInt, Field(ge=2, le=1 << 30)] = 65536
    seconds: Annotated[StrictInt, Field(ge=1, le=3600)] = 5
    iterations: Annotated[StrictInt, Field(ge=5, le=100_000_000)] | None = None

    @property
    def limit_s(self) -> int:
        """Seconds after which a test hangs."""
        return (self.seconds if self.iterations is None else _ITERATING_S) + END_S


class Bandwidth(Model):
    """What ib_write_bw measured, in Gb/s (10^9 bits) of payload.

    ``peak_gbps`` is None where it was not measured, as in a test by duration.
    """

    size: int
    iterations: int
    peak_gbps: float | None
    average_gbps: float
    mpps: float
    """Messages per second, in millions."""

    @property
    def sent_bytes(self) -> int:
        return self.size * self.iterations


class Failure(Model):
    """A test that came to no result. ``broken`` is a node that could not run it at all."""

    reason: str
    kind: Literal["failed", "broken"] = "failed"


def server_command(end: End, load: Load) -> tuple[str, ...]:
    """The command line of the side that is written to."""
    return (TOOL, *_common(end, load))


def client_command(end: End, server: End, load: Load) -> tuple[str, ...]:
    """The command line of the side that writes to ``server``."""
    return (*server_command(end, load), server.address)


def _common(end: End, load: Load) -> tuple[str, ...]:
    """``-F`` keeps a warning about CPU clocks from being an error in old versions."""
    amount = ("-D", load.seconds) if load.iterations is None else ("-n", load.iterations)
    words = ["-d", end.device, "-i", end.port, "-p", BASE_PORT + end.rail, "-s", load.size, *amount]
    if end.gid_index is not None:
        words += ["-x", end.gid_index]
    if end.qos is not None:
        words.append(f"--tclass={end.qos.traffic_class}")
    return tuple(str(word) for word in (*words, "-F", "--report_gbits"))


_ATTEND = f"""{ASKER}
# attend PID: end the process when nobody is left to be told.
attend() {{
    {{
        while [ "$(asker)" = "$asker" ]; do sleep 1; done
        kill "$1"
    }} >/dev/null 2>&1 3>&- &
    watch=$!
}}

# finish PID: wait for the process, and attend to it no more.
finish() {{
    wait "$1"
    rc=$?
    kill "$watch" 2>/dev/null
    return "$rc"
}}
"""


def server_section(end: End, load: Load) -> Section:
    """Runs the server on its node.

    It ends by itself, whatever becomes of the one who started it: within a second where the
    connection is gone, where no client comes within ``START_S``, and where the test takes too long.
    """
    limit_s = START_S + load.limit_s
    command = shlex.join(_bounded(limit_s, server_command(end, load)))
    # Columns of /proc/net/tcp: local address and port, remote ones, and 01 where connected.
    connected = f":{BASE_PORT + end.rail:04X} [0-9A-F]*:[0-9A-F]* 01 "
    script = f"""{_ATTEND}
{command} 2>&1 &
server=$!
attend "$server"
tries=0
while kill -0 "$server" 2>/dev/null; do
    ! grep -qs {shlex.quote(connected)} /proc/net/tcp /proc/net/tcp6 || break
    tries=$((tries + 1))
    [ "$tries" -lt {START_S} ] || {{ kill "$server" "$watch"; return {_UNMET}; }}
    sleep 1
done
finish "$server"
"""
    return Section(name=NAME, script=script, deadline_s=limit_s + 10)


def client_section(end: End, server: End, load: Load) -> Section:
    """Runs the client on its node, again each second until its server listens.

    It ends by itself as the server does.
    """
    command = shlex.join(_bounded(load.limit_s, client_command(end, server, load)))
    script = f"""{_ATTEND}
tries=0
while :; do
    said=$(
        {command} 2>&1 &
        client=$!
        attend "$client"
        finish "$client"
    )
    rc=$?
    case $said in *"Couldn't connect to"*) ;; *) break ;; esac
    tries=$((tries + 1))
    [ "$tries" -lt {START_S} ] || break
    sleep 1
done
printf '%s\\n' "$said"
return "$rc"
"""
    return Section(name=NAME, script=script, deadline_s=START_S + load.limit_s + 10)


def _bounded(limit_s: int, command: tuple[str, ...]) -> tuple[str, ...]:
    """``command`` at normal priority (a probe runs at 19), and killed after ``limit_s``.

    Who may not raise the priority runs it as it is: nice only says so.
    """
    return ("timeout", "-k", "5", str(limit_s), "nice", "-n", "-19", *command)


_UNITS = {"Gb/sec": 1.0, "MB/sec": 8 * (1 << 20) / 1e9}
_HEADING = re.compile(
    r"^ *#bytes +#iterations +BW peak\[(\S+)\] +BW average\[(\S+)\] +MsgRate\[Mpps\]", re.MULTILINE
)
_ROW = re.compile(
    r"^ *(\d+)\s+(\d+)\s+(-?[\d.]+|inf|-?nan)\s+(-?[\d.]+|inf|-?nan)\s+(-?[\d.]+|inf|-?nan)",
    re.MULTILINE,
)
_MISTAKES = re.compile(
    r"(fail|error|unable|couldn't|cannot|can't|could not|refused|invalid|not found|unsupported)",
    re.IGNORECASE,
)


def parse_bandwidth(text: str) -> Bandwidth:
    """Read what a client printed. Raises ValueError where it holds no result."""
    heading = _HEADING.search(text)
    row = _ROW.search(text, heading.end()) if heading else None
    if heading is None or row is None:
        raise ValueError(f"expected the result of {TOOL}, got {text.strip()[-80:]!r}")
    factor = _UNITS.get(heading[2])
    if factor is None:
        raise ValueError(f"expected bandwidth in Gb/sec or MB/sec, got {heading[2]!r}")
    return _bandwidth(row.groups(), factor)


def _bandwidth(values: tuple[str, ...], factor: float) -> Bandwidth:
    size, iterations = (int(value) for value in values[:2])
    peak, average, rate = (float(value) for value in values[2:])
    # A clock that jumps makes it negative (perftest issue 82), no completion at all not a number.
    if not 0 <= average < float("inf") or iterations <= 0:
        raise ValueError(f"expected a bandwidth of 0 or more, got {average} of {iterations} writes")
    return Bandwidth(
        size=size,
        iterations=iterations,
        peak_gbps=peak * factor if 0 < peak < float("inf") else None,
        average_gbps=average * factor,
        mpps=rate,
    )


def result_of(answer: Answer, role: Role) -> Bandwidth | Failure | None:
    """What came of one side of a test; None where it ended well and has no result to tell."""
    if answer.rc is None:
        return Failure(reason=f"{role}: hangs ({answer.ended})")
    if answer.rc == _NOT_INSTALLED:
        return Failure(reason=f"{role}: {TOOL} is not installed (package perftest)", kind="broken")
    if answer.rc == _UNMET:
        return Failure(reason=f"{role}: no client came within {START_S} s")
    if answer.rc == TERMINATED:
        return Failure(reason=f"{role}: was terminated (SIGTERM)", kind="broken")
    if answer.rc in _TIMED_OUT:
        return Failure(reason=f"{role}: {_last_words(answer) or 'no result'}, killed when overdue")
    if answer.rc != 0:
        return Failure(reason=f"{role}: {_last_words(answer) or f'exit {answer.rc}'}")
    if role == SERVER:
        return None
    try:
        return parse_bandwidth(answer.stdout)
    except ValueError as error:
        return Failure(reason=f"{role}: {error}")


def _last_words(answer: Answer) -> str:
    """What went wrong, as perftest says it in one or two of its lines."""
    lines = [line.strip() for line in f"{answer.stdout}\n{answer.stderr}".splitlines()]
    told = [line for line in lines if _MISTAKES.search(line) and "niceness" not in line]
    return " / ".join(told[:2])
