"""The entry that a generated grub.cfg boots by default, and the arguments it gives to Linux."""

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from railwright.model import Model

_NUMBERED = re.compile(r"^(?:(\d+):)?(.*)$", re.DOTALL)
_SET = re.compile(r"^\s*(?:set\s+)?([A-Za-z_]\w*)=(.*)$")
_LINUX = re.compile(r"^\s*linux(?:16|efi)?\s+(\S.*)$")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


class BootEntry(Model):
    """An entry of the boot menu; ``origin`` is where its arguments stand (``path:line``)."""

    title: str
    origin: str
    arguments: tuple[str, ...]


@dataclass
class _Menu:
    """A menu entry, or a submenu with its entries."""

    title: str = ""
    identity: str = ""
    is_submenu: bool = True
    linux: tuple[int, str] | None = None
    entries: list["_Menu"] = field(default_factory=list)


def parse_grubenv(content: str) -> dict[str, str]:
    """The variables of a GRUB environment block. Source: grub-editenv(1)."""
    lines = (line for line in content.splitlines() if "=" in line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


def expand(text: str, variables: Mapping[str, str]) -> str:
    """``text`` with GRUB's variables put in; one that is not set is empty."""
    return _VARIABLE.sub(lambda found: variables.get(found[1] or found[2], ""), text)


def split_words(text: str) -> list[str]:
    """Words as GRUB's shell parts them, quotes taken off."""
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def uses_blscfg(content: str) -> bool:
    """Whether the menu comes from the files of the Boot Loader Specification."""
    return any(line.strip() == "blscfg" for _, line in _lines(content))


def variables_of(content: str, grubenv: Mapping[str, str]) -> dict[str, str]:
    """Variables at the end of grub.cfg, as far as its lines were read.

    A value in the environment block stands over kernelopts, which is only a fallback there.
    """
    found = dict(grubenv)
    for _, line in _lines(content):
        if (matched := _SET.match(line)) and matched[1] != "default":
            value = " ".join(split_words(matched[2])) if "$" not in matched[2] else ""
            if matched[1] != "kernelopts" or matched[1] not in grubenv:
                found[matched[1]] = value
    return found


def default_of(content: str, grubenv: Mapping[str, str]) -> str:
    """The entry that boots next: an index, title or id; ``>`` leads into a submenu."""
    chosen = "0"
    for _, line in _lines(content):
        matched = _SET.match(line)
        if matched and matched[1] == "default":
            if "next_entry" in matched[2]:
                continue
            chosen = expand(" ".join(split_words(matched[2])), grubenv) or "0"
    return grubenv.get("next_entry") or chosen


def default_entry(content: str, path: str, grubenv: Mapping[str, str]) -> BootEntry:
    """The default entry of the grub.cfg at ``path``.

    ``content`` may be all of it, or its lines that tell of the menu, each with its number
    (``94:\\tlinux ...``). Raises ValueError where there is no such entry.
    """
    menu = _parse(content)
    entry = _select(menu, default_of(content, grubenv))
    if entry is None or entry.linux is None:
        name = repr(entry.title) if entry else "no entry"
        raise ValueError(f"{path}: expected a default entry that boots Linux, got {name}")
    number, line = entry.linux
    words = split_words(expand(line, variables_of(content, grubenv)))
    return BootEntry(title=entry.title, origin=f"{path}:{number}", arguments=tuple(words[1:]))


def _lines(content: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(content.splitlines(), start=1):
        matched = _NUMBERED.match(line)
        assert matched is not None
        yield int(matched[1] or number), matched[2]


def _parse(content: str) -> _Menu:
    stack = [_Menu()]
    for number, line in _lines(content):
        stripped = line.strip()
        if stripped.startswith(("menuentry ", "submenu ", "function ")) and stripped.endswith("{"):
            stack.append(_opened(stripped))
            if not stripped.startswith("function "):
                stack[-2].entries.append(stack[-1])
        elif stripped == "}" and len(stack) > 1:
            stack.pop()
        elif (found := _LINUX.match(line)) and stack[-1].linux is None:
            stack[-1].linux = (number, found[1])
    return stack[0]


def _opened(line: str) -> _Menu:
    words = split_words(line)
    identity = ""
    for word, following in pairwise(words):
        if word in ("$menuentry_id_option", "--id"):
            identity = following
        elif word.startswith("--id="):
            identity = word.removeprefix("--id=")
    return _Menu(words[1] if len(words) > 1 else "", identity, words[0] == "submenu")


def _select(menu: _Menu, default: str) -> _Menu | None:
    """Follow ``default`` down; what is not found is the first entry, as GRUB has it."""
    steps = re.split(r"(?<!>)>(?!>)", default)
    entry = menu
    while entry.is_submenu:
        step = steps.pop(0) if steps else "0"
        chosen = _find(entry, step) or (_anywhere(menu, step) if entry is menu else None)
        if chosen is None:
            chosen = entry.entries[0] if entry.entries else None
        if chosen is None:
            return None
        entry = chosen
    return entry


def _find(menu: _Menu, step: str) -> _Menu | None:
    if step.isdigit():
        return menu.entries[int(step)] if int(step) < len(menu.entries) else None
    name = step.replace(">>", ">")
    return next((e for e in menu.entries if name in (e.title, e.identity)), None)


def _anywhere(menu: _Menu, step: str) -> _Menu | None:
    """An entry of a submenu by its title: grub.cfg corrects such a default of older versions."""
    for entry in menu.entries:
        if entry.is_submenu and not step.isdigit():
            found = _find(entry, step) or _anywhere(entry, step)
            if found is not None:
                return found
    return None
