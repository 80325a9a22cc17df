"""Sites that are one YAML file."""

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from pydantic import Field, ValidationError

from railwright.schema import Overlay, Spec
from railwright.site.build import RANKS, Description
from railwright.site.merge import Layer
from railwright.site.problems import Complaint, Problem, SiteError, complaints

Path_ = tuple[str, ...]


class GroupEntry(Overlay):
    """A group: which hosts are in it, and what they must be."""

    hosts: str | list[str] = Field(description="Host range such as gpu[001-128], or several.")
    overrides: list[str] = Field(
        default=[], description="Groups whose values this group's may replace."
    )


class SiteFile(Spec):
    """A whole site in one file."""

    all: Overlay = Field(default=Overlay(), description="What holds for every node.")
    groups: dict[str, GroupEntry] = Field(description="Groups by name.")
    hosts: dict[str, Overlay] = Field(
        default={}, description="What holds for single hosts, by name or range; wins over groups."
    )


def site_schema() -> dict[str, Any]:
    """The JSON Schema of a YAML site, for editors."""
    return SiteFile.model_json_schema()


def read_yaml(path: Path, shown: str) -> Description:
    """Read a YAML site. Raises SiteError with all that is wrong with the file itself."""
    text = path.read_text(encoding="utf-8")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SiteError([_syntax(error, shown)]) from None
    lines: dict[Path_, int] = {}
    problems = list(_walk(root, (), lines, shown)) if root else []
    try:
        site = SiteFile.model_validate(data)
    except ValidationError as error:
        problems += [_placed(found, lines, shown) for found in complaints(SiteFile, error)]
        raise SiteError(problems) from None
    if problems:
        raise SiteError(problems)
    return _describe(site, shown)


def _describe(site: SiteFile, shown: str) -> Description:
    description = Description(
        file=shown,
        groups={name: group.hosts for name, group in site.groups.items()},
        hosts=site.hosts,
    )
    if "all" in site.model_fields_set:
        description.layers["all"] = Layer("group all", shown, RANKS["all"], site.all, "all")
    for name, group in site.groups.items():
        unknown = [other for other in group.overrides if other not in site.groups]
        if unknown:
            description.complain(f"group {name}", "overrides", unknown, "names of groups")
        fields = group.model_fields_set - {"hosts", "overrides"}
        says = Overlay.model_construct(
            _fields_set=set(fields), **{field: getattr(group, field) for field in fields}
        )
        description.layers[name] = Layer(
            f"group {name}", shown, RANKS["group"], says, name, frozenset(group.overrides)
        )
    return description


def _syntax(error: yaml.YAMLError, shown: str) -> Problem:
    mark = getattr(error, "problem_mark", None)
    return Problem(
        file=shown,
        line=mark.line + 1 if mark else None,
        owner="the site",
        field="the file",
        value=str(getattr(error, "problem", error)),
        expected="YAML",
    )


def _walk(node: yaml.Node, path: Path_, lines: dict[Path_, int], shown: str) -> list[Problem]:
    """Note the line of each key; YAML itself lets a key stand twice and forgets the first."""
    lines[path] = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        return []
    problems: list[Problem] = []
    seen: set[Hashable] = set()
    for key, value in node.value:
        below = (*path, str(key.value))
        if key.value in seen:
            problems.append(
                Problem(
                    file=shown,
                    line=key.start_mark.line + 1,
                    owner=_owner(below)[0],
                    field=".".join(_owner(below)[1]) or str(key.value),
                    value="given twice",
                    expected="each key once",
                )
            )
        seen.add(key.value)
        problems += _walk(value, below, lines, shown)
        lines[below] = key.start_mark.line + 1
    return problems


def _placed(found: Complaint, lines: dict[Path_, int], shown: str) -> Problem:
    path = found.path
    while path and path not in lines:
        path = path[:-1]
    owner, field = _owner(found.path)
    return Problem(
        file=shown,
        line=lines.get(path),
        owner=owner,
        field=".".join(field) or "the whole",
        value=found.value,
        expected=found.expected,
        hint=found.hint,
    )


def _owner(path: Path_) -> tuple[str, Path_]:
    """Whose a field is, and the field within it."""
    if path[:1] == ("all",):
        return "group all", path[1:]
    if path[:1] in (("groups",), ("hosts",)) and len(path) > 1:
        return f"{path[0].removesuffix('s')} {path[1]}", path[2:]
    return "the site", path
