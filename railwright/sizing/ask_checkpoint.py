"""``railwright size checkpoint``: bytes, bandwidth, and how often they pay."""

from pydantic import Field

from railwright.model import Model
from railwright.sizing.checkpoint import (
    CheckpointCost,
    Waste,
    WritePath,
    checkpoint_bytes,
    checkpoint_cost,
    daly,
    job_mtbf,
    needed_bandwidth,
    waste,
    young,
)
from railwright.sizing.document import Answer, Breakdown, Change, Limit, Line, Section
from railwright.sizing.fields import Rate, Seconds, Span
from railwright.sizing.hardware import hardware
from railwright.sizing.host import Host
from railwright.sizing.memory import WIDTH
from railwright.sizing.parallel import SizingError
from railwright.sizing.question import RecipeQuestion, host_lines
from railwright.sizing.rules import checkpoint_bandwidth
from railwright.sizing.units import Quantity, seconds


class CheckpointQuestion(RecipeQuestion):
    """A checkpoint of all model states, and the interval between two of them."""

    window: Span = Field(default=seconds(120), description="Time in which it must be written.")
    storage_write: Rate | None = Field(
        default=None, description="What storage writes, all nodes together."
    )
    storage_rate: Rate | None = Field(
        default=None, description="A node's network to storage, such as 200Gb/s."
    )
    asynchronous: bool = Field(
        default=False, description="Written in the background: training waits for the copy alone."
    )
    without_weights: bool = Field(
        default=False, description="The 16-bit weights are left out: the master has them."
    )
    node_mtbf: Span | None = Field(
        default=None, description="A node's mean time between failures, such as 6000h."
    )
    restart: Seconds = Field(
        default=seconds(600), description="Time from a failure to training again (assumed)."
    )
    interval: Span | None = Field(default=None, description="Interval; default: Daly's.")

    def answer(self) -> Answer:
        host = self.host()
        parameters, _ = self.counts()
        each = self._bytes_of_a_parameter()
        amount = checkpoint_bytes(parameters, each)
        bandwidth = needed_bandwidth(amount, self.window)
        plan = self._plan(amount, host, self._path(host))
        name = self.model or f"{parameters:,.0f} parameters"
        size_lines = (
            Line(name="bytes of a parameter", says=f"{each} ({self._held()})"),
            Line(name="checkpoint", amount=amount),
            Line(name="window", amount=self.window),
            Line(name="write bandwidth needed", amount=bandwidth),
            Line(name="of each node", amount=bandwidth / self.node_count()),
        )
        return Answer(
            command="checkpoint",
            question=f"{name} on {self.node_count()} nodes of {host.gpus} GPUs",
            facts=host_lines(host),
            sections=(
                Section(title="Bytes and bandwidth", lines=size_lines),
                Section(title="How often", lines=tuple(plan.lines())),
            ),
            results={
                "checkpoint": amount,
                "write bandwidth": bandwidth,
                "interval": plan.interval,
                "lost": Quantity(plan.lost.total),
            },
            breakdown=Breakdown(title="Share of time that is lost", bars={"": plan.shares()}),
            limit=self._limit(amount, host),
            rules=(checkpoint_bandwidth(parameters, self.window),),
            notes=self._notes(host, plan),
        )

    def _bytes_of_a_parameter(self) -> int:
        recipe = self.recipe()
        if not self.without_weights:
            return recipe.checkpoint_bytes
        if recipe.master is None:
            raise SizingError("without a master copy the weights cannot be left out")
        return recipe.checkpoint_bytes - WIDTH[recipe.weights]

    def _held(self) -> str:
        recipe = self.recipe()
        parts = [] if self.without_weights else [f"{recipe.weights} weights"]
        parts += [f"{recipe.master} master"] if recipe.master else []
        return ", ".join([*parts, f"moments of {recipe.optimizer}"])

    def _path(self, host: Host) -> WritePath:
        nodes = self.node_count()
        measured = host.measured
        copy = measured.host_copy or host.pcie
        each = self.storage_rate or (self.mounted.write if self.mounted else None)
        network = each * nodes if each is not None else None
        return WritePath(
            storage=self.storage_write or measured.storage.write,
            network=network,
            host_copy=copy * (nodes * host.gpus),
        )

    def _cost(self, amount: Quantity, path: WritePath) -> CheckpointCost:
        """What it costs; of a way to storage that nobody knows the window is the time."""
        cost = checkpoint_cost(amount, path, asynchronous=self.asynchronous)
        if path.storage is not None or path.network is not None:
            return cost
        stall = cost.stall if self.asynchronous else self.window
        return CheckpointCost(bytes=amount, write=self.window, stall=stall)

    def _plan(self, amount: Quantity, host: Host, path: WritePath) -> "IntervalPlan":
        cost = self._cost(amount, path)
        part = self.node_mtbf or hardware().gpu_mtbf.value / host.gpus
        return self._interval_plan(cost, job_mtbf(part, self.node_count()))

    def _interval_plan(self, cost: CheckpointCost, mtbf: Quantity) -> "IntervalPlan":
        best = daly(cost.stall, mtbf)
        # In the background one must be written before the next one starts.
        if self.asynchronous and self.interval is not None and self.interval < cost.write:
            raise SizingError(
                f"a checkpoint takes {cost.write} to write: the next one cannot start after "
                f"{self.interval} (--interval)"
            )
        interval = self.interval or max(best, cost.write)
        return IntervalPlan(
            cost=cost,
            mtbf=mtbf,
            young=young(cost.stall, mtbf),
            daly=best,
            interval=interval,
            lost=waste(interval, cost.stall, self.restart, mtbf),
        )

    def _limit(self, amount: Quantity, host: Host) -> Limit:
        path = self._path(host)
        name, rate = path.limit()
        base = self._plan(amount, host, path)
        why = f"it takes {amount} at {rate}: {amount / rate}"
        field = {"storage write": "storage", "nodes' way to storage": "network"}.get(
            name, "host_copy"
        )
        faster = path.model_copy(update={field: rate * 2})
        then = self._plan(amount, host, faster)
        change = Change(
            fact=name,
            now=str(rate),
            then=str(rate * 2),
            brings=f"written in {base.cost.write} → {then.cost.write}, "
            f"lost {base.lost.total:.2%} → {then.lost.total:.2%}",
            gain=1 - then.cost.write.value / base.cost.write.value,
        )
        twice = self._interval_plan(base.cost, base.mtbf * 2)
        failures = Change(
            fact="MTBF of a node",
            now=f"job: {base.mtbf}",
            then=f"job: {base.mtbf * 2}",
            brings=f"lost {base.lost.total:.2%} → {twice.lost.total:.2%}",
            gain=1 - twice.lost.total / base.lost.total,
        )
        if path.storage is None and path.network is None:
            why = "nobody says what storage writes: give --storage-write, or --measured"
            return Limit(fact="not known", why=why, changes=(failures,))
        return Limit(fact=name, why=why, changes=(change, failures))

    def _notes(self, host: Host, plan: "IntervalPlan") -> tuple[str, ...]:
        found = ["gradients are not saved; the state of data loaders and generators is small"]
        if plan.lost.total >= 1:
            found.append(
                "this makes no progress: a failure comes before what it takes to write and to "
                "restart pays"
            )
        if self.node_mtbf is None:
            source = hardware().sources[hardware().gpu_mtbf.source].title
            found.append(
                f"no --node-mtbf: {hardware().gpu_mtbf.value / host.gpus} of a node with "
                f"{host.gpus} GPUs, after {source}"
            )
        if self.mounted is not None and self.mounted.write is not None and not self.storage_rate:
            found.append(
                f"of {self.mounted.mount} the inventory expects {self.mounted.write} of each node; "
                "whether storage takes that of all at once it does not say"
            )
        found.append("lost: to first order, a failure loses half an interval on average")
        return tuple(found)


class IntervalPlan(Model):
    """When to write checkpoints, and what is lost then."""

    cost: CheckpointCost
    mtbf: Seconds
    young: Seconds
    daly: Seconds
    interval: Seconds
    lost: Waste

    def lines(self) -> list[Line]:
        """What is printed of it."""
        return [
            Line(name="time to write it", amount=self.cost.write),
            Line(name="time that training waits", amount=self.cost.stall),
            Line(name="MTBF of the job", amount=self.mtbf),
            Line(name="interval after Young", amount=self.young),
            Line(name="interval after Daly", amount=self.daly),
            Line(name="interval that is taken", amount=self.interval),
            Line(name="lost to writing", says=f"{self.lost.writing:.2%}"),
            Line(name="lost to what is done again", says=f"{self.lost.redone:.2%}"),
            Line(name="lost to restarts", says=f"{self.lost.restarting:.2%}"),
            Line(name="share of time that makes progress", says=f"{self.lost.effective:.2%}"),
        ]

    def shares(self) -> dict[str, Quantity]:
        """The parts of what is lost."""
        return {
            "writing": Quantity(self.lost.writing),
            "done again": Quantity(self.lost.redone),
            "restarts": Quantity(self.lost.restarting),
        }
