"""A file that others write too: what is put in its place, unless they have done so meanwhile."""

import base64

from railwright.actions import RunScript
from railwright.templates import render

NAME = "railwright-replace"


def replacing(path: str, content: bytes, read: str | None) -> RunScript:
    """Puts ``content`` in the place of ``path``, whose sha256 was ``read`` (None: not there).

    Fails, and leaves the file, where it is another one by then. Mode and owner stay; a new file
    has mode 644.
    """
    text = base64.encodebytes(content).decode("ascii").rstrip()
    return RunScript(
        name=NAME,
        script=render("replace.sh.j2", content=text),
        arguments=(path, read or "absent"),
    )
