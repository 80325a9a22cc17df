"""Sites whose inventory and group files are Python, as pyinfra reads them."""

import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from railwright.schema import Overlay, Spec
from railwright.schema.base import FailedSpec, collecting_failures
from railwright.site.build import RANKS, Description, as_overlay
from railwright.site.merge import Layer
from railwright.site.problems import Problem, complaints, nearest


def group_folders(inventory: Path) -> list[Path]:
    """Where group files of an inventory stand: beside it, or one folder up, as pyinfra has it."""
    here = inventory.resolve().parent
    return [here / "group_data", here.parent / "group_data"]


def read_group_files(description: Description, inventory: Path) -> None:
    """Read the file of each group of the site, and of ``all``."""
    implied = [description.everyone] if description.everyone else []
    for group in dict.fromkeys(["all", *description.groups, *implied]):
        for folder in group_folders(inventory):
            path = folder / f"{group}.py"
            if path.is_file():
                layer = _group_layer(description, group, path)
                if layer is not None:
                    description.layers[group] = layer
                break


def _group_layer(description: Description, group: str, path: Path) -> Layer | None:
    owner, file = f"group {group}", shown_path(path)
    with collecting_failures() as failures:
        try:
            names = execute(path)
        except Exception as error:
            description.problems.append(broken_file(path, owner, error))
            return None
    exported = _exports(names)
    overrides = exported.pop("OVERRIDES", ())
    description.problems += failed_specs(failures, owner, exported)
    fields = Overlay.model_fields
    for name in [name for name in exported if name not in fields]:
        value = exported.pop(name)
        if isinstance(value, Spec):
            description.complain(
                owner,
                name,
                value,
                f"one of the names {', '.join(fields)}",
                file=file,
                hint=nearest(name, fields),
            )
    if not isinstance(overrides, tuple | list) or not set(overrides) <= set(description.groups):
        description.complain(
            owner, "OVERRIDES", overrides, "a tuple of names of groups of this site", file=file
        )
        overrides = ()
    broken = _broken_names(exported, failures)
    # What is whole is checked all the same, so that everything is told at once.
    whole = {name: value for name, value in exported.items() if name not in broken}
    says = as_overlay(description, owner, whole, file)
    if failures:
        return None
    rank = RANKS["all" if group == "all" else "group"]
    return Layer(owner, file, rank, says, name=group, overrides=frozenset(overrides))


def execute(path: Path) -> dict[str, Any]:
    """The names that a Python file defines. Raises whatever it raises."""
    names: dict[str, Any] = {"__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)
    return names


def _exports(names: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says: its public names, imported modules and classes left out."""
    return {
        name: value
        for name, value in names.items()
        if not name.startswith("_")
        and (isinstance(value, Spec | str | int | float | tuple | list | dict) or value is None)
    }


def failed_specs(
    failures: Sequence[FailedSpec], owner: str, exported: Mapping[str, Any]
) -> Iterator[Problem]:
    data = {id(failure.spec): failure.data for failure in failures}
    for failure in failures:
        prefix = _path_of(failure.spec, exported, data) or (type(failure.spec).__name__,)
        for found in complaints(type(failure.spec), failure.error):
            yield Problem(
                file=shown_path(Path(failure.file)),
                line=failure.line,
                owner=owner,
                field=".".join((*prefix, *found.path)),
                value=found.value,
                expected=found.expected,
                hint=found.hint,
            )


def _broken_names(exported: Mapping[str, Any], failures: Sequence[FailedSpec]) -> set[str]:
    """The exported names that a spec stands under that did not validate."""
    data = {id(failure.spec): failure.data for failure in failures}
    paths = (_path_of(failure.spec, exported, data) for failure in failures)
    return {path[0] for path in paths if path}


def _path_of(
    wanted: Spec, below: object, failed: Mapping[int, dict[str, Any]]
) -> tuple[str, ...] | None:
    """Where in what a file exports the spec ``wanted`` stands; ``failed`` has what is not built."""
    if below is wanted:
        return ()
    entries: Mapping[str, Any] = {}
    if isinstance(below, Spec):
        entries = failed.get(id(below), vars(below))
    elif isinstance(below, Mapping):
        entries = below
    for key, value in entries.items():
        path = _path_of(wanted, value, failed)
        if path is not None:
            return (str(key), *path)
    return None


def broken_file(path: Path, owner: str, error: Exception) -> Problem:
    line = getattr(error, "lineno", None)
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == str(path):
            line = frame.lineno
    return Problem(
        file=shown_path(path),
        line=line,
        owner=owner,
        field="the file",
        value=f"{type(error).__name__}: {error}",
        expected="Python that runs",
    )


def shown_path(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)
