"""What decides whether md's arrays are assembled at boot: mdadm.conf, and mdadm's udev rule.

Source of the files' order and of the words: load_conffile(), arrayline() and autoline() in
mdadm's config.c.
"""

import re
from collections.abc import Iterable, Iterator

from facts.probe import Section
from railwright.files import FileRecord, effective_files
from railwright.model import Model
from railwright.snapshot import Snapshot

PLACES = ("/etc/mdadm/mdadm.conf", "/etc/mdadm.conf")
"""Debian's and the other distributions'; of the first that is there the directory PLACE.d is read
too, and the other is not."""

RULES = ("64-md-raid-assembly.rules", "65-md-incremental.rules")
"""mdadm's udev rule that assembles arrays, by upstream's name and by that of EL."""

_RULE_DIRECTORIES = (
    "/etc/udev/rules.d",
    "/run/udev/rules.d",
    "/usr/lib/udev/rules.d",
    "/lib/udev/rules.d",
)

CONFIG = Section(
    name="mdadm_config",
    for_storage=True,
    script=f"""
files {" ".join(f"{place} {place}.d/*.conf" for place in PLACES)}
for rule in {" ".join(f"{directory}/{rule}" for directory in _RULE_DIRECTORIES for rule in RULES)}
do meta "$rule"; done
true
""",
)


class Entry(Model):
    """An ARRAY line; ``place`` is FILE:LINE, ``device`` its second word where that is no tag."""

    place: str
    text: str
    device: str | None
    name: str | None
    uuid: str | None


class MdadmConfig(Model):
    """``refuses`` is the AUTO line that keeps arrays of version 1 from being assembled, None where
    there is none; ``rule`` tells whether udev has a rule of mdadm's to follow."""

    entries: tuple[Entry, ...]
    refuses: str | None
    rule: bool


def read_config(snapshot: Snapshot) -> MdadmConfig:
    """Section ``mdadm_config``. Raises ValueError where it cannot be read."""
    records = snapshot.files(CONFIG.name)
    entries: list[Entry] = []
    auto: tuple[str, str] | None = None
    for place, words in _lines(_files(records)):
        keyword = words[0].lower()
        if _is(keyword, "array"):
            entries.append(_entry(place, words))
        elif _is(keyword, "auto") and auto is None:
            # The first line counts, over all files.
            auto = place, " ".join(words[1:])
    rules = effective_files(records, _RULE_DIRECTORIES)
    return MdadmConfig(
        entries=tuple(entries),
        refuses=auto[0] if auto and not assembles(auto[1]) else None,
        rule=any(rule.name in RULES for rule in rules),
    )


def _files(records: Iterable[FileRecord]) -> list[FileRecord]:
    """The files that mdadm reads, in its order."""
    found = {record.path: record for record in records if record.content is not None}
    place = next((place for place in PLACES if place in found), None)
    # Without a file of its own each mdadm reads the directory beside where that would be.
    directories = [f"{one}.d" for one in ((place,) if place else PLACES)]
    main = [found[place]] if place else []
    return main + [found[path] for path in sorted(found) if found[path].directory in directories]


def _lines(files: Iterable[FileRecord]) -> Iterator[tuple[str, list[str]]]:
    """Each line of words with its place; one that begins with a blank goes on with the last."""
    for file in files:
        place, words = "", list[str]()
        for number, line in enumerate((file.content or "").splitlines(), start=1):
            told = _words(line)
            if not told:
                continue
            if line[0] in " \t" and words:
                words += told
                continue
            if words:
                yield place, words
            place, words = f"{file.path}:{number}", told
        if words:
            yield place, words


_WORD = re.compile(r"""(?:[^\s'"]|'[^']*'|"[^"]*")+""")


def _words(line: str) -> list[str]:
    """The words up to a comment; quotes go, and what they hold stays together."""
    found = []
    for word in _WORD.findall(line):
        if word.startswith("#"):
            break
        found.append(re.sub(r"'([^']*)'|\"([^\"]*)\"", lambda m: m[1] or m[2] or "", word))
    return found


def _is(word: str, keyword: str) -> bool:
    """mdadm's keywords may be cut to three letters."""
    return len(word) >= 3 and keyword.startswith(word)


def _entry(place: str, words: list[str]) -> Entry:
    tags: dict[str, str] = {}
    device = None
    for word in words[1:]:
        key, is_tag, value = word.partition("=")
        if is_tag and not word.startswith("/"):
            tags.setdefault(key.lower(), value)
        elif device is None:
            device = word
    return Entry(
        place=place,
        text=" ".join(words),
        device=device,
        name=tags.get("name"),
        uuid=_plain_uuid(tags["uuid"]) if "uuid" in tags else None,
    )


def _plain_uuid(text: str) -> str:
    """A UUID as ``mdadm --export`` writes it: four words of eight hexadecimal digits."""
    digits = re.sub(r"[^0-9a-f]", "", text.lower())
    return ":".join(digits[at : at + 8] for at in range(0, len(digits), 8))


def assembles(auto: str) -> bool:
    """Whether arrays of version 1 of any host are assembled, by the words of an AUTO line.

    ``homehost`` before a refusal leaves them allowed as it does all: such a rule is no plain no.
    Source: autoline() and conf_test_metadata() in mdadm's config.c.
    """
    for word in auto.lower().split():
        if word in ("yes", "homehost"):
            return True
        if word == "no":
            return False
        if word[1:] in ("all", "1") or word[1:].startswith("1."):
            return not word.startswith("-")
    return True
