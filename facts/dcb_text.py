"""The text of iproute2's ``dcb``, brought into the shape of its JSON.

A line is a keyword and what it stands for: ``delay 7``, ``prio-pfc 0:off 1:off``, ``host``.
"""

import re
from collections.abc import Callable, Mapping

Fields = Mapping[str, object]

PCPS = tuple(f"{pcp}{drop}" for drop in ("nd", "de") for pcp in range(8))

# What /etc/iproute2/rt_dsfield calls the codepoints, in older iproute2 and in newer.
_DSCP_NAMES: dict[str, int] = {
    "default": 0,
    **{f"CS{number}": 8 * number for number in range(8)},
    **{f"AF{queue}{drop}": 8 * queue + 2 * drop for queue in range(1, 5) for drop in range(1, 4)},
    "LE": 1,
    "VA": 44,
    "VOICE-ADMIT": 44,
    "EF": 46,
    "reliability": 1,
    "throughput": 2,
    "lowdelay": 4,
    "priority": 8,
    "immediate": 16,
    "flash": 24,
    "flash-override": 32,
    "critical": 40,
    "internet": 48,
    "network": 56,
}
# print_size of lib/json_print.c: Kb and Mb are 1024 and 1024 * 1024 bytes here.
_UNITS = {"b": 1, "Kb": 1 << 10, "Mb": 1 << 20}
_SIZE = re.compile(r"([0-9.]+(?:e\+?[0-9]+)?)(Kb|Mb|b)")


def text_fields(text: str) -> Fields:
    """The fields of ``dcb OBJECT show`` by the keys of its JSON. Raises ValueError."""
    words: dict[str, list[str]] = {}
    values: list[str] | None = None
    for word in text.split():
        if word in _SHAPES:
            values = words.setdefault(word, [])
        elif values is None:
            raise ValueError(f"expected pfc, app, ets, buffer or dcbx of dcb, got {text[:80]!r}")
        else:
            values.append(word)
    return {key.replace("-", "_"): _SHAPES[key](listed) for key, listed in words.items()}


def _one(read: Callable[[str], object]) -> Callable[[list[str]], object]:
    def shape(words: list[str]) -> object:
        if len(words) != 1:
            raise ValueError(f"expected one value of dcb, got {' '.join(words)[:80]!r}")
        return read(words[0])

    return shape


def _each(read: Callable[[str], object]) -> Callable[[list[str]], object]:
    return lambda words: [read(word) for word in words]


def _indexed(read: Callable[[str], object]) -> Callable[[list[str]], object]:
    """``0:VALUE 1:VALUE ...`` as the list of values."""

    def shape(words: list[str]) -> object:
        found = []
        for index, word in enumerate(words):
            number, _, value = word.partition(":")
            if number != str(index):
                raise ValueError(f"expected {index}:VALUE of dcb, got {word!r}")
            found.append(read(value))
        return found

    return shape


def _mapping(read: Callable[[str], object]) -> Callable[[list[str]], object]:
    """``KEY:PRIORITY ...`` as a list of pairs."""

    def shape(words: list[str]) -> object:
        pairs = [word.rpartition(":") for word in words]
        return [[read(key), _whole(priority)] for key, _, priority in pairs]

    return shape


def _flag(words: list[str]) -> object:
    if words:
        raise ValueError(f"expected a flag of DCBX, got {words[0]!r}")
    return True


def _whole(word: str) -> int:
    if not re.fullmatch(r"[0-9]+", word):
        raise ValueError(f"expected a number of dcb, got {word!r}")
    return int(word)


def _hex(word: str) -> int:
    if not re.fullmatch(r"[0-9a-f]+", word):
        raise ValueError(f"expected an EtherType of dcb, got {word!r}")
    return int(word, 16)


def _toggle(word: str) -> bool:
    if word not in ("on", "off"):
        raise ValueError(f"expected on or off of dcb, got {word!r}")
    return word == "on"


def _size(word: str) -> int:
    match = _SIZE.fullmatch(word)
    if match is None:
        raise ValueError(f"expected a size of dcb, got {word!r}")
    size = float(match[1]) * _UNITS[match[2]]
    # total_size and the sizes of buffers are 32 bits wide in struct dcbnl_buffer.
    if not size < 1 << 32:
        raise ValueError(f"expected a size below 4 GiB of dcb, got {word!r}")
    return round(size)


def _dscp(word: str) -> int:
    return _DSCP_NAMES[word] if word in _DSCP_NAMES else _whole(word)


def _pcp(word: str) -> str | int:
    return word if word in PCPS else _whole(word)


_SHAPES: Mapping[str, Callable[[list[str]], object]] = {
    "pfc-cap": _one(_whole),
    "macsec-bypass": _one(_toggle),
    "delay": _one(_whole),
    "prio-pfc": _indexed(_toggle),
    "requests": _indexed(_whole),
    "indications": _indexed(_whole),
    "willing": _one(_toggle),
    "ets-cap": _one(_whole),
    "cbs": _one(_toggle),
    **{key: _indexed(_whole) for key in ("tc-bw", "pg-bw", "reco-tc-bw")},
    **{key: _indexed(_whole) for key in ("prio-tc", "reco-prio-tc", "prio-buffer")},
    **{key: _indexed(str) for key in ("tc-tsa", "reco-tc-tsa")},
    "buffer-size": _indexed(_size),
    "total-size": _one(_size),
    "default-prio": _each(_whole),
    "dscp-prio": _mapping(_dscp),
    "pcp-prio": _mapping(_pcp),
    "ethtype-prio": _mapping(_hex),
    **{key: _mapping(_whole) for key in ("stream-port-prio", "dgram-port-prio", "port-prio")},
    **dict.fromkeys(("host", "lld-managed", "cee", "ieee", "static"), _flag),
}
