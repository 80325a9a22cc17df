"""``railwright size train``: how long a training takes."""

from typing import Annotated

from pydantic import Field

from railwright.sizing.document import Answer, Change, Limit, Line, Section
from railwright.sizing.fields import Span
from railwright.sizing.host import Host
from railwright.sizing.question import Many, ModelQuestion, host_lines
from railwright.sizing.rules import training_time_rule
from railwright.sizing.training import (
    TrainingTime,
    flops_per_token,
    needed_gpus,
    rough_flops,
    training_time,
)
from railwright.sizing.units import Quantity

Share = Annotated[float, Field(gt=0, le=1)]


class TrainQuestion(ModelQuestion):
    """Time from the number of tokens and the MFU that is reached."""

    tokens: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=1e12, description="Tokens of the training."
    )
    mfu: Share | None = Field(
        default=None, description="MFU; default: the measured one, else 0.4 (assumed)."
    )
    effective: Share = Field(
        default=1.0, description="Share of time that makes progress; `size checkpoint` tells one."
    )
    sequence: Many = Field(default=8192, description="Tokens of a sequence, for attention.")
    within: Span | None = Field(default=None, description="Tell the GPUs for this time.")

    def answer(self) -> Answer:
        host = self.host()
        gpus = self.node_count() * host.gpus
        flops = self.flops()
        mfu, origin = self._mfu(host)
        found = training_time(flops, gpus, host.peak, mfu, self.effective)
        _, active = self.counts()
        rough = training_time(
            rough_flops(active, self.tokens), gpus, host.peak, mfu, self.effective
        )
        name = self.model or f"{active:,.0f} parameters"
        speed = Quantity(self.tokens, "token") / found.time
        return Answer(
            command="train",
            question=f"{name}, {self.tokens:.4g} tokens on {self.node_count()} nodes, {gpus} GPUs",
            facts=(*host_lines(host), Line(name="MFU", says=f"{mfu:.1%} ({origin})")),
            sections=(
                Section(title="Training", lines=tuple(self._lines(found, rough, host, mfu))),
            ),
            results={"time": found.time, "GPU time": found.gpu_time, "throughput": speed},
            speed=speed,
            limit=self._limit(host, found, gpus, mfu),
            rules=(training_time_rule(active, self.tokens, gpus, host.peak, mfu),),
            notes=self._notes(),
        )

    def flops(self) -> Quantity:
        """Useful operations, with attention where the model's form is known."""
        model = self.model_or_none()
        if model is None:
            return rough_flops(self.counts()[1], self.tokens)
        return Quantity(flops_per_token(model, self.sequence) * self.tokens, "FLOP")

    def _mfu(self, host: Host) -> tuple[float, str]:
        if self.mfu is not None:
            return self.mfu, "given"
        if host.measured.mfu is not None:
            return host.measured.mfu, "measured"
        return 0.4, "assumed"

    def _lines(
        self, found: TrainingTime, rough: TrainingTime, host: Host, mfu: float
    ) -> list[Line]:
        lines = [
            Line(name="operations", amount=found.flops),
            Line(name="time", amount=found.time),
            Line(name="GPU time", amount=found.gpu_time),
            Line(name="time by 6·P·D alone", amount=rough.time),
        ]
        if self.within is not None:
            busy = self.within * self.effective
            needed = needed_gpus(found.flops, busy, host.peak, mfu)
            says = f"{needed:,}, which are {-(-needed // host.gpus):,} nodes"
            lines.append(Line(name=f"GPUs for {self.within}", says=says))
        return lines

    def _limit(self, host: Host, found: TrainingTime, gpus: int, mfu: float) -> Limit:
        faster = training_time(found.flops, gpus, host.peak * 2, mfu, self.effective).time
        changes = [
            Change(
                fact="peak of a GPU",
                now=str(host.peak),
                then=f"{host.peak * 2}, at the same MFU",
                brings=f"{found.time} → {faster}",
                gain=0.5,
            )
        ]
        if mfu < 0.95:
            better = training_time(found.flops, gpus, host.peak, mfu + 0.05, self.effective).time
            changes.append(
                Change(
                    fact="MFU: what the fabric, memory and kernels leave of the peak",
                    now=f"{mfu:.0%}",
                    then=f"{mfu + 0.05:.0%}",
                    brings=f"{found.time} → {better}",
                    gain=1 - better.value / found.time.value,
                )
            )
        if self.effective < 1:
            whole = training_time(found.flops, gpus, host.peak, mfu).time
            changes.append(
                Change(
                    fact="failures and checkpoints",
                    now=f"{self.effective:.0%} of the time makes progress",
                    then="all of it",
                    brings=f"{found.time} → {whole}",
                    gain=1 - self.effective,
                )
            )
        why = f"{mfu:.0%} of it is used; which fact keeps MFU down, `size step` tells"
        return Limit(fact="peak of a GPU", why=why, changes=tuple(changes))

    def _notes(self) -> tuple[str, ...]:
        found = ["MFU is taken to hold at any number of nodes; `size step` tells how it falls"]
        if self.effective == 1.0:
            found.append("nothing is lost to failures and checkpoints: give --effective")
        if self.model is None:
            found.append("attention is left out: the model's form is not known")
        return tuple(found)
