"""What a PCIe link must be like, and whether it is."""

from collections.abc import Iterable

from railwright.model import Model
from railwright.pcie import Function, Pcie


class LinkReport(Model):
    """A link against what it must be like; ``faults`` are in words, ``note`` is no fault."""

    expected: str
    found: str
    faults: tuple[str, ...]
    note: str | None = None


def link_report(function: Function, pcie: Pcie, siblings: Iterable[Function]) -> LinkReport | None:
    """How the link of ``function`` is; None where it has none, or does not tell.

    It must be as wide as the device and its slot allow; a slot that gives less than those of its
    ``siblings`` of the same model have is a fault as well. So it is with the speed of a NIC. An
    idle GPU lowers its speed, so that this says nothing without load (NVIDIA/NVSentinel#890).
    """
    link = function.link
    if link.speed is None or link.width is None:
        return None
    if link.max_speed is None or link.max_width is None:
        return None
    alike = [s.link for s in siblings if s.device == function.device and s != function]
    slot = pcie.bridges[function.bridges[-1]].link if function.bridges else link
    width = int(_expected(link.max_width, slot.max_width, [s.width for s in alike]))
    speed = _expected(link.max_speed, slot.max_speed, [s.speed for s in alike])
    faults = []
    if link.width < width:
        faults.append(f"x{link.width} of x{width}")
    if function.kind == "gpu":
        lowered = link.speed < speed
        note = f"{link.speed:g} of {speed:g} GT/s: an idle GPU lowers it" if lowered else None
        return LinkReport(
            expected=f"x{width}", found=f"x{link.width}", faults=tuple(faults), note=note
        )
    if link.speed < speed:
        faults.append(f"{link.speed:g} of {speed:g} GT/s")
    if faults and slot.max_width is not None and slot.max_width < width:
        faults.append(f"its slot has x{slot.max_width}")
    return LinkReport(
        expected=f"{speed:g} GT/s x{width}",
        found=f"{link.speed:g} GT/s x{link.width}",
        faults=tuple(faults),
    )


def _expected(
    own: float, slot: float | None, siblings: list[float | None] | list[int | None]
) -> float:
    """The most that device and slot allow, or that a sibling's slot gives a device like it."""
    return min(own, max(own if slot is None else slot, *(s for s in siblings if s), 0))
