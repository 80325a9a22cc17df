"""Which line decides how chrony treats a time source.

chronyd takes a server once: of two lines with one address the later is refused ("Could not add
source"). Those of chrony.conf, and of the ``confdir`` files in their place in it, come first; then
those of the ``sourcedir`` directories together, sorted by name, kind and port (conf.c). Files that
chrony.conf names by ``include`` are not followed.
"""

import re
from collections.abc import Iterable, Iterator
from ipaddress import ip_address

from railwright.files import FileRecord, effective_files
from railwright.model import Model

_KINDS = ("server", "pool", "peer")
# What starts a comment; one behind a directive does not exist.
_COMMENT = "!;#%"


class SourceLine(Model):
    """A ``server``, ``pool`` or ``peer`` directive; ``options`` in one order, the port first."""

    kind: str
    address: str
    port: int
    options: tuple[str, ...]
    path: str
    line: int

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def text(self) -> str:
        """The directive as every line of its meaning is written."""
        return " ".join((self.kind, self.address, f"port {self.port}", *self.options))


class Configuration(Model):
    """What chronyd makes of its files; ``sources`` in the order in which they are taken."""

    sources: tuple[SourceLine, ...]
    source_dirs: tuple[str, ...]

    def deciding(self, address: str) -> SourceLine | None:
        """The line that is taken for ``address``, None where there is none."""
        wanted = canonical_address(address)
        return next((line for line in self.sources if line.address == wanted), None)


def canonical_address(text: str) -> str:
    """An address or name in the one spelling by which it is compared."""
    try:
        return str(ip_address(text))
    except ValueError:
        return text.lower()


def configuration(files: Iterable[FileRecord], main: str, owned: str) -> Configuration:
    """Read chrony's files, of which ``main`` is chrony.conf and ``owned`` the one that is ours.

    Where the order of two lines in ``sourcedir`` directories is chronyd's secret (the same name,
    kind and port), the one that is not ours is said to be taken. Raises ValueError for a port
    that is none.
    """
    records = [record for record in files if record.content is not None]
    source_dirs: list[str] = []
    fixed: list[SourceLine] = []
    for record, number, words in _directives(records, main):
        keyword = words[0].lower()
        if keyword == "sourcedir":
            source_dirs += [word.rstrip("/") for word in words[1:]]
        elif keyword in _KINDS and len(words) > 1:
            fixed.append(_source(words, record.path, number))
    loose = [
        _source(words, record.path, number)
        for record in effective_files(records, source_dirs)
        if record.name.endswith(".sources")
        for number, words in _lines(record)
        if words[0].lower() in _KINDS and len(words) > 1
    ]
    loose.sort(key=lambda s: (s.address, s.kind == "pool", s.port, s.path == owned))
    return Configuration(sources=(*fixed, *loose), source_dirs=tuple(source_dirs))


def _directives(
    records: list[FileRecord], main: str
) -> Iterator[tuple[FileRecord, int, list[str]]]:
    for record in (record for record in records if record.path == main):
        for number, words in _lines(record):
            if words[0].lower() != "confdir":
                yield record, number, words
                continue
            for part in effective_files(records, [word.rstrip("/") for word in words[1:]]):
                if part.name.endswith(".conf"):
                    yield from ((part, line, inner) for line, inner in _lines(part))


def _lines(record: FileRecord) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate((record.content or "").split("\n"), 1):
        words = line.split()
        if words and words[0][0] not in _COMMENT:
            yield number, words


def _source(words: list[str], path: str, line: int) -> SourceLine:
    port = 123
    options = []
    # An option is a word and the values behind it, none of which starts with a letter.
    for option in re.findall(r"[A-Za-z]\S*(?: +[^A-Za-z\s]\S*)*", " ".join(words[2:])):
        name, _, value = option.lower().partition(" ")
        if name != "port":
            options.append(option.lower())
        elif value.isdecimal():
            port = int(value)
        else:
            raise ValueError(f"{path}:{line}: expected a port, got {value!r}")
    return SourceLine(
        kind=words[0].lower(),
        address=canonical_address(words[1]),
        port=port,
        options=tuple(sorted(options)),
        path=path,
        line=line,
    )
