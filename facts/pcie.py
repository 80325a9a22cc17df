"""PCIe functions of a node, the bridges above them, and our unit.

Read from sysfs and from the registers of config space themselves: lspci and setpci (pciutils) are
not on every host.
"""

import re
from collections.abc import Iterable
from importlib.resources import files as resources
from typing import ClassVar

from facts.probe import Section, SnapshotFact
from railwright.model import Model
from railwright.owned_unit import OwnedUnit
from railwright.pcie import AcsControl, Bridge, Function, Pcie, PcieLink
from railwright.resolve.pcie import Nearest, nearest_of_gpus
from railwright.snapshot import Snapshot

UNIT = OwnedUnit(name="railwright-pcie.service", target="multi-user.target")
SCRIPT_PATH = "/usr/local/sbin/railwright-pcie"
PLAN_PATH = "/etc/railwright/pcie/plan"
RULE_PATH = "/etc/udev/rules.d/99-zz-railwright-pcie.rules"

READER = (resources("facts") / "pcie.sh").read_text(encoding="ascii").split("\n", 2)[2]
"""Functions of sh that read config space; the script railwright-pcie has them too."""

_DEVICES = "/sys/bus/pci/devices"
DEVICES_SCRIPT = r"""
bridges=' '
echo "virtual $(systemd-detect-virt --vm)"
read -r state 2>/dev/null </sys/kernel/security/lockdown && echo "lockdown $state"
pci_link() {
    for end in current_link_speed current_link_width max_link_speed max_link_width; do
        pci_value "$1/$end"
        printf ' %s' "$value"
    done
}
for device in "$PCI"/*; do
    pci_kind "$device" || continue
    address=${device##*/}
    pci_path "$device" || continue
    printf 'function %s %s' "$kind" "$path"
    for name in vendor device numa_node iommu_group/type; do
        pci_value "$device/$name"
        printf ' %s' "$value"
    done
    driver=-
    ! cd -P "$device/driver" 2>/dev/null || driver=${PWD##*/}
    pci_link "$device"
    control=none
    # Only NICs are asked for more than sysfs tells.
    if [ "$kind" = nic ]; then
        control=unreadable
        if pci_express "$address"; then
            control=none
            if [ "$express" -ne 0 ]; then
                control=unreadable
                ! pci_word "$address" $((express + 8)) || control=$((word & 65535))
            fi
        fi
    fi
    echo " $driver $control"
    path=${path#*/}
    while [ "${path#*/}" != "$path" ]; do
        bridge=${path%%/*}
        path=${path#*/}
        case $bridges in *" $bridge "*) ;; *) bridges="$bridges$bridge " ;; esac
    done
done
for bridge in $bridges; do
    control=unreadable
    if pci_acs "$bridge"; then
        control=none
        if [ "$acs" -ne 0 ]; then
            control=unreadable
            ! pci_word "$bridge" $((acs + 4)) || control=$((word >> 16))
        fi
    fi
    printf 'bridge %s' "$bridge"
    pci_link "$PCI/$bridge"
    echo " $control"
done
for device in "$PCI"/../drivers/vfio-pci/*:*; do
    [ -e "$device" ] || continue
    pci_path "$device" || continue
    echo "assigned $path"
done
true
"""

SECTIONS = (
    Section(
        name="pcie_devices",
        for_rails=True,
        script=f"PCI={_DEVICES}\n{READER}{DEVICES_SCRIPT}",
        deadline_s=60,
    ),
    Section(
        name="pcie_files",
        script=f"files {SCRIPT_PATH} {UNIT.path} {PLAN_PATH} {RULE_PATH}\nmeta {UNIT.link}",
    ),
    Section(name="pcie_unit", script=f"units {UNIT.name}", for_rails=True),
)

_ADDRESS = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
_PATH = re.compile(rf"[0-9a-f]{{4,8}}:[0-9a-f]{{2}}(/{_ADDRESS})+")


class PcieReport(Model):
    """The PCIe functions of a node, and what is nearest to each of its GPUs."""

    devices: Pcie
    gpus: dict[str, Nearest]


class PcieFact(SnapshotFact):
    """The nearest NICs of each GPU: ``pyinfra INVENTORY fact facts.pcie.PcieFact``."""

    sections: ClassVar[tuple[Section, ...]] = SECTIONS[:1]

    def read(self, snapshot: Snapshot) -> PcieReport:
        devices = read_pcie(snapshot)
        return PcieReport(devices=devices, gpus=nearest_of_gpus(devices))


def read_pcie(snapshot: Snapshot) -> Pcie:
    """What the snapshot says. Raises ValueError where it cannot be read."""
    return parse_pcie(snapshot.text("pcie_devices"))


def parse_pcie(text: str) -> Pcie:
    """Read the section ``pcie_devices``. Raises ValueError for a line of another kind."""
    functions, bridges, assigned = {}, {}, {}
    virtual, locked_down = None, False
    for line in filter(None, text.splitlines()):
        kind, _, rest = line.partition(" ")
        if kind == "function":
            function = _function(rest)
            functions[function.address] = function
        elif kind == "bridge":
            bridge = _bridge(rest)
            bridges[bridge.address] = bridge
        elif kind == "assigned":
            *above, address = _checked_path(rest).split("/")[1:]
            assigned.update(dict.fromkeys(above, address))
        elif kind == "virtual":
            virtual = rest or None
        elif kind == "lockdown":
            # The level in force is in brackets; any but none keeps config space from being written.
            locked_down = "[none]" not in rest
        else:
            raise ValueError(f"expected a PCIe function or bridge, got {line[:80]!r}")
    return Pcie(
        functions=functions,
        bridges=bridges,
        assigned=assigned,
        virtual=virtual,
        locked_down=locked_down,
    )


def _checked_path(text: str) -> str:
    if not _PATH.fullmatch(text):
        raise ValueError(f"expected a path of PCI addresses, got {text[:80]!r}")
    return text


def _function(text: str) -> Function:
    words = text.split(" ")
    if len(words) != 12:
        raise ValueError(f"expected a PCIe function of 12 words, got {text[:120]!r}")
    kind, path, vendor, device, numa, iommu, *ends, driver, control = words
    host, *bridges, address = _checked_path(path).split("/")
    return Function.model_validate(
        {
            "address": address,
            "kind": kind,
            "device": f"{vendor.removeprefix('0x')}:{device.removeprefix('0x')}",
            "host": f"pci{host}",
            "bridges": bridges,
            "numa_node": int(numa) if numa.isdigit() else None,
            "driver": None if driver == "-" else driver,
            "iommu": None if iommu == "-" else iommu,
            "link": _link(ends),
            "device_control": int(control) if control.isdigit() else None,
            "readable": control != "unreadable",
        }
    )


def _bridge(text: str) -> Bridge:
    words = text.split(" ")
    if len(words) != 6 or not re.fullmatch(_ADDRESS, words[0]):
        raise ValueError(f"expected a PCIe bridge of 6 words, got {text[:120]!r}")
    address, *ends, control = words
    return Bridge(
        address=address,
        link=_link(ends),
        acs=AcsControl(register_value=int(control)) if control.isdigit() else None,
        readable=control != "unreadable",
    )


def _link(words: Iterable[str]) -> PcieLink:
    """Speeds come as ``32.0`` or ``Unknown``, widths as ``16``, 0 or 255 (unknown)."""
    speed, width, max_speed, max_width = words
    return PcieLink(
        speed=_speed(speed),
        width=_width(width),
        max_speed=_speed(max_speed),
        max_width=_width(max_width),
    )


def _speed(word: str) -> float | None:
    return float(word) if re.fullmatch(r"\d+(\.\d+)?", word) else None


def _width(word: str) -> int | None:
    return int(word) if word.isdigit() and 0 < int(word) < 255 else None
