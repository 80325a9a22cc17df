"""Public keys: told apart by fingerprint, armoured or not, and refused where anything is odd."""

import base64
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.openpgp import (
    armour,
    checked_key,
    dearmour,
    fingerprint,
    packets_of,
    primary_fingerprints,
)

# Made by GnuPG 2.2.40 for this test; its secret half is gone.
FINGERPRINT = "85CCCE94A0C11B1EEF00D893824839D4E79B3F99"
ARMOURED = b"""\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw2jRRYJKwYBBAHaRw8BAQdAMWDdQAB3At4Zoxypi+/NEpYiEVIYtxZ3thMY
VAgxpdG0G1JhaWx3cmlnaHQgdGVzdCA8dEBleGFtcGxlPoiQBBMWCAA4FiEEhczO
lKDBGx7vANiTgkg51OebP5kFAmsNo0UCGwMFCwkIBwIGFQoJCAsCBBYCAwECHgEC
F4AACgkQgkg51OebP5mQHQD/fmYYu5tKFgtJ1NNrIBnvD3himpZbliaDDhFTcM3+
8UkA+wfb4Vg1bJLVbzvAOUjKjIbl/twQBgUSgFizRHhpcxkP
=8wPT
-----END PGP PUBLIC KEY BLOCK-----
"""
BINARY = dearmour(ARMOURED)
OTHER = "0" * 40


def key_packet(version: int = 4, body: bytes = b"\0" * 8) -> bytes:
    """A key packet in the new format."""
    whole = bytes([version]) + body
    return bytes([0xC0 | 6, len(whole)]) + whole


def test_the_recorded_key_is_known_by_its_fingerprint() -> None:
    assert primary_fingerprints(ARMOURED) == primary_fingerprints(BINARY) == [FINGERPRINT]
    assert checked_key(BINARY, FINGERPRINT) == checked_key(ARMOURED, FINGERPRINT)
    assert checked_key(BINARY, FINGERPRINT).encode() == ARMOURED


def test_another_fingerprint_is_refused_with_both() -> None:
    with pytest.raises(ValueError, match=f"{OTHER}, found {FINGERPRINT}"):
        checked_key(ARMOURED, OTHER)


def test_another_key_beside_the_right_one_is_refused() -> None:
    both = armour(BINARY + key_packet()).encode()
    assert primary_fingerprints(both)[0] == FINGERPRINT
    assert len(primary_fingerprints(both)) == 2
    with pytest.raises(ValueError, match="expected the one key"):
        checked_key(both, FINGERPRINT)
    with pytest.raises(ValueError, match="expected the one key"):
        checked_key(ARMOURED + armour(key_packet()).encode(), FINGERPRINT)
    assert checked_key(ARMOURED + ARMOURED, FINGERPRINT)


@pytest.mark.parametrize("version", [2, 3, 5, 6])
def test_other_versions_are_refused_in_words(version: int) -> None:
    with pytest.raises(ValueError, match=f"a key of version {version}"):
        primary_fingerprints(key_packet(version))


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "expected an OpenPGP key"),
        (b"<html>Not found</html>", "expected an OpenPGP key"),
        (ARMOURED.replace(b"-----END", b"----END"), "expected an OpenPGP key"),
        (ARMOURED.replace(b"PUBLIC KEY BLOCK", b"PRIVATE KEY BLOCK"), "PRIVATE KEY BLOCK"),
        (ARMOURED.replace(b"mDMEaw2j", b"mDMEaw2k"), "checksum"),
        (ARMOURED.replace(b"mDMEaw2j", b"mDME=w2j"), "damaged"),
        (BINARY[:-1], "cut off"),
        (BINARY[53:], "before any key"),
        (bytes([0xC0 | 5, 1, 4]), "secret"),
        (BINARY + bytes([0xC0 | 7, 1, 4]), "secret"),
        (BINARY + bytes([0xC0 | 11, 1, 4]), "packet 11"),
        (bytes([0xC0 | 10, 3]) + b"PGP", "no key at all"),
        (bytes([0xC0 | 6, 0]), "version 0"),
        (BINARY + b"\n", "expected a packet"),
        (bytes([0xC0 | 6, 224, 4]), "in parts"),
        (bytes([0x80 | 6 << 2 | 3, 4]), "no length"),
    ],
)
def test_what_is_no_public_key_is_refused(data: bytes, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        primary_fingerprints(data)


def test_every_way_to_tell_a_length_is_read() -> None:
    for size in (5, 191, 192, 8383, 8384, 70000):
        body = b"\4" * size
        heads = [b"\xc6\xff" + size.to_bytes(4, "big"), b"\x9a" + size.to_bytes(4, "big")]
        if size < 65536:
            heads.append(b"\x99" + size.to_bytes(2, "big"))
        if size < 256:
            heads.append(bytes([0x98, size]))
        if size < 192:
            heads.append(bytes([0xC6, size]))
        elif size < 8384:
            heads.append(bytes([0xC6, ((size - 192) >> 8) + 192, (size - 192) & 0xFF]))
        assert [list(packets_of(head + body)) for head in heads] == [[(6, body)]] * len(heads)
    with pytest.raises(ValueError, match="at most 65535"):
        fingerprint(b"\4" * 70000)


def test_headers_line_ends_and_text_around_are_no_matter() -> None:
    head, _, rest = ARMOURED.partition(b"\n")
    with_headers = b"A note\n" + head + b"\nVersion: GnuPG v2\nComment: x: y" + b"\n" + rest + b"\n"
    assert dearmour(with_headers) == BINARY
    assert dearmour(ARMOURED.replace(b"\n", b"\r\n")) == BINARY
    assert dearmour(ARMOURED.replace(b"=8wPT\n", b"")) == BINARY


@given(st.binary(min_size=1))
def test_armour_is_read_back(data: bytes) -> None:
    assert (
        dearmour(armour(bytes([data[0] | 0x80]) + data).encode()) == bytes([data[0] | 0x80]) + data
    )


@given(st.binary() | st.binary().map(lambda b: b"\xc6" + b) | st.binary().map(base64.b64encode))
def test_any_bytes_are_a_key_or_are_refused(data: bytes) -> None:
    # Any other error than a ValueError fails the test.
    found: list[str] = []
    with suppress(ValueError):
        found = primary_fingerprints(data)
    assert all(len(one) == 40 for one in found)


def test_a_key_with_subkeys_has_the_fingerprint_that_gpg_tells(tmp_path: Path) -> None:
    # Without gpg there is nothing to compare with: the recorded key stands for it.
    gpg = shutil.which("gpg")
    data, expected = (ARMOURED, FINGERPRINT) if gpg is None else _made(gpg, tmp_path)
    assert primary_fingerprints(data) == [expected]


def _made(gpg: str, home: Path) -> tuple[bytes, str]:
    def run(*arguments: str) -> bytes:
        command = [gpg, "--homedir", str(home), "--batch", "--quiet", *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout

    home.chmod(0o700)
    run("--passphrase", "", "--quick-gen-key", "a@example", "rsa2048", "cert", "never")
    listed = run("--list-keys", "--with-colons").decode().splitlines()
    made = next(line.split(":")[9] for line in listed if line.startswith("fpr:"))
    run("--passphrase", "", "--quick-add-key", made, "rsa2048", "sign", "never")
    data = run("--armor", "--export")
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=True)
    return data, made
