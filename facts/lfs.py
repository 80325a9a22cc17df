"""Targets of a mounted Lustre, as ``lfs df`` prints them.

Format: mntdf() and showdf() in lustre/utils/lfs.c. A target that does not answer has a row of its
own shape, and the tool may exit with 0 nevertheless.
"""

import re

from pydantic import Field

from railwright.model import Model


class Target(Model):
    """One MDT or OST: how full it is in percent, or why it did not tell."""

    use_pct: int | None = None
    error: str | None = None


class LustreDf(Model):
    """``mdts`` and ``osts`` by their index as text; the summary leaves out what does not answer."""

    fsname: str | None = None
    mount: str | None = None
    mdts: dict[str, Target] = Field(default={})
    osts: dict[str, Target] = Field(default={})
    summary_use_pct: int | None = None

    @property
    def silent(self) -> dict[str, str]:
        """Why a target did not answer, by its name (``OST0003``)."""
        return {
            f"{kind}{int(index):04x}": target.error
            for kind, targets in (("MDT", self.mdts), ("OST", self.osts))
            for index, target in targets.items()
            if target.error is not None
        }


_HEAD = re.compile(r"UUID\s+(?:1K-blocks|bytes|Inodes)\s.*Mounted on\s*")
_UUID = r"(?P<fs>\S+)-(?P<kind>MDT|OST)(?P<index>[0-9a-f]{4})(?:_UUID)?"
_ROW = re.compile(
    rf"{_UUID}\s+\S+\s+\S+\s+\S+\s+(?P<use>\d+)%\s+(?P<mount>/.*?)\[(?:MDT|OST):\d+\](?:\s.*)?"
)
_ERROR = re.compile(rf"{_UUID}\s*: (?P<error>.+)")
_SUMMARY = re.compile(r"filesystem_summary:\s+\S+\s+\S+\s+\S+\s+(?P<use>\d+)%\s+(?P<mount>/.*)")


def parse_df(text: str) -> LustreDf:
    """Read ``lfs df PATH``. Raises ValueError for a line of another kind, and without a target."""
    targets: dict[str, dict[str, Target]] = {"MDT": {}, "OST": {}}
    fsname = mount = summary = None
    for line in filter(str.strip, text.splitlines()):
        if row := _ROW.fullmatch(line):
            targets[row["kind"]][_index(row)] = Target(use_pct=int(row["use"]))
            fsname, mount = row["fs"], row["mount"].strip()
        elif row := _ERROR.fullmatch(line):
            targets[row["kind"]][_index(row)] = Target(error=row["error"].strip())
            fsname = row["fs"]
        elif row := _SUMMARY.fullmatch(line):
            summary, mount = int(row["use"]), row["mount"].strip()
        elif not _HEAD.fullmatch(line):
            raise ValueError(f"expected a row of lfs df, got {line[:80]!r}")
    if fsname is None:
        raise ValueError(f"expected targets of lfs df, got {text.strip()[:80]!r}")
    return LustreDf(
        fsname=fsname,
        mount=mount,
        mdts=targets["MDT"],
        osts=targets["OST"],
        summary_use_pct=summary,
    )


def _index(row: re.Match[str]) -> str:
    return str(int(row["index"], 16))
