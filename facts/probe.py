"""The probe: one POSIX sh script, one round trip, everything that is read of a node.

It writes nothing, runs at the lowest priority, needs no more than a shell and coreutils, and
does not wait for a section that hangs: each runs in the background and is abandoned at its
deadline. What the sections run is declared by the modules of this package.
"""

import shlex
from collections.abc import Iterable
from importlib.resources import files as resources
from typing import ClassVar

from pyinfra.api.exceptions import FactProcessError
from pyinfra.api.facts import FactBase

from railwright.model import Model
from railwright.reboots import PATH, SECTION
from railwright.snapshot import FORMAT, Snapshot, SnapshotError, parse_probe

_PRELUDE = (resources("facts") / "probe.sh").read_text(encoding="ascii")


class Section(Model):
    """A part of the probe: ``script`` is the body of a shell function.

    It may call the functions of probe.sh (``files PATH...``, ``units NAME...``, ``ports``, ``answer
    PORT WHAT COMMAND...``), and use ``$RW_MODULES``, ``$RW_PACKAGES``, ``$RW_SERVICES`` and
    ``$RW_FIRMWARE``. Standard output is cut at ``cap_bytes``.
    """

    name: str
    script: str
    deadline_s: int = 20
    cap_bytes: int = 1 << 20
    for_rails: bool = False
    """Taken only of nodes that have rails, or files of ours for them; empty elsewhere."""
    for_drivers: bool = False
    """Taken only of nodes that are asked for drivers, or have files of ours for them. Elsewhere the
    snapshot has no such section, unless it is ``for_rails`` too; such a one is taken of both."""
    for_storage: bool = False
    """Likewise of nodes that are asked for mounts or clients of storage."""


class Focus(Model):
    """What a probe looks at beyond what is read of every node."""

    modules: tuple[str, ...] = ()
    """Kernel modules that the node's description names."""
    packages: tuple[str, ...] = ()
    """Packages whose versions are read, as ``name`` or ``name=version``."""
    services: tuple[str, ...] = ()
    """Units whose limits are read."""
    rails: bool = False
    """Whether the node is asked to have rails."""
    drivers: bool = False
    """Whether the node is asked for drivers, or for repositories that they come from."""
    storage: bool = False
    """Whether the node is asked for mounts or clients of storage."""
    mounts: tuple[str, ...] = ()
    """Directories that something is to be mounted on."""
    lustre: tuple[str, ...] = ()
    """Parameters of Lustre's client that are read."""
    secrets: tuple[str, ...] = ()
    """Files of secrets, as ``railwright.secrets.questions`` puts the questions."""
    firmware: tuple[str, ...] = ()
    """The tool, and the firmware keys that NICs are asked for."""


IDENTITY = Section(
    name="identity",
    script="""
echo "boot_id=$(cat /proc/sys/kernel/random/boot_id)"
echo "kernel=$(uname -r)"
echo "machine=$(uname -m)"
echo "time=$(date +%s)"
echo "uid=$(id -u)"
virt=$(systemd-detect-virt --container 2>/dev/null) && [ "$virt" != none ] &&
    echo "container=$virt"
sed -n -e 's/^ID=/os=/p' -e 's/^VERSION_ID=/os_version=/p' /etc/os-release | tr -d '"'
true
""",
)


REBOOT_LEDGER = Section(name=SECTION, script=f"files {PATH}")


def script(sections: Iterable[Section], focus: Focus) -> str:
    """The probe over ``sections`` (who the node is, and what it was
    rebooted for, always come first)."""
    parts = [
        _PRELUDE,
        f"RW_MODULES={shlex.quote(' '.join(focus.modules))}",
        f"RW_PACKAGES={shlex.quote(' '.join(focus.packages))}",
        f"RW_SERVICES={shlex.quote(' '.join(focus.services))}",
        f"RW_RAILS={'yes' if focus.rails else ''}",
        f"RW_DRIVERS={'yes' if focus.drivers else ''}",
        f"RW_FIRMWARE={shlex.quote(' '.join(focus.firmware))}",
        f"RW_STORAGE={'yes' if focus.storage else ''}",
        f"RW_MOUNTS={shlex.quote(' '.join(focus.mounts))}",
        f"RW_LUSTRE={shlex.quote(' '.join(focus.lustre))}",
        "RW_SECRETS=" + shlex.quote("\n".join(focus.secrets)),
        "! drivers || RW_DRIVERS=yes",
        "! storage || RW_STORAGE=yes",
    ]
    calls = [f'printf "railwright-probe %s %s\\n" {FORMAT} "$N"']
    for section in (IDENTITY, REBOOT_LEDGER, *sections):
        parts.append(f"s_{section.name}() {{\n{_guard(section)}{section.script.strip()}\n}}")
        taken = "" if section.for_rails else _only_for(section)
        calls.append(f"{taken}section {section.name} {section.deadline_s} {section.cap_bytes}")
    calls.append('printf "\\n%s done\\n" "$N"')
    body = "\n".join(calls)
    # One byte outside printable ASCII would fail the decoding of the whole answer.
    parts.append(f"{{\n{body}\n}} | tr -c '\\11\\12\\15\\40-\\176' '?'")
    return "\n".join(parts)


def _only_for(section: Section) -> str:
    """What passes over a section that is for other nodes: what is not taken at all is cheap."""
    asked = "$RW_DRIVERS" * section.for_drivers + "$RW_STORAGE" * section.for_storage
    return f'[ -z "{asked}" ] || ' if asked else ""


def _guard(section: Section) -> str:
    """What keeps the section empty on nodes that it is not for."""
    if not section.for_rails:
        return ""
    others = "drivers || " * section.for_drivers + "storage || " * section.for_storage
    return f"{others}rails || return 0\n"


class Probe(FactBase[Snapshot | None]):
    """The raw snapshot of a node: ``pyinfra INVENTORY fact facts.probe.Probe``."""

    sections: ClassVar[tuple[Section, ...]] = ()

    @staticmethod
    def default() -> None:
        return None

    def command(self, focus: Focus | None = None, sections: tuple[Section, ...] = ()) -> str:
        return script(
            sections or self.sections, focus or Focus(rails=True, drivers=True, storage=True)
        )

    def process(self, output: Iterable[str]) -> Snapshot:
        try:
            return parse_probe("\n".join(output), host="")
        except (SnapshotError, ValueError) as error:
            raise FactProcessError(f"the probe's output cannot be read: {error}") from error


class SnapshotFact(FactBase[Model | None]):
    """A fact that reads its own sections and makes a model of them.

    Usable on its own: ``pyinfra INVENTORY fact facts.sysctl.Sysctl``.
    """

    sections: ClassVar[tuple[Section, ...]] = ()

    @staticmethod
    def default() -> None:
        return None

    def command(self) -> str:
        # Whoever asks for it asks about this host, whatever its inventory asks for.
        return script(self.sections, Focus(rails=True, drivers=True, storage=True))

    def read(self, snapshot: Snapshot) -> Model:
        """What the snapshot says. Raises ValueError where it cannot be read."""
        raise NotImplementedError

    def process(self, output: Iterable[str]) -> Model:
        try:
            return self.read(parse_probe("\n".join(output), host=""))
        except ValueError as error:
            raise FactProcessError(str(error)) from error
