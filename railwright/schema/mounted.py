"""What all mounts have in common, and secrets, which an inventory names and never holds."""

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, StrictInt, model_validator

from railwright.schema.base import Finding, Spec, reject, word

if TYPE_CHECKING:
    MountPoint = str
    MountOption = str
    SecretPath = str
    Variable = str
else:
    MountPoint = word(
        r"(?!/(bin|boot|dev|etc|lib|lib64|proc|root|run|sbin|sys|usr|var)(/|$))"
        r"(/[A-Za-z0-9_][A-Za-z0-9._-]*)+",
        "the absolute path of a directory that is not the system's own, such as /mnt/data",
    )
    MountOption = word(
        r"[A-Za-z0-9_.-]+(=[A-Za-z0-9_.:/@%+-]+)?",
        "one option without commas and blanks, such as noatime or rsize=1048576",
    )
    SecretPath = word(r"/[A-Za-z0-9._/@+-]+", "the absolute path of a file")
    Variable = word(r"[A-Za-z_][A-Za-z0-9_]*", "the name of an environment variable")

RailChoice = Literal["all"] | tuple[Annotated[StrictInt, Field(ge=0, le=63)], ...]
"""Which rails of a node: all of them, or these numbers."""


class Secret(Spec):
    """Where a secret is read on the machine that runs pyinfra: a file, or a variable."""

    file: SecretPath | None = Field(default=None, description="File that holds it.")
    env: Variable | None = Field(default=None, description="Environment variable that holds it.")

    @model_validator(mode="after")
    def _one_place(self) -> "Secret":
        if (self.file is None) == (self.env is None):
            reject([Finding((), self.model_dump(exclude_none=True), "either file or env")])
        return self

    def __str__(self) -> str:
        return f"file {self.file}" if self.file is not None else f"variable {self.env}"


class Throughput(Spec):
    """What a mount must reach from one node, in GB/s (10^9 bytes)."""

    read_gb_s: Annotated[float, Field(gt=0, le=10_000)] | None = Field(
        default=None, description="Sequential reading; null is not judged."
    )
    write_gb_s: Annotated[float, Field(gt=0, le=10_000)] | None = Field(
        default=None, description="Sequential writing; null is not judged."
    )


class Mounted(Spec):
    """What every mount has; its key is the directory that it is mounted on."""

    options: tuple[MountOption, ...] = Field(
        default=(), description="Options of mount beside those that are given by themselves."
    )
    timeout_s: Annotated[StrictInt, Field(ge=1, le=3600)] = Field(
        default=90, description="Seconds that mounting may take."
    )
    expected: Throughput = Field(
        default=Throughput(), description="What railwright storage test judges it by."
    )
