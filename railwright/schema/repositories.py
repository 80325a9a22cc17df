"""Package repositories, each with the key that its packages or its index are signed by."""

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictInt, model_validator

from railwright.schema.base import Finding, PackageName, Spec, reject, word
from railwright.schema.holds import PackageVersion

if TYPE_CHECKING:
    RepositoryName = str
    Url = str
    Key = str
    Fingerprint = str
    Suite = str
    Component = str
else:
    RepositoryName = word(r"[a-z0-9][a-z0-9-]{0,40}", "a name of a-z, 0-9 and -, such as doca")
    Url = word(
        r"(https?|file)://[A-Za-z0-9._~:/@%+$=&?-]+",
        "the URL of a repository, such as https://linux.mellanox.com/public/repo/doca/3.2.1/...",
    )
    Key = word(
        r"https://[A-Za-z0-9._~:/@%+=-]+|/[A-Za-z0-9._/@%+-]+",
        "an https URL, or the absolute path of a file on the machine that runs pyinfra",
    )
    Fingerprint = word(
        r"[0-9A-F]{40}", "the key's whole fingerprint: 40 of 0-9 and A-F, without blanks"
    )
    Suite = word(r"[A-Za-z0-9][A-Za-z0-9._/-]*|\./", "a suite such as noble, or ./ for a flat one")
    Component = word(r"[A-Za-z0-9][A-Za-z0-9._-]*", "a component, such as main")


class _Repository(Spec):
    """What both kinds have. Its ``kind`` counts as given: merging keeps what was given."""

    url: Url = Field(
        description="Where the packages are; a release of its own rather than one that moves on."
    )
    key: Key = Field(
        description="The key (ASCII-armoured or not): an https URL, or a file on the machine that "
        "runs pyinfra."
    )
    fingerprint: Fingerprint = Field(
        description="Fingerprint of that key. A key with another one is refused: what signs "
        "packages is root on every node."
    )
    never: frozenset[PackageName] = Field(
        default=frozenset(),
        description="Packages never taken from here, such as the dkms that DOCA's repository has "
        "of its own.",
    )

    def model_post_init(self, _: Any) -> None:
        self.__pydantic_fields_set__.add("kind")


class AptRepository(_Repository):
    """A repository of apt, written as a deb822 source with ``Signed-By`` of its own."""

    kind: Literal["apt"] = Field(default="apt", description="apt.")
    suite: Suite = Field(description="Suite; ./ for a flat repository, such as DOCA's and CUDA's.")
    components: tuple[Component, ...] = Field(
        default=(), description="Components; none for a flat repository."
    )
    priority: Annotated[StrictInt, Field(ge=1, le=1000)] | None = Field(
        default=None,
        description="Pin-Priority of its packages; null is apt's own 500, as the distribution's.",
    )

    @model_validator(mode="after")
    def _components_fit_the_suite(self) -> "AptRepository":
        # apt reads no source at all where one has it otherwise. Source: sources.list(5).
        flat = self.suite.endswith("/")
        if flat and self.components:
            expected = f"none: suite {self.suite} is a flat repository, as its / at the end says"
            reject([Finding(("components",), self.components, expected)])
        if not flat and not self.components:
            expected = (
                f"one at least, such as main: suite {self.suite} does not end in /, "
                "as that of a flat repository does"
            )
            reject([Finding(("components",), self.components, expected)])
        return self


class DnfRepository(_Repository):
    """A repository of dnf. Signatures of packages are always checked (gpgcheck)."""

    kind: Literal["dnf"] = Field(default="dnf", description="dnf.")
    signed_index: StrictBool = Field(
        default=False,
        description="Check the index's signature too (repo_gpgcheck); NVIDIA's are not signed.",
    )
    module_hotfixes: StrictBool = Field(
        default=False,
        description="Take its packages over those of module streams (EL 8 and 9).",
    )
    priority: Annotated[StrictInt, Field(ge=1, le=99)] | None = Field(
        default=None,
        description="Priority, the lowest counts first; null is dnf's own 99.",
    )


Repository = Annotated[AptRepository | DnfRepository, Field(discriminator="kind")]


class Packaged(Spec):
    """What is installed from packages."""

    repository: RepositoryName | None = Field(
        default=None,
        description="The one of repositories that it comes from; null is the distribution's own.",
    )
    packages: dict[PackageName, PackageVersion] = Field(
        default={},
        description="Package to the exact version installed. They are changed in one transaction, "
        "and held: a library newer than its loaded module ends all work on a node.",
    )
    removes: frozenset[PackageName] = Field(
        default=frozenset(),
        description="Packages that must not be there, such as inbox ones that conflict with these. "
        "They go in the same transaction.",
    )
