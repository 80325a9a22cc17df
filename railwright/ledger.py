"""The ledger: what a single look at a node cannot know, in small files on the node itself.

Each component has a file of its own: two that wrote into one within a run would each undo what the
other had written. It is never evidence that something is right: what it says can only add a reason
to look again. Losing it loses the memory and nothing else.
"""

from collections.abc import Iterable
from typing import Literal, TypeVar

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


FIRMWARE_PATH = "/var/lib/railwright/firmware.json"


class FirmwareNote(Model):
    """When a key of a NIC was first given a value: ``boot_id`` is that of the running kernel then.

    ``reset`` tells that the firmware has been reset for it since.
    """

    value: str
    boot_id: str
    reset: bool = False


class FirmwareLedger(Model):
    """What was set in NICs and not seen in force yet."""

    format: Literal[1] = 1
    notes: dict[str, FirmwareNote] = Field(
        default={}, description="PCI address of the card and key, to what was set."
    )

    @property
    def text(self) -> str:
        """The content of the file, the same for the same ledger."""
        ordered = self.model_copy(update={"notes": dict(sorted(self.notes.items()))})
        return ordered.model_dump_json(indent=1) + "\n"


AnyLedger = TypeVar("AnyLedger", Ledger, FirmwareLedger)


def read_ledger(files: Iterable[FileRecord]) -> Ledger:
    """The ledger of held packages among ``files``, an empty one where it is not there.

    Raises ValueError where it is there and cannot be read.
    """
    return _read(files, PATH, Ledger)


def read_firmware_ledger(files: Iterable[FileRecord]) -> FirmwareLedger:
    """The ledger of firmware keys. Raises ValueError as ``read_ledger`` does."""
    return _read(files, FIRMWARE_PATH, FirmwareLedger)


def _read(files: Iterable[FileRecord], path: str, kind: type[AnyLedger]) -> AnyLedger:
    record = next((record for record in files if record.path == path), None)
    if record is None:
        return kind()
    if record.content is None:
        raise ValueError(f"{path} is a {record.kind}")
    try:
        return kind.model_validate_json(record.content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{path}: {where}: {first['msg']}".replace(": :", ":")) from None
