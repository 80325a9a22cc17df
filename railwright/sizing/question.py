"""What is asked: the inputs of each command, of which options, sweeps and what-ifs are made."""

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field

from railwright.model import Model
from railwright.sizing.document import Answer, Line
from railwright.sizing.fields import Capacity, FlopRate, Rate
from railwright.sizing.hardware import Precision
from railwright.sizing.host import Host, HostFacts, NodeStorage, host_of
from railwright.sizing.measured import Measured, Where
from railwright.sizing.memory import Number, Optimizer, Recipe
from railwright.sizing.parallel import (
    Batch,
    Layout,
    Parallelism,
    Recompute,
    SizingError,
    Zero,
    laid_out,
    spread,
)
from railwright.sizing.transformer import Transformer, by_name

Many = Annotated[int, Field(ge=1)]
GIVEN = ("found", "measured", "mounted", "inventory_nodes")
"""Fields that are no options: they come from files."""


class Question(Model):
    """What a command is asked. A field is an option of it, by its name."""

    @abstractmethod
    def answer(self) -> Answer:
        """The answer. Raises SizingError where the inputs cannot be."""

    @classmethod
    def inputs(cls) -> tuple[str, ...]:
        """Names that options, sweeps and what-ifs may give."""
        return tuple(name for name in cls.model_fields if name not in GIVEN)


class HostQuestion(Question):
    """A question that goes by what nodes have."""

    nodes: Many | None = Field(default=None, description="Nodes; default: the inventory's.")
    gpu: str | None = Field(default=None, description="Model of the GPUs, such as h100.")
    gpus: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="GPUs of a node."
    )
    rails: Annotated[int, Field(ge=1, le=64)] | None = Field(
        default=None, description="Rails of a node."
    )
    rail_rate: Rate | None = Field(default=None, description="Rate of a rail, such as 400Gb/s.")
    nic: str | None = Field(default=None, description="Model of the NICs, such as connectx7.")
    nvlink: Rate | None = Field(default=None, description="NVLink of a GPU, per direction.")
    pcie: Rate | None = Field(default=None, description="What a GPU's slot carries, per direction.")
    peak: FlopRate | None = Field(default=None, description="Dense peak of a GPU.")
    hbm: Capacity | None = Field(default=None, description="Memory of a GPU.")
    precision: Precision = Field(default="bf16", description="What matrices are multiplied in.")
    found: HostFacts | None = None
    measured: Measured | None = None
    mounted: NodeStorage | None = None
    inventory_nodes: int | None = None

    def host(self) -> Host:
        """The node that is asked of."""
        given = {name: getattr(self, name) for name in HostFacts.model_fields}
        return host_of(HostFacts(**given), self.found, self.precision, self.measured)

    def node_count(self) -> int:
        """Nodes that are asked of. Raises SizingError where nobody says."""
        count = self.nodes or self.inventory_nodes
        if count is None:
            raise SizingError("how many nodes? give --nodes, or --inventory")
        return count


class ModelQuestion(HostQuestion):
    """A question that goes by a model: a published one, or its number of parameters alone."""

    model: str | None = Field(default=None, description="A published model, such as llama-3-70b.")
    parameters: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="Parameters of another model, such as 70e9."
    )

    def transformer(self) -> Transformer:
        """The model. Raises SizingError where it is none that is known, or is given twice."""
        if self.model is None:
            raise SizingError("which model? give --model")
        if self.parameters is not None:
            raise SizingError("give --model or --parameters, not both")
        try:
            return by_name(self.model)
        except ValueError as error:
            raise SizingError(str(error)) from error

    def model_or_none(self) -> Transformer | None:
        """The model, or None where its number of parameters alone is given."""
        if self.model is None and self.parameters is not None:
            return None
        return self.transformer()

    def counts(self) -> tuple[float, float]:
        """All parameters, and those that a token goes through."""
        model = self.model_or_none()
        if model is not None:
            return model.parameters, model.active_parameters
        return float(self.parameters or 0), float(self.parameters or 0)


class RecipeQuestion(ModelQuestion):
    """A question that goes by what is held of each parameter."""

    weights: Number = Field(default="bf16", description="Weights.")
    gradients: Number = Field(default="fp32", description="Gradients as they are summed.")
    master: Literal["fp32", "bf16", "none"] = Field(
        default="fp32", description="The optimizer's own copy of the weights."
    )
    optimizer: Optimizer = Field(default="adam", description="The optimizer, for its moments.")

    def recipe(self) -> Recipe:
        return Recipe(
            weights=self.weights,
            gradients=self.gradients,
            master=None if self.master == "none" else self.master,
            optimizer=self.optimizer,
        )


class LayoutQuestion(RecipeQuestion):
    """A question that goes by how the model is laid over GPUs."""

    tensor: Many = Field(default=1, description="Tensor parallelism.")
    pipeline: Many = Field(default=1, description="Pipeline parallelism.")
    context: Many = Field(default=1, description="Context parallelism.")
    expert: Many = Field(default=1, description="Expert parallelism.")
    zero: Zero = Field(default=1, description="ZeRO stage: what replicas share out.")
    sequence_parallel: bool = Field(default=False, description="Split the sequence over tensor.")
    chunks: Many = Field(default=1, description="Model chunks of a stage, interleaved.")
    sequence: Many = Field(default=8192, description="Tokens of a sequence.")
    micro_batch: Many = Field(default=1, description="Sequences at once on a replica.")
    batch: Many = Field(default=1024, description="Sequences of a step, all replicas together.")
    recompute: Recompute = Field(default="selective", description="Activations computed again.")
    attention: Literal["flash", "scores"] = Field(
        default="flash", description="Whether attention keeps its scores for the way back."
    )

    def parallelism(self, host: Host) -> Parallelism:
        """The degrees, with data parallelism that fills all GPUs."""
        degrees = Parallelism(
            tensor=self.tensor,
            pipeline=self.pipeline,
            context=self.context,
            expert=self.expert,
            zero=self.zero,
            sequence_parallel=self.sequence_parallel,
            chunks=self.chunks,
        )
        return spread(self.node_count() * host.gpus, degrees)

    def layout(self, host: Host) -> Layout:
        """The model laid over all GPUs. Raises SizingError with every reason why it cannot be."""
        steps = Batch(
            sequence=self.sequence,
            micro=self.micro_batch,
            total=self.batch,
            recompute=self.recompute,
            attention=self.attention,
        )
        return laid_out(self.transformer(), self.parallelism(host), steps)


def host_lines(host: Host) -> tuple[Line, ...]:
    """The facts that an answer goes by, each with where it is from."""
    per_direction = {
        "gpu": Line(name="GPU", says=host.gpu),
        "gpus": Line(name="GPUs of a node", says=str(host.gpus)),
        "peak": Line(name="peak of a GPU", amount=host.peak),
        "hbm": Line(name="memory of a GPU", amount=host.hbm),
        "nvlink": Line(name="NVLink of a GPU", amount=host.nvlink),
        "pcie": Line(name="slot of a GPU", amount=host.pcie),
        "rails": Line(name="rails of a node", says=str(host.rails)),
        "rail_rate": Line(name="rate of a rail", amount=host.rail_rate),
    }
    lines = []
    for name, line in per_direction.items():
        if name == "nvlink" and host.nvlink is None:
            continue
        origin = host.origins.get(name, "given")
        lines.append(line.model_copy(update={"says": f"{line.says} ({origin})".strip()}))
    places: tuple[Where, ...] = ("node", "fabric")
    for where in places:
        if count := len(host.measured.curve(where)):
            says = f"{count} {'size' if count == 1 else 'sizes'}, in place of the rates above"
            lines.append(Line(name=f"measured bus bandwidth, {where}", says=says))
    return tuple(lines)
