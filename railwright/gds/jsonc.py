"""JSON with comments, read with the place of each value.

What is taken beyond JSON: comments (``//`` to the end of the line, ``/* */``) wherever blanks may
stand, and a comma after the last member, as the cufile.json of NVIDIA's documentation has both.
"""

import json
import math
import re
from dataclasses import dataclass
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_FILLER = re.compile(r"(?:[ \t\r\n]|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"')
# As long as a number of 64 bits or a double needs to be.
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,30})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,3})?(?![\w.])")
_WORD = re.compile(r"(?:true|false|null)(?!\w)")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_DEEPEST = 32


@dataclass(frozen=True)
class Node:
    """A value and its place in the text, from ``start`` to before ``end``.

    ``members`` are those of an object, None for anything else.
    """

    start: int
    end: int
    value: Json
    members: "tuple[Member, ...] | None" = None


@dataclass(frozen=True)
class Member:
    """A member of an object; ``start`` is the place of its key, ``comma`` that of the one after."""

    key: str
    start: int
    node: Node
    comma: int | None


def parse(text: str) -> Node:
    """The object that ``text`` is. Raises ValueError, with line and column, where it is none.

    A key that stands twice in one object is refused: which of the two counts is not documented.
    """
    reader = _Reader(text)
    start = reader.filler(0)
    if text[start : start + 1] != "{":
        raise fault(text, start, "an object")
    root = reader.value(start, 0)
    end = reader.filler(root.end)
    if end < len(text):
        raise fault(text, end, "nothing after the object")
    return root


def line_of(text: str, at: int) -> int:
    return text.count("\n", 0, at) + 1


def fault(text: str, at: int, expected: str) -> ValueError:
    """What is wrong at the place ``at``, told with line and column, both from 1."""
    line, column = line_of(text, at), at - text.rfind("\n", 0, at)
    found = repr(text[at : at + 20].split("\n")[0]) if at < len(text) else "the end"
    return ValueError(f"line {line}, column {column}: expected {expected}, got {found}")


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text

    def filler(self, at: int) -> int:
        """The end of the blanks and comments that begin at ``at``."""
        match = _FILLER.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise fault(self.text, at, f"at most {_DEEPEST} levels")
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._list(at, depth)
        for pattern in (_STRING, _NUMBER, _WORD):
            match = pattern.match(self.text, at)
            found = _scalar(match[0]) if match else None
            if match is not None and not (isinstance(found, float) and math.isinf(found)):
                return Node(at, match.end(), found)
        raise fault(self.text, at, "a value")

    def _object(self, at: int, depth: int) -> Node:
        start, members = at, list[Member]()
        at = self.filler(at + 1)
        while self.text[at : at + 1] != "}":
            if members and members[-1].comma is None:
                raise fault(self.text, at, "',' or '}'")
            member = self._member(at, depth, {member.key for member in members})
            members.append(member)
            at = self.filler(member.node.end if member.comma is None else member.comma + 1)
        value: Json = {member.key: member.node.value for member in members}
        return Node(start, at + 1, value, tuple(members))

    def _member(self, at: int, depth: int, taken: set[str]) -> Member:
        name = _STRING.match(self.text, at)
        if name is None:
            raise fault(self.text, at, "a key in quotes")
        key = json.loads(name[0])
        if key in taken:
            raise fault(self.text, at, f"the key {key!r} only once")
        colon = self.filler(name.end())
        if self.text[colon : colon + 1] != ":":
            raise fault(self.text, colon, "':'")
        node = self.value(self.filler(colon + 1), depth + 1)
        return Member(key, at, node, self._comma(node.end))

    def _list(self, at: int, depth: int) -> Node:
        start, values = at, list[Json]()
        at, goes_on = self.filler(at + 1), True
        while self.text[at : at + 1] != "]":
            if not goes_on:
                raise fault(self.text, at, "',' or ']'")
            node = self.value(at, depth + 1)
            values.append(node.value)
            comma = self._comma(node.end)
            goes_on = comma is not None
            at = self.filler(node.end if comma is None else comma + 1)
        return Node(start, at + 1, values)

    def _comma(self, at: int) -> int | None:
        at = self.filler(at)
        return at if self.text[at : at + 1] == "," else None


def _scalar(text: str) -> Json:
    if text in _WORDS:
        return _WORDS[text]
    found: str | int | float = json.loads(text)
    return found
