"""Keys in the NVRAM of NICs: default, current and next boot, as mlxconfig or mstconfig tell them.

The tool gives up at the first key that a NIC does not have, so that each is asked for by itself
then. It needs no module of MFT where a NIC is addressed by its PCI address.
"""

import re
from typing import Literal

from pydantic import Field

from facts.mlxconfig import ConfigProblem, Parameter, parse_mlxconfig
from facts.probe import Section
from railwright.ledger import FIRMWARE_PATH
from railwright.model import Model
from railwright.snapshot import Snapshot

# RW_FIRMWARE: the tool (auto, mlxconfig, mstconfig) and the keys that the node asks for.
CONFIG = Section(
    name="nic_firmware",
    script=r"""
[ -n "$RW_FIRMWARE" ] || return 0
set -- $RW_FIRMWARE
tool=$1
shift
if [ "$tool" = auto ]; then
    tool=none
    for found in mlxconfig mstconfig; do
        command -v "$found" >/dev/null && tool=$found && break
    done
fi
command -v "$tool" >/dev/null || tool=none
echo "tool $tool"
sed -n 's/.*\[\(.*\)\].*/lockdown \1/p' /sys/kernel/security/lockdown 2>/dev/null
ask() {
    out=$("$tool" -d "$bdf" -e q "$@" 2>&1)
    printf 'answer %s %s\n' "$bdf" "$?"
    printf '%s\n' "$out" | sed 's/^/| /'
}
for device in /sys/bus/pci/devices/*; do
    case $(cat "$device/vendor" "$device/class" 2>/dev/null) in
        0x15b3?0x02*) ;;
        *) continue ;;
    esac
    # All functions of a card share its keys.
    [ ! -e "$device/physfn" ] || continue
    [ "${device##*.}" = 0 ] || [ ! -e "${device%.*}.0" ] || continue
    bdf=${device##*/}
    echo "card $bdf"
    [ "$tool" != none ] || continue
    told=$(ask "$@")
    case $told in
        *"doesn't support"* | *"nknown parameter"*) for key; do ask "$key"; done ;;
        *) printf '%s\n' "$told" ;;
    esac
done
true
""",
    # One question takes a NIC a second or two.
    deadline_s=120,
)
LEDGER = Section(
    name="nic_firmware_ledger",
    for_rails=True,
    script=f"files {FIRMWARE_PATH}",
)
STORAGE = Section(
    name="nic_firmware_storage",
    for_rails=True,
    script='echo "var=$(stat -f -c %T /var/lib/railwright 2>/dev/null || stat -f -c %T /var/lib)"',
)
SECTIONS = (CONFIG, LEDGER, STORAGE)

# A root file system in memory forgets what was written when the node boots.
_FORGETFUL = frozenset({"tmpfs", "ramfs", "overlayfs", "aufs"})


class Card(Model):
    """What one NIC answered; ``absent`` are keys that it does not have."""

    params: dict[str, Parameter] = Field(default={})
    absent: frozenset[str] = frozenset()
    problem: str | None = None


class NicFirmware(Model):
    """The NICs of a node by PCI address of their first function.

    ``tool`` is None where there is none on the node. ``lockdown`` is the kernel's, which with
    Secure Boot keeps tools off a NIC's configuration space.
    """

    tool: Literal["mlxconfig", "mstconfig"] | None
    lockdown: str | None
    cards: dict[str, Card]

    def card(self, pci: str) -> str | None:
        """The card that the function ``pci`` is of."""
        same = [card for card in self.cards if card.rpartition(".")[0] == pci.rpartition(".")[0]]
        return same[0] if same else None


def parse_nic_firmware(text: str) -> NicFirmware:
    """Read the section ``nic_firmware`` of a node that asks for keys. Raises ValueError."""
    if not text.startswith("tool "):
        raise ValueError(f"expected the tool that was asked, got {text[:80]!r}")
    tool = lockdown = None
    cards: dict[str, Card] = {}
    answers: list[tuple[str, list[str]]] = []
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "|" and answers:
            answers[-1][1].append(rest)
        elif kind == "tool":
            tool = None if rest == "none" else rest
        elif kind == "lockdown":
            lockdown = None if rest == "none" else rest
        elif kind == "card":
            cards[rest] = Card()
        elif kind == "answer" and (pci := rest.partition(" ")[0]) in cards:
            answers.append((pci, []))
        else:
            raise ValueError(f"expected an answer of mlxconfig, got {line[:80]!r}")
    for pci, lines in answers:
        cards[pci] = _with(cards[pci], "\n".join(lines))
    return NicFirmware.model_validate({"tool": tool, "lockdown": lockdown, "cards": cards})


def _with(card: Card, answer: str) -> Card:
    try:
        config = parse_mlxconfig(answer)
    except ValueError as error:
        return card.model_copy(update={"problem": str(error)})
    absent = {key for one in config.problems if (key := _absent(one))}
    problem = next((one.message for one in config.problems if not _absent(one)), card.problem)
    params = {key: value for device in config.devices for key, value in device.params.items()}
    return Card(params=card.params | params, absent=card.absent | absent, problem=problem)


def _absent(problem: ConfigProblem) -> str | None:
    """The key that a device does not have, None where the problem is another one."""
    if problem.error != "unsupported_parameter":
        return None
    named = re.search(r"support (\S+) parameter|[Uu]nknown [Pp]arameter:? ?(\S+)", problem.message)
    return (named[1] or named[2]) if named else None


def read_nic_firmware(snapshot: Snapshot) -> NicFirmware:
    """What the snapshot says. Raises ValueError where it cannot be read."""
    return parse_nic_firmware(snapshot.text(CONFIG.name))


def remembers(snapshot: Snapshot) -> bool:
    """Whether what is written to the ledger outlives a boot."""
    kind = snapshot.facts(STORAGE.name).get("var", "")
    return bool(kind) and kind not in _FORGETFUL
