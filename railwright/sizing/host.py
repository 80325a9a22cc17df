"""A node as far as sizing goes by it: each figure, and where it was taken from."""

from typing import Annotated

from pydantic import Field

from railwright.model import Model
from railwright.sizing.collectives import Link
from railwright.sizing.fields import Capacity, FlopRate, Rate
from railwright.sizing.hardware import Figure, Gpu, Precision, hardware
from railwright.sizing.measured import Measured, Where, rate_at
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity
from railwright.words import unknown


class HostFacts(Model):
    """What is said of a node, by a person or an inventory; null is not said."""

    gpu: str | None = None
    gpus: Annotated[int, Field(ge=1, le=64)] | None = None
    rails: Annotated[int, Field(ge=1, le=64)] | None = None
    rail_rate: Rate | None = None
    nic: str | None = None
    peak: FlopRate | None = None
    hbm: Capacity | None = None
    nvlink: Rate | None = None
    pcie: Rate | None = None


class NodeStorage(Model):
    """What one node is expected to read and write on a mount that all share."""

    mount: str
    read: Rate | None
    write: Rate | None


class Host(Model):
    """One node. Rates are per direction: ``nvlink`` and ``pcie`` of one GPU, ``rail_rate`` of one
    NIC. ``origins`` says of each figure where it is from."""

    gpu: str
    gpus: int
    peak: FlopRate
    hbm: Capacity
    nvlink: Rate | None
    pcie: Rate
    rails: int
    rail_rate: Rate
    latency_scale: float = 1.0
    measured: Measured = Measured()
    measured_scale: dict[Where, float] = Field(default={})
    origins: dict[str, str] = Field(default={})

    @property
    def inside_best(self) -> Quantity:
        """What one GPU sends to another in the node at best."""
        return self.nvlink if self.nvlink is not None else self.pcie

    @property
    def fabric_best(self) -> Quantity:
        """What one GPU has of the fabric at best: its share of the rails, through its slot."""
        return min(self.rail_rate * (self.rails / self.gpus), self.pcie)

    def inside(self, amount: Quantity) -> Link:
        """The way inside the node for a collective of ``amount``."""
        latency = hardware().latency
        return self._link(
            "node", amount, self.inside_best, latency.ring_inside, latency.tree_inside, 1
        )

    def fabric(self, amount: Quantity) -> Link:
        """One GPU's way over the fabric for a collective of ``amount``."""
        latency = hardware().latency
        return self._link(
            "fabric", amount, self.fabric_best, latency.ring_fabric, latency.tree_fabric, self.gpus
        )

    def _link(
        self,
        where: Where,
        amount: Quantity,
        best: Quantity,
        ring: "Figure[Quantity]",
        tree: "Figure[Quantity]",
        sharers: int,
    ) -> Link:
        curve = self.measured.curve(where)
        if curve:
            # What was measured has its latency in it.
            scale = self.measured_scale.get(where, 1.0) / sharers
            return Link(bandwidth=rate_at(curve, amount) * scale)
        return Link(
            bandwidth=best,
            ring_step=ring.value * self.latency_scale,
            tree_step=tree.value * self.latency_scale,
        )


def host_of(
    given: HostFacts,
    found: HostFacts | None = None,
    precision: Precision = "bf16",
    measured: Measured | None = None,
) -> Host:
    """The node: what is ``given``, then what was ``found`` in an inventory, then its GPU's figures.

    Raises SizingError that names what nobody says.
    """
    said: dict[str, str] = {}
    facts = _merged(given, found or HostFacts(), said)
    gpu = _gpu(facts, said)
    peak = facts.peak or _peak(gpu, facts, precision, said)
    return Host(
        gpu=facts.gpu or "a GPU by its figures",
        gpus=facts.gpus or _assumed("gpus", 8, said),
        peak=peak,
        hbm=facts.hbm or _figure("hbm", gpu.hbm if gpu else None, said),
        nvlink=facts.nvlink or _nvlink(gpu, said),
        pcie=facts.pcie or _pcie(gpu, said),
        rails=facts.rails or _assumed("rails", facts.gpus or 8, said),
        rail_rate=facts.rail_rate or _rail_rate(facts, said),
        measured=measured or Measured(),
        origins=said,
    )


def _merged(given: HostFacts, found: HostFacts, said: dict[str, str]) -> HostFacts:
    values = {}
    for name in HostFacts.model_fields:
        for facts, origin in ((given, "given"), (found, "inventory")):
            value = getattr(facts, name)
            if value is not None:
                values[name] = value
                said[name] = origin
                break
    # A model of NIC that is given stands for its rate, and so outweighs a rate that was found.
    if given.nic is not None and given.rail_rate is None:
        values.pop("rail_rate", None)
    return HostFacts(**values)


def _gpu(facts: HostFacts, said: dict[str, str]) -> Gpu | None:
    if facts.gpu is None:
        return None
    known = hardware().gpus
    if facts.gpu not in known:
        if facts.peak is not None and facts.hbm is not None and facts.pcie is not None:
            return None
        raise SizingError(
            f"{unknown('GPU', facts.gpu, known)}: there are {', '.join(known)}; of another "
            "give --peak, --hbm, --pcie and --nvlink"
        )
    said["gpu"] = f"{said['gpu']}; taken to be {known[facts.gpu].form}"
    return known[facts.gpu]


def _source(name: str) -> str:
    return hardware().sources[name].title


def _figure(name: str, figure: "Figure[Quantity] | None", said: dict[str, str]) -> Quantity:
    if figure is None:
        raise SizingError(f"neither --{name} nor the GPU's model says it")
    said[name] = _source(figure.source)
    return figure.value


def _peak(
    gpu: Gpu | None, facts: HostFacts, precision: Precision, said: dict[str, str]
) -> Quantity:
    if gpu is None:
        raise SizingError("which GPU is it? neither --gpu nor the inventory's gpu_driver.gpu says")
    figure = gpu.peak(precision)
    if figure is None:
        raise SizingError(f"{facts.gpu} does not multiply in {precision}")
    said["peak"] = f"dense {precision}: {_source(figure.source)}"
    return figure.value


def _nvlink(gpu: Gpu | None, said: dict[str, str]) -> Quantity | None:
    if gpu is None or gpu.nvlink is None:
        return None
    said["nvlink"] = f"per direction: {_source(gpu.nvlink.source)}"
    return gpu.nvlink.value


def _pcie(gpu: Gpu | None, said: dict[str, str]) -> Quantity:
    if gpu is None:
        raise SizingError("neither --pcie nor the GPU's model says what its slot carries")
    generation = gpu.pcie_generation
    figure = hardware().pcie[generation.value]
    said["pcie"] = f"generation {generation.value} x16: {_source(figure.source)}"
    return figure.value


def _rail_rate(facts: HostFacts, said: dict[str, str]) -> Quantity:
    known = hardware().nics
    if facts.nic is None:
        said["rail_rate"] = "assumed: neither rails.rate_gbps nor platform.nic is said"
        return known["connectx7"].value
    if facts.nic not in known:
        raise SizingError(f"{unknown('NIC', facts.nic, known)}: there are {', '.join(known)}")
    figure = known[facts.nic]
    said["rail_rate"] = f"line rate of {facts.nic}: {_source(figure.source)}"
    return figure.value


def _assumed(name: str, value: int, said: dict[str, str]) -> int:
    said[name] = "assumed"
    return value
