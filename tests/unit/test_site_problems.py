"""Broken sites, a file each: the site, and what is said of it word for word.

A message names file, host or group, field, value and what was expected; a case is added by
writing its file, and its last section by hand.
"""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from railwright.schema import RoceQos
from railwright.site import SiteError, load_inventory

CASES = sorted((Path(__file__).parent / "sites").glob("*.case"))
MESSAGE = re.compile(r"^\S+: [^:]+: .+ is .+: expected .+$|^\S+: .+ is given twice: expected .+$")


def read(case: Path) -> dict[str, str]:
    """The sections of a case: file name to content, and ``expect``."""
    _, *parts = re.split(r"^--- (.*)\n", case.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def build(case: Path, root: Path) -> Path:
    """Write the site of ``case`` below ``root`` and return its inventory."""
    written = []
    for name, content in read(case).items():
        if name == "expect":
            continue
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
        written.append(path)
    return written[0]


def test_there_are_at_least_twenty_kinds() -> None:
    assert len(CASES) >= 20


def test_at_least_twelve_kinds_of_qos_that_does_not_fit_together_name_both_fields() -> None:
    told = [line for case in CASES for line in read(case)["expect"].splitlines()]
    words = [set(re.findall(r"[a-z_]+", line.partition(": fabric.qos.")[2])) for line in told]
    named = {frozenset(found & RoceQos.model_fields.keys()) for found in words}
    assert len([fields for fields in named if len(fields) > 1]) >= 12


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.stem)
def test_every_problem_is_told_and_no_host_is_contacted(
    case: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError(f"a connection was opened: {arguments}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    inventory = build(case, tmp_path).relative_to(tmp_path)
    with pytest.raises(SiteError) as caught:
        load_inventory(inventory)
    told = [str(problem) for problem in caught.value.problems]
    assert "\n".join(told) == read(case)["expect"].strip()
    for line in told:
        assert MESSAGE.match(line), line


@pytest.mark.parametrize("name", ["unit_missing", "conflicting_groups", "host_overlay"])
def test_pyinfra_says_the_same_and_fails(name: str, tmp_path: Path) -> None:
    (case,) = (case for case in CASES if case.stem == name)
    inventory = build(case, tmp_path).relative_to(tmp_path)
    done = subprocess.run(
        [Path(sys.executable).parent / "pyinfra", "-y", str(inventory), "exec", "--", "true"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYINFRA_PROGRESS": "off"},
    )
    assert done.returncode == 1
    for line in read(case)["expect"].strip().splitlines():
        assert line in done.stderr
    assert "Connecting" not in done.stderr
