"""What docs/sizing.md shows is what comes out."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from railwright.cli.size import size
from railwright.sizing.measured import load_measured
from railwright.sizing.transformer import published

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/sizing.md").read_text(encoding="utf-8")
(JSON,) = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def shown() -> Iterator[tuple[str, str]]:
    """Commands with what is printed of their output."""
    for block in re.findall(r"(?:^    .*\n)+", PAGE, re.MULTILINE):
        if block.startswith("    $ railwright size "):
            command, _, output = block.partition("\n")
            yield command.removeprefix("    $ railwright size "), output


@pytest.mark.parametrize(("command", "output"), list(shown()), ids=lambda text: text[:20])
def test_every_word_that_is_shown_of_a_command_is_printed_by_it(
    command: str, output: str, tmp_path: Path
) -> None:
    measured = tmp_path / "measured.json"
    measured.write_text(JSON)
    places = {
        "measured.json": str(measured),
        "inventories/prod.py": str(ROOT / "inventories/prod.py"),
        "step.svg": str(tmp_path / "step.svg"),
    }
    arguments = [places.get(word, word) for word in shlex.split(command)]
    printed = set(CliRunner().invoke(size, arguments).output.split())
    assert output.split()
    assert [word for word in output.split() if word not in printed] == []


def test_several_commands_are_shown() -> None:
    assert len({command.split()[0] for command, _ in shown()}) >= 3


def test_the_file_of_measurements_that_is_shown_is_one(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(JSON)
    found = load_measured(path)
    assert found.mfu == 0.41
    assert len(found.bus_bandwidth) == 3


def test_every_published_model_is_named() -> None:
    line = next(line for line in PAGE.splitlines() if "Published models:" in line)
    named = line.partition("Published models:")[2].partition("(")[0]
    families = {name.rpartition("-")[0] or name for name in published()}
    assert all(family in named for family in families)
