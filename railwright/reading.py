"""What reading a node brought: a snapshot, or the reason why there is none; saved and replayed.

A saved reading is one JSON file per node (``railwright snapshot INVENTORY --out DIR``).
"""

import json
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from pydantic import ValidationError

from railwright.model import Model
from railwright.snapshot import FORMAT, Snapshot


class Unread(Model):
    """A node that could not be reached or read, and why. It is never evidence of anything."""

    format: Literal[1] = FORMAT
    host: str
    error: str


Reading = Snapshot | Unread


def path_of(name: str, directory: Path) -> Path:
    """Where the reading of the node ``name`` stands; the ``/`` of ``@podman/x`` is quoted."""
    return directory / f"{quote(name, safe='@')}.json"


def save(reading: Reading, directory: Path) -> Path:
    """Write ``reading`` to its file, whole or not at all. Raises OSError."""
    path = path_of(reading.host, directory)
    new = path.with_suffix(".new")
    new.write_text(reading.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return new.replace(path)


def load(name: str, directory: Path) -> Reading:
    """The saved reading of the node ``name``; what is wrong with its file is the reason."""
    path = path_of(name, directory)
    try:
        return _parse(path.read_bytes(), name)
    except FileNotFoundError:
        return Unread(host=name, error=f"there is no snapshot {path}")
    except OSError as error:
        return Unread(host=name, error=f"{path}: {error.strerror or error}")
    except ValueError as error:
        return Unread(host=name, error=f"{path}: {error}")


def _parse(text: bytes, name: str) -> Reading:
    try:
        data = json.loads(text)
    except ValueError as error:
        raise ValueError(f"is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError(f"expected an object, got {type(data).__name__}")
    if data.get("format") != FORMAT:
        raise ValueError(f"is of format {data.get('format')!r}, this railwright reads {FORMAT}")
    kind: type[Snapshot] | type[Unread] = Unread if "error" in data else Snapshot
    try:
        reading = kind.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"is no snapshot: {where}: {first['msg']}") from error
    if reading.host != name:
        raise ValueError(f"is of the host {reading.host!r}, not of {name!r}")
    return reading
