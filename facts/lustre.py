"""What a node shows of Lustre's client: modules, LNet, devices, parameters, targets, files of ours.

Nothing here asks a server but ``lfs df``, which has a section of its own and a short time.
"""

import re
from typing import ClassVar

from pydantic import Field

from facts.answers import parse_answers
from facts.json_text import as_objects, load_json
from facts.lctl import Devices, Parameters, parse_devices, parse_parameters
from facts.lfs import LustreDf, parse_df
from facts.lnetctl import Lnet, parse_net_show
from facts.probe import Section, SnapshotFact
from facts.units import Unit, parse_units, unit_blocks
from railwright.model import Model
from railwright.snapshot import Snapshot

LNET_CONF = "/etc/lnet.conf"
LNET_UNIT = "lnet.service"
LNET_SCRIPT = "/usr/local/sbin/railwright-lnet"
DROP_IN = f"/etc/systemd/system/{LNET_UNIT}.d/90-railwright.conf"
PARAMETERS_UNIT = "railwright-lustre.service"
PARAMETERS_UNIT_PATH = f"/etc/systemd/system/{PARAMETERS_UNIT}"
PARAMETERS_SCRIPT = "/usr/local/sbin/railwright-lustre"
PARAMETERS_PATH = "/etc/railwright/lustre/parameters"

MODULES = ("libcfs", "lnet", "ksocklnd", "ko2iblnd", "lustre")

FILES = Section(
    name="lustre_files",
    for_storage=True,
    script=f"""
files {LNET_CONF} {DROP_IN} {LNET_SCRIPT} {PARAMETERS_UNIT_PATH} {PARAMETERS_SCRIPT} \\
    {PARAMETERS_PATH}
for link in /etc/systemd/system/*.mount.wants/{PARAMETERS_UNIT}; do meta "$link"; done
""",
)
# ConditionResult tells a unit that was skipped from one that nobody has started yet.
UNITS = Section(
    name="lustre_units",
    for_storage=True,
    script=f"""
systemctl show --no-pager \\
    -p Id,LoadState,ActiveState,SubState,UnitFileState,Result,ConditionResult,ConditionTimestamp \\
    {LNET_UNIT} {PARAMETERS_UNIT}
""",
)
# What the kernel said of modules that it refused; it says it anew each time.
KERNEL = Section(
    name="lustre_kernel",
    for_storage=True,
    cap_bytes=1 << 16,
    script=rf"""
for module in {" ".join(MODULES)}; do
    [ -d "/sys/module/$module" ] || continue
    first "/sys/module/$module/version"
    echo "loaded $module $first"
done
dmesg | grep -E 'k(o2ib|sock)lnd: (disagrees about version|Unknown symbol|no symbol version)' |
    tail -n 40 | sed 's/^/said /'
true
""",
)
# lnetctl would have the module loaded, and a probe changes nothing. It tells the health of an
# interface from detail 2 on (lustre_lnet_show_net() in liblnetconfig.c); -v alone is 1.
LNET = Section(
    name="lustre_lnet",
    for_storage=True,
    deadline_s=5,
    script="""
[ -d /sys/module/lnet ] || return 0
command -v lnetctl >/dev/null || return 127
lnetctl net show -v 2
""",
)
INTERFACES = Section(name="lustre_interfaces", for_storage=True, script="ip -j addr show")
DEVICES = Section(
    name="lustre_devices",
    for_storage=True,
    deadline_s=5,
    script="""
[ -d /sys/module/obdclass ] && command -v lctl >/dev/null || return 0
lctl dl
""",
)
# The names have asterisks, which are lctl's and not the shell's.
PARAMETERS = Section(
    name="lustre_parameters",
    for_storage=True,
    deadline_s=5,
    script="""
[ -n "$RW_LUSTRE" ] && [ -d /sys/module/obdclass ] && command -v lctl >/dev/null || return 0
set -f
for name in $RW_LUSTRE; do lctl get_param "$name" 2>&1; done
true
""",
)
TARGETS = Section(
    name="lustre_targets",
    for_storage=True,
    deadline_s=6,
    script=r"""
command -v lfs >/dev/null || return 0
while read -r _ target fstype _; do
    [ "$fstype" = lustre ] || continue
    case " $RW_MOUNTS " in *" $target "*) answer "$target" df timeout -s KILL 3 lfs df "$target" ;; esac
done </proc/self/mounts
true
""",  # noqa: E501
)

SECTIONS = (FILES, UNITS, KERNEL, INTERFACES, LNET, DEVICES, PARAMETERS, TARGETS)

_KILLED = 137
NO_ANSWER = "lfs df did not end in time"


class LoadedModules(Model):
    """``versions`` of the client's modules that are loaded, by name; ``refused`` is what the kernel
    said of those that it did not load, by module."""

    versions: dict[str, str | None] = Field(default={})
    refused: dict[str, tuple[str, ...]] = Field(default={})


class LustreUnits(Model):
    """The units of the client; ``skipped`` where lnet.service was not started for its condition."""

    lnet: Unit | None
    parameters: Unit | None
    skipped: bool


_SAID = re.compile(r"said .*?\b(ko2iblnd|ksocklnd): (.+)")


def parse_kernel(text: str) -> LoadedModules:
    """Read section ``lustre_kernel``. Raises ValueError for a line of another kind."""
    versions: dict[str, str | None] = {}
    refused: dict[str, tuple[str, ...]] = {}
    for line in filter(str.strip, text.splitlines()):
        words = line.split(" ", 2)
        said = _SAID.fullmatch(line)
        if words[0] == "loaded" and len(words) == 3:
            versions[words[1]] = None if words[2] == "-" else words[2]
        elif said is not None:
            before = refused.get(said[1], ())
            refused[said[1]] = before if said[2] in before else (*before, said[2].strip())
        else:
            raise ValueError(f"expected a module of Lustre's, got {line[:80]!r}")
    return LoadedModules(versions=versions, refused=refused)


def read_lnet(snapshot: Snapshot) -> Lnet | None:
    """LNet as it runs; None where its module is not loaded. Raises ValueError."""
    text, section = snapshot.text(LNET.name), snapshot.section(LNET.name)
    if section.rc == 127:
        raise ValueError("lnet is loaded, and there is no lnetctl to ask it")
    if section.rc == 0 and not text.strip():
        return None
    return parse_net_show(text if section.rc == 0 else section.stderr or text, section.rc or 0)


def read_units(snapshot: Snapshot) -> LustreUnits:
    """Raises ValueError where systemd did not answer."""
    text = snapshot.text(UNITS.name)
    if not text.strip():
        raise ValueError(f"systemctl show: {snapshot.section(UNITS.name).stderr or 'no output'}")
    units = parse_units(text)
    blocks = {block.get("Id"): block for block in unit_blocks(text)}
    lnet = blocks.get(LNET_UNIT, {})
    return LustreUnits(
        lnet=units.get(LNET_UNIT),
        parameters=units.get(PARAMETERS_UNIT),
        # Of a unit that nobody has tried to start the time is empty.
        skipped=lnet.get("ConditionResult") == "no" and bool(lnet.get("ConditionTimestamp")),
    )


def read_interfaces(snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    """Each interface with the IPv4 addresses that a NID can be made of: none while it is down.

    Raises ValueError where ip did not answer.
    """
    found = {}
    for entry in as_objects(load_json(snapshot.text(INTERFACES.name), "ip -j addr"), "ip -j addr"):
        flags = entry.get("flags")
        is_up = isinstance(flags, list) and "UP" in flags
        infos = as_objects(entry.get("addr_info", []), "ip -j addr")
        found[str(entry.get("ifname"))] = tuple(
            str(info["local"]) for info in infos if is_up and info.get("family") == "inet"
        )
    return found


def read_targets(snapshot: Snapshot) -> dict[str, LustreDf | str]:
    """What ``lfs df`` said of each mount, or why it said nothing, by the mount point."""
    section = snapshot.section(TARGETS.name)
    found: dict[str, LustreDf | str] = {}
    # One that hangs breaks off: what was said of the mounts before it stands.
    head, _, tail = section.stdout.rpartition(f"\n{snapshot.marker} exit ")
    whole = f"{head}\n{snapshot.marker} exit {tail.partition(chr(10))[0]}" if head else ""
    for answer in parse_answers(whole, snapshot.marker):
        if answer.rc == _KILLED:
            found[answer.port] = NO_ANSWER
            continue
        try:
            found[answer.port] = parse_df(answer.text)
        except ValueError as error:
            found[answer.port] = f"lfs df: {answer.text.strip()[:120] or error}"
    return found


def read_devices(snapshot: Snapshot) -> Devices:
    """Raises ValueError."""
    section = snapshot.section(DEVICES.name)
    return parse_devices(snapshot.text(DEVICES.name), section.rc or 0)


def read_parameters(snapshot: Snapshot) -> Parameters:
    """Raises ValueError."""
    return parse_parameters(snapshot.text(PARAMETERS.name))


class LnetFact(SnapshotFact):
    """``pyinfra INVENTORY fact facts.lustre.LnetFact``."""

    sections: ClassVar[tuple[Section, ...]] = (LNET,)

    def read(self, snapshot: Snapshot) -> Lnet:
        return read_lnet(snapshot) or Lnet(error="lnet is not loaded")
