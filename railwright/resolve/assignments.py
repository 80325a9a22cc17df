"""What shell files that only assign variables leave in them, and which line put each part there.

Only what can be known without running it is evaluated: words, quotes, ``$NAME``, ``${NAME}`` and
its ``-`` and ``+`` forms. What cannot is not guessed: a part of a value, a variable, or all of
them are unknown from there on, with the place and the reason.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

UNKNOWN = "\ufffd"
"""Stands in a value for a part that cannot be known; a probe's output is ASCII, so never in it."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_OPENERS = frozenset({"if", "for", "while", "until", "case", "{"})
_CLOSERS = frozenset({"fi", "esac", "done", "}"})
_HARMLESS = frozenset({":", "true", "echo", "test", "["})


@dataclass(frozen=True)
class Value:
    """Text with the place (``path:line``) that each of its characters comes from.

    Where a character is UNKNOWN its place goes on with the reason.
    """

    chars: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, text: str, origin: str) -> "Value":
        return cls(tuple((char, origin) for char in text))

    @property
    def text(self) -> str:
        return "".join(char for char, _ in self.chars)

    def __add__(self, other: "Value") -> "Value":
        return Value(self.chars + other.chars)


@dataclass(frozen=True)
class Lost:
    """A word that an assignment dropped from a variable, where it was set, what dropped it."""

    word: str
    origin: str
    dropped_by: str


@dataclass
class Environment:
    """Variables after some files; those that no file assigned are empty, or unknown.

    A name that starts with one of ``empty`` is known to start empty.
    """

    empty: tuple[str, ...] = ()
    values: dict[str, Value] = field(default_factory=dict)
    assigned_at: dict[str, str] = field(default_factory=dict)
    lost: list[Lost] = field(default_factory=list)
    rest: str | None = None

    def get(self, name: str) -> Value:
        if name in self.values:
            return self.values[name]
        if self.rest is not None:
            return Value.of(UNKNOWN, self.rest)
        if name.startswith(self.empty):
            return Value()
        return Value.of(UNKNOWN, f"${name} is not set by these files")

    def assign(self, name: str, value: Value, origin: str) -> None:
        before, after = self.get(name), value.text.split()
        self.lost.extend(
            Lost(word, place, origin)
            for word, place in words_of(before)
            if UNKNOWN not in word and word not in after and UNKNOWN not in value.text
        )
        self.values[name] = value
        self.assigned_at[name] = origin

    def forget(self, name: str, origin: str, reason: str) -> None:
        self.values[name] = Value.of(UNKNOWN, f"{origin}: {reason}")
        self.assigned_at[name] = origin

    def forget_all(self, origin: str, reason: str) -> None:
        self.values.clear()
        self.rest = f"{origin}: {reason}"


def words_of(value: Value) -> Iterator[tuple[str, str]]:
    """The words of a value, parted at blanks, with the place that the first letter comes from."""
    text = value.text
    for found in re.finditer(r"\S+", text):
        yield found.group(), value.chars[found.start()][1]


class _UnreadableError(Exception):
    """Something that cannot be read; the rest of the file is then unknown."""


@dataclass(frozen=True)
class _Word:
    parts: tuple["_Part", ...]
    raw: str = ""
    """The word as it stands in the file."""

    @property
    def bare(self) -> str:
        """The word where nothing in it is quoted or expanded, or ""."""
        return "" if re.search(r"[\"'\\$`]", self.raw) else self.raw


_Part = str | tuple[str, str, _Word] | None
"""Literal text; a variable with operator and default; None for what cannot be known."""


@dataclass(frozen=True)
class _Command:
    line: int
    words: tuple[_Word, ...]
    raw: str
    conditional: bool


def evaluate(content: str, path: str, environment: Environment) -> None:
    """Take the assignments of one file into ``environment``, in order."""
    depth = 0
    try:
        for command in _Reader(content).commands():
            depth = _take(command, path, environment, depth)
    except _UnreadableError as error:
        line, reason = error.args
        environment.forget_all(f"{path}:{line}", reason)


def _take(command: _Command, path: str, environment: Environment, depth: int) -> int:
    """Take one command; returns how deep in if, case, loops and braces the next one is."""
    origin = f"{path}:{command.line}"
    words, bare = command.words, [word.bare for word in command.words]
    if {"(", ")"} & set(bare):
        raise _UnreadableError(command.line, "a function, subshell or case")
    if depth or command.conditional or bare[0] in _OPENERS:
        _forget_assigned(command, origin, environment)
        if {".", "source", "eval", "read"} & set(bare):
            environment.forget_all(origin, "runs what cannot be known")
        return depth + sum(w in _OPENERS for w in bare) - sum(w in _CLOSERS for w in bare)
    if bare[0] in ("export", "readonly") and all(
        _assignment(word) or _NAME.fullmatch(word.bare) for word in words[1:]
    ):
        words = tuple(word for word in words if _assignment(word))
    if bare[0] == "unset" and all(_NAME.fullmatch(name) for name in bare[1:]):
        for name in bare[1:]:
            environment.assign(name, Value(), origin)
    elif all(_assignment(word) for word in words):
        for word in words:
            _assign(word, origin, environment)
    else:
        _forget_assigned(command, origin, environment)
        name = next(word.bare for word in words if not _assignment(word))
        if name not in _HARMLESS:
            environment.forget_all(origin, f"runs {name or 'a command'}")
    return depth


def _forget_assigned(command: _Command, origin: str, environment: Environment) -> None:
    """Forget every variable that the command, or the condition that it stands under, may set."""
    for found in _ASSIGNMENT.finditer(command.raw):
        environment.forget(found[1], origin, "assigned under a condition")


def _assignment(word: _Word) -> "re.Match[str] | None":
    return _ASSIGNMENT.match(word.raw)


def _assign(word: _Word, origin: str, environment: Environment) -> None:
    found = _assignment(word)
    assert found is not None
    first = str(word.parts[0])[found.end() :]
    value = _expand(_Word((first, *word.parts[1:])), origin, environment)
    if found[2]:
        # POSIX sh has no +=; where sh is dash the file fails, where it is bash it appends.
        environment.forget(found[1], origin, "+= is not sh")
        return
    environment.assign(found[1], value, origin)


def _expand(word: _Word, origin: str, environment: Environment) -> Value:
    value = Value()
    for part in word.parts:
        if isinstance(part, str):
            value += Value.of(part, origin)
        elif part is None:
            value += Value.of(UNKNOWN, f"{origin}: command substitution or arithmetic")
        else:
            value += _variable(*part, origin, environment)
    return value


def _variable(
    name: str, operator: str, default: _Word, origin: str, environment: Environment
) -> Value:
    found = environment.get(name)
    if not operator:
        return found
    if UNKNOWN in found.text or (not found.text and operator in ("-", "+")):
        # Without the colon an empty variable is told from one that is not set: not tracked.
        return Value.of(UNKNOWN, f"{origin}: ${{{name}{operator}...}}")
    instead = _expand(default, origin, environment)
    if operator.endswith("+"):
        return instead if found.text else Value()
    return found if found.text else instead


class _Reader:
    """Takes shell text apart into commands of words."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    @property
    def line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def commands(self) -> Iterator[_Command]:
        words: list[_Word] = []
        start, line, joined = 0, 1, False
        while True:
            self._skip_blanks()
            char = self.text[self.at : self.at + 1]
            if char in ("", "\n", ";", "&", "|"):
                two = self.text[self.at : self.at + 2]
                joins = two in ("&&", "||") or char in ("&", "|")
                if words:
                    raw = self.text[start : self.at]
                    yield _Command(line, tuple(words), raw, joined or joins)
                if not char:
                    return
                joined, words = joins or (joined and not words and char == "\n"), []
                self.at += 2 if two in ("&&", "||", ";;") else 1
                continue
            if not words:
                start, line = self.at, self.line
            words.append(self._word())

    def _skip_blanks(self) -> None:
        while self.at < len(self.text):
            if self.text[self.at] in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            else:
                return

    def _word(self) -> _Word:
        start = self.at
        if self.text[self.at] in "<>()":
            if self.text.startswith("<<", self.at):
                raise _UnreadableError(self.line, "a here-document")
            self.at += 1
            return _Word((), self.text[start : self.at])
        parts: list[_Part] = []
        while self.at < len(self.text) and self.text[self.at] not in " \t\n;&|<>()":
            self._part(parts, "")
        return _Word(_joined(parts), self.text[start : self.at])

    def _part(self, parts: list["_Part"], closing: str) -> None:
        """One character, quoted stretch or expansion; ``closing`` is the quote it stands in."""
        char = self.text[self.at]
        if char == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            self.at += 2
            if following == "\n":
                return
            literal = closing == '"' and following not in ('"', "\\", "$", "`")
            parts.append("\\" + following if literal else following)
        elif char == "'" and closing != '"':
            end = self.text.find("'", self.at + 1)
            if end < 0:
                raise _UnreadableError(self.line, "a quote that does not end")
            parts.append(self.text[self.at + 1 : end])
            self.at = end + 1
        elif char == '"' and closing != '"':
            self._double_quoted(parts)
        elif char == "~" and not closing:
            parts.append(None)
            self.at += 1
        elif char == "`":
            self._substitution(parts)
        elif char == "$":
            self._dollar(parts, closing)
        else:
            parts.append(char)
            self.at += 1

    def _double_quoted(self, parts: list["_Part"]) -> None:
        opened = self.line
        self.at += 1
        while self.text[self.at : self.at + 1] != '"':
            if self.at >= len(self.text):
                raise _UnreadableError(opened, "a quote that does not end")
            self._part(parts, '"')
        self.at += 1

    def _substitution(self, parts: list["_Part"]) -> None:
        found = re.compile(r"`(?:[^`\\]|\\.)*`", re.DOTALL).match(self.text, self.at)
        if not found:
            raise _UnreadableError(self.line, "a quote that does not end")
        parts.append(None)
        self.at = found.end()

    def _dollar(self, parts: list["_Part"], closing: str) -> None:
        rest = self.text[self.at + 1 :]
        if re.match(r"(?:\w+(?:\\\n)+\w|\\\n)", rest):
            raise _UnreadableError(self.line, "a name that goes on in the next line")
        if rest.startswith("("):
            parts.append(None)
            self.at = self._closing_parenthesis(self.at + 1)
        elif found := _NAME.match(rest):
            parts.append((found.group(), "", _Word(())))
            self.at += 1 + found.end()
        elif found := re.match(r"\{([A-Za-z_][A-Za-z0-9_]*)(:?[-+]|)", rest):
            self.at += 1 + found.end()
            inner: list[_Part] = []
            while self.text[self.at : self.at + 1] != "}":
                unclear = closing and self.text[self.at : self.at + 1] in ('"', "\\")
                if self.at >= len(self.text) or not found[2] or unclear:
                    raise _UnreadableError(self.line, f"${{{found[1]}...}}")
                self._part(inner, closing)
            self.at += 1
            parts.append((found[1], found[2], _Word(_joined(inner))))
        elif re.match(r"[0-9@*#?$!-]", rest):
            parts.append(None)
            self.at += 2
        elif rest.startswith("{") or (rest.startswith("'") and not closing):
            raise _UnreadableError(self.line, f"${rest[:1]}")
        else:
            parts.append("$")
            self.at += 1

    def _closing_parenthesis(self, at: int) -> int:
        """Just after the parenthesis that closes the one at ``at``, quoted ones passed over."""
        depth = 0
        pattern = re.compile(r"\\.|'[^']*'|\"(?:[^\"\\]|\\.)*\"|[()]", re.DOTALL)
        for found in pattern.finditer(self.text, at):
            depth += {"(": 1, ")": -1}.get(found.group(), 0)
            if depth == 0:
                return found.end()
        raise _UnreadableError(self.line, "a parenthesis that does not close")


def _joined(
    parts: list["_Part"],
) -> tuple["_Part", ...]:
    """Parts with neighbouring literals put together."""
    joined: list[_Part] = []
    for part in parts:
        if isinstance(part, str) and joined and isinstance(joined[-1], str):
            joined[-1] += part
        else:
            joined.append(part)
    return tuple(joined)
