"""The script that sets firmware keys, run by a real shell with stub tools."""

import shutil
import subprocess
from pathlib import Path

from railwright.actions import RunScript, render
from tests.unit.firmware_cases import ASKED_VFS, OLD_BOOT, done, nic, vfs
from tests.unit.ports_host import BOOT, pci

TOOL = """\
#!/bin/sh
echo "$0 $*" >>"${0%/*}/log"
[ ! -e "${0%/*}/fails" ]
"""


def run(tmp_path: Path, ledger: str, *arguments: str) -> tuple[int, list[str]]:
    """What the script does with stub tools on PATH: its exit and the commands that it ran."""
    for name in ("mstconfig", "mstfwreset"):
        (tmp_path / name).write_text(TOOL, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "ledger").write_text(ledger, encoding="utf-8")
    (action,) = [a for a in done(ASKED_VFS, nic(vfs(16, 16, 16))) if isinstance(a, RunScript)]
    ran = subprocess.run(
        ["sh", "-s", "--", *arguments],
        input=action.script,
        text=True,
        capture_output=True,
        check=False,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "RW_LEDGER": str(tmp_path / "ledger")},
    )
    log = tmp_path / "log"
    lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
    return ran.returncode, [line.removeprefix(f"{tmp_path}/") for line in lines]


def test_the_script_sets_and_then_resets(tmp_path: Path) -> None:
    arguments = (BOOT, pci(0), "mstconfig", "mstfwreset", "A=1", "B=2")
    assert run(tmp_path, f'"{BOOT}"', *arguments) == (
        0,
        [f"mstconfig -y -d {pci(0)} set A=1 B=2", f"mstfwreset -y -d {pci(0)} reset"],
    )


def test_the_script_does_nothing_that_is_not_noted(tmp_path: Path) -> None:
    arguments = (BOOT, pci(0), "mstconfig", "mstfwreset", "A=1")
    assert run(tmp_path, f'"{OLD_BOOT}"', *arguments) == (1, [])
    assert run(tmp_path, "", "", pci(0), "mstconfig", "", "A=1")[0] == 0


def test_the_script_does_not_reset_what_it_could_not_set(tmp_path: Path) -> None:
    (tmp_path / "fails").touch()
    code, ran = run(tmp_path, BOOT, BOOT, pci(0), "mstconfig", "mstfwreset", "A=1")
    assert code == 1
    assert ran == [f"mstconfig -y -d {pci(0)} set A=1"]


def test_the_script_is_clean() -> None:
    script = render(done(ASKED_VFS, nic(vfs(16, 16, 16))))
    checker = shutil.which("shellcheck")
    assert checker is not None
    ran = subprocess.run(
        [checker, "-s", "sh", "-S", "warning", "-"], input=script, text=True, check=False
    )
    assert ran.returncode == 0
