"""Kernel arguments from /etc/default/grub and its drop-ins: which line brings each one in.

grub-mkconfig reads /etc/default/grub, then /etc/default/grub.d/*.cfg by name (a patch of Debian
and Ubuntu), each with sh in one shell, and boots Linux with GRUB_CMDLINE_LINUX followed by
GRUB_CMDLINE_LINUX_DEFAULT. Source: grub-mkconfig and 10_linux of grub-common 2.06-13+deb12u2.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from facts.cmdline import accumulates, name_of
from railwright.files import FileRecord
from railwright.model import Model
from railwright.owned import HEADER
from railwright.resolve.assignments import (
    UNKNOWN,
    Environment,
    Lost,
    Value,
    evaluate,
)

DEFAULTS = "/etc/default/grub"
DROPIN = "/etc/default/grub.d/99-zz-railwright.cfg"
VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")

_DATA = re.compile(r"^railwright_arguments='([^']*)'$", re.MULTILINE)


class SourceArgument(Model):
    """An argument and the ``path:line`` that brings it in.

    ``text`` None stands for some arguments that cannot be known; ``origin`` then says why.
    """

    text: str | None
    origin: str


class GrubDefaults(Model):
    """What the files say: the arguments in order, and those that a later line took out."""

    arguments: tuple[SourceArgument, ...]
    dropped: tuple[Lost, ...]
    last_line: str | None
    """The ``path:line`` that had the last word on GRUB_CMDLINE_LINUX_DEFAULT."""
    ours: tuple[str, ...] = ()
    """The parameters that our drop-in sets."""
    behind_ours: str | None = None
    """Why some arguments that come before our drop-in cannot be known; no matter for ``ours``."""

    def certain(self, key: str) -> list[str]:
        """The arguments that decide on ``key``. Raises ValueError where they cannot be known.

        What is unknown before the last occurrence does not matter where the last one counts.
        """
        name = name_of(key)
        if self.behind_ours and name not in self.ours:
            raise ValueError(self.behind_ours)
        start = 0
        if not accumulates(name):
            places = [i for i, a in enumerate(self.arguments) if a.text and name_of(a.text) == name]
            start = places[-1] if places else 0
        unknown = next((a.origin for a in self.arguments[start:] if a.text is None), None)
        if unknown is not None:
            raise ValueError(unknown)
        return [a.text for a in self.arguments[start:] if a.text is not None]

    def origin_of(self, key: str) -> str | None:
        """Where the last argument for ``key`` comes from."""
        names = {"hugepages", "hugepagesz"} if key == "hugepages" else {name_of(key)}
        places = [a.origin for a in self.arguments if a.text and name_of(a.text) in names]
        return places[-1] if places else None

    def drop_of(self, argument: str) -> Lost | None:
        """What took ``argument`` out, where something did."""
        return next((lost for lost in reversed(self.dropped) if lost.word == argument), None)


def render_dropin(arguments: Sequence[str]) -> str:
    """Our drop-in: ``arguments`` are put last, and taken out of what other files say.

    Of a parameter whose every occurrence counts all other values are taken out too.
    """
    names = sorted({name for a in arguments if accumulates(name := name_of(a))})
    patterns = [f"'{name}' | '{name}='*" for name in names]
    patterns += [f"'{a}'" for a in arguments if name_of(a) not in names]
    return f"""\
{HEADER}railwright_arguments='{" ".join(arguments)}'
railwright_keep() {{
    railwright_kept=
    for railwright_word in $1; do
        case $railwright_word in
            {" | ".join(patterns)}) ;;
            *) railwright_kept="$railwright_kept $railwright_word" ;;
        esac
    done
}}
set -f
railwright_keep "$GRUB_CMDLINE_LINUX"
GRUB_CMDLINE_LINUX=${{railwright_kept# }}
railwright_keep "$GRUB_CMDLINE_LINUX_DEFAULT"
railwright_kept="$railwright_kept $railwright_arguments"
GRUB_CMDLINE_LINUX_DEFAULT=${{railwright_kept# }}
set +f
"""


def resolve(files: Iterable[FileRecord]) -> GrubDefaults:
    """What /etc/default/grub and the drop-ins among ``files`` come to."""
    environment = Environment(empty=VARIABLES)
    ours: tuple[str, ...] = ()
    behind_ours: str | None = None
    for record in _in_order(files):
        if record.content is None:
            environment.forget_all(record.path, "cannot be read")
        elif own := _own_arguments(record.content):
            ours = tuple(name_of(argument) for argument in own)
            behind_ours = _take_own(record.path, record.content, own, environment)
        else:
            evaluate(record.content, record.path, environment)
    arguments = [
        SourceArgument(text=None if UNKNOWN in word else word, origin=origin)
        for name in VARIABLES
        for word, origin in _with_reasons(environment.get(name))
    ]
    return GrubDefaults(
        arguments=tuple(arguments),
        dropped=tuple(environment.lost),
        last_line=environment.assigned_at.get(VARIABLES[1]),
        ours=ours,
        behind_ours=behind_ours,
    )


def _in_order(files: Iterable[FileRecord]) -> list[FileRecord]:
    records = [r for r in files if r.kind != "link" or r.target]
    drop_ins = [r for r in records if re.fullmatch(rf"{DEFAULTS}\.d/[^/.][^/]*\.cfg", r.path)]
    return [r for r in records if r.path == DEFAULTS] + sorted(drop_ins, key=lambda r: r.path)


def _with_reasons(value: Value) -> Iterator[tuple[str, str]]:
    """The words with their places; of one that is partly unknown, the reason."""
    for found in re.finditer(r"\S+", value.text):
        chars = value.chars[found.start() : found.end()]
        reason = next((place for char, place in chars if char == UNKNOWN), None)
        yield found.group(), reason or chars[0][1]


def _own_arguments(content: str) -> list[str]:
    """The arguments of a drop-in of ours; none where it was written otherwise, or cut short."""
    data = _DATA.search(content)
    arguments = data[1].split() if data else []
    return arguments if arguments and content.startswith(render_dropin(arguments)) else []


def _take_own(
    path: str, content: str, arguments: list[str], environment: Environment
) -> str | None:
    """Do as our drop-in does, and go on with what a hand added after it.

    Returns why some of what it let through cannot be known; it is left out.
    """
    data = _DATA.search(content)
    origin = f"{path}:{content.count(chr(10), 0, data.start()) + 1 if data else 1}"
    reasons: list[str] = []
    for name in VARIABLES:
        value = _kept(environment.get(name), arguments, reasons)
        if name == VARIABLES[1]:
            blank = Value.of(" ", origin) if value.chars else Value()
            value = value + blank + Value.of(" ".join(arguments), origin)
        environment.values[name] = value
        environment.assigned_at[name] = origin
    own = render_dropin(arguments)
    evaluate("\n" * own.count("\n") + content.removeprefix(own), path, environment)
    return reasons[0] if reasons else None


def _kept(value: Value, arguments: Sequence[str], reasons: list[str]) -> Value:
    names = {name for a in arguments if accumulates(name := name_of(a))}
    kept = Value()
    for found in re.finditer(r"\S+", value.text):
        word, chars = found.group(), value.chars[found.start() : found.end()]
        unknown = next((place for char, place in chars if char == UNKNOWN), None)
        if unknown is not None:
            reasons.append(unknown)
        elif word not in arguments and word.partition("=")[0] not in names:
            kept += (Value.of(" ", "") if kept.chars else Value()) + Value(chars)
    return kept
