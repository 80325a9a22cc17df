"""The parsers behind ``railwright parse``, by the name of the tool whose output they read.

Each takes the tool's output and its exit code, and raises ValueError for what it cannot read.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from railwright.model import Model

Parsed = Model | Mapping[str, Any]


def _chronyc(text: str, rc: int) -> Parsed:
    from facts.chrony import parse_tracking

    return parse_tracking(text, rc)


def _hugepages(text: str, rc: int) -> Parsed:
    from facts.hugepages import parse_hugepages

    return parse_hugepages(text, rc)


def _lscpu(text: str, _rc: int) -> Parsed:
    from facts.cpu import parse_lscpu

    return parse_lscpu(text)


def _numactl(text: str, rc: int) -> Parsed:
    from facts.numa import parse_numactl

    return parse_numactl(text, rc)


def _proc_cmdline(text: str, _rc: int) -> Parsed:
    from facts.cmdline import parse_cmdline

    return parse_cmdline(text)


def _sysctl(text: str, _rc: int) -> Parsed:
    from facts.sysctl import parse_values

    return parse_values(text)


def _ulimit(text: str, _rc: int) -> Parsed:
    from facts.ulimit import parse_ulimit

    return parse_ulimit(text)


TOOLS: Mapping[str, Callable[[str, int], Parsed]] = {
    "chronyc": _chronyc,
    "hugepages": _hugepages,
    "lscpu": _lscpu,
    "numactl-H": _numactl,
    "proc-cmdline": _proc_cmdline,
    "sysctl-a": _sysctl,
    "ulimit": _ulimit,
}


def parse_output(tool: str, text: str, rc: int) -> str:
    """The JSON of what ``tool``'s parser makes of ``text``. Raises ValueError for rubbish."""
    found = TOOLS[tool](text, rc)
    return json.dumps(found.to_json() if isinstance(found, Model) else found, indent=2)
