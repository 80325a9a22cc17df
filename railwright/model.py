"""The base of every record that railwright passes around."""

from typing import Any

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """Frozen, and refuses fields that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def to_json(self) -> dict[str, Any]:
        """What pyinfra prints for this object (``debug-inventory``, ``fact``)."""
        return self.model_dump(mode="json", exclude_none=True)
