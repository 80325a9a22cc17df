"""Plots are SVG with axes and units named."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from railwright.sizing.ask_checkpoint import CheckpointQuestion
from railwright.sizing.ask_cost import CostQuestion
from railwright.sizing.ask_memory import MemoryQuestion
from railwright.sizing.ask_step import StepQuestion
from railwright.sizing.ask_storage import StorageQuestion
from railwright.sizing.ask_train import TrainQuestion
from railwright.sizing.cost import EXAMPLE, costs, load_plan
from railwright.sizing.document import Report
from railwright.sizing.parallel import SizingError
from railwright.sizing.plots import plot
from railwright.sizing.question import Question
from railwright.sizing.variants import sweep

MEMORY = MemoryQuestion(gpu="h100", nodes=8, model="llama-3-70b", tensor=8, sequence_parallel=True)
STEP = StepQuestion.model_validate(
    {"gpu": "h100", "nodes": 8, "model": "llama-3-70b", "tensor": 8, "pipeline": 4,
     "batch": 512, "rail_rate": "100Gb/s"}
)  # fmt: skip


def drawn(tmp_path: Path, question: Question, swept: str | None = None) -> str:
    """All text of the plot, in the order of the file."""
    path = tmp_path / "plot.svg"
    report = Report(answer=question.answer(), sweep=sweep(question, swept) if swept else None)
    plot(report, path)
    root = ElementTree.parse(path).getroot()
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    return "\n".join(filter(None, (text.strip() for text in root.itertext())))


def test_memory_is_drawn_part_by_part_against_what_there_is(tmp_path: Path) -> None:
    text = drawn(tmp_path, MEMORY)
    assert "Memory of a GPU (GB)" in text
    assert "memory of h100: 80 GB" in text
    assert "optimizer states: " in text
    assert "llama-3-70b" in text


def test_terabytes_and_shares_are_drawn_as_people_read_them(tmp_path: Path) -> None:
    asked = {"gpu": "h100", "nodes": 64, "model": "llama-3-70b"}
    text = drawn(tmp_path, StorageQuestion.model_validate(asked))
    assert "What storage holds (TB)" in text
    assert "data: 4 TB" in text
    stored = {**asked, "storage_write": "10GB/s"}
    text = drawn(tmp_path, CheckpointQuestion.model_validate(stored))
    assert "Share of time that is lost (%)" in text
    assert "writing: 1.19 %" in text


def test_a_step_is_drawn_in_seconds(tmp_path: Path) -> None:
    text = drawn(tmp_path, STEP)
    assert "Time of a step (s)" in text
    assert "computation: " in text


def test_ways_of_having_gpus_are_drawn_one_under_another_with_one_colour_a_part(
    tmp_path: Path,
) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(EXAMPLE)
    plan = load_plan(path)
    lines = drawn(tmp_path, CostQuestion(found=plan)).splitlines()
    filled = set(re.findall('"fill: (#[0-9a-f]{6})"', (tmp_path / "plot.svg").read_text()))
    parts = {name for way in costs(plan) for name in way.parts}
    assert len(filled - {"#ffffff"}) == len(parts) == 9
    assert "Cost (million EUR)" in lines
    assert [line for line in lines if line in plan.ways] == ["own", "reserved", "on demand"]
    assert [line for line in lines if line in {"GPUs", "staff"}] == ["staff", "GPUs"]


def test_a_sweep_over_nodes_has_its_knee_and_the_ideal(tmp_path: Path) -> None:
    text = drawn(tmp_path, STEP, "nodes=8..2048")
    assert "throughput (thousand tokens/s)" in text
    assert "knee: 256" in text
    assert "ideal, from the first" in text
    assert "nodes" in text.splitlines()


def test_a_sweep_over_another_input_names_its_unit(tmp_path: Path) -> None:
    text = drawn(tmp_path, MEMORY, "sequence=2048..16384")
    assert "sequence (tokens)" in text
    assert "memory of a GPU (GB)" in text


def test_values_with_a_unit_stand_on_the_axis_as_they_are(tmp_path: Path) -> None:
    text = drawn(tmp_path, STEP, "rail_rate=100Gb/s,400Gb/s")
    assert "100Gb/s" in text.splitlines()


def test_the_same_answer_gives_the_same_file(tmp_path: Path) -> None:
    drawn(tmp_path, MEMORY)
    first = (tmp_path / "plot.svg").read_bytes()
    drawn(tmp_path, MEMORY)
    assert (tmp_path / "plot.svg").read_bytes() == first


def test_what_has_nothing_to_draw_is_refused(tmp_path: Path) -> None:
    question = TrainQuestion(gpu="h100", nodes=8, parameters=70e9)
    with pytest.raises(SizingError, match="nothing to plot without --sweep"):
        drawn(tmp_path, question)


def test_a_sweep_of_which_nothing_can_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SizingError, match="no value of tensor can be"):
        drawn(tmp_path, STEP, "tensor=3,5")


def test_a_file_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(SizingError, match="No such file or directory"):
        plot(Report(answer=MEMORY.answer()), tmp_path / "none" / "plot.svg")
