"""The kernel's command line, as the kernel itself takes it apart."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.snapshot import Snapshot

CMDLINE = Section(name="cmdline", script="cat /proc/cmdline")

HUGEPAGE_NAMES = frozenset({"hugepages", "hugepagesz"})
"""Parameters that mean something by their order only."""

_ACCUMULATING = frozenset({"iommu", "intel_iommu", "amd_iommu"})
"""Parameters that keep what an earlier occurrence set: nothing takes ``iommu=off`` back.

Source: iommu_setup in arch/x86/kernel/pci-dma.c, intel_iommu_setup, parse_amd_iommu_options.
"""

_DEFAULT_SIZE = "2M"
"""Of hugepages= without a size before it, with pages of 4 KiB. Source: hugetlbpage.rst."""

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def argument_spans(text: str) -> Iterator[tuple[int, int]]:
    """Where each argument of ``text`` starts and ends.

    Blanks part arguments, except between double quotes; a backslash and a single quote are
    characters like any other. Source: next_arg() in lib/cmdline.c, Linux 6.1.
    """
    start, quoted = -1, False
    for position, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        if char.isspace() and not quoted:
            if start >= 0:
                yield start, position
            start = -1
        elif start < 0:
            start = position
    if start >= 0:
        yield start, len(text)


def split_arguments(text: str) -> list[str]:
    """The arguments of a command line, quotes as they are written."""
    return [text[start:end] for start, end in argument_spans(text)]


def name_of(argument: str) -> str:
    """The parameter that ``argument`` sets; ``-`` and ``_`` are the same to the kernel."""
    return argument.lstrip('"').partition("=")[0].replace("-", "_")


def accumulates(name: str) -> bool:
    """Whether earlier occurrences of a parameter stay in force when a later one is read."""
    return name in _ACCUMULATING or name in HUGEPAGE_NAMES


def _value(argument: str) -> str | bool:
    if argument.startswith('"') and argument.endswith('"') and len(argument) > 1:
        argument = argument[1:-1]
    _, found, value = argument.partition("=")
    if not found:
        return True
    if value.startswith('"') and value.endswith('"') and len(value) > 1:
        return value[1:-1]
    return value


class Hugepages(Model):
    """What the arguments say of huge pages reserved at boot.

    ``pairs`` is (page size, count) in the order of the counts; a count per NUMA node is the text
    ``0:32,1:64``. ``valid`` is False where the kernel ignores one of the arguments: a count
    without a size of its own, a size given twice, a count that is no number.
    """

    pairs: tuple[tuple[str, int | str], ...] = ()
    sizes_without_count: tuple[str, ...] = ()
    valid: bool = True

    @property
    def canonical(self) -> str | None:
        """The arguments in one order and one notation; None where there are none."""
        words = [f"hugepagesz={size}" for size in self.sizes_without_count]
        for size, count in sorted(self.pairs, key=lambda pair: -_bytes(pair[0])):
            words.append(f"hugepagesz={size} hugepages={_canonical_count(count)}")
        return " ".join(words) or None


def _bytes(size: str) -> int:
    found = re.fullmatch(r"(\d+)([KMG]?)B?", size.upper())
    return int(found[1]) * _UNITS[found[2]] if found else 0


def page_size(size: str) -> str:
    """A page size in the largest unit that it is a multiple of (``2048K`` is ``2M``)."""
    number = _bytes(size)
    for unit in ("G", "M", "K"):
        if number and number % _UNITS[unit] == 0:
            return f"{number // _UNITS[unit]}{unit}"
    return size


def _canonical_count(count: int | str) -> str:
    if isinstance(count, int) or not re.fullmatch(r"\d+:\d+(,\d+:\d+)*", count):
        return str(count)
    nodes = sorted(tuple(int(n) for n in part.split(":")) for part in count.split(","))
    return ",".join(f"{node}:{pages}" for node, pages in nodes)


def parse_hugepages(arguments: Iterable[str]) -> Hugepages:
    """Which count goes with which size. Source: hugepages_setup() in mm/hugetlb.c, Linux 6.1."""
    arguments = list(arguments)
    default = next(
        (str(_value(a)) for a in reversed(arguments) if name_of(a) == "default_hugepagesz"),
        _DEFAULT_SIZE,
    )
    pairs: list[tuple[str, int | str]] = []
    lonely: list[str] = []
    size: str | None = None
    counted, valid = False, True
    for argument in arguments:
        name, value = name_of(argument), str(_value(argument))
        if name in ("hugepagesz", "default_hugepagesz"):
            if size is not None and not counted:
                lonely.append(size)
            size = page_size(value) if name == "hugepagesz" else None
            counted = False
        elif name == "hugepages":
            valid = valid and not counted
            pairs.append((size or page_size(default), int(value) if value.isdigit() else value))
            counted = True
    if size is not None and not counted:
        lonely.append(size)
    sizes = [pair[0] for pair in pairs]
    numbers = all(
        isinstance(n, int) or re.fullmatch(r"\d+:\d+(,\d+:\d+)*", n) is not None for _, n in pairs
    )
    valid = valid and not lonely and len(set(sizes)) == len(sizes) and numbers
    return Hugepages(pairs=tuple(pairs), sizes_without_count=tuple(lonely), valid=valid)


def found_in(arguments: Sequence[str], key: str) -> str | None:
    """What ``arguments`` say of ``key``, as one text that compares with what is desired.

    ``hugepages`` is the whole group. Of another parameter the last occurrence counts, except
    where all do: then several different ones are given together.
    """
    if key == "hugepages":
        found = parse_hugepages(arguments)
        if found.valid:
            return found.canonical
        return " ".join(a for a in arguments if name_of(a) in HUGEPAGE_NAMES)
    name = name_of(key)
    occurrences = [argument for argument in arguments if name_of(argument) == name]
    if accumulates(name):
        return " ".join(dict.fromkeys(occurrences)) or None
    return occurrences[-1] if occurrences else None


class Cmdline(Model):
    """The arguments for the kernel, and those after ``--``, which are for init."""

    arguments: tuple[str, ...]
    init_arguments: tuple[str, ...] = ()

    @property
    def values(self) -> dict[str, str | bool]:
        """Parameter to value, True for one without; the last occurrence counts.

        The first of names that differ in ``-`` and ``_`` is kept.
        """
        found: dict[str, str | bool] = {}
        names: dict[str, str] = {}
        for argument in self.arguments:
            written = argument.lstrip('"').partition("=")[0]
            found[names.setdefault(name_of(argument), written)] = _value(argument)
        return found

    @property
    def hugepages(self) -> Hugepages:
        return parse_hugepages(self.arguments)

    def to_json(self) -> dict[str, Any]:
        return {
            **self.values,
            **self.hugepages.model_dump(mode="json"),
            "init_arguments": list(self.init_arguments),
        }


def parse_cmdline(text: str) -> Cmdline:
    """/proc/cmdline. Raises ValueError where there is not exactly one line of arguments."""
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) != 1:
        raise ValueError(f"expected one line of kernel arguments, got {len(lines)}")
    words = split_arguments(lines[0])
    if "--" in words:
        cut = words.index("--")
        return Cmdline(arguments=tuple(words[:cut]), init_arguments=tuple(words[cut + 1 :]))
    return Cmdline(arguments=tuple(words))


class KernelCommandLine(SnapshotFact):
    """The arguments that the kernel was started with."""

    sections = (CMDLINE,)

    def read(self, snapshot: Snapshot) -> Cmdline:
        return parse_cmdline(snapshot.text("cmdline"))
