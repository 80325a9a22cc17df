"""The lab's package mirror: a folder served over http on loopback, as vendors serve theirs."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from .layout import LabError, Layout

_START_SECONDS = 10.0


def start(layout: Layout, folder: Path) -> None:
    """Serve ``folder`` on ``layout.mirror_port``, unless it is being served already.

    :raises LabError: the server did not start.
    """
    if _process(layout, folder) is not None:
        return
    stop(layout, folder)
    log = layout.state / "mirror.log"
    words = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder)]
    with log.open("wb") as file:
        server = subprocess.Popen(
            [sys.executable, *words, str(layout.mirror_port)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    _pid_file(layout).write_text(f"{server.pid}\n")
    end = time.monotonic() + _START_SECONDS
    while not _answers(layout):
        if server.poll() is not None or time.monotonic() > end:
            raise LabError(f"the package mirror did not start: see {log}")
        time.sleep(0.1)


def stop(layout: Layout, folder: Path) -> None:
    process = _process(layout, folder)
    if process is not None:
        os.kill(process, signal.SIGTERM)
        while _process(layout, folder) is not None:
            time.sleep(0.05)


def _answers(layout: Layout) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{layout.mirror_port}/", timeout=1):
            return True
    except (urllib.error.URLError, OSError):
        return False


def _pid_file(layout: Layout) -> Path:
    return layout.state / "mirror.pid"


def _process(layout: Layout, folder: Path) -> int | None:
    """The lab's own server, told from others by the folder that it was started with."""
    try:
        number = int(_pid_file(layout).read_text())
        arguments = Path(f"/proc/{number}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return number if str(folder).encode() in arguments else None
