"""``railwright size memory``: what fills a GPU's memory, and whether it fits."""

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from railwright.sizing.document import Answer, Breakdown, Change, Limit, Line, Section
from railwright.sizing.fields import Bytes
from railwright.sizing.hardware import hardware
from railwright.sizing.host import Host
from railwright.sizing.memory import (
    Memory,
    Serving,
    even_share,
    serving_memory,
    state_bytes,
    training_memory,
)
from railwright.sizing.parallel import Layout, Parallelism, check_serving
from railwright.sizing.question import LayoutQuestion, Many, host_lines
from railwright.sizing.rules import zero3_memory
from railwright.sizing.units import Quantity, size


class MemoryQuestion(LayoutQuestion):
    """Memory of one GPU of the fullest stage, in training or in serving."""

    mode: Literal["train", "serve"] = Field(default="train", description="Train or serve.")
    sequences: Many = Field(default=1, description="Sequences that are served at once.")
    tokens: Many = Field(default=8192, description="Tokens of each sequence that is served.")
    cache: Literal["bf16", "fp8"] = Field(default="bf16", description="The KV cache.")
    runtime: Bytes = Field(
        default=size(4e9), description="What driver, CUDA context and NCCL take (assumed)."
    )

    def answer(self) -> Answer:
        host = self.host()
        if self.mode == "serve":
            return self._serving(host)
        if self.model_or_none() is None:
            return self._by_number(host)
        layout = self.layout(host)
        found = training_memory(layout, self.recipe(), self.runtime)
        model, parallel = layout.model, layout.parallel
        others = Section(title="What else would make room", lines=tuple(self._others(layout)))
        return self._answer(
            host,
            found,
            f"{model.name}, {model.parameters:,} parameters, on {parallel.gpus} GPUs: tensor "
            f"{parallel.tensor} × pipeline {parallel.pipeline} × context {parallel.context} × data "
            f"{parallel.data}, ZeRO-{parallel.zero}",
            (others,),
            parallel.gpus,
        )

    def _answer(
        self,
        host: Host,
        found: Memory,
        question: str,
        more: tuple[Section, ...] = (),
        gpus: int | None = None,
    ) -> Answer:
        lines = [Line(name=name, amount=amount) for name, amount in found.lines.items()]
        lines.append(Line(name="total", amount=found.total))
        fits = _fits(found.total, host)
        main = Section(title="Memory of a GPU of the fullest stage", lines=(*lines, fits))
        parameters = self.counts()[0]
        rules = (zero3_memory(parameters, gpus),) if gpus else ()
        return Answer(
            command="memory",
            question=question,
            facts=host_lines(host),
            sections=(main, *more),
            results={"memory of a GPU": found.total},
            breakdown=Breakdown(
                title="Memory of a GPU",
                bars={"": found.lines},
                limit=host.hbm,
                limit_name=f"memory of {host.gpu}",
            ),
            limit=_limit(found.total, host),
            rules=rules,
            notes=(*found.notes, *_measure(host)),
        )

    def _by_number(self, host: Host) -> Answer:
        parallel = self.parallelism(host)
        parameters = self.counts()[0]
        states = state_bytes(even_share(parameters, parallel), parallel, self.recipe())
        lines = {
            "weights": states.weights,
            "gradients": states.gradients,
            "optimizer states": states.optimizer,
        }
        notes = (
            "of a model of which the number of parameters alone is known: no activations, no "
            "gathered weights, all stages alike, and nothing of the runtime",
        )
        question = (
            f"{parameters:,.0f} parameters on {parallel.gpus} GPUs: tensor {parallel.tensor} × "
            f"pipeline {parallel.pipeline} × data {parallel.data}, ZeRO-{parallel.zero}"
        )
        return self._answer(host, Memory(lines=lines, notes=notes), question, (), parallel.gpus)

    def _serving(self, host: Host) -> Answer:
        model = self.transformer()
        # Experts are spread over replicas of the rest, each of which serves its own sequences.
        parallel = Parallelism(
            tensor=self.tensor, pipeline=self.pipeline, expert=self.expert, data=self.expert
        )
        check_serving(model, parallel)
        asked = Serving(
            sequences=self.sequences, tokens=self.tokens, weights=self.weights, cache=self.cache
        )
        found = serving_memory(model, parallel, asked, self.runtime)
        width = 2 if self.cache == "bf16" else 1
        each = Line(name="KV cache of a token", says=f"{model.kv_bytes_per_token(width):,.0f} B")
        question = (
            f"{model.name} served by tensor {self.tensor} × pipeline {self.pipeline}, experts over "
            f"{self.expert} replicas, each of {self.sequences} sequences of {self.tokens} tokens"
            if self.expert > 1
            else f"{model.name} served by tensor {self.tensor} × pipeline {self.pipeline}: "
            f"{self.sequences} sequences of {self.tokens} tokens"
        )
        return self._answer(host, found, question, (Section(title="KV cache", lines=(each,)),))

    def _others(self, layout: Layout) -> Iterator[Line]:
        """The same with one choice changed, where that takes less."""
        base = training_memory(layout, self.recipe(), self.runtime).total
        parallel, batch = layout.parallel, layout.batch
        variants = {
            f"ZeRO-{stage}": layout.model_copy(
                update={"parallel": parallel.model_copy(update={"zero": stage})}
            )
            for stage in range(parallel.zero + 1, 4)
        }
        if batch.recompute != "full":
            full = batch.model_copy(update={"recompute": "full"})
            variants["full recomputation"] = layout.model_copy(update={"batch": full})
        if parallel.tensor > 1 and not parallel.sequence_parallel:
            split = parallel.model_copy(update={"sequence_parallel": True})
            variants["sequence parallelism"] = layout.model_copy(update={"parallel": split})
        for name, variant in variants.items():
            total = training_memory(variant, self.recipe(), self.runtime).total
            if total < base:
                yield Line(name=name, amount=total, says="in all")


def _measure(host: Host) -> tuple[str, ...]:
    if host.origins.get("hbm") in ("given", "inventory"):
        return ()
    return (
        f"{host.hbm} is the data sheet's figure at 10⁹ bytes a GB; drivers report some 5 to 7 % "
        "more (an H100 of 80 GB: 81559 MiB, 85.5 GB). Give --hbm to go by yours",
    )


def _fits(total: Quantity, host: Host) -> Line:
    left = host.hbm.value - total.value
    says = f"fits, {size(left)} left" if left >= 0 else f"does not fit: {size(-left)} too much"
    return Line(name=f"in {host.hbm}", says=says)


def _limit(total: Quantity, host: Host) -> Limit:
    over = total.value / host.hbm.value
    why = f"{total} of {host.hbm} are taken ({over:.0%})"
    others = [
        Change(
            fact="memory of a GPU",
            now=f"{host.gpu}: {host.hbm}",
            then=f"{gpu.form}: {gpu.hbm.value}",
            brings="fits" if total <= gpu.hbm.value else "does not fit either",
            gain=gpu.hbm.value.value / host.hbm.value - 1,
        )
        for gpu in hardware().gpus.values()
        if host.hbm < gpu.hbm.value
    ]
    others.sort(key=lambda change: change.gain)
    return Limit(fact="memory of a GPU", why=why, changes=tuple(others))
