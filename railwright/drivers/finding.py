"""What is wrong with a driver, said so that it can be acted on."""

from typing import Literal

from railwright.model import Model

Kind = Literal[
    "absent",
    "vermagic",
    "symbols",
    "mixed",
    "dkms",
    "initramfs",
    "headers",
    "version",
    "config",
    "loaded",
    "unreadable",
]


class Finding(Model):
    """One fault: of which module (or package), what was found, and what to do about it.

    ``kernel`` is the version that it is about; empty where it is about what runs now. What could
    not be read is a finding too: nothing is taken for right unseen.
    """

    kind: Kind
    subject: str
    kernel: str = ""
    found: str
    remedy: str

    @property
    def words(self) -> str:
        """One line: subject, kernel, what was found, the remedy."""
        where = f" for kernel {self.kernel}" if self.kernel else ""
        return f"{self.subject}{where}: {self.found}; {self.remedy}"
