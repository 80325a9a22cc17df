"""Which kernels, drivers and clients work together, as data, and the judge of a set."""

from railwright.compat.facts import Facts
from railwright.compat.judge import CompatFinding, judge
from railwright.compat.rows import Row, Table, tables

__all__ = ["CompatFinding", "Facts", "Row", "Table", "judge", "tables"]
