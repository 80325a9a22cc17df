"""The ledger: what a single look at a node cannot know, in one small file on the node itself.

It is never evidence that something is right: what it says can only add a reason to look again.
Losing it loses the memory and nothing else.
"""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field, ValidationError

from railwright.files import FileRecord
from railwright.model import Model

PATH = "/var/lib/railwright/ledger.json"


class Ledger(Model):
    """What railwright remembers of one node."""

    format: Literal[1] = 1
    held: dict[str, str] = Field(
        default={}, description="Package to its version when railwright first held it."
    )

    @property
    def text(self) -> str:
        """The content of the file, the same for the same ledger."""
        ordered = self.model_copy(update={"held": dict(sorted(self.held.items()))})
        return ordered.model_dump_json(indent=1) + "\n"


def read_ledger(files: Iterable[FileRecord]) -> Ledger:
    """The ledger among ``files``, an empty one where it is not there.

    Raises ValueError where it is there and cannot be read.
    """
    record = next((record for record in files if record.path == PATH), None)
    if record is None:
        return Ledger()
    if record.content is None:
        raise ValueError(f"{PATH} is a {record.kind}")
    try:
        return Ledger.model_validate_json(record.content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{PATH}: {where}: {first['msg']}".replace(": :", ":")) from None
