"""The CI job that is shipped: its commands are ours, and its shell is sound."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "drift.yml"


def steps() -> list[dict[str, Any]]:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    return [step for job in jobs.values() for step in job["steps"]]


def script(name: str) -> str:
    return next(step["run"] for step in steps() if step.get("name") == name)


def test_actions_are_pinned_by_major_version() -> None:
    used = [step["uses"] for step in steps() if "uses" in step]
    assert used
    assert all(name.rpartition("@v")[2].isdigit() for name in used)


@pytest.mark.parametrize(
    ("code", "says"),
    [(0, "::notice::no drift"), (2, "::error::drift: "), (1, "::error::error: ")],
)
def test_the_job_fails_as_drift_does_and_says_which(tmp_path: Path, code: int, says: str) -> None:
    railwright = tmp_path / ".venv" / "bin" / "railwright"
    railwright.parent.mkdir(parents=True)
    railwright.write_text(f'#!/bin/sh\necho "$@" >>log\n[ "$1" = snapshot ] || exit {code}\n')
    railwright.chmod(0o755)
    environment = os.environ | {"INVENTORY": "site.py", "RUNNER_TEMP": str(tmp_path), "ACCEPT": ""}
    # -e, as the runner calls it.
    done = subprocess.run(
        ["bash", "-e", "-c", script("Compare")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert says in done.stdout
    assert (tmp_path / "log").read_text().splitlines() == [
        "snapshot site.py --out reports/snapshots",
        "drift site.py --from reports/snapshots --format junit",
        "drift site.py --from reports/snapshots",
    ]
    assert (tmp_path / "reports" / "drift.xml").exists()


def test_keys_are_written_for_their_owner_alone(tmp_path: Path) -> None:
    environment = os.environ | {
        "SSH_KEY": "key",
        "KNOWN_HOSTS": "hosts",
        "RUNNER_TEMP": str(tmp_path),
    }
    subprocess.run(
        ["bash", "-e", "-c", script("Put the ssh key and the host keys in place")],
        env=environment,
        check=True,
    )
    key = tmp_path / "home" / ".ssh" / "id_ed25519"
    assert key.read_text() == "key\n"
    assert key.stat().st_mode & 0o077 == 0
