"""Checkpoints: their bytes, the bandwidth they need, and how often they pay."""

import math

from railwright.model import Model
from railwright.sizing.fields import Bytes, Rate, Seconds
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity, seconds, size


def checkpoint_bytes(parameters: float, bytes_per_parameter: float) -> Quantity:
    """Bytes of a checkpoint. Gradients are not saved: 14 with bf16 weights, fp32 master and Adam.

    ``bytes_per_parameter`` is ``Recipe.checkpoint_bytes``, or less where the 16-bit copy is left
    out (12).
    """
    return size(parameters * bytes_per_parameter)


def needed_bandwidth(amount: Quantity, window: Quantity) -> Quantity:
    """Bandwidth that writes ``amount`` within ``window``."""
    if window.value <= 0:
        raise SizingError(f"expected a window of more than 0 s, got {window}")
    return amount / window


def young(cost: Quantity, mtbf: Quantity) -> Quantity:
    """√(2·C·M): the interval between checkpoints of cost C at mean time between failures M.

    Source: Young 1974, Communications of the ACM 17(9), 530-531.
    """
    _more_than_nothing(cost, mtbf)
    return seconds(math.sqrt(2 * cost.value * mtbf.value))


def daly(cost: Quantity, mtbf: Quantity) -> Quantity:
    """√(2CM)·[1 + ⅓·√(C/2M) + (C/2M)/9] − C for C < 2M, else M: computation between checkpoints.

    Source: Daly 2006, Future Generation Computer Systems 22(3), 303-312, equation 37.
    """
    _more_than_nothing(cost, mtbf)
    share = cost.value / (2 * mtbf.value)
    if share >= 1:
        return mtbf
    first = math.sqrt(2 * cost.value * mtbf.value)
    return seconds(first * (1 + math.sqrt(share) / 3 + share / 9) - cost.value)


def _more_than_nothing(cost: Quantity, mtbf: Quantity) -> None:
    if cost.value < 0 or mtbf.value <= 0:
        raise SizingError(f"expected a cost of 0 s or more and an MTBF over 0, got {cost}, {mtbf}")


class Waste(Model):
    """Shares of time that are lost, to first order: C/T + T/(2M) + R/M."""

    writing: float
    redone: float
    restarting: float

    @property
    def total(self) -> float:
        return self.writing + self.redone + self.restarting

    @property
    def effective(self) -> float:
        """The share of time that makes progress."""
        return max(0.0, 1 - self.total)


def waste(interval: Quantity, cost: Quantity, restart: Quantity, mtbf: Quantity) -> Waste:
    """What is lost with a checkpoint each ``interval``; a failure loses half of one on average."""
    if interval.value <= 0:
        raise SizingError(f"expected an interval of more than 0 s, got {interval}")
    return Waste(
        writing=(cost / interval).number,
        redone=(interval / mtbf).number / 2,
        restarting=(restart / mtbf).number,
    )


def job_mtbf(part_mtbf: Quantity, parts: int) -> Quantity:
    """Mean time between failures of a job that any of its ``parts`` stops."""
    if parts < 1:
        raise SizingError(f"expected 1 node or more, got {parts}")
    return part_mtbf / parts


class WritePath(Model):
    """What a checkpoint goes through: the slowest of it decides."""

    storage: Rate | None = None
    network: Rate | None = None
    host_copy: Rate

    def limit(self) -> tuple[str, Quantity]:
        """The slowest part of the way and its rate."""
        parts = {
            "storage write": self.storage,
            "nodes' way to storage": self.network,
            "PCIe from GPU to host": self.host_copy,
        }
        known = {name: rate for name, rate in parts.items() if rate is not None}
        name = min(known, key=lambda one: known[one].value)
        return name, known[name]


class CheckpointCost(Model):
    """What one checkpoint costs: a stall for all of it, or for the copy to the host alone."""

    bytes: Bytes
    write: Seconds
    stall: Seconds


def checkpoint_cost(amount: Quantity, path: WritePath, *, asynchronous: bool) -> CheckpointCost:
    """Time that ``amount`` takes to write, and how long training waits for it.

    A checkpoint that is written in the background stalls for the copy to the host's memory, and
    must be written before the next one starts.
    """
    write = amount / path.limit()[1]
    copy = amount / path.host_copy
    return CheckpointCost(bytes=amount, write=write, stall=copy if asynchronous else write)
