"""Which fact of the host limits: each fact changed by itself, and what that would bring."""

from collections.abc import Callable, Iterator

from railwright.model import Model
from railwright.sizing.document import Change, Limit
from railwright.sizing.host import Host
from railwright.sizing.measured import Where
from railwright.sizing.units import Quantity

LEAST_GAIN = 0.005
"""Half a percent: less is noise beside what the model leaves out."""


class Changed(Model):
    """A host with one fact changed."""

    fact: str
    now: str
    then: str
    host: Host


def changed_hosts(host: Host) -> Iterator[Changed]:
    """The host with one fact after the other made twice as good, or as many as there can be."""
    faster = host.peak * 2
    yield _changed(host, "peak of a GPU", host.peak, faster, {"peak": faster})
    if host.nvlink is not None:
        wider = host.nvlink * 2
        update = {"nvlink": wider, "measured_scale": _scaled(host, "node", 2)}
        yield _changed(host, "NVLink", host.nvlink, wider, update)
    doubled = host.rail_rate * 2
    update = {"rail_rate": doubled, "measured_scale": _scaled(host, "fabric", 2)}
    yield _changed(host, "rate of a rail", host.rail_rate, doubled, update)
    if host.rails < host.gpus:
        update = {
            "rails": host.gpus,
            "measured_scale": _scaled(host, "fabric", host.gpus / host.rails),
        }
        yield Changed(
            fact="rails of a node",
            now=f"{host.rails} for {host.gpus} GPUs",
            then=f"{host.gpus}, one for each GPU",
            host=host.model_copy(update=update),
        )
    slot = host.pcie * 2
    yield _changed(host, "PCIe slot of a GPU", host.pcie, slot, {"pcie": slot})
    yield Changed(
        fact="latency of the network",
        now="as assumed",
        then="half of it",
        host=host.model_copy(update={"latency_scale": host.latency_scale / 2}),
    )


def _changed(
    host: Host, fact: str, now: Quantity, then: Quantity, update: dict[str, object]
) -> Changed:
    return Changed(fact=fact, now=str(now), then=str(then), host=host.model_copy(update=update))


def _scaled(host: Host, where: Where, factor: float) -> dict[Where, float]:
    return {**host.measured_scale, where: host.measured_scale.get(where, 1.0) * factor}


def limit_of(host: Host, takes: Callable[[Host], Quantity], what: str, why: str) -> Limit:
    """The fact whose change makes ``takes`` (a time) least; ``what`` names that time."""
    base = takes(host)
    found = []
    for one in changed_hosts(host):
        then = takes(one.host)
        gain = 1 - (then / base).number
        if gain >= LEAST_GAIN:
            brings = f"{what} {base} → {then}"
            found.append(
                Change(fact=one.fact, now=one.now, then=one.then, brings=brings, gain=gain)
            )
    found.sort(key=lambda change: -change.gain)
    if not found:
        return Limit(fact="none of the host's", why=why)
    return Limit(fact=found[0].fact, why=why, changes=tuple(found))
