"""Words that are not known, told with the nearest that is."""

from collections.abc import Iterable

from railwright.site.problems import nearest


def unknown(kind: str, word: str, known: Iterable[str], where: str = "") -> str:
    """Says that there is no such ``kind``: ``no component 'sysctrl' (did you mean sysctl?)``."""
    hint = nearest(word, known)
    return f"no {kind} {word!r}{f' in {where}' if where else ''}{f' ({hint})' if hint else ''}"
