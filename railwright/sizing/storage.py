"""What shared storage must hold, read and write for a training."""

from typing import Annotated

from pydantic import Field

from railwright.model import Model
from railwright.sizing.fields import Bytes, Demand
from railwright.sizing.units import Quantity, size


class StorageNeed(Model):
    """What a training asks of storage, all nodes together."""

    reading_data: Demand
    reading_checkpoint: Demand
    writing_checkpoint: Demand
    data: Bytes
    checkpoints: Bytes

    @property
    def capacity(self) -> Quantity:
        return self.data + self.checkpoints

    @property
    def read(self) -> Quantity:
        """The most that is read at a time: a restart reads the checkpoint alone."""
        return max(self.reading_data, self.reading_checkpoint)


class Feed(Model):
    """What a training reads: ``per_second`` tokens or samples of ``each`` bytes, ``count`` in all.

    A token is 4 bytes (a 32-bit index) unless said otherwise; pictures and video are samples.
    """

    per_second: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    each: Bytes
    count: Annotated[float, Field(ge=0, allow_inf_nan=False)]


def storage_need(
    feed: Feed,
    checkpoint: Quantity,
    *,
    kept: int,
    write_within: Quantity,
    read_within: Quantity,
) -> StorageNeed:
    """Bandwidth and capacity: ``kept`` checkpoints, each written and read back within its time.

    Every GPU reads the whole checkpoint's share that it holds, so all of it is read once; replicas
    that each read their own copy multiply that, unless one reads and the fabric passes it on.
    """
    return StorageNeed(
        reading_data=Quantity(feed.per_second * feed.each.value, "B/s"),
        reading_checkpoint=checkpoint / read_within,
        writing_checkpoint=checkpoint / write_within,
        data=size(feed.count * feed.each.value),
        checkpoints=checkpoint * kept,
    )
