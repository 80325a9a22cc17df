"""Secrets on their way to a node: read where pyinfra runs, sent on standard input, never told.

A node is asked whether its file is equal by a hash with a fresh nonce, so that neither a snapshot
nor a log holds the secret, or a hash that two nodes could be compared by.
"""

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from railwright.model import Model
from railwright.schema.mounted import Secret

_LIMIT_BYTES = 64 * 1024


class SecretError(ValueError):
    """A secret that cannot be had on the machine that runs pyinfra."""


class SecretFile(Model):
    """A file of root's on a node, made of text and secrets; ``field`` is the inventory's.

    A file that is a secret alone has it byte for byte; within text it stands without the line
    break at its end.
    """

    path: str
    content: tuple[str | Secret, ...]
    field: str
    mode: Literal["600", "400"] = "600"

    @property
    def key(self) -> str:
        return f"secret {self.path}"


def read_secret(secret: Secret) -> bytes:
    """The secret itself. Raises SecretError, in words that do not hold it."""
    if secret.env is not None:
        found = os.fsencode(os.environ.get(secret.env, ""))
    else:
        try:
            with Path(str(secret.file)).open("rb") as file:
                found = file.read(_LIMIT_BYTES + 1)
        except OSError as error:
            raise SecretError(f"{secret} cannot be read: {error.strerror}") from None
    if not found.strip():
        raise SecretError(f"{secret} is not set" if secret.env else f"{secret} is empty")
    if len(found) > _LIMIT_BYTES:
        raise SecretError(f"{secret} has more than {_LIMIT_BYTES // 1024} KiB")
    return found


def content_of(file: SecretFile) -> bytes:
    """What ``file`` must hold. Raises SecretError."""
    if len(file.content) == 1 and isinstance(file.content[0], Secret):
        return read_secret(file.content[0])
    return b"".join(
        part.encode() if isinstance(part, str) else _within_text(part) for part in file.content
    )


def _within_text(secret: Secret) -> bytes:
    found = read_secret(secret).rstrip(b"\r\n")
    if not found.isascii() or any(byte < 0x21 or byte in b"\"'\\\x7f" for byte in found):
        raise SecretError(f"{secret} has a blank, a quote or a byte that is no printable ASCII")
    return found


def questions(files: Iterable[SecretFile]) -> tuple[str, ...]:
    """What a node is asked of each file: ``PATH NONCE DIGEST``, with a fresh nonce.

    ``PATH - REASON`` where it is not known here what the file must hold.
    """
    return tuple(map(_question, files))


def _question(file: SecretFile) -> str:
    nonce = secrets.token_hex(16)
    try:
        digest = hashlib.sha256(nonce.encode() + content_of(file)).hexdigest()
    except SecretError as error:
        return f"{file.path} - {file.field}: {error}"
    return f"{file.path} {nonce} {digest}"
