"""``railwright parse`` over recorded outputs of the real tools (tests/corpus)."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from railwright.cli import main
from railwright.cli.parsers import QUERIES, TOOLS

CORPUS = Path(__file__).parents[1] / "corpus"
SAMPLES = sorted(CORPUS.glob("*/*.txt"))


def meta(sample: Path) -> tuple[Any, str, str]:
    """What a correct reader finds in the sample, the tool's exit code, and what was run."""
    text = sample.with_suffix(".meta").read_text()
    first = text.split("\n", 1)[0]
    rc = re.search(r"^rc: (\d+)$", text, re.MULTILINE)
    command = re.search(r"^command: (.*)$", text, re.MULTILINE)
    assert rc is not None, sample
    assert command is not None, sample
    return json.loads(first.partition("| expect: ")[2]), rc[1], command[1]


def missing(expected: Any, found: Any, where: str = "") -> list[str]:
    """Where ``found`` is not a superset of ``expected``; null stands for null or absent.

    A list is expected in its length and order, each entry a superset; an empty mapping is
    expected as it is, and true is no 1.
    """
    if isinstance(expected, dict) and isinstance(found, dict) and expected:
        return [
            line
            for key, value in expected.items()
            for line in missing(value, found.get(key), f"{where}.{key}")
        ]
    if isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        pairs = enumerate(zip(expected, found, strict=True))
        return [line for at, (one, other) in pairs for line in missing(one, other, f"{where}.{at}")]
    same = expected == found and isinstance(expected, bool) == isinstance(found, bool)
    return [] if same else [f"{where}: expected {expected!r}, found {found!r}"]


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": [1, 2]}, {"a": [1, 2, 3]}),
        ({"a": [0]}, {"a": [False]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": 2, "c": 1}]}),
        ({"a": {}}, {"a": {"b": 1}}),
        ({"a": None}, {"a": 0}),
        ({"a": 0}, {}),
    ],
)
def test_what_differs_is_told(expected: Any, found: Any) -> None:
    assert missing(expected, found)


def test_every_tool_has_samples() -> None:
    assert {sample.parent.name for sample in SAMPLES} == {*TOOLS, *QUERIES}
    assert len(SAMPLES) == 128


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda s: f"{s.parent.name}/{s.stem}")
def test_sample(sample: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected, rc, command = meta(sample)
    assert isinstance(expected, dict)
    assert main(["parse", sample.parent.name, str(sample), "--rc", rc, "--command", command]) == 0
    assert missing(expected, json.loads(capsys.readouterr().out)) == []


def test_standard_input(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("vm.swappiness = 10\n"))
    assert main(["parse", "sysctl-a", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"vm.swappiness": 10}


@pytest.mark.parametrize("tool", sorted({*TOOLS, *QUERIES}))
def test_rubbish_is_an_error_in_words(
    tool: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rubbish"
    file.write_bytes(b"\x00\xff Segmentation fault\n\nnot a thing\n")
    assert main(["parse", tool, str(file)]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"Error: {file}: ")


def test_a_missing_file_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["parse", "lscpu", str(tmp_path / "nowhere")]) == 1
    assert "No such file" in capsys.readouterr().err
