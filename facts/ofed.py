"""Which OFED a host has: ``ofed_info`` of MLNX_OFED and of DOCA-OFED; without it, the inbox one.

Format: ofed_info of NVIDIA's ofed-scripts; the list below the head is dpkg's or rpm's.
"""

import re
from typing import Literal

from pydantic import computed_field

from railwright.model import Model

Kind = Literal["mlnx_ofed", "doca_ofed", "inbox"]


class Ofed(Model):
    """What ``ofed_info`` says; not ``installed`` is the inbox stack.

    ``product`` is as printed, and None where only the version was asked for (``-n``). Of
    ``packages_installed`` removed ones are left out; the short forms list none.
    """

    installed: bool
    product: str | None = None
    version: str | None = None
    packages_installed: tuple[str, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def kind(self) -> Kind | None:
        """DOCA-OFED calls itself OFED-internal; None where the product was not asked for."""
        if not self.installed:
            return "inbox"
        if self.product is None:
            return None
        return "mlnx_ofed" if self.product.startswith("MLNX_OFED") else "doca_ofed"


INBOX = Ofed(installed=False)

_VERSION = r"\d+\.\d+(?:\.\d+)*-\d+(?:\.\d+)*"
_HEAD = re.compile(
    rf"(MLNX_OFED_LINUX|MLNX_OFED|OFED-internal|DOCA(?:[_-]OFED)?)-({_VERSION})(?: \([^()]*\))?:"
)
_ABSENT = re.compile(r"ofed_info: (?:command )?not found|ofed_info: No such file", re.MULTILINE)
_DPKG = re.compile(r"([a-z])([a-zA-Z])[ A-Z]? +([a-z0-9][a-z0-9+.-]*)(?::[a-z0-9-]+)? +\S")
_RPM = re.compile(r"([A-Za-z0-9][\w+.-]*)-[^-\s]+-[^-\s]+\.[a-z0-9_]+")


def parse_ofed_info(text: str, rc: int = 0) -> Ofed:
    """Read ``ofed_info`` as it is, with ``-s`` (product) or with ``-n`` (version alone).

    Raises ValueError where the tool is there and says something else.
    """
    if rc == 127 or _ABSENT.search(text):
        return INBOX
    lines = [line.strip() for line in text.splitlines()]
    if rc == 0 and re.fullmatch(_VERSION, text.strip()):
        return Ofed(installed=True, version=text.strip())
    head = next((found for line in lines if (found := _HEAD.fullmatch(line))), None)
    if head is None or rc != 0:
        raise ValueError(
            f"expected ofed_info's PRODUCT-VERSION:, got {text.strip()[:80]!r} (exit {rc})"
        )
    return Ofed(
        installed=True, product=head[1], version=head[2], packages_installed=_packages(lines)
    )


def _packages(lines: list[str]) -> tuple[str, ...]:
    if "Installed Packages:" not in lines:
        return ()
    found = []
    for line in lines[lines.index("Installed Packages:") + 1 :]:
        if package := _DPKG.match(line):
            # The second letter is the state: i is installed, c leaves configuration alone.
            found.extend([package[3]] if package[2] == "i" else [])
        elif package := _RPM.fullmatch(line):
            found.append(package[1])
    return tuple(found)
