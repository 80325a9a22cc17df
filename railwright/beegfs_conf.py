"""Files of ``key = value`` lines that others own: single keys are set, the rest stays as it is.

beegfs-client.conf, beegfs-helperd.conf, beegfs-client-autobuild.conf and beegfs-client-build.mk
are of this kind. Comments, blank lines, order and alignment are kept.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_LINE = re.compile(r"(?P<head>\s*(?P<key>[A-Za-z_]\w*)\s*)(?P<sets>[:?+]?=\s*)?(?P<value>.*?)\s*")


@dataclass(frozen=True)
class Found:
    """A key that is set; ``line`` counts from 1 and is the one that counts."""

    value: str
    line: int
    times: int = 1


@dataclass(frozen=True)
class Conf:
    """The text of such a file. ``separator`` is what stands between a key and its value in a line
    that is added.

    With ``open_end_is_lost`` a last line without a line break counts for nothing, as the client
    reads its file (__Config_loadFromFile in Config.c stops before it uses that line).
    """

    text: str
    separator: str = " = "
    open_end_is_lost: bool = False

    def find(self, key: str) -> Found | None:
        """The line that decides: the last of those that set ``key``."""
        at = [number for number, _ in self._lines_of(key, counted=True)]
        if not at:
            return None
        line = _parsed(self.text.split("\n")[at[-1]])
        return Found(value=line["value"] if line else "", line=at[-1] + 1, times=len(at))

    def set(self, key: str, value: str) -> "Conf":
        """With ``key`` set to ``value`` in one line: the one that decided, or a new one.

        A new one follows the last line that sets anything, before the documentation at the end.
        Raises ValueError for a value that does not fit in one line.
        """
        if value != value.strip() or "\n" in value or "\r" in value:
            raise ValueError(f"{key}: expected one line without blanks around it, got {value!r}")
        lines = self._whole_lines()
        at = [number for number, _ in self._lines_of(key, counted=False)]
        if at:
            lines[at[-1]] = _with_value(lines[at[-1]], value, self.separator)
            gone = set(at[:-1])
            lines = [line for number, line in enumerate(lines) if number not in gone]
        else:
            used = [n for n, line in enumerate(lines) if (row := _parsed(line)) and row["sets"]]
            lines.insert(used[-1] + 1 if used else len(lines), self._new(key, value))
        return self._of(lines)

    def remove(self, key: str) -> "Conf":
        """Without any line that sets ``key``."""
        gone = {number for number, _ in self._lines_of(key, counted=False)}
        if not gone:
            return self
        return self._of([line for n, line in enumerate(self._whole_lines()) if n not in gone])

    def _new(self, key: str, value: str) -> str:
        return f"{key}{self.separator}{value}".rstrip()

    def _whole_lines(self) -> list[str]:
        lines = self.text.split("\n")
        return lines[:-1] if not lines[-1] else lines

    def _of(self, lines: list[str]) -> "Conf":
        text = "".join(f"{line}\n" for line in lines)
        return Conf(text, self.separator, self.open_end_is_lost)

    def _lines_of(self, key: str, *, counted: bool) -> Iterator[tuple[int, str]]:
        lines = self.text.split("\n")
        if counted and self.open_end_is_lost:
            lines = lines[:-1]
        for number, line in enumerate(lines):
            row = _parsed(line)
            if row is not None and row["key"] == key:
                yield number, line


def _parsed(line: str) -> re.Match[str] | None:
    """A line that sets a key, or names one without a value, which then is empty."""
    row = _LINE.fullmatch(line)
    return row if row is not None and (row["sets"] or not row["value"]) else None


def _with_value(line: str, value: str, separator: str) -> str:
    row = _parsed(line)
    assert row is not None
    head, sets = row["head"], row["sets"]
    if sets is None:
        return f"{head.rstrip()}{separator}{value}".rstrip()
    # Of "key =" a value is set off as in the lines around it.
    gap = " " if not row["value"] and sets.endswith("=") and head[-1].isspace() else ""
    return f"{head}{sets}{gap}{value}".rstrip()


def build_args(value: str) -> dict[str, str]:
    """The variables in ``buildArgs`` of beegfs-client-autobuild.conf, which make is given."""
    words = (word.partition("=") for word in value.split())
    return {name: rest for name, sets, rest in words if sets}


def with_build_args(value: str, wanted: Mapping[str, str | None]) -> str:
    """``value`` with these variables, in their places or at its end; None takes one out."""
    names = [word.partition("=")[0] if "=" in word else "" for word in value.split()]
    words = []
    for name, word in zip(names, value.split(), strict=True):
        if name not in wanted:
            words.append(word)
        elif wanted[name] is not None and f"{name}={wanted[name]}" not in words:
            words.append(f"{name}={wanted[name]}")
    words += [f"{n}={v}" for n, v in wanted.items() if v is not None and n not in names]
    return " ".join(words)


@dataclass(frozen=True)
class MountLine:
    """A line of beegfs-mounts.conf, by which beegfs-client.service mounts."""

    line: int
    where: str
    config: str


def mount_lines(text: str) -> list[MountLine]:
    """The mounts of beegfs-mounts.conf: ``DIRECTORY CONFIG [TYPE [OPTIONS]]``."""
    rows = ((number, line.split()) for number, line in enumerate(text.split("\n"), start=1))
    return [
        MountLine(line=number, where=words[0], config=words[1])
        for number, words in rows
        if len(words) >= 2 and not words[0].startswith("#")
    ]


def without_lines(text: str, lines: set[int]) -> str:
    """``text`` without the lines of these numbers, which count from 1."""
    kept = (line for number, line in enumerate(text.split("\n"), start=1) if number not in lines)
    return "\n".join(kept)
