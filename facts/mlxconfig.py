"""Settings in the NVRAM of a NIC, as ``mlxconfig`` and ``mstconfig`` query them.

Formats: mstflint mlxconfig/mlxcfg_ui.cpp. Columns are Next Boot alone, or with ``-e`` Default,
Current and Next Boot; a set shows New as well, and the oldest releases show only Current.
"""

import re
from typing import Literal

from pydantic import Field, computed_field

from railwright.model import Model

Problem = Literal[
    "open_failed",
    "identify_failed",
    "no_devices",
    "unsupported_parameter",
    "query_failed",
    "failed",
]


class Parameter(Model):
    """One setting in each state: its number, and its name where the number has one.

    None where the device does not tell (N/A), and for the number of an array shown as a whole,
    whose name is then ``Array[0..15]``. ``marked`` is the tool's ``*``: the value of the next boot
    is not the default, or not the current one.
    """

    default: int | None = None
    default_name: str | None = None
    current: int | None = None
    current_name: str | None = None
    next: int | None = None
    next_name: str | None = None
    new: int | None = None
    new_name: str | None = None
    marked: bool = False
    read_only: bool = False

    @computed_field
    def pending(self) -> bool | None:
        """Whether the next boot (or reset) brings another value; None without both of them."""
        if self.current is None or self.next is None:
            return None
        return self.current != self.next


class ConfigDevice(Model):
    """One device: ``device`` is what it was addressed by, ``type`` ConnectX7, ``name`` its part."""

    device: str | None = None
    type: str | None = None
    name: str | None = None
    description: str | None = None
    params: dict[str, Parameter] = Field(default_factory=dict)


class ConfigProblem(Model):
    """A line ``-E-``; ``hint`` is mst_start where the tool says so."""

    error: Problem
    message: str
    hint: Literal["mst_start"] | None = None


class MlxConfig(Model):
    """Devices in the order listed, and what went wrong."""

    devices: tuple[ConfigDevice, ...]
    problems: tuple[ConfigProblem, ...] = ()


_COMPLAINTS: tuple[tuple[str, Problem], ...] = (
    ("failed to open", "open_failed"),
    ("failed to identify", "identify_failed"),
    ("no devices found", "no_devices"),
    ("failed to get devices", "no_devices"),
    ("doesn't support", "unsupported_parameter"),
    ("unknown parameter", "unsupported_parameter"),
    ("failed to query", "query_failed"),
)
_COLUMN = re.compile(r"Default|Current|Next Boot|New")
_FIELDS = {"Default": "default", "Current": "current", "Next Boot": "next", "New": "new"}
_NAMED = re.compile(r"(.*)\(([0-9]+)\)")
_MARKS = ("*", "RO", "(RO)", "*RO")
# What follows a table, and what a set says around it.
_REMARK = re.compile(
    r"The '\*' shows|Device Firmware does not support reading|-[IWD]-|Apply new|Applying"
    r"|-+$"
)


def parse_mlxconfig(text: str) -> MlxConfig:
    """Read ``mlxconfig q``. Raises ValueError for another text, and rows of another width."""
    tables: list[list[str]] = []
    problems: list[list[str]] = []
    # A complaint comes after the table of its device, and can go on over several lines.
    current: list[str] | None = None
    for line in filter(None, map(str.strip, text.splitlines())):
        if line.startswith("-E-"):
            current = [line.removeprefix("-E-").strip()]
            problems.append(current)
        elif re.fullmatch(r"Device #[0-9]+:", line):
            current = []
            tables.append(current)
        elif current is not None:
            current.append(line)
        elif not _REMARK.match(line):
            raise ValueError(f"expected a device of mlxconfig, got {line[:80]!r}")
    if not tables and not problems:
        raise ValueError("expected a device of mlxconfig, got none")
    return MlxConfig(
        devices=tuple(_device(lines) for lines in tables),
        problems=tuple(_problem(" ".join(lines)) for lines in problems),
    )


def _problem(message: str) -> ConfigProblem:
    lower = message.lower()
    error = next((problem for words, problem in _COMPLAINTS if words in lower), "failed")
    hint: Literal["mst_start"] | None = "mst_start" if "mst start" in lower else None
    return ConfigProblem.model_validate({"error": error, "message": message, "hint": hint})


def _device(lines: list[str]) -> ConfigDevice:
    about: dict[str, str] = {}
    params: dict[str, Parameter] = {}
    columns: list[str] | None = None
    for line in lines:
        key, colon, value = line.partition(":")
        if colon and key == "Configurations":
            columns = [_FIELDS[name] for name in _COLUMN.findall(value)]
        elif _REMARK.match(line):
            continue
        elif columns is None:
            if not colon:
                raise ValueError(f"expected KEY: VALUE of a device, got {line[:80]!r}")
            about[key] = value.strip()
        else:
            name, parameter = _parameter(line.split(), columns)
            params[name] = parameter
    known = {key: value for key, value in about.items() if value not in ("", "N/A")}
    return ConfigDevice(
        device=known.get("Device") or known.get("PCI device"),
        type=known.get("Device type"),
        name=known.get("Name"),
        description=known.get("Description"),
        params=params,
    )


def _parameter(words: list[str], columns: list[str]) -> tuple[str, Parameter]:
    row = " ".join(words)
    marks = set()
    while words and words[0] in _MARKS:
        marks.add(words.pop(0))
    if not words or not columns or len(words) != len(columns) + 1:
        raise ValueError(f"expected a setting and {len(columns)} values, got {row[:80]!r}")
    values: dict[str, int | str | bool | None] = {}
    for field, word in zip(columns, words[1:], strict=True):
        values[field], values[f"{field}_name"] = _value(word)
    return words[0], Parameter.model_validate(
        values
        | {
            "marked": any("*" in mark for mark in marks),
            "read_only": any("RO" in mark for mark in marks),
        }
    )


def _value(word: str) -> tuple[int | None, str | None]:
    if word == "N/A":
        return None, None
    if re.fullmatch(r"[0-9]+", word):
        return int(word), None
    named = _NAMED.fullmatch(word)
    return (int(named[2]), named[1]) if named else (None, word)
