"""``railwright size storage``: what shared storage must read, write and hold."""

from typing import Annotated

from pydantic import Field

from railwright.model import Model
from railwright.sizing.checkpoint import checkpoint_bytes
from railwright.sizing.document import Answer, Breakdown, Change, Limit, Line, Section
from railwright.sizing.fields import Bytes, Capacity, Rate, Span
from railwright.sizing.host import Host
from railwright.sizing.question import Many, RecipeQuestion, host_lines
from railwright.sizing.storage import Feed, StorageNeed, storage_need
from railwright.sizing.training import flops_per_token, rough_flops
from railwright.sizing.units import seconds, size


class StorageQuestion(RecipeQuestion):
    """Storage of a training: data that is read, checkpoints that are written and read back."""

    tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=1e12, description="Tokens of the training."
    )
    token_bytes: Bytes = Field(default=size(4), description="Bytes of a token as it is stored.")
    mfu: Annotated[float, Field(gt=0, le=1)] = Field(
        default=0.4, description="MFU, from which tokens a second follow."
    )
    sequence: Many = Field(default=8192, description="Tokens of a sequence, for attention.")
    samples: Annotated[float, Field(ge=0, allow_inf_nan=False)] = Field(
        default=0, description="Samples a second of each GPU (pictures, video), beside tokens."
    )
    sample_bytes: Bytes = Field(default=size(0), description="Bytes of a sample.")
    data_size: Capacity | None = Field(default=None, description="Data set; default: the tokens.")
    kept: Many = Field(default=3, description="Checkpoints that are kept.")
    window: Span = Field(default=seconds(120), description="Time to write a checkpoint.")
    restart_window: Span = Field(default=seconds(120), description="Time to read it back.")
    storage_read: Rate | None = Field(default=None, description="What storage reads, in all.")
    storage_write: Rate | None = Field(default=None, description="What storage writes, in all.")
    storage_rate: Rate | None = Field(default=None, description="A node's network to storage.")

    def answer(self) -> Answer:
        host = self.host()
        nodes = self.node_count()
        need = self._need(host)
        has = self._has(host)
        name = self.model or f"{self.counts()[0]:,.0f} parameters"
        return Answer(
            command="storage",
            question=f"{name}, {self.tokens:.4g} tokens on {nodes} nodes of {host.gpus} GPUs",
            facts=host_lines(host),
            sections=(
                _bandwidth(need, nodes, has),
                self._capacity(need),
            ),
            results={
                "read": need.read,
                "write": need.writing_checkpoint,
                "capacity": need.capacity,
            },
            breakdown=Breakdown(
                title="What storage holds",
                bars={"": {"data": need.data, "checkpoints": need.checkpoints}},
            ),
            limit=_limit(need, has),
            notes=(
                "one copy of each checkpoint is read at a restart: replicas that each read their "
                "own multiply that",
                "not in it: metadata, many small files, other jobs, redundancy of the storage",
            ),
        )

    def _has(self, host: Host) -> "StorageWays":
        """What storage and the nodes' way to it carry, all nodes together."""
        nodes = self.node_count()
        read = self.storage_rate or (self.mounted.read if self.mounted else None)
        write = self.storage_rate or (self.mounted.write if self.mounted else None)
        return StorageWays(
            read=self.storage_read or host.measured.storage.read,
            write=self.storage_write or host.measured.storage.write,
            nodes_read=read * nodes if read is not None else None,
            nodes_write=write * nodes if write is not None else None,
        )

    def _need(self, host: Host) -> StorageNeed:
        gpus = self.node_count() * host.gpus
        model = self.model_or_none()
        parameters, active = self.counts()
        per_token = flops_per_token(model, self.sequence) if model else rough_flops(active, 1).value
        tokens = gpus * host.peak.value * self.mfu / per_token
        samples = gpus * self.samples * self.sample_bytes.value
        # Tokens and samples are read side by side, so their bytes add up.
        each = self.token_bytes.value + samples / tokens
        checkpoint = checkpoint_bytes(parameters, self.recipe().checkpoint_bytes)
        need = storage_need(
            Feed(per_second=tokens, each=size(each), count=self.tokens),
            checkpoint,
            kept=self.kept,
            write_within=self.window,
            read_within=self.restart_window,
        )
        return need.model_copy(update={"data": self.data_size or need.data})

    def _capacity(self, need: StorageNeed) -> Section:
        return Section(
            title="Capacity",
            lines=(
                Line(name="data", amount=need.data),
                Line(name=f"{self.kept} checkpoints", amount=need.checkpoints),
                Line(name="total", amount=need.capacity),
            ),
        )


class StorageWays(Model):
    """What is known of storage, all nodes together."""

    read: Rate | None
    write: Rate | None
    nodes_read: Rate | None
    nodes_write: Rate | None


def _bandwidth(need: StorageNeed, nodes: int, has: StorageWays) -> Section:
    lines = [
        Line(name="data while training, read", amount=need.reading_data),
        Line(name="checkpoint at a restart, read", amount=need.reading_checkpoint),
        Line(name="checkpoint, write", amount=need.writing_checkpoint),
        Line(name="of each node, read", amount=need.read / nodes),
        Line(name="of each node, write", amount=need.writing_checkpoint / nodes),
    ]
    known = {
        "storage reads": has.read,
        "storage writes": has.write,
        "nodes read, all together": has.nodes_read,
        "nodes write, all together": has.nodes_write,
    }
    lines += [Line(name=name, amount=rate) for name, rate in known.items() if rate is not None]
    return Section(title="Bandwidth", lines=tuple(lines))


def _limit(need: StorageNeed, has: StorageWays) -> Limit:
    asked = {
        "storage read": (need.read, has.read),
        "storage write": (need.writing_checkpoint, has.write),
        "nodes' way to storage, read": (need.read, has.nodes_read),
        "nodes' way to storage, write": (need.writing_checkpoint, has.nodes_write),
    }
    known = {name: (wants, rate) for name, (wants, rate) in asked.items() if rate is not None}
    if not known:
        why = (
            "nobody says what storage does: give --storage-read and --storage-write, or --measured"
        )
        return Limit(fact="not known", why=why)
    name = max(known, key=lambda one: (known[one][0] / known[one][1]).number)
    wants, rate = known[name]
    share = (wants / rate).number
    why = f"{wants} is asked of {rate} ({share:.0%})"
    if share <= 1:
        return Limit(fact=name, why=f"{why}: it is enough")
    brings = "checkpoints and data come within their time"
    change = Change(fact=name, now=str(rate), then=str(wants), brings=brings, gain=1 - 1 / share)
    return Limit(fact=name, why=f"{why}: it is too slow", changes=(change,))
