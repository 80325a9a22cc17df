"""What is wrong with a site, told so that it can be mended without reading our code."""

import types
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pyinfra.api.exceptions import PyinfraError

from railwright.model import Model
from railwright.schema.base import RefusedError

_SHOWN = 80


class Problem(Model):
    """One thing wrong: where it stands, whose it is, the field, its value, what was expected."""

    file: str
    line: int | None = None
    owner: str
    field: str
    value: str
    expected: str
    hint: str | None = None

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        hint = f" ({self.hint})" if self.hint else ""
        return (
            f"{place}: {self.owner}: {self.field} is {self.value}: expected {self.expected}{hint}"
        )


class SiteError(PyinfraError):
    """A site that does not validate, with all that is wrong with it.

    pyinfra prints it as it is, and contacts no host.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = sorted(
            set(problems),
            key=lambda p: (p.file, p.line or 0, p.field, p.owner, p.value, p.expected),
        )
        count = len(self.problems)
        head = f"{count} problem{'s' if count != 1 else ''} in the site, no host was contacted:"
        super().__init__("\n".join([head, *(f"  {problem}" for problem in self.problems)]))


def shown(value: object) -> str:
    """``value`` as it is shown in a message."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The hint for a word that is not known."""
    close = get_close_matches(word, list(known), n=1, cutoff=0.5)
    return f"did you mean {close[0]}?" if close else None


class Complaint(Model):
    """A problem that does not yet know its place: what pydantic or a validator refuses."""

    path: tuple[str, ...]
    value: str
    expected: str
    hint: str | None = None


def complaints(model: type[BaseModel], error: ValidationError) -> list[Complaint]:
    """What ``error`` says; the branches of a union are one complaint, any of them would do."""
    by_place: dict[object, list[Complaint]] = {}
    for entry in error.errors(include_url=False):
        path, fields = _field_path(model, entry["loc"])
        told: Counter[tuple[str, ...]] = Counter()
        for complaint in _complaints(entry, path, fields):
            # What is wrong with a key is not what is wrong with the value that it leads to. What
            # one validator finds twice of a field has to be mended twice.
            is_key = entry["loc"][-1:] == ("[key]",)
            place = complaint.path, is_key, told[complaint.path]
            told[complaint.path] += 1
            by_place.setdefault(place, []).append(complaint)
    return [_merged(found) for found in by_place.values()]


def _merged(found: list[Complaint]) -> Complaint:
    expected = list(dict.fromkeys(complaint.expected for complaint in found))
    return found[0].model_copy(update={"expected": " or ".join(expected)})


def _complaints(entry: Any, path: tuple[str, ...], fields: Sequence[str]) -> Iterable[Complaint]:
    context = entry.get("ctx", {})
    refused = context.get("error")
    if isinstance(refused, RefusedError):
        for finding in refused.findings:
            yield Complaint(
                path=(*path, *finding.path), value=shown(finding.value), expected=finding.expected
            )
        return
    kind, value = entry["type"], shown(entry["input"])
    if kind == "extra_forbidden":
        yield Complaint(
            path=path,
            value=value,
            expected=f"one of the keys {', '.join(fields)}",
            hint=nearest(path[-1], fields),
        )
        return
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        # A union is told apart by its kind, which stands for the whole of it.
        path = (*path, context["discriminator"].strip("'"))
        value = shown(context["tag"]) if "tag" in context else "missing"
    if kind == "missing":
        value = "missing"
    yield Complaint(path=path, value=value, expected=_expected(kind, context, entry["msg"]))


_WORDS = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "string_type": "text",
    "tuple_type": "a list",
    "frozen_set_type": "a list of names",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "float_type": "a number",
    "float_parsing": "a number",
    "missing": "a value",
    "union_tag_not_found": "a value",
    "ip_v4_interface": "an IPv4 address with its prefix length, such as 10.64.0.11/20",
    "ip_v4_network": "an IPv4 prefix without host bits, such as 10.64.0.0/12",
}


def _expected(kind: str, context: dict[str, Any], message: str) -> str:
    if kind in _WORDS:
        return _WORDS[kind]
    if kind == "union_tag_invalid":
        return str(context["expected_tags"]).replace("'", "").replace(", ", " or ")
    if kind in ("literal_error", "enum"):
        return str(context["expected"]).replace("'", "")
    if kind == "string_pattern_mismatch":
        return f"text that matches {context['pattern']}"
    bounds = {
        "greater_than_equal": "at least {ge}",
        "greater_than": "more than {gt}",
        "less_than_equal": "at most {le}",
        "less_than": "less than {lt}",
    }
    if kind in bounds:
        return bounds[kind].format(**context)
    return message[0].lower() + message[1:]


def _field_path(
    model: type[BaseModel], loc: Sequence[int | str]
) -> tuple[tuple[str, ...], list[str]]:
    """The fields that ``loc`` leads through, and the fields known where it ends.

    pydantic puts the branch of a union and the validator that ran into ``loc`` as well; they are
    no fields and are left out.
    """
    path: list[str] = []
    kinds: list[Any] = [model]
    known: list[str] = []
    for number, part in enumerate(loc):
        models = [kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)]
        known = [name for kind in models for name in kind.model_fields]
        below = _below(kinds, part)
        last = number == len(loc) - 1
        if below is not None:
            if not any(get_origin(kind) is frozenset for kind in kinds):
                path.append(str(part))
            kinds = below
        elif last and models and isinstance(part, str) and part != "[key]":
            path.append(part)
    return tuple(path), known


def _below(kinds: Sequence[Any], part: int | str) -> list[Any] | None:
    """The types that a value at ``part`` of one of ``kinds`` may have; None for no such part."""
    found: list[Any] = []
    for kind in kinds:
        origin, arguments = get_origin(kind), get_args(kind)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            if part in kind.model_fields:
                found += _options(kind.model_fields[str(part)].annotation)
        elif origin is dict and part != "[key]":
            found += _options(arguments[1])
        elif origin in (tuple, list, frozenset) and isinstance(part, int):
            found += _options(arguments[0])
    return found or None


def _options(annotation: Any) -> list[Any]:
    if get_origin(annotation) is Annotated:
        return _options(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return [option for part in get_args(annotation) for option in _options(part)]
    return [annotation]
