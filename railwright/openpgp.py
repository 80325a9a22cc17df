"""Public keys of OpenPGP, as far as is needed to know one by its fingerprint.

Nothing is verified by what is here: apt and rpm check signatures with the key. Source of the
formats: RFC 9580 (packets 4.2, armour 6, fingerprints 5.5.4).
"""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

_ARMOUR = re.compile(
    r"^-----BEGIN PGP (?P<kind>[A-Z ]+)-----[ \t]*\n"
    # Headers such as "Comment: x" end with a blank line.
    r"(?:[^\n:]+:[^\n]*\n)*[ \t]*\n"
    r"(?P<body>(?:[A-Za-z0-9+/=]+[ \t]*\n)*?)"
    r"(?:=(?P<sum>[A-Za-z0-9+/]{4})[ \t]*\n)?"
    r"-----END PGP (?P=kind)-----[ \t]*$",
    re.MULTILINE,
)
_PUBLIC = "PUBLIC KEY BLOCK"

_SECRET = frozenset({5, 7})
_KEY = 6
_MARKER = 10
_OF_A_KEY = frozenset({_KEY, _MARKER, 2, 12, 13, 14, 17})
"""Packets that a public key is made of (RFC 9580, 10.1): signatures, users, subkeys and
attributes; keyrings of GnuPG add trust (12)."""


class Packet(NamedTuple):
    """One packet; ``kind`` is its number in RFC 9580, 5."""

    kind: int
    body: bytes


def dearmour(data: bytes) -> bytes:
    """The packets in ``data``, which may be armoured, in several blocks, with text around them.

    Raises ValueError where it is neither, or where a block is damaged.
    """
    if data[:1] and data[0] & 0x80:
        return data
    text = data.decode("ascii", "replace").replace("\r\n", "\n")
    blocks = list(_ARMOUR.finditer(text))
    if not blocks or len(blocks) != text.count("-----BEGIN PGP "):
        raise ValueError(f"expected an OpenPGP key, got {text[:40]!r}")
    return b"".join(_block(block) for block in blocks)


def _block(found: re.Match[str]) -> bytes:
    if found["kind"] != _PUBLIC:
        raise ValueError(f"expected a PGP {_PUBLIC}, got a PGP {found['kind']}")
    try:
        body = base64.b64decode("".join(found["body"].split()), validate=True)
    except binascii.Error as error:
        raise ValueError(f"a damaged key block: {error}") from None
    if found["sum"] is not None and base64.b64decode(found["sum"]) != _crc24(body):
        raise ValueError("a damaged key block: its checksum does not fit")
    return body


def armour(packets: bytes) -> str:
    """``packets`` as text, which apt takes as well (.asc), and rpm alone."""
    text = base64.b64encode(packets).decode("ascii")
    lines = "\n".join(text[start : start + 64] for start in range(0, len(text), 64))
    checksum = base64.b64encode(_crc24(packets)).decode("ascii")
    return f"-----BEGIN PGP {_PUBLIC}-----\n\n{lines}\n={checksum}\n-----END PGP {_PUBLIC}-----\n"


def _crc24(data: bytes) -> bytes:
    """The checksum of armour. Source of both numbers: RFC 9580, 6.1."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc.to_bytes(3, "big")


def packets_of(data: bytes) -> Iterator[Packet]:
    """The packets one after the other. Raises ValueError where one is cut off or of no length."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            raise ValueError(f"expected a packet at byte {at}, got {head:#04x}")
        kind, size, octets = _lengths(data, at)
        start = at + 1 + octets
        body = data[start : start + size]
        if len(body) != size:
            raise ValueError(f"packet {kind} at byte {at} is cut off")
        yield Packet(kind, body)
        at = start + size


def _lengths(data: bytes, at: int) -> tuple[int, int, int]:
    """Kind and length of the packet at ``at``, and how many octets tell the length."""
    head, rest = data[at], data[at + 1 : at + 6].ljust(5, b"\0")
    if head & 0x40:
        kind = head & 0x3F
        if rest[0] < 192:
            return kind, rest[0], 1
        if rest[0] < 224:
            return kind, ((rest[0] - 192) << 8) + rest[1] + 192, 2
        if rest[0] == 255:
            return kind, int.from_bytes(rest[1:5], "big"), 5
        raise ValueError(f"packet {kind} at byte {at} comes in parts, which no key does")
    kind, form = (head >> 2) & 0x0F, head & 0x03
    if form == 3:
        raise ValueError(f"packet {kind} at byte {at} has no length, which no key does")
    octets = 1 << form
    return kind, int.from_bytes(rest[:octets], "big"), octets


def fingerprint(body: bytes) -> str:
    """The fingerprint of a key packet of version 4: 40 of 0-9 and A-F.

    Raises ValueError for the other versions: apt and rpm of today know none of them, or no more.
    """
    version = body[0] if body else 0
    if version != 4:
        raise ValueError(f"a key of version {version}: only version 4 is known")
    if len(body) > 0xFFFF:
        raise ValueError(f"a key of {len(body)} bytes: at most {0xFFFF}")
    digest = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body, usedforsecurity=False)
    return digest.hexdigest().upper()


def primary_fingerprints(data: bytes) -> list[str]:
    """The fingerprint of each primary key in ``data`` (armoured or not), in order.

    Raises ValueError where it is no keyring of public keys alone.
    """
    found = []
    for packet in packets_of(dearmour(data)):
        if packet.kind in _SECRET:
            raise ValueError("a secret key: it must never be given away")
        if packet.kind not in _OF_A_KEY:
            raise ValueError(f"packet {packet.kind}, which no public key has")
        if packet.kind == _KEY:
            found.append(fingerprint(packet.body))
        elif not found and packet.kind != _MARKER:
            raise ValueError(f"packet {packet.kind} before any key")
    if not found:
        raise ValueError("no key at all")
    return found


def checked_key(data: bytes, expected: str) -> str:
    """The keyring ``data``, armoured, where its one primary key has the fingerprint ``expected``.

    Raises ValueError that says which fingerprints it has, or why it cannot be read.
    """
    found = primary_fingerprints(data)
    if set(found) != {expected}:
        raise ValueError(f"expected the one key {expected}, found {', '.join(found)}")
    return armour(dearmour(data))
