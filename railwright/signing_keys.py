"""Signing keys, read on the machine that runs pyinfra and checked before a node is touched."""

from functools import cache
from http.client import HTTPException
from pathlib import Path
from threading import Lock
from urllib.request import urlopen

from railwright.openpgp import checked_key
from railwright.schema.repositories import Repository

_TIMEOUT_S = 20
_LIMIT = 1 << 16
"""Bytes of a key: what the probe reads back of a file. NVIDIA's keys have less than 4 KiB."""

_reading = Lock()


def signing_key(name: str, repository: Repository) -> str:
    """The key of the repository ``name``, armoured.

    Raises ValueError that names the key's file and the repository: where it cannot be read, and
    where it is not the one key with the fingerprint that the inventory has.
    """
    with _reading:
        # Once for all nodes, whether it could be read or not: a server that does not answer
        # would be waited for as many times as there are nodes.
        data = _read(repository.key)
    where = f"key {repository.key} of repository {name}"
    if isinstance(data, str):
        raise ValueError(f"{where}: {data}")
    try:
        key = checked_key(data, repository.fingerprint)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    if len(key) > _LIMIT:
        raise ValueError(f"{where}: {len(key)} bytes, expected at most {_LIMIT}")
    return key


@cache
def _read(source: str) -> bytes | str:
    """The content of a file or of an https URL, or why it cannot be had."""
    try:
        if source.startswith("/"):
            return Path(source).read_bytes()[: _LIMIT + 1]
        with urlopen(source, timeout=_TIMEOUT_S) as answer:
            data: bytes = answer.read(_LIMIT + 1)
            return data
    except (OSError, HTTPException) as error:
        return f"cannot be read: {error}"
