"""NICs with firmware keys, and what the firmware component decides and does about them."""

from collections.abc import Mapping
from typing import Any

from deploys.firmware import actions, settings
from railwright.actions import Action, InstallFile, RunScript
from railwright.ledger import FIRMWARE_PATH, FirmwareLedger, FirmwareNote
from railwright.schema import Node
from railwright.settings import Effect, Setting, Standing, enforces
from railwright.snapshot import Section, Snapshot
from tests.unit.ports_host import LIVE, by_key, files, host, node, pci

OLD_BOOT = "b0000000-0000-4000-8000-000000000000"
REBOOT = LIVE | {Effect.REBOOT}
RESET = LIVE | {Effect.FIRMWARE_RESET}
HEAD = "Configurations:                              Default         Current         Next Boot\n"


def config(**values: str) -> str:
    """What mlxconfig -e prints of keys, ``DEFAULT CURRENT NEXT`` each."""
    rows = "".join(f"         {key}   {value}\n" for key, value in values.items())
    return (
        f"\nDevice #1:\n----------\n\nDevice type:    ConnectX7\nDevice:         x\n\n{HEAD}{rows}"
    )


def answer(rail: int | str, text: str, rc: int = 0) -> str:
    at = pci(rail) if isinstance(rail, int) else rail
    lines = "".join(f"| {line}\n" for line in text.splitlines())
    return f"answer {at} {rc}\n{lines}"


def told(*answers: str, tool: str = "mstconfig", cards: int = 1, lockdown: str = "none") -> str:
    listed = "".join(f"card {pci(rail)}\n" for rail in range(cards))
    return f"tool {tool}\nlockdown {lockdown}\n{listed}{''.join(answers)}"


def nic(
    text: str,
    *,
    notes: Mapping[str, FirmwareNote] | None = None,
    var: str = "ext2/ext3",
    ledger: str | None = None,
    rails: int = 1,
    **more: Any,
) -> Snapshot:
    content = ledger or (FirmwareLedger(notes=dict(notes)).text if notes else None)
    sections = {
        "nic_firmware": Section(stdout=text, rc=0),
        "nic_firmware_storage": Section(stdout=f"var={var}\n", rc=0),
    }
    if content is not None:
        sections["nic_firmware_ledger"] = files({FIRMWARE_PATH: content})
    return host(rails=rails, sections=sections, **more)


def asking(
    keys: Mapping[str, int | str], allow: frozenset[Effect] = LIVE, rails: int = 1, **more: Any
) -> Node:
    return node(firmware=keys, allow=allow, rails=rails, **more)


def found(asked: Node, seen: Snapshot) -> dict[str, Setting]:
    return by_key(settings(asked, seen))


def done(asked: Node, seen: Snapshot) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def scripts(asked: Node, seen: Snapshot) -> list[tuple[str, ...]]:
    return [a.arguments for a in done(asked, seen) if isinstance(a, RunScript)]


def noted(asked: Node, seen: Snapshot) -> dict[str, FirmwareNote]:
    texts = [a.content for a in done(asked, seen) if isinstance(a, InstallFile)]
    return FirmwareLedger.model_validate_json(texts[0]).notes if texts else {}


def reboots(asked: Node, seen: Snapshot) -> bool:
    """What railwright.converge.needs_reboot asks of the settings of a run."""
    return any(
        s.effect is Effect.REBOOT
        and enforces(s, asked.effects.allow)
        and s.persisted.standing is not Standing.NOT_APPLICABLE
        for s in settings(asked, seen)
    )


VFS = {"SRIOV_EN": 1, "NUM_OF_VFS": 12}
AT = f"{pci(0)} NUM_OF_VFS"
ASKED_VFS = asking(VFS, REBOOT)


def vfs(default: int, current: int, following: int) -> str:
    return told(
        answer(
            0,
            config(
                SRIOV_EN="True(1) True(1) True(1)", NUM_OF_VFS=f"{default} {current} {following}"
            ),
        )
    )


def note(boot: str, value: str = "12", reset: bool = False) -> dict[str, FirmwareNote]:
    return {AT: FirmwareNote(value=value, boot_id=boot, reset=reset)}
