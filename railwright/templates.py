"""Files that are more than a few lines come from templates/."""

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

import deploys


@cache
def _environment() -> Environment:
    # The templates stand beside the packages, in a checkout and in an installed tree alike.
    folder = Path(deploys.__file__).parents[1] / "templates"
    return Environment(
        loader=FileSystemLoader(str(folder)),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
    )


def render(name: str, **values: object) -> str:
    """The template ``name`` (``hugepages/reserve.sh.j2``) with ``values``.

    Raises jinja2.UndefinedError where the template asks for a value that is not given.
    """
    return _environment().get_template(name).render(**values)
