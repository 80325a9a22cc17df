"""What GPUs, NICs and PCIe can do at their best: figures that come with railwright, sourced."""

from functools import cache
from importlib.resources import files as resources
from typing import Annotated, Any, Generic, Literal, TypeVar

import yaml
from pydantic import Field

from railwright.model import Model
from railwright.sizing.fields import Capacity, FlopRate, Power, Rate, Seconds, Span

Precision = Literal["bf16", "fp8", "tf32"]
"""What matrices are multiplied in."""

Value = TypeVar("Value")


class Source(Model):
    """Where a figure is from. ``read`` says whether it was read there, or where others quote it, or
    worked out from what is known of it."""

    title: str
    read: Literal["there", "quoted", "worked out"]
    url: Annotated[str, Field(pattern=r"^https://\S+$")]


class Figure(Model, Generic[Value]):
    """One figure, and the name of its source."""

    value: Value = Field(alias="is")
    source: str


class Gpu(Model):
    """One GPU. Peaks are dense; ``nvlink`` is per direction, None has none."""

    form: str
    bf16: Figure[FlopRate]
    fp8: Figure[FlopRate] | None = None
    tf32: Figure[FlopRate]
    hbm: Figure[Capacity]
    hbm_bandwidth: Figure[Rate]
    nvlink: Figure[Rate] | None = None
    pcie_generation: Figure[str]
    power: Figure[Power]

    def peak(self, precision: Precision) -> Figure[FlopRate] | None:
        """Dense peak in ``precision``; None where the GPU does not compute in it."""
        return {"bf16": self.bf16, "fp8": self.fp8, "tf32": self.tf32}[precision]


class Latency(Model):
    """One step of a collective inside a node and over the fabric, by algorithm."""

    ring_inside: Figure[Seconds]
    ring_fabric: Figure[Seconds]
    tree_inside: Figure[Seconds]
    tree_fabric: Figure[Seconds]


class Hardware(Model):
    """All of it; rates of NICs and of x16 slots are per direction."""

    sources: dict[str, Source]
    gpus: dict[str, Gpu]
    nics: dict[str, Figure[Rate]]
    pcie: dict[str, Figure[Rate]]
    latency: Latency
    gpu_mtbf: Figure[Span]


@cache
def hardware() -> Hardware:
    """What comes with railwright, from data/hardware.yaml."""
    text = (resources("railwright.sizing") / "data" / "hardware.yaml").read_text(encoding="utf-8")
    document: Any = yaml.safe_load(text)
    return Hardware.model_validate(document)
