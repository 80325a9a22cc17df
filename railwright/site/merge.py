"""Several layers that speak of one node, merged field by field."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel

from railwright.schema import Overlay
from railwright.site.problems import Problem, shown

Path = tuple[str, ...]


@dataclass(frozen=True)
class Layer:
    """What one file says for one group or host.

    ``rank`` orders the layers: recommended defaults, ``all``, groups, hosts. Groups are peers,
    which may not contradict each other unless one of them names the other in ``overrides``.
    """

    owner: str
    file: str
    rank: int
    says: Overlay
    name: str = ""
    overrides: frozenset[str] = frozenset()


@dataclass
class Merged:
    """The fields that the layers set, who set each, and where they contradict each other."""

    values: dict[str, Any]
    origins: dict[Path, Layer] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class _Claim:
    layer: Layer
    value: Any


def merge(layers: Sequence[Layer]) -> Merged:
    """Merge ``layers``, lowest first.

    Models merge by the fields that they set, mappings by key, sets by union; of anything else the
    highest layer's value counts.
    """
    merged = Merged(values={})
    merged.values = _merge_fields((), [_Claim(layer, layer.says) for layer in layers], merged)
    return merged


def _merge_fields(path: Path, claims: Sequence[_Claim], merged: Merged) -> dict[str, Any]:
    found: dict[str, list[_Claim]] = {}
    for claim in claims:
        for key, value in _entries(claim.value).items():
            found.setdefault(key, []).append(_Claim(claim.layer, value))
    return {key: _merge_value((*path, key), below, merged) for key, below in found.items()}


def _entries(value: Any) -> dict[str, Any]:
    if isinstance(value, BaseModel):
        return {name: getattr(value, name) for name in value.model_fields_set}
    return dict(value)


def _merge_value(path: Path, claims: list[_Claim], merged: Merged) -> Any:
    values = [claim.value for claim in claims]
    if all(isinstance(value, BaseModel | Mapping) for value in values):
        for claim in claims:
            merged.origins[path] = claim.layer
        return _merge_fields(path, claims, merged)
    if all(isinstance(value, frozenset) for value in values) and path[0] != "effects":
        for claim in claims:
            for item in claim.value:
                merged.origins[path + (str(item),)] = claim.layer  # noqa: RUF005
        merged.origins[path] = claims[-1].layer
        return frozenset().union(*values)
    winner = _decide(path, claims, merged)
    merged.origins[path] = winner.layer
    return winner.value


def _decide(path: Path, claims: list[_Claim], merged: Merged) -> _Claim:
    top = max(claim.layer.rank for claim in claims)
    peers = [claim for claim in claims if claim.layer.rank == top]
    overridden = {name for claim in peers for name in claim.layer.overrides}
    standing = [claim for claim in peers if claim.layer.name not in overridden] or peers
    winner = standing[-1]
    for other in standing:
        if other.value != winner.value:
            merged.problems.append(_contradiction(path, other, winner))
    return winner


def _contradiction(path: Path, one: _Claim, other: _Claim) -> Problem:
    return Problem(
        file=other.layer.file,
        owner=other.layer.owner,
        field=".".join(path),
        value=shown(other.value),
        expected=f"{shown(one.value)} as in {one.layer.owner} ({one.layer.file})",
        hint=f'or OVERRIDES = ("{one.layer.name}",) in the group that is to win',
    )
