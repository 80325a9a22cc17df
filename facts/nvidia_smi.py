"""GPUs as ``nvidia-smi --query-gpu=FIELDS --format=csv`` lists them.

With or without the header, with or without units. Drivers up to R440 write [Not Supported] where
newer ones write [N/A]. Source of the fields: nvidia-smi --help-query-gpu.
"""

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from pydantic import Field

from facts.nvidia_smi_problem import SmiProblem, find_problem
from facts.nvidia_throttle import pci_address, reason, reasons_of
from railwright.model import Model

Absence = Literal[
    "not_available",
    "not_supported",
    "error",
    "gpu_lost",
    "reset_required",
    "no_permission",
    "deprecated",
]


class Gpu(Model):
    """One GPU. A field is None where it was not asked for, or is in ``absent``, which says why.

    ``pci`` is as sysfs has it. Memory is in MiB, power in W, clocks in MHz, temperatures in °C,
    ``fan_speed`` and the two of ``utilization`` in percent. ``ecc`` and ``mig`` are what is in
    force, the ``pending`` ones what a reset brings. ``active_reasons`` are those that lower the
    clocks now, by the names of facts.nvidia_throttle.
    """

    index: int | None = None
    uuid: str | None = None
    serial: str | None = None
    name: str | None = None
    pci: str | None = None
    driver_version: str | None = None
    vbios_version: str | None = None
    compute_cap: str | None = None
    compute_mode: str | None = None
    pstate: str | None = None
    persistence: bool | None = None
    mig: bool | None = None
    mig_pending: bool | None = None
    ecc: bool | None = None
    ecc_pending: bool | None = None
    ecc_corrected_volatile: int | None = None
    ecc_corrected_aggregate: int | None = None
    ecc_uncorrected_volatile: int | None = None
    ecc_uncorrected_aggregate: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failure: bool | None = None
    memory_total_mib: int | None = None
    memory_used_mib: int | None = None
    memory_free_mib: int | None = None
    power_draw_w: float | None = None
    power_limit_w: float | None = None
    power_enforced_limit_w: float | None = None
    power_default_limit_w: float | None = None
    power_min_limit_w: float | None = None
    power_max_limit_w: float | None = None
    clocks_sm: int | None = None
    clocks_mem: int | None = None
    clocks_max_sm: int | None = None
    clocks_max_mem: int | None = None
    temperature_gpu: int | None = None
    temperature_memory: int | None = None
    fan_speed: int | None = None
    utilization_gpu: int | None = None
    utilization_memory: int | None = None
    pcie_gen: int | None = None
    pcie_gen_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    fabric_state: str | None = None
    fabric_status: str | None = None
    active_reasons: tuple[str, ...] | None = None
    absent: dict[str, Absence] = Field(default={})
    """Fields of this model that were asked for and have no value."""

    @property
    def failed(self) -> bool:
        """Whether a field could not be read, as it is of a GPU that is lost."""
        return bool(set(self.absent.values()) - {"not_available", "not_supported", "deprecated"})


class SmiReport(Model):
    """GPUs in the order listed; ``problem`` is why there are none.

    ``warnings`` are lines that come with an answer (a corrupted infoROM).
    """

    gpus: tuple[Gpu, ...] = ()
    problem: SmiProblem | None = None
    warnings: tuple[str, ...] = ()


Value = str | int | float | bool | tuple[str, ...]


class _Column(NamedTuple):
    """A field of Gpu, and what reads its words."""

    field: str
    read: Callable[[str], Value]


def _integer(words: str) -> int:
    # A few counts come as 12.0 or with decimals of zero; a unit may follow.
    found = re.fullmatch(r"(-?[0-9]+)(?:\.0+)?(?: (?:MiB|MHz|%|C|W))?", words)
    if found is None:
        raise ValueError(f"expected a whole number, got {words[:40]!r}")
    return int(found[1])


def _decimal(words: str) -> float:
    found = re.fullmatch(r"(-?[0-9]+(?:\.[0-9]+)?)(?: (?:W|MHz|%|MiB|C))?", words)
    if found is None:
        raise ValueError(f"expected a number, got {words[:40]!r}")
    return float(found[1])


_SWITCH = {"Enabled": True, "Yes": True, "Active": True, "On": True, "1": True} | dict.fromkeys(
    ("Disabled", "No", "Not Active", "Off", "0"), False
)


def _switch(words: str) -> bool:
    if words not in _SWITCH:
        raise ValueError(f"expected Enabled or Disabled, got {words[:40]!r}")
    return _SWITCH[words]


def _mask(words: str) -> tuple[str, ...]:
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,16}", words):
        raise ValueError(f"expected a bit mask, got {words[:40]!r}")
    return reasons_of(int(words, 16))


_COLUMNS: dict[str, _Column] = {
    "index": _Column("index", _integer),
    "name": _Column("name", str),
    "pci.bus_id": _Column("pci", pci_address),
    "uuid": _Column("uuid", str),
    "serial": _Column("serial", str),
    "driver_version": _Column("driver_version", str),
    "vbios_version": _Column("vbios_version", str),
    "compute_cap": _Column("compute_cap", str),
    "compute_mode": _Column("compute_mode", str),
    "pstate": _Column("pstate", str),
    "persistence_mode": _Column("persistence", _switch),
    "mig.mode.current": _Column("mig", _switch),
    "mig.mode.pending": _Column("mig_pending", _switch),
    "ecc.mode.current": _Column("ecc", _switch),
    "ecc.mode.pending": _Column("ecc_pending", _switch),
    "remapped_rows.pending": _Column("remapped_rows_pending", _switch),
    "remapped_rows.failure": _Column("remapped_rows_failure", _switch),
    "power.draw": _Column("power_draw_w", _decimal),
    "power.limit": _Column("power_limit_w", _decimal),
    "enforced.power.limit": _Column("power_enforced_limit_w", _decimal),
    "power.default_limit": _Column("power_default_limit_w", _decimal),
    "power.min_limit": _Column("power_min_limit_w", _decimal),
    "power.max_limit": _Column("power_max_limit_w", _decimal),
    "clocks.max.sm": _Column("clocks_max_sm", _integer),
    "clocks.max.mem": _Column("clocks_max_mem", _integer),
    "clocks.sm": _Column("clocks_sm", _integer),
    "clocks.mem": _Column("clocks_mem", _integer),
    "temperature.gpu": _Column("temperature_gpu", _integer),
    "temperature.memory": _Column("temperature_memory", _integer),
    "fan.speed": _Column("fan_speed", _integer),
    "utilization.gpu": _Column("utilization_gpu", _integer),
    "utilization.memory": _Column("utilization_memory", _integer),
    "pcie.link.gen.current": _Column("pcie_gen", _integer),
    "pcie.link.gen.max": _Column("pcie_gen_max", _integer),
    "pcie.link.width.current": _Column("pcie_width", _integer),
    "pcie.link.width.max": _Column("pcie_width_max", _integer),
    "fabric.state": _Column("fabric_state", str),
    "fabric.status": _Column("fabric_status", str),
    "clocks_event_reasons.active": _Column("active_reasons", _mask),
    **{
        f"memory.{part}": _Column(f"memory_{part}_mib", _integer)
        for part in ("total", "used", "free")
    },
    **{
        f"ecc.errors.{kind}.{span}.total": _Column(f"ecc_{kind}_{span}", _integer)
        for kind in ("corrected", "uncorrected")
        for span in ("volatile", "aggregate")
    },
}
_SAME = {
    "gpu_name": "name",
    "gpu_uuid": "uuid",
    "gpu_serial": "serial",
    "gpu_bus_id": "pci.bus_id",
    "clocks.current.sm": "clocks.sm",
    "clocks.current.memory": "clocks.mem",
    "clocks.max.memory": "clocks.max.mem",
    "clocks_throttle_reasons.active": "clocks_event_reasons.active",
    "pcie.link.gen.gpucurrent": "pcie.link.gen.current",
}
_REASON = re.compile(r"clocks_(?:event|throttle)_reasons\.(\w+)")
_ABSENCES: dict[str, Absence] = {
    "N/A": "not_available",
    "Not Supported": "not_supported",
    "ERR!": "error",
    "Unknown Error": "error",
    "Not Found": "error",
    "GPU is lost": "gpu_lost",
    "GPU requires reset": "reset_required",
    "Insufficient Permissions": "no_permission",
    "Requested functionality has been deprecated": "deprecated",
    "Deprecated": "deprecated",
}
_FIELD = re.compile(r"[a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*")


def query_fields(command: str) -> tuple[str, ...]:
    """The fields that ``nvidia-smi --query-gpu=A,B ...`` asks for; none where it asks for none."""
    found = re.search(r"--query-gpu[= ]([a-z0-9_.,]+)", command)
    return tuple(filter(None, found[1].split(","))) if found else ()


def parse_query(text: str, fields: tuple[str, ...] = (), rc: int = 0) -> SmiReport:
    """Read the table; ``fields`` are those of the query, and needed where there is no header.

    Fields that this module does not know are passed over. Raises ValueError for a text that is no
    table, for a row of another width, and for a value that is not of its field's kind.
    """
    # In brackets it is the value of one field of one GPU.
    problem = find_problem(re.sub(r"\[[^\]]*\]", "", text), rc)
    if problem is not None:
        return SmiReport(problem=problem)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    warnings = tuple(line for line in lines if line.startswith("WARNING:"))
    rows = [_cells(line) for line in lines if not line.startswith("WARNING:")]
    header = _header(rows)
    names = header or fields
    if not names:
        raise ValueError(f"expected the header of nvidia-smi's table, got {text.strip()[:80]!r}")
    gpus = tuple(_gpu(names, row) for row in rows[1 if header else 0 :])
    if rc != 0 and not warnings and not any(gpu.failed for gpu in gpus):
        raise ValueError(f"nvidia-smi exited {rc}: {text.strip()[:80]!r}")
    return SmiReport(gpus=gpus, warnings=warnings)


def _cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.split(","))


def _header(rows: list[tuple[str, ...]]) -> tuple[str, ...]:
    """The names in the first row, without units; none where it is a row of values."""
    names = tuple(re.sub(r" \[[^\]]*\]$", "", cell) for cell in rows[0]) if rows else ()
    known = sum(_SAME.get(name, name) in _COLUMNS for name in names)
    return names if known and all(_FIELD.fullmatch(name) for name in names) else ()


def _gpu(names: tuple[str, ...], row: tuple[str, ...]) -> Gpu:
    if len(row) != len(names):
        raise ValueError(f"expected {len(names)} values of nvidia-smi, got {', '.join(row)[:80]!r}")
    values: dict[str, Value | None] = {}
    absent: dict[str, Absence] = {}
    reasons: list[str] | None = None
    for name, words in zip(names, row, strict=True):
        column = _COLUMNS.get(_SAME.get(name, name))
        missing = _absence(words)
        if column is not None and missing is not None:
            values[column.field], absent[column.field] = None, missing
        elif column is not None:
            values[column.field] = _value(name, words, column)
        elif (single := _REASON.fullmatch(name)) and words in ("Active", "Not Active"):
            reasons = [*(reasons or []), *([reason(single[1])] if words == "Active" else [])]
    if reasons is not None:
        values.setdefault("active_reasons", tuple(reasons))
    return Gpu.model_validate({**values, "absent": absent})


def _absence(words: str) -> Absence | None:
    """Why there is no value. What stands in brackets is never one."""
    known = _ABSENCES.get(words.removeprefix("[").removesuffix("]"))
    return "error" if known is None and words.startswith("[") else known


def _value(name: str, words: str, column: _Column) -> Value:
    try:
        return column.read(words)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
