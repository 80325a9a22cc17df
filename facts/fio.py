"""What fio measured, as ``fio --output-format=json`` prints it (3.16 to 3.36)."""

import re

from facts.json_text import as_object, as_objects, load_json
from railwright.model import Model


class FioIo(Model):
    """The IO of one direction: how much in bytes, how fast in bytes/s, for how long in ms.

    The time counts to the end of the last fsync where fio was told to end by one.
    """

    io_bytes: int
    bw_bytes: int
    runtime_ms: int


class FioRun(Model):
    """One run over all of its jobs. ``error`` is the errno of the first that failed, or 0."""

    version: str
    error: int
    read: FioIo
    write: FioIo


# Messages stand before it on the same stream, such as "note: both iodepth >= 1 and ...".
_DOCUMENT = re.compile(r"^\{.*^\}", re.MULTILINE | re.DOTALL)


def parse_fio(text: str) -> FioRun:
    """Read what fio printed. Raises ValueError where there is no result in it."""
    found = _DOCUMENT.search(text)
    if found is None:
        raise ValueError(f"expected JSON of fio, got {text.strip()[-60:]!r}")
    document = as_object(load_json(found[0], "fio"), "fio")
    version = document.get("fio version")
    if not isinstance(version, str):
        raise ValueError("fio: expected 'fio version', got none")
    jobs = as_objects(document.get("jobs"), "fio jobs")
    if not jobs:
        raise ValueError("fio: expected a job, got none")
    errors = [_number(job, "error") for job in jobs]
    return FioRun(
        version=version,
        error=next((error for error in errors if error), 0),
        read=_io(jobs, "read"),
        write=_io(jobs, "write"),
    )


def _io(jobs: list[dict[str, object]], direction: str) -> FioIo:
    """All jobs ran at once, so their speeds add up."""
    parts = [as_object(job.get(direction), f"fio {direction}") for job in jobs]
    return FioIo(
        io_bytes=sum(_number(part, "io_bytes") for part in parts),
        bw_bytes=sum(_number(part, "bw_bytes") for part in parts),
        runtime_ms=max(_number(part, "runtime") for part in parts),
    )


def _number(part: dict[str, object], key: str) -> int:
    value = part.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ValueError(f"fio {key}: expected a number, got {value!r}")
    return value
