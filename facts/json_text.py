"""JSON as tools print it."""

import json
from collections.abc import Callable


def load_json(
    text: str, what: str, pairs: Callable[[list[tuple[str, object]]], object] | None = None
) -> object:
    """What ``text``, the output of ``what``, holds. ``pairs`` makes an object of its members.

    Raises ValueError, also for what json lets through (NaN) or breaks off at (deep nesting).
    """
    try:
        found: object = json.loads(text, object_pairs_hook=pairs, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{what}: expected JSON: {error}, got {text.strip()[:60]!r}") from None
    return found


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no number of JSON")


def as_object(value: object, what: str) -> dict[str, object]:
    """``value`` as the JSON object that it has to be. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(f"{what}: expected an object, got {type(value).__name__}")
    return value


def as_objects(value: object, what: str) -> list[dict[str, object]]:
    """``value`` as the list of JSON objects that it has to be. Raises ValueError."""
    if not isinstance(value, list):
        raise ValueError(f"{what}: expected a list, got {type(value).__name__}")
    return [as_object(entry, what) for entry in value]
