"""``railwright size``: options, tables, JSON, and how it refuses."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from railwright.cli.size import size
from railwright.cli.size_options import options_of
from railwright.sizing.ask_checkpoint import CheckpointQuestion
from railwright.sizing.ask_cost import CostQuestion
from railwright.sizing.ask_memory import MemoryQuestion
from railwright.sizing.ask_step import StepQuestion
from railwright.sizing.ask_storage import StorageQuestion
from railwright.sizing.ask_train import TrainQuestion
from railwright.sizing.document import Report
from railwright.sizing.question import Question

NODES = ("--gpu", "h100", "--nodes", "8")
SITE = """
all:
  fabric: roce
groups:
  gpu:
    hosts: "gpu[001-004]"
    gpu_driver: {gpu: h100}
    rails:
      rate_gbps: 200
      gpus: 2
      nics: {0: {pci: "0000:18:00.0", gpu: 0}, 1: {pci: "0000:40:00.0", gpu: 1}}
    lustre:
      networks: {tcp: {interfaces: [eth0]}}
    storage:
      mounts:
        /mnt/data:
          kind: lustre
          mgs: [["10.20.0.11@tcp"]]
          fsname: data
          expected: {read_gb_s: 4, write_gb_s: 2}
"""
MEASURED = {
    "bus_bandwidth": [{"where": "fabric", "size": "8 GB", "rate": "90 GB/s"}],
    "storage": {"read": "20 GB/s", "write": "10 GB/s"},
    "mfu": 0.41,
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(size, arguments)


def printed(*arguments: str) -> str:
    found = run(*arguments)
    assert found.exit_code == 0, found.output
    return found.output


def report(*arguments: str) -> Report:
    return Report.model_validate_json(printed(*arguments, "--json"))


def refused(*arguments: str) -> str:
    found = run(*arguments)
    assert found.exit_code == 1
    assert found.output.startswith("Error: ")
    return found.output


@pytest.fixture
def site(tmp_path: Path) -> str:
    path = tmp_path / "site.yaml"
    path.write_text(SITE)
    return str(path)


@pytest.fixture
def measured(tmp_path: Path) -> str:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(MEASURED))
    return str(path)


QUESTIONS = [
    ("memory", MemoryQuestion),
    ("checkpoint", CheckpointQuestion),
    ("train", TrainQuestion),
    ("step", StepQuestion),
    ("storage", StorageQuestion),
    ("cost", CostQuestion),
]


@pytest.mark.parametrize(("name", "question"), QUESTIONS)
def test_every_input_of_a_question_is_an_option_with_its_description(
    name: str, question: type[Question]
) -> None:
    help_text = " ".join(printed(name, "--help").split())
    for field in question.inputs():
        assert f"--{field.replace('_', '-')}" in help_text
        description = question.model_fields[field].description
        assert description
        assert " ".join(description.split()) in help_text


def test_options_come_from_the_question_alone() -> None:
    def command() -> None: ...

    decorated = options_of(TrainQuestion)(command)
    assert len(decorated.__click_params__) == len(TrainQuestion.inputs())  # type: ignore[attr-defined]


def test_memory_of_70b_on_16_gpus_at_tp2_pp2_does_not_fit() -> None:
    """The job of an article: 157.5 GB of model states on GPUs of 80 GB."""
    two = ("--gpu", "h100", "--nodes", "2")
    job = ("--parameters", "70e9", "--tensor", "2", "--pipeline", "2")
    text = printed("memory", *two, *job)
    assert "157.5 GB" in text
    assert "does not fit: 77.5 GB too much" in text
    assert "B200 SXM, 180 GB: 180 GB  fits" in text
    assert report("memory", *two, *job).answer.results["memory of a GPU"].value == 157.5e9


def test_memory_names_what_else_would_make_room() -> None:
    text = printed("memory", *NODES, "--model", "llama-3-70b", "--tensor", "8", "--zero", "1")
    for way in ("ZeRO-2", "ZeRO-3", "full recomputation", "sequence parallelism"):
        assert way in text


def test_kv_cache_of_a_token_is_told_to_the_byte_when_serving() -> None:
    text = printed("memory", *NODES, "--model", "llama-3-70b", "--mode", "serve", "--tensor", "8")
    assert "327,680 B" in text
    assert "KV cache" in text
    assert "gradients" not in text


def test_checkpoint_of_70b_is_980_gb_at_8_1667_gb_a_second() -> None:
    text = printed("checkpoint", *NODES, "--parameters", "70e9", "--rules")
    assert "980 GB" in text
    assert "8.1667 GB/s" in text
    assert "not known: nobody says what storage writes" in text
    assert "checkpoint-8-bytes  4·Φ·2 B / τ = 4.6667 GB/s" in text
    assert "leaves out how often" in text


def test_a_checkpoint_in_the_background_stalls_for_the_copy_alone() -> None:
    asked = ("checkpoint", *NODES, "--parameters", "70e9", "--storage-write", "10GB/s")
    waits = {}
    for flags in ((), ("--asynchronous",)):
        lines = {line.name: line for line in report(*asked, *flags).answer.sections[1].lines}
        waits[flags] = lines
    stall = "time that training waits"
    assert waits[()][stall].amount == waits[()]["time to write it"].amount
    copied = waits["--asynchronous",][stall].amount
    assert copied is not None
    assert copied.value == pytest.approx(980e9 / (64 * 63.015e9))
    taken = waits["--asynchronous",]["interval that is taken"].amount
    written = waits["--asynchronous",]["time to write it"].amount
    assert taken is not None
    assert written is not None
    assert taken.value >= written.value


def test_a_checkpoint_that_is_long_in_writing_is_not_started_before_the_last_is_there() -> None:
    asked = ("--parameters", "405e9", "--asynchronous", "--storage-write", "1GB/s")
    found = report("checkpoint", "--gpu", "h100", "--nodes", "2048", *asked)
    lines = {line.name: line.amount for line in found.answer.sections[1].lines}
    daly, written = lines["interval after Daly"], lines["time to write it"]
    assert daly is not None
    assert written is not None
    assert daly < written
    assert lines["interval that is taken"] == written


def test_a_checkpoint_without_16_bit_weights_has_12_bytes() -> None:
    found = report("checkpoint", *NODES, "--parameters", "70e9", "--without-weights")
    assert found.answer.results["checkpoint"].value == 840e9


@pytest.mark.parametrize(("weights", "each"), [("fp32", 12), ("bf16", 12), ("fp8", 12)])
def test_what_is_left_out_are_the_weights_as_wide_as_they_are(weights: str, each: int) -> None:
    asked = ("checkpoint", *NODES, "--parameters", "1e9", "--without-weights", "--weights", weights)
    assert report(*asked).answer.results["checkpoint"].value == each * 1e9


def test_weights_of_which_there_is_no_other_copy_are_not_left_out() -> None:
    asked = ("checkpoint", *NODES, "--parameters", "1e9", "--without-weights", "--master", "none")
    assert "without a master copy the weights cannot be left out" in refused(*asked)


def test_an_interval_that_is_shorter_than_the_write_in_the_background_is_refused() -> None:
    asked = ("checkpoint", *NODES, "--parameters", "70e9", "--storage-write", "10GB/s")
    assert "the next one cannot start after 97 s" in refused(
        *asked, "--asynchronous", "--interval", "97s"
    )
    printed(*asked, "--asynchronous", "--interval", "99s")


def test_fewer_failures_are_judged_at_the_interval_that_then_is_best() -> None:
    asked = ("checkpoint", *NODES, "--parameters", "70e9", "--storage-write", "10GB/s")
    at_twice = report(*asked, "--node-mtbf", "2000h").answer.results["lost"]
    limit = report(*asked, "--node-mtbf", "1000h").answer.limit
    assert limit is not None
    (failures,) = [change for change in limit.changes if change.fact == "MTBF of a node"]
    assert failures.brings.endswith(f"{at_twice.number:.2%}")


def test_a_job_that_fails_faster_than_it_restarts_makes_no_progress() -> None:
    asked = ("checkpoint", *NODES, "--parameters", "70e9", "--storage-write", "10GB/s")
    assert "this makes no progress" in printed(*asked, "--node-mtbf", "1h")
    assert "this makes no progress" not in printed(*asked, "--node-mtbf", "1000h")


def test_memory_says_that_a_data_sheets_gigabytes_are_fewer_than_a_drivers() -> None:
    asked = ("memory", *NODES, "--parameters", "1e9")
    assert "81559 MiB" in printed(*asked)
    assert "81559 MiB" not in printed(*asked, "--hbm", "85.5GB")


def test_storage_that_writes_too_slowly_limits(measured: str) -> None:
    asked = ("--model", "llama-3-405b", "--measured", measured)
    limit = report("storage", *NODES, *asked).answer.limit
    assert limit is not None
    assert limit.fact == "storage write"
    assert "too slow" in limit.why
    assert report("checkpoint", *NODES, *asked).answer.limit.fact == "storage write"  # type: ignore[union-attr]


def test_storage_of_an_inventory_limits_by_what_is_expected_of_each_node(site: str) -> None:
    """4 nodes × 2 GB/s; 112.4 GB of an 8B model within 10 s are 11.2 GB/s."""
    asked = ("--inventory", site, "--model", "llama-3-8b", "--window", "10s")
    limit = report("storage", *asked).answer.limit
    assert limit is not None
    assert limit.fact == "nodes' way to storage, write"
    assert limit.changes[0].now == "8 GB/s"
    found = report("checkpoint", *asked).answer
    assert found.limit is not None
    assert found.limit.fact == "nodes' way to storage"
    assert any("of /mnt/data the inventory expects 2 GB/s of each node" in n for n in found.notes)


def test_training_of_70b_takes_180_days() -> None:
    asked = ("--parameters", "70e9", "--tokens", "15e12", "--peak", "989TFLOP/s", "--mfu", "0.4")
    text = printed("train", "--gpu", "h100", "--nodes", "128", *asked, "--within", "90days")
    assert "180 days" in text
    assert "2,048, which are 256 nodes" in text


def test_the_measured_mfu_is_taken_where_none_is_given(measured: str) -> None:
    asked = ("train", *NODES, "--parameters", "70e9")
    assert "40.0% (assumed)" in printed(*asked)
    assert "41.0% (measured)" in printed(*asked, "--measured", measured)
    assert "30.0% (given)" in printed(*asked, "--measured", measured, "--mfu", "0.3")


def test_an_inventory_tells_nodes_and_what_they_have(site: str) -> None:
    found = report("step", "--inventory", site, "--model", "llama-3-8b", "--batch", "64")
    assert "on 4 nodes, 8 GPUs" in found.answer.question
    facts = {line.name: line.text for line in found.answer.facts}
    assert facts["rate of a rail"] == "25 GB/s (inventory)"
    assert facts["GPUs of a node"] == "2 (inventory)"
    some = report("step", "--inventory", site, "--limit", "gpu[001-002]", "--model", "llama-3-8b")
    assert "on 2 nodes, 4 GPUs" in some.answer.question


def test_a_measurement_that_is_faster_than_the_rails_is_doubted(measured: str) -> None:
    """90 GB/s over the fabric, of a node that has 2 rails of 12.5 GB/s."""
    asked = ("step", *NODES, "--model", "llama-3-70b", "--tensor", "8", "--measured", measured)
    assert "is it of these nodes?" not in printed(*asked)
    assert "is it of these nodes?" in printed(*asked, "--rails", "2", "--rail-rate", "100Gb/s")


def test_the_fact_that_limits_is_named_with_what_changing_it_brings(site: str) -> None:
    asked = ("--model", "llama-3-8b", "--batch", "64", "--zero", "3", "--sequence", "512")
    limit = report("step", "--inventory", site, *asked).answer.limit
    assert limit is not None
    assert limit.fact == "rate of a rail"
    first = limit.changes[0]
    assert (first.now, first.then) == ("25 GB/s", "50 GB/s")
    assert first.brings.startswith("step ")
    assert first.gain > 0.1
    gains = [change.gain for change in limit.changes]
    assert gains == sorted(gains, reverse=True)


def test_a_step_prints_what_its_rules_of_thumb_leave_out() -> None:
    asked = ("step", *NODES, "--model", "llama-3-70b", "--tensor", "8")
    assert "leaves out" not in printed(*asked)
    text = printed(*asked, "--rules")
    assert "flat-all-reduce" in text
    assert "it is counted twice" in text


def test_a_sweep_is_printed_with_its_knee_and_what_cannot_be() -> None:
    asked = ("--model", "llama-3-70b", "--tensor", "8", "--pipeline", "4", "--batch", "512")
    text = printed("step", *NODES, *asked, "--rail-rate", "100Gb/s", "--sweep", "nodes=2..4096")
    assert "← knee" in text
    assert "knee at 256" in text
    assert "2: 16 GPUs are no multiple of tensor 8 × pipeline 4" in text


def test_what_if_prints_both_results_and_the_share() -> None:
    asked = ("train", *NODES, "--parameters", "70e9", "--mfu", "0.4")
    text = printed(*asked, "--what-if", "mfu=0.5")
    assert "What if mfu = 0.5" in text
    assert "-20.0%" in text


def test_json_has_every_amount_with_its_unit() -> None:
    document = json.loads(printed("train", *NODES, "--parameters", "70e9", "--json"))
    assert document["answer"]["results"]["time"]["unit"] == "s"
    assert document["answer"]["results"]["GPU time"]["unit"] == "GPU·s"


def test_a_plot_is_written(tmp_path: Path) -> None:
    path = tmp_path / "memory.svg"
    printed("memory", *NODES, "--model", "llama-3-8b", "--plot", str(path))
    assert path.read_text().startswith("<?xml")


def test_cost_compares_the_ways_of_a_plan(tmp_path: Path) -> None:
    path = tmp_path / "plan.yaml"
    path.write_text(printed("cost", "--example"))
    text = printed("cost", str(path), "--sweep", "used=0.2,1")
    assert "note: least: own" in text
    assert "Cost the same when used" in text
    found = report("cost", str(path), "--used", "0.2")
    assert found.answer.results["on demand"].unit == "EUR"
    assert "note: least: on demand" in printed("cost", str(path), "--used", "0.2")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("step", *NODES, "--model", "llama-3-8b", "--tensor", "64"), "does not divide the number"),
        (("step", "--gpu", "h100", "--model", "llama-3-8b"), "how many nodes?"),
        (("step", *NODES), "which model? give --model"),
        (("step", "--nodes", "8", "--model", "llama-3-8b"), "which GPU is it?"),
        (("memory", *NODES, "--model", "x", "--parameters", "1e9"), "or --parameters, not both"),
        (("train", *NODES, "--parameters", "70e9", "--mfu", "1.5"), "--mfu: Input should be less"),
        (("checkpoint", *NODES, "--parameters", "70e9", "--window", "2GB"), "an amount in s"),
        (
            ("checkpoint", *NODES, "--parameters", "70e9", "--window", "0s"),
            "expected more than 0 s",
        ),
        (("step", *NODES, "--model", "llama-3-8b", "--nvlink", "0B/s"), "more than 0 B/s"),
        (("step", *NODES, "--model", "llama-3-8b", "--rail-rate", "0Gb/s"), "more than 0 B/s"),
        (("train", *NODES, "--parameters", "1e9", "--peak", "0FLOP/s"), "more than 0 FLOP/s"),
        (("memory", *NODES, "--parameters", "1e9", "--hbm", "0GB"), "more than 0 B"),
        (("memory", *NODES, "--parameters", "inf"), "--parameters: Input should be a finite"),
        (("train", *NODES, "--parameters", "1e9", "--tokens", "inf"), "--tokens: Input should be"),
        (("storage", *NODES, "--parameters", "1e9", "--window", "0s"), "more than 0 s"),
        (("storage", *NODES, "--parameters", "1e9", "--storage-read", "0B/s"), "more than 0 B/s"),
        (("checkpoint", *NODES, "--parameters", "1e9", "--storage-write", "0B/s"), "more than 0"),
        (("step", *NODES, "--model", "llama-3-8b", "--parameters", "8e9"), "not both"),
        (("memory", *NODES, "--model", "llama-3-8b", "--mode", "serve", "--expert", "4"), "no exp"),
        (("step", *NODES, "--limit", "gpu001", "--model", "llama-3-8b"), "give --inventory"),
        (("storage", *NODES, "--mount", "/mnt/x", "--model", "llama-3-8b"), "give --inventory"),
        (("cost",), "which plan?"),
        (("cost", "/none.yaml"), "No such file"),
        (("step", *NODES, "--model", "llama-3-8b", "--measured", "/none.json"), "No such file"),
        (("memory", *NODES, "--model", "llama-3-8b", "--mode", "serve", "--tensor", "3"), "divide"),
    ],
)
def test_what_cannot_be_is_refused_in_words(arguments: tuple[str, ...], reason: str) -> None:
    assert reason in refused(*arguments)
