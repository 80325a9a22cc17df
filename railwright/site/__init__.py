"""A site: its inventory and group files, checked as a whole before any host is contacted.

An inventory is Python that pyinfra reads too::

    from railwright.site import inventory

    GROUPS = {"roce": "gpu[001-128]", "canary": "gpu[001-002]"}
    globals().update(inventory(__file__, GROUPS))

What the nodes must be stands in ``group_data/<group>.py``, or for a whole site in one YAML file.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from railwright.schema.base import collecting_failures
from railwright.site.build import Description, Site, build
from railwright.site.connection import host_data
from railwright.site.problems import Problem, SiteError
from railwright.site.pythonfile import (
    broken_file,
    execute,
    failed_specs,
    read_group_files,
    shown_path,
)
from railwright.site.yamlfile import read_yaml, site_schema

__all__ = ["Problem", "Site", "SiteError", "host_data", "inventory", "load_inventory"]
__all__ += ["site_schema"]

Groups = dict[str, list[tuple[str, dict[str, Any]]]]

_described: ContextVar[list[Site] | None] = ContextVar("described", default=None)


def inventory(
    file: str, groups: Mapping[str, Any], hosts: Mapping[str, Any] | None = None
) -> Groups:
    """The groups of a site as pyinfra wants them: lists of (host name, data).

    ``file`` is the inventory's own ``__file__``; ``groups`` gives each group its hosts, as a range
    such as ``gpu[001-128,130]`` or a list of ranges; ``hosts`` what holds for single hosts only,
    by name or range: a mapping of spec names to specs or plain mappings. A group named like the
    inventory file holds all hosts, as with pyinfra.

    Raises SiteError with all that is wrong with the site.
    """
    path = Path(file)
    description = Description(
        file=shown_path(path), groups=groups, hosts=hosts or {}, everyone=path.stem
    )
    _check_names(description, sys._getframe(1).f_globals)
    read_group_files(description, path)
    return _pyinfra_groups(_note(build(description)))


def load_inventory(path: Path) -> Site:
    """The site that an inventory (``.py``) or a YAML site (``.yaml``, ``.yml``) describes.

    Raises SiteError with all that is wrong with it; a file that cannot be read is such a wrong.
    """
    if not path.is_file():
        raise SiteError([_missing(path)])
    if path.suffix in (".yaml", ".yml"):
        return build(read_yaml(path, shown_path(path)))
    with _capturing() as sites, collecting_failures() as failures:
        try:
            names = execute(path)
        except SiteError:
            raise
        except Exception as error:
            raise SiteError([broken_file(path, "the site", error)]) from None
    if failures:
        raise SiteError(failed_specs(failures, "the site", names))
    if not sites:
        raise SiteError([_describes_nothing(path)])
    return sites[-1]


def yaml_inventory(file: str) -> Groups:
    """The groups of a YAML site, for an inventory file that pyinfra reads."""
    return _pyinfra_groups(_note(load_inventory(Path(file))))


def _check_names(description: Description, names: Mapping[str, object]) -> None:
    """Refuse lists and tuples under a public name: pyinfra would take them for groups of hosts."""
    for name, value in names.items():
        if isinstance(value, list | tuple) and not name.startswith("_"):
            description.complain(
                "the site",
                name,
                value,
                f"another name: pyinfra takes a public list for a group, so _{name}",
            )


def _pyinfra_groups(site: Site) -> Groups:
    data: dict[str, tuple[str, dict[str, Any]]] = {
        name: (name, host_data(node)) for name, node in site.nodes.items()
    }
    return {group: [data[name] for name in names] for group, names in site.groups.items()}


def _note(site: Site) -> Site:
    sites = _described.get()
    if sites is not None:
        sites.append(site)
    return site


@contextmanager
def _capturing() -> Iterator[list[Site]]:
    """The sites that inventory files describe while the context is open."""
    sites: list[Site] = []
    token = _described.set(sites)
    try:
        yield sites
    finally:
        _described.reset(token)


def _missing(path: Path) -> Problem:
    return Problem(
        file=str(path),
        owner="the site",
        field="the file",
        value="missing",
        expected="an inventory (.py) or a YAML site (.yaml)",
    )


def _describes_nothing(path: Path) -> Problem:
    return Problem(
        file=shown_path(path),
        owner="the site",
        field="the file",
        value="no site",
        expected="a call of railwright.site.inventory(__file__, ...)",
    )
