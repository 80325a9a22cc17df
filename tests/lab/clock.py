"""The lab's time source: a chronyd on loopback that serves this machine's clock, never sets it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from .layout import LabError, Layout

_SBIN = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin"])


def configuration(layout: Layout) -> str:
    """chrony.conf of a server that takes this machine's own clock as stratum 5."""
    folder = layout.state / "clock"
    return "\n".join(
        [
            f"port {layout.time_port}",
            "bindaddress 127.0.0.1",
            "allow 127.0.0.1",
            "local stratum 5",
            "cmdport 0",
            f"bindcmdaddress {folder / 'command.sock'}",
            f"pidfile {_pid_file(layout)}",
            "",
        ]
    )


def start(layout: Layout) -> None:
    """Serve time on ``layout.time_port``, unless it is being served already.

    :raises LabError: chronyd is missing, or did not start.
    """
    if _process(layout) is not None:
        return
    chronyd = shutil.which("chronyd", path=_SBIN)
    if chronyd is None:
        raise LabError("chronyd is not installed: see tests/lab/packages.txt")
    folder = layout.state / "clock"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o750)
    settings = folder / "chrony.conf"
    settings.write_text(configuration(layout))
    log = folder / "chronyd.log"
    # -x: never touch the clock; -U and -u: stay who we are.
    user = ["-U", "-u", Path.home().owner()] if os.geteuid() else ["-u", "root"]
    subprocess.run([chronyd, "-x", *user, "-f", str(settings), "-l", str(log)], check=False)
    if _process(layout) is None:
        raise LabError(f"chronyd did not start: see {log}")


def stop(layout: Layout) -> None:
    process = _process(layout)
    if process is not None:
        os.kill(process, signal.SIGTERM)
        while _process(layout) is not None:
            time.sleep(0.05)


def _pid_file(layout: Layout) -> Path:
    return layout.state / "clock" / "chronyd.pid"


def _process(layout: Layout) -> int | None:
    """The lab's own chronyd, told from others by the configuration file it was started with."""
    try:
        number = int(_pid_file(layout).read_text())
        arguments = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    settings = layout.state / "clock" / "chrony.conf"
    return number if str(settings).encode() in arguments else None
