"""CPUs, as lscpu lists them."""

import json
import re
from collections import defaultdict
from typing import Any

from pydantic import Field

from railwright.model import Model


class Cpus(Model):
    """What lscpu says; None where a line is missing or has no value (``-``).

    CPU lists are as the kernel writes them (``0-5,48-53``). On a machine with several core types
    ``models`` has each once, ``cores_per_socket`` is their sum, and ``threads`` the largest.
    Frequencies are in MHz; ``scaling_percent`` is the current frequency relative to the nominal.
    """

    architecture: str | None = None
    vendor: str | None = None
    models: tuple[str, ...] = ()
    family: str | None = None
    cpus: int
    online: str | None = None
    offline: str | None = None
    threads: int | None = None
    cores_per_socket: int | None = None
    sockets: int | None = None
    books: int | None = None
    drawers: int | None = None
    clusters: int | None = None
    numa_nodes: int | None = None
    node_cpus: dict[int, str] = Field(default={})
    mhz: float | None = None
    max_mhz: float | None = None
    min_mhz: float | None = None
    scaling_percent: float | None = None
    boost: bool | None = None
    virtualization: str | None = None
    hypervisor: str | None = None
    flags: tuple[str, ...] = ()
    caches: dict[str, str] = Field(default={})
    vulnerabilities: dict[str, str] = Field(default={})

    @property
    def model(self) -> str | None:
        return self.models[0] if self.models else None

    @property
    def smt(self) -> bool | None:
        """Whether a core runs more than one thread now."""
        return None if self.threads is None else self.threads > 1

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "model": self.model, "smt": self.smt}


def parse_lscpu(text: str) -> Cpus:
    """``lscpu`` or ``lscpu -J``. Raises ValueError where it does not count the CPUs."""
    lines = _json_lines(text) if text.lstrip().startswith("{") else _text_lines(text)
    found: dict[str, list[str]] = defaultdict(list)
    for key, value in lines:
        # util-linux marks what is not known by a dash.
        if value and value != "-":
            found[key].append(value)
    if "CPU(s)" not in found:
        raise ValueError("expected the output of lscpu in English: no line 'CPU(s):'")
    return Cpus(
        architecture=_first(found, "Architecture"),
        vendor=_first(found, "Vendor ID"),
        models=tuple(dict.fromkeys(found.get("Model name", ()))),
        family=_first(found, "CPU family"),
        cpus=_whole(found["CPU(s)"][0], "CPU(s)"),
        online=_first(found, "On-line CPU(s) list", "On-line CPU(s) mask"),
        offline=_first(found, "Off-line CPU(s) list", "Off-line CPU(s) mask"),
        threads=max(_numbers(found, "Thread(s) per core"), default=None),
        cores_per_socket=_sum(
            _numbers(found, "Core(s) per socket") or _numbers(found, "Core(s) per cluster")
        ),
        sockets=_number(found, "Socket(s)"),
        books=_number(found, "Book(s)"),
        drawers=_number(found, "Drawer(s)"),
        clusters=_number(found, "Cluster(s)"),
        numa_nodes=_number(found, "NUMA node(s)"),
        node_cpus=_by_name(found, r"NUMA node(\d+) CPU\(s\)"),
        mhz=_decimal(found, "CPU MHz", "CPU dynamic MHz"),
        max_mhz=_decimal(found, "CPU max MHz"),
        min_mhz=_decimal(found, "CPU min MHz"),
        scaling_percent=_decimal(found, "CPU(s) scaling MHz"),
        boost=_boost(_first(found, "Frequency boost")),
        virtualization=_first(found, "Virtualization"),
        hypervisor=_first(found, "Hypervisor vendor", "Hypervisor"),
        flags=tuple((_first(found, "Flags", "Features") or "").split()),
        caches=_by_name(found, r"(L\d\w*)(?: cache)?"),
        vulnerabilities=_by_name(found, r"(?:Vulnerability )(.+)"),
    )


def _text_lines(text: str) -> list[tuple[str, str]]:
    """Key and value of each line; util-linux 2.38 indents groups and heads them by a bare key."""
    lines: list[tuple[str, str]] = []
    group, depth = "", 0
    for line in text.splitlines():
        key, found, value = line.strip().partition(":")
        if not found:
            continue
        indent = len(line) - len(line.lstrip())
        if not value.strip():
            group, depth = key.strip(), indent
        lines.append((_in_group(group if indent > depth else "", key.strip()), value.strip()))
    return lines


def _json_lines(text: str) -> list[tuple[str, str]]:
    try:
        return _json_entries(json.loads(text)["lscpu"], "")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"expected the JSON of lscpu: {error}") from error


def _json_entries(entries: list[dict[str, Any]], group: str) -> list[tuple[str, str]]:
    lines = []
    for entry in entries:
        key = str(entry.get("field", "")).rstrip(":")
        lines.append((_in_group(group, key), str(entry.get("data") or "")))
        lines.extend(_json_entries(entry.get("children", []), key))
    return lines


def _in_group(group: str, key: str) -> str:
    """The key as it is without groups, where the group is part of it."""
    return f"Vulnerability {key}" if group == "Vulnerabilities" else key


def _first(found: dict[str, list[str]], *keys: str) -> str | None:
    return next((found[key][0] for key in keys if key in found), None)


def _whole(text: str, key: str) -> int:
    if not text.isdigit():
        raise ValueError(f"expected a number of {key}, got {text!r}")
    return int(text)


def _numbers(found: dict[str, list[str]], *keys: str) -> list[int]:
    return [_whole(text, key) for key in keys for text in found.get(key, ())]


def _number(found: dict[str, list[str]], key: str) -> int | None:
    return next(iter(_numbers(found, key)), None)


def _sum(numbers: list[int]) -> int | None:
    return sum(numbers) if numbers else None


def _decimal(found: dict[str, list[str]], *keys: str) -> float | None:
    numbers = []
    for key in keys:
        for text in found.get(key, ()):
            try:
                numbers.append(float(text.rstrip("%").replace(",", ".")))
            except ValueError as error:
                raise ValueError(f"expected a number after {key}, got {text!r}") from error
    return max(numbers, default=None)


def _boost(text: str | None) -> bool | None:
    return {"enabled": True, "disabled": False}.get(text or "")


def _by_name(found: dict[str, list[str]], pattern: str) -> dict[Any, str]:
    named = {}
    for key, values in found.items():
        if match := re.fullmatch(pattern, key):
            named[match[1]] = values[0]
    return named
