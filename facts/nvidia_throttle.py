"""Why GPUs run below their clocks: ``nvidia-smi -q -d PERFORMANCE``, and the bits of a query.

Older drivers call the section Clocks Throttle Reasons and newer ones Clocks Event Reasons, and the
fields of a query likewise. Source of the bits: nvml.h, nvmlClocksEventReason*.
"""

import re

from pydantic import Field, computed_field

from railwright.model import Model

IDLE = "idle"
# What the hardware itself does to save itself: heat, or a power brake that the chassis pulled.
# A software power cap is what a busy GPU may well be at, and idle is no fault.
FAULTS = frozenset({"hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown"})

_BITS = (
    IDLE,
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clock_setting",
)
# Names that a query has where the report has others.
_SAME = {"gpu_idle": IDLE, "display_clocks_setting": "display_clock_setting"}


class Throttle(Model):
    """One GPU. ``active`` are the reasons that hold now; None where the GPU tells of none.

    ``counters_us`` are microseconds so far, by the report's own names (``sw_power_capping``);
    older drivers have none.
    """

    pstate: str | None = None
    active: tuple[str, ...] | None = None
    counters_us: dict[str, int] = Field(default={})

    @computed_field
    def supported(self) -> bool:
        return self.active is not None

    @computed_field
    def fault(self) -> bool | None:
        """Whether the hardware slows itself down; None where it does not tell."""
        return None if self.active is None else bool(FAULTS & set(self.active))


class ThrottleReport(Model):
    """GPUs by PCI address (``0000:18:00.0``)."""

    gpus: dict[str, Throttle]


_PCI = re.compile(r"([0-9A-Fa-f]{4,8}):([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])")
_GPU = re.compile(r"GPU ([0-9A-Fa-f:.]+)\s*")
_LINE = re.compile(r"( +)(\S.*?) *: (.*?)\s*")
_HEAD = re.compile(r"( +)(Clocks (?:Event|Throttle) Reasons( Counters)?)\s*")
_ABSENT = ("N/A", "[N/A]", "Requested functionality has been deprecated")


def pci_address(text: str) -> str:
    """An address as sysfs has it: ``00000000:2A:00.0`` is 0000:2a:00.0.

    Raises ValueError for another text.
    """
    found = _PCI.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a PCI address, got {text[:40]!r}")
    domain, bus, device, function = found.groups()
    return f"{int(domain, 16):04x}:{bus}:{device}.{function}".lower()


def reason(name: str) -> str:
    """A reason as it is called here: ``SW Power Cap``, ``sw_power_cap`` and the like."""
    slug = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")
    return _SAME.get(slug, slug)


def reasons_of(mask: int) -> tuple[str, ...]:
    """The reasons in a bit mask; a bit that is not known is ``bit_N``."""
    return tuple(
        _BITS[bit] if bit < len(_BITS) else f"bit_{bit}"
        for bit in range(mask.bit_length())
        if mask >> bit & 1
    )


def parse_throttle(text: str, rc: int = 0) -> ThrottleReport:
    """Read ``nvidia-smi -q``, whole or with ``-d PERFORMANCE``.

    Raises ValueError where it names no GPU, and where a reason is neither active nor not.
    """
    blocks: dict[str, list[str]] = {}
    for line in text.splitlines():
        if gpu := _GPU.fullmatch(line):
            blocks[pci_address(gpu[1])] = []
        elif blocks:
            blocks[list(blocks)[-1]].append(line)
    if not blocks or rc != 0:
        raise ValueError(f"expected GPUs of nvidia-smi -q, got {text.strip()[:80]!r} (exit {rc})")
    return ThrottleReport(gpus={pci: _gpu(lines) for pci, lines in blocks.items()})


def _gpu(lines: list[str]) -> Throttle:
    pstate: str | None = None
    reasons: tuple[str, ...] | None = None
    counters: dict[str, int] = {}
    for number, line in enumerate(lines):
        if head := _HEAD.fullmatch(line):
            below = _below(lines[number + 1 :], len(head[1]))
            if head[3]:
                counters = {reason(name): _microseconds(said) for name, said in below}
            else:
                reasons = tuple(reason(name) for name, said in below if _is_active(name, said))
        elif (entry := _LINE.fullmatch(line)) and entry[2] == "Performance State":
            pstate = None if entry[3] in _ABSENT else entry[3]
    return Throttle(pstate=pstate, active=reasons, counters_us=counters)


def _below(lines: list[str], indent: int) -> list[tuple[str, str]]:
    """The entries that stand deeper than ``indent``, nested ones among them."""
    found = []
    for line in lines:
        entry = _LINE.fullmatch(line)
        if entry is None or len(entry[1]) <= indent:
            break
        found.append((entry[2], entry[3]))
    return found


def _is_active(name: str, said: str) -> bool:
    if said not in ("Active", "Not Active", *_ABSENT):
        raise ValueError(f"expected {name} to be Active or Not Active, got {said[:40]!r}")
    return said == "Active"


def _microseconds(said: str) -> int:
    found = re.fullmatch(r"([0-9]+) us", said)
    if found is None:
        raise ValueError(f"expected a counter in us, got {said[:40]!r}")
    return int(found[1])
