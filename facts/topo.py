"""How GPUs and NICs are connected, as ``nvidia-smi topo -m`` shows it.

Formats: recorded outputs; the source is not public. Cells are separated by tabs, which a paste can
turn into blanks; newer drivers underline the heading by escape sequences.
"""

import re
from typing import Literal

from railwright.model import Model

LEVELS = ("PIX", "PXB", "PHB", "NODE")
"""Near to far, as the tool's legend explains them. SYS crosses sockets: it is not near at all."""


class Gpu(Model):
    """A row of a GPU.

    ``cpus`` is the list of CPUs near it, ``numa_affinity`` that of NUMA nodes, each as printed;
    None where the tool has nothing. ``numa`` is the node where it is one.
    """

    cpus: str | None = None
    numa_affinity: str | None = None
    gpu_numa: str | None = None

    @property
    def numa(self) -> int | None:
        text = self.numa_affinity or ""
        return int(text) if text.isdecimal() else None


class Topology(Model):
    """The matrix: ``links[a][b]`` is how a reaches b (PIX, SYS, NV18), for all but a itself.

    NICs go by their device names (mlx5_0), where the tool tells them.
    """

    gpus: dict[str, Gpu]
    nics: tuple[str, ...]
    links: dict[str, dict[str, str]]
    legend: dict[str, str]

    def near_nics(self, gpu: str) -> tuple[str | None, tuple[str, ...]]:
        """The nearest level that ``gpu`` has a NIC at, and the NICs there; None where all are far.

        Raises KeyError for a GPU that is not there.
        """
        row = self.links[gpu]
        for level in LEVELS:
            nics = tuple(nic for nic in self.nics if row.get(nic) == level)
            if nics:
                return level, nics
        return None, ()

    def best_nic(self, gpu: str) -> str | None:
        """The nearest NIC of ``gpu``; None where there is none near, or more than one."""
        nics = self.near_nics(gpu)[1]
        return nics[0] if len(nics) == 1 else None

    @property
    def nvlinks(self) -> int | None:
        """NVLinks between two GPUs; None where pairs differ, or are not all joined by them."""
        pairs = {self.links[a][b] for a in self.gpus for b in self.gpus if a != b}
        joined = re.fullmatch(r"NV([0-9]+)", pairs.pop()) if len(pairs) == 1 else None
        return int(joined[1]) if joined else None


class BrokenTopology(Model):
    """A matrix whose cells cannot be told apart: nothing of it may be used."""

    error: Literal["column_count_mismatch"] = "column_count_mismatch"
    rows_bad: tuple[str, ...]


_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_LEGEND = re.compile(r"\s+([A-Z0-9#]+)\s+= (.+?)\s*")
_NIC = re.compile(r"\s+(NIC[0-9]+): (\S+)\s*")
_CELL = re.compile(r"X|SYS|SOC|NODE|PHB|PXB|PIX|NV[0-9]+")
_AFFINITY = re.compile(r"[0-9][0-9,-]*|N/A")
_EXTRA = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")


def parse_topology(text: str) -> Topology | BrokenTopology:
    """Read ``nvidia-smi topo -m``. Raises ValueError where there is no whole matrix.

    Where a separator got lost it is not guessed: the rows at fault are named.
    """
    lines = _ESCAPE.sub("", text).splitlines()
    at = next((i for i, line in enumerate(lines) if re.match(r"\s*GPU[0-9]+\s", line + " ")), None)
    if at is None:
        said = text.strip().split("\n")[0][:80]
        raise ValueError(f"expected the matrix of nvidia-smi topo -m, got {said!r}")
    extra = [title for title in _EXTRA if title in lines[at]]
    heading = lines[at]
    for title in extra:
        heading = heading.replace(title, "")
    columns = heading.split()
    if len(set(columns)) != len(columns):
        raise ValueError("expected each device once in the heading of nvidia-smi topo -m")
    rows = _rows(lines[at + 1 :])
    if bad := _bad(columns, extra, rows):
        return BrokenTopology(rows_bad=tuple(bad))
    gpus = [column for column in columns if re.fullmatch(r"GPU[0-9]+", column)]
    if missing := [gpu for gpu in gpus if gpu not in rows]:
        raise ValueError(f"expected a row of each GPU, {missing[0]} has none")
    names = _pairs(_NIC, lines)
    return Topology(
        gpus={gpu: _gpu(extra, rows[gpu], len(columns)) for gpu in gpus},
        nics=tuple(names.get(column, column) for column in columns if column not in gpus),
        links={
            names.get(row, row): {
                names.get(column, column): cell
                for column, cell in zip(columns, line.split(), strict=False)
                if column != row
            }
            for row, line in rows.items()
        },
        legend=_pairs(_LEGEND, lines),
    )


def _rows(lines: list[str]) -> dict[str, str]:
    """Name to the rest of its line, up to the empty line before the legend."""
    rows: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"(\S+)(\s.*)?", line)
        if match is None or match[1].startswith("Legend"):
            break
        if match[1] in rows:
            raise ValueError(f"expected one row of {match[1]}, got two")
        rows[match[1]] = match[2] or ""
    return rows


def _pairs(pattern: re.Pattern[str], lines: list[str]) -> dict[str, str]:
    return {pair[1]: pair[2] for pair in filter(None, map(pattern.fullmatch, lines))}


def _bad(columns: list[str], extra: list[str], rows: dict[str, str]) -> list[str]:
    """Rows with a cell that is none (two glued into one); without those, rows of another width."""
    glued, shifted = [], []
    for name, rest in rows.items():
        words = rest.split()
        cells, tail = words[: len(columns)], words[len(columns) :]
        own = [column for column, cell in zip(columns, cells, strict=False) if cell == "X"]
        if any(re.fullmatch(r"[A-Z0-9]{4,}", cell) and not _CELL.fullmatch(cell) for cell in cells):
            glued.append(name)
        elif (
            len(cells) < len(columns)
            or not all(map(_CELL.fullmatch, cells))
            or own != [name]
            or len(tail) > len(extra)
            or not all(map(_AFFINITY.fullmatch, tail))
        ):
            shifted.append(name)
    return glued or shifted


def _gpu(extra: list[str], rest: str, width: int) -> Gpu:
    """The affinities behind the cells; those that cannot be told apart are left out."""
    tail = rest.split()[width:]
    cells = rest.split("\t")[width + 1 :]
    # The cell of the CPUs, or that of the nodes behind it, can be empty; in a paste without tabs
    # it takes a list of CPUs to tell which.
    if len(tail) == len(extra) - 1 and (cells or re.search(r"[-,]", "".join(tail[:1]))):
        tail.insert(1 if not cells or cells[0].strip() else 0, "")
    elif len(tail) < len(extra):
        tail = [""] * len(extra)
    pairs = zip(extra, tail, strict=True)
    found = {title: word if word not in ("", "N/A") else None for title, word in pairs}
    return Gpu(
        cpus=found.get("CPU Affinity"),
        numa_affinity=found.get("NUMA Affinity"),
        gpu_numa=found.get("GPU NUMA ID"),
    )
