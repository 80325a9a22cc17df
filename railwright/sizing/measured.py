"""Numbers that were measured on the machine, which stand in for what hardware could do at best.

The file is JSON, each amount as text with its unit::

    {
      "format": 1,
      "bus_bandwidth": [
        {"where": "node", "size": "8 GB", "rate": "473 GB/s"},
        {"where": "fabric", "size": "8 GB", "rate": "370 GB/s"}
      ],
      "storage": {"read": "200 GB/s", "write": "90 GB/s"},
      "host_copy": "50 GB/s",
      "mfu": 0.41
    }

``rate`` is the column busbw of nccl-tests' all_reduce_perf: ``node`` inside one node, ``fabric``
over two nodes or more with all their GPUs. The latter is what a node has of the fabric, so that a
GPU has that divided by the GPUs of a node. ``storage`` is of all nodes together, ``host_copy`` of
one GPU to its host's memory.
"""

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError, field_validator

from railwright.model import Model
from railwright.sizing.fields import Capacity, Rate
from railwright.sizing.units import Quantity

Where = Literal["node", "fabric"]


class BusBandwidth(Model):
    """Bus bandwidth of an all-reduce of ``size``."""

    where: Where
    size: Capacity
    rate: Rate


class StorageRates(Model):
    """What all nodes together read and write."""

    read: Rate | None = None
    write: Rate | None = None


class Measured(Model):
    """The file as a whole; what was not measured is left out."""

    format: Literal[1] = 1
    bus_bandwidth: tuple[BusBandwidth, ...] = ()
    storage: StorageRates = StorageRates()
    host_copy: Rate | None = None
    mfu: Annotated[float, Field(gt=0, le=1)] | None = None

    @field_validator("bus_bandwidth")
    @classmethod
    def _each_size_once(cls, given: tuple[BusBandwidth, ...]) -> tuple[BusBandwidth, ...]:
        seen = Counter((one.where, one.size) for one in given)
        for (where, amount), count in seen.items():
            if count > 1:
                raise ValueError(f"expected one rate for {amount} ({where}), got {count}")
        return given

    def curve(self, where: Where) -> tuple[tuple[Quantity, Quantity], ...]:
        """Sizes and rates that were measured there, the smallest first."""
        found = [(one.size, one.rate) for one in self.bus_bandwidth if one.where == where]
        return tuple(sorted(found, key=lambda one: one[0].value))


def rate_at(curve: tuple[tuple[Quantity, Quantity], ...], amount: Quantity) -> Quantity:
    """The rate for ``amount``: between two sizes by their logarithm, outside the nearest one's."""
    if amount <= curve[0][0]:
        return curve[0][1]
    for (below, slow), (above, fast) in itertools.pairwise(curve):
        if amount <= above:
            part = math.log(amount.value / below.value) / math.log(above.value / below.value)
            return slow + (fast - slow) * part
    return curve[-1][1]


def load_measured(path: Path) -> Measured:
    """The numbers in ``path``. Raises ValueError in words where it has none."""
    try:
        return Measured.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "the file"
        reason = first["msg"].removeprefix("Value error, ")
        raise ValueError(f"{path}: {where}: {reason}") from error
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {error}") from error
