"""OpenSM on a node: its package, its units, our drop-in, and what the processes were started with.

Debian runs one opensm@GUID.service for each port that /etc/default/opensm names, started by
opensm.service. The RHEL family runs opensm.service, whose launcher reads /etc/sysconfig/opensm.
"""

from facts.probe import Section
from facts.units import Unit, read_units
from railwright.files import FileRecord
from railwright.model import Model
from railwright.snapshot import Snapshot

UNIT = "opensm.service"
DROP_IN = "zz-railwright.conf"
DEBIAN_DROP_IN = f"/etc/systemd/system/opensm@.service.d/{DROP_IN}"
RHEL_DROP_IN = f"/etc/systemd/system/{UNIT}.d/{DROP_IN}"

FILES = Section(
    name="opensm_files",
    script="""
for folder in /etc /run /usr/local/lib /usr/lib; do
    files "$folder"/systemd/system/opensm.service.d/*.conf \
        "$folder"/systemd/system/opensm@.service.d/*.conf
done
""",
)
UNITS = Section(name="opensm_units", script=f"units {UNIT}")
STATE = Section(
    name="opensm",
    script=r"""
command -v opensm >/dev/null && echo "installed=yes"
for tool in apt-get dnf; do
    command -v "$tool" >/dev/null && echo "installer=$tool" && break
done
for folder in /etc /usr/lib /lib; do
    [ -e "$folder/systemd/system/opensm@.service" ] && echo "layout=debian" && break
done
[ ! -r /etc/sysconfig/opensm ] || sed -n 's/^ *GUIDS=..*/guids=yes/p' /etc/sysconfig/opensm
for file in $(grep -lsx opensm /proc/[0-9]*/comm); do
    tr '\0' ' ' 2>/dev/null <"${file%/comm}/cmdline" | sed 's/^/process=/'
    echo
done
true
""",
)
SECTIONS = (FILES, UNITS, STATE)


class OpensmState(Model):
    """OpenSM on a node.

    ``debian`` tells the packaging; ``guids`` that RHEL's launcher is told to start one for each
    of several ports. ``processes`` are the words that each was started with.
    """

    installed: bool
    installer: str | None
    debian: bool
    guids: bool
    unit: Unit | None
    processes: tuple[tuple[str, ...], ...]
    files: tuple[FileRecord, ...]

    @property
    def drop_in(self) -> str:
        """Where our drop-in belongs on this node."""
        return DEBIAN_DROP_IN if self.debian else RHEL_DROP_IN


def read_opensm(snapshot: Snapshot) -> OpensmState:
    """What the snapshot says. Raises ValueError where it cannot be read."""
    facts = snapshot.facts(STATE.name)
    installer = facts.get("installer")
    unit = read_units(snapshot, UNITS.name).get(UNIT)
    lines = snapshot.text(STATE.name).splitlines()
    return OpensmState(
        installed="installed" in facts,
        installer=installer,
        # Before the package is there its layout follows from who will install it.
        debian="layout" in facts or ("installed" not in facts and installer == "apt-get"),
        guids="guids" in facts,
        unit=unit if unit is not None and unit.loaded else None,
        processes=tuple(
            tuple(line.removeprefix("process=").split())
            for line in lines
            if line.startswith("process=")
        ),
        files=tuple(snapshot.files(FILES.name)),
    )
