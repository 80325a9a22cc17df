"""The text of a cufile.json, changed in single values only: every other byte stays as it was."""

import json
from dataclasses import dataclass, field
from itertools import pairwise

from railwright.gds.jsonc import COMMENT, Json, Member, Node, fault, line_of, parse

Path = tuple[str, ...]
"""The keys that lead to a value; a mount point is one key, whatever dots are in it."""

Value = bool | int | float | str | tuple[str | int | float, ...]
"""What can be set: objects come into being as sections on the way to a value."""

# The style of NVIDIA's own file differs from release to release; this is for a file of ours.
_INDENT = "    "


def dotted(path: Path) -> str:
    """``path`` as NVIDIA's tools write it: ``properties.allow_compat_mode``."""
    return ".".join(path)


def shown(value: "Json | Value") -> str:
    """``value`` as it stands in the file."""
    if isinstance(value, tuple):
        value = list(value)
    return json.dumps(value, allow_nan=False)


@dataclass(frozen=True)
class Entry:
    """A value of the file, and the line (from 1) that its key stands on."""

    value: Json
    line: int


@dataclass(frozen=True)
class Cufile:
    """A cufile.json. Raises ValueError, with line and column, where ``text`` cannot be read."""

    text: str
    root: Node = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", parse(self.text))

    def find(self, path: Path) -> Entry | None:
        """What stands at ``path``; None where nothing does."""
        if not path:
            return None
        within = self._deepest(path[:-1])
        member = _member(within[-1], path[-1]) if len(within) == len(path) else None
        if member is None:
            return None
        return Entry(value=member.node.value, line=line_of(self.text, member.start))

    def value(self, path: Path) -> Json:
        """The value at ``path``. Raises KeyError where there is none."""
        found = self.find(path)
        if found is None:
            raise KeyError(dotted(path))
        return found.value

    def set(self, path: Path, value: Value) -> "Cufile":
        """The file with ``value`` at ``path``, and with the sections that lead there.

        Raises ValueError where a section stands at ``path``, or something else where a section
        has to be.
        """
        within = self._deepest(path[:-1])
        rest = path[len(within) - 1 :]
        member = _member(within[-1], rest[0])
        if member is None:
            return self._insert(within[-1], rest, value)
        if len(rest) > 1 or member.node.members is not None:
            kind = "a section" if len(rest) > 1 else "no section"
            raise fault(self.text, member.node.start, f"{kind} at {dotted(path)}")
        if shown(member.node.value) == shown(value):
            return self
        return self._edited((member.node.start, member.node.end, self._list(member, value)))

    def remove(self, path: Path) -> "Cufile":
        """The file without the member at ``path``; comments stay, and so does its section."""
        within = self._deepest(path[:-1])
        if len(within) < len(path):
            return self
        members = within[-1].members or ()
        for before, member in pairwise((None, *members)):
            if member is not None and member.key == path[-1]:
                return self._without(before, member)
        return self

    def _deepest(self, path: Path) -> list[Node]:
        """The root and the objects along ``path``, as far as there are any."""
        found = [self.root]
        for key in path:
            member = _member(found[-1], key)
            if member is None or member.node.members is None:
                break
            found.append(member.node)
        return found

    def _edited(self, *edits: tuple[int, int, str]) -> "Cufile":
        """The file with each span replaced; what comes to one place keeps the given order."""
        text = self.text
        for start, end, new in sorted(edits, key=lambda edit: edit[0])[::-1]:
            text = text[:start] + new + text[end:]
        return Cufile(text)

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    def _list(self, member: Member, value: Value) -> str:
        """The new value, with the comments that stand in the list whose place it takes."""
        comments = _comments(self.text, member.node.start, member.node.end)
        if not comments or not isinstance(value, tuple):
            return " ".join([*(_as_block(comment) for comment in comments), shown(value)])
        outer = self._indent_at(member.start)
        inner = self._newline + outer + self._step()
        lines = [*comments, *([shown(value)[1:-1]] if value else [])]
        return f"[{''.join(inner + line for line in lines)}{self._newline}{outer}]"

    def _indent_at(self, at: int) -> str:
        """The blanks that the line of ``at`` begins with."""
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _own_indent(self, member: Member) -> str | None:
        """The indent of a member that begins its line, None for one that does not."""
        before = self.text[: member.start]
        blanks = before[len(before.rstrip(" \t")) :]
        return blanks if before.removesuffix(blanks).endswith("\n") else None

    def _step(self) -> str:
        """By how much more a section's members are indented than its own key."""
        for member in self.root.members or ():
            outer = self._own_indent(member)
            for child in member.node.members or ():
                inner = self._own_indent(child)
                if outer is not None and inner is not None and inner.startswith(outer):
                    return inner.removeprefix(outer) or _INDENT
        first = next(iter(self.root.members or ()), None)
        return (self._own_indent(first) if first else None) or _INDENT

    def _insert(self, section: Node, path: Path, value: Value) -> "Cufile":
        members = section.members or ()
        if not members:
            return self._insert_first(section, path, value)
        last = members[-1]
        end = last.node.end if last.comma is None else last.comma + 1
        comma = [(last.node.end, last.node.end, ",")] if last.comma is None else []
        # A file that has a comma after the last member keeps one there.
        after = "" if last.comma is None else ","
        indent, line_end = self._own_indent(last), self._line_end(end, section.end - 1)
        if indent is None or line_end is None:
            return self._edited(*comma, (end, end, f" {self._nested(path, value, None)}{after}"))
        new = f"{self._newline}{indent}{self._nested(path, value, indent)}{after}"
        return self._edited(*comma, (line_end, line_end, new))

    def _insert_first(self, section: Node, path: Path, value: Value) -> "Cufile":
        start, end = section.start + 1, section.end - 1
        outer = self._indent_at(section.start)
        indent = outer + self._step()
        inner = self.text[start:end]
        if not inner.strip():
            new = (
                f"{self._newline}{indent}{self._nested(path, value, indent)}{self._newline}{outer}"
            )
            return self._edited((start, end, new))
        # There are comments alone: what is new comes after them.
        kept = start + len(inner.rstrip())
        new = f"{self._newline}{indent}{self._nested(path, value, indent)}"
        closes = "" if "\n" in inner[len(inner.rstrip()) :] else f"{self._newline}{outer}"
        return self._edited((kept, kept, new + closes))

    def _nested(self, path: Path, value: Value, indent: str | None) -> str:
        """A member with the sections that lead to it; on one line where ``indent`` is None."""
        key = json.dumps(path[0])
        if len(path) == 1:
            return f"{key}: {shown(value)}"
        if indent is None:
            return f"{key}: {{ {self._nested(path[1:], value, None)} }}"
        inner = indent + self._step()
        below = self._nested(path[1:], value, inner)
        return f"{key}: {{{self._newline}{inner}{below}{self._newline}{indent}}}"

    def _line_end(self, start: int, end: int) -> int | None:
        """Where the line of ``start`` ends, None where ``end`` comes first.

        A comment that goes on over the line's end is part of the line.
        """
        at = start
        while at < end:
            comment = COMMENT.match(self.text, at)
            if comment is not None:
                at = comment.end()
            elif self.text[at] == "\n":
                return at - 1 if self.text[at - 1] == "\r" and at > start else at
            else:
                at += 1
        return None

    def _without(self, before: Member | None, member: Member) -> "Cufile":
        start, end = member.start, member.node.end
        cuts = [(start, end)]
        if member.comma is not None:
            cuts.append((member.comma, member.comma + 1))
            end = member.comma + 1 if not self.text[end : member.comma].strip() else end
        elif before is not None and before.comma is not None:
            cuts.append((before.comma, before.comma + 1))
        comments = _comments(self.text, member.start, member.node.end)
        kept = " ".join(_as_block(comment) for comment in comments)
        edits = [(a, b, "") for a, b in cuts[1:]] + [(*cuts[0], kept)]
        line = self.text.rfind("\n", 0, start) + 1
        rest = self._line_end(end, len(self.text))
        blank = rest is not None and not (self.text[line:start] + self.text[end:rest]).strip()
        if blank and not kept and rest is not None:
            # Nothing but the member stands on its lines, so they go as a whole.
            last = self.text.index("\n", rest) + 1
            edits = [(a, b, "") for a, b in cuts[1:] if not line <= a < last] + [(line, last, "")]
        elif member.comma is None:
            gap = len(self.text[:start].rstrip(" \t"))
            edits[-1] = (gap, cuts[0][1], f" {kept}" if kept else "")
        return self._edited(*edits)


def _member(section: Node, key: str) -> Member | None:
    return next((member for member in section.members or () if member.key == key), None)


def _comments(text: str, start: int, end: int) -> list[str]:
    """The comments within a value; what looks like one within a string is none."""
    found, at = [], start
    while at < end:
        if text[at] == '"':
            at += 1
            while text[at] != '"':
                at += 2 if text[at] == "\\" else 1
        elif comment := COMMENT.match(text, at):
            found.append(comment[0].rstrip("\r"))
            at = comment.end() - 1
        at += 1
    return found


def _as_block(comment: str) -> str:
    """A comment that may stand before something else on its line."""
    if comment.startswith("/*"):
        return comment
    return f"/*{comment.removeprefix('//').replace('*/', '* /').rstrip()} */"
