"""Firmware keys of the rails' NICs: set for the next boot, and brought into force once at most.

What is persisted is the NIC's value for the next boot, what runs is its current value. All
functions of a card share its keys, so that rails on one card have them under the first of them.
"""

from collections.abc import Iterator

from facts import nics, ports
from facts.nic_firmware import LEDGER, SECTIONS, Card, NicFirmware, read_nic_firmware, remembers
from facts.nics import Nics, read_nics
from facts.ports import read_images
from railwright.actions import Action, InstallFile, RunScript
from railwright.component import Component
from railwright.ledger import (
    FIRMWARE_PATH,
    FirmwareLedger,
    FirmwareNote,
    read_firmware_ledger,
)
from railwright.model import Model
from railwright.rails import planned
from railwright.resolve import firmware as keys
from railwright.resolve.firmware import Boot
from railwright.resolve.nics import FoundRail, find_rails
from railwright.schema import Node
from railwright.schema.firmware import known_key
from railwright.settings import NOTHING, Effect, Setting, Standing, State, enforces, persists
from railwright.snapshot import Snapshot
from railwright.templates import render

NAME = "firmware"
_SECTIONS = (*nics.SECTIONS, ports.TABLES, *SECTIONS)
_CONTAINER = State(standing=Standing.NOT_APPLICABLE, detail="a container has no NICs of its own")
_RESETS = {"mlxconfig": "mlxfwreset", "mstconfig": "mstfwreset"}


class Target(Model):
    """A card that rails are on; ``pci`` is that of its first function, None where it has no keys.

    ``refusal`` says why nothing may be done to it.
    """

    rails: tuple[FoundRail, ...]
    pci: str | None
    refusal: str | None

    @property
    def key(self) -> str:
        return self.rails[0].key


class View(Model):
    """Everything that the settings of one node follow from."""

    node: Node
    firmware: NicFirmware
    targets: tuple[Target, ...]
    ledger: FirmwareLedger
    boot: Boot
    ledger_error: str | None = None


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    if not node.firmware.keys or not node.rails.nics:
        return []
    if snapshot.is_container:
        return [
            _setting(f"rail{plan.rail} {key}", keys.text_of(key, value), _CONTAINER, _CONTAINER)
            for plan in planned(node)
            for key, value in sorted(node.firmware.keys.items())
        ]
    rails = find_rails(node, read_nics(snapshot))
    found = [
        _setting(
            f"{rail.key} firmware",
            "present",
            NOTHING,
            State(standing=Standing.ABSENT, detail=rail.error),
        )
        for rail in rails
        if rail.port is None
    ]
    view = _view(node, snapshot, rails)
    if view.ledger_error is not None:
        found.append(_ledger_setting(view.ledger_error))
    for target in view.targets:
        found += [_key_setting(view, target, key) for key in sorted(node.firmware.keys)]
    return found


def _view(node: Node, snapshot: Snapshot, rails: tuple[FoundRail, ...]) -> View:
    firmware, seen = read_nic_firmware(snapshot), read_nics(snapshot)
    error: str | None = None
    ledger = FirmwareLedger()
    try:
        ledger = read_firmware_ledger(snapshot.files(LEDGER.name))
    except ValueError as unread:
        error = str(unread)
    boot_id = snapshot.facts("identity").get("boot_id", "")
    # What cannot be read cannot be added to either.
    boot = Boot(boot_id=boot_id, remembers=error is None and bool(boot_id) and remembers(snapshot))
    return View(
        node=node,
        firmware=firmware,
        targets=_targets(snapshot, firmware, seen, rails),
        ledger=ledger,
        boot=boot,
        ledger_error=error,
    )


def _targets(
    snapshot: Snapshot, firmware: NicFirmware, seen: Nics, rails: tuple[FoundRail, ...]
) -> tuple[Target, ...]:
    """The cards of the rails; a card may sit in two slots (socket direct), with one GUID."""
    slots: dict[str, str] = {}
    for image in read_images(snapshot).values():
        if image.pci and image.guid:
            slots.setdefault(_slot(image.pci), image.guid)
    first_with = {guid: slot for slot, guid in reversed(slots.items())}
    by_card: dict[str, list[FoundRail]] = {}
    for rail in rails:
        if rail.port is not None:
            slot = _slot(rail.port.pci) if rail.port.pci else rail.key
            by_card.setdefault(first_with.get(slots.get(slot, ""), slot), []).append(rail)
    targets = []
    for on_card in by_card.values():
        port = on_card[0].port
        first = firmware.card(port.pci) if port and port.pci else None
        targets.append(Target(rails=tuple(on_card), pci=first, refusal=_refusal(on_card, seen)))
    return tuple(targets)


def _slot(pci: str) -> str:
    """What all functions of a device share of their PCI address."""
    return pci.rpartition(".")[0]


def _refusal(rails: list[FoundRail], seen: Nics) -> str | None:
    """Why a card may not be touched: a reset of its firmware takes all its ports down."""
    refusals = [rail.port.refusal for rail in rails if rail.port and rail.port.refusal]
    if refusals:
        return refusals[0]
    slots = {_slot(rail.port.pci) for rail in rails if rail.port and rail.port.pci}
    for name in sorted(seen.way_in or ()):
        interface = seen.interfaces.get(name)
        if interface and interface.pci and _slot(interface.pci) in slots:
            return f"ssh came in by {name}, another port of the card"
    return None


def _key_setting(view: View, target: Target, key: str) -> Setting:
    value = view.node.firmware.keys[key]
    desired = keys.text_of(key, value)
    name = f"{target.key} {key}"
    known = known_key(key)
    why = None if known is None else f"{known.why} ({known.source})"
    unknown = _unanswered(view, target, key)
    if unknown is not None:
        return _setting(name, desired, unknown, unknown, why=why)
    assert target.pci is not None
    parameter = view.firmware.cards[target.pci].params[key]
    persisted = keys.persisted(key, value, parameter)
    running = keys.running(key, value, parameter)
    if len(target.rails) > 1:
        others = ", ".join(rail.key for rail in target.rails[1:])
        persisted = persisted.model_copy(update={"detail": f"the card is also that of {others}"})
    note = view.ledger.notes.get(f"{target.pci} {key}")
    due = keys.due(key, desired, note, view.boot, view.node.effects.allow)
    acts, remedy = target.refusal is None, target.refusal
    if due.waits is not None and running.standing is Standing.WRONG:
        remedy = due.remedy
        # Once it is set there is nothing more to do here; before that, it still is to be set.
        there = persisted.standing is Standing.RIGHT
        standing = Standing.WRONG if there else Standing.LATE
        running = running.model_copy(update={"standing": standing, "detail": due.waits})
        acts = acts and not there
    return _setting(
        name, desired, persisted, running, effect=due.effect, acts=acts, remedy=remedy, why=why
    )


def _unanswered(view: View, target: Target, key: str) -> State | None:
    """Why there is no answer about ``key``; None where there is one."""
    if target.pci is None:
        detail = "the NIC has no such firmware: it is none of NVIDIA's"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    if view.firmware.tool is None:
        detail = "no mlxconfig and no mstconfig on the node: install mstflint"
        return State(standing=Standing.UNREADABLE, detail=detail)
    card: Card = view.firmware.cards[target.pci]
    if key in card.params:
        return None
    if key in card.absent:
        detail = "the NIC, or its firmware, has no such key"
        return State(standing=Standing.NOT_APPLICABLE, detail=detail)
    detail = card.problem or f"{view.firmware.tool} did not answer"
    if view.firmware.lockdown is not None:
        detail += f"; the kernel is locked down ({view.firmware.lockdown}), as by Secure Boot"
    return State(standing=Standing.UNREADABLE, detail=detail)


def _ledger_setting(error: str) -> Setting:
    return Setting(
        component=NAME,
        key=FIRMWARE_PATH,
        desired="readable",
        persisted=State(standing=Standing.UNREADABLE, detail=error, decider=FIRMWARE_PATH),
        running=NOTHING,
        acts=False,
        remedy="remove it once you know that the node was not just rebooted for a key",
    )


def _setting(
    key: str,
    desired: str,
    persisted: State,
    running: State,
    *,
    effect: Effect = Effect.REBOOT,
    acts: bool = False,
    remedy: str | None = None,
    why: str | None = None,
) -> Setting:
    return Setting(
        component=NAME,
        key=key,
        desired=desired,
        persisted=persisted,
        running=running,
        effect=effect,
        acts=acts,
        remedy=remedy,
        why=why,
    )


def actions(node: Node, snapshot: Snapshot, found: list[Setting]) -> Iterator[Action]:
    allowed = node.effects.allow
    by_key = {s.key: s for s in found if persists(s) or enforces(s, allowed)}
    if not by_key or snapshot.is_container:
        return
    view = _view(node, snapshot, find_rails(node, read_nics(snapshot)))
    ledger = _noted(view, found, by_key)
    if view.boot.remembers and ledger != view.ledger:
        yield InstallFile(path=FIRMWARE_PATH, content=ledger.text)
    for target in view.targets:
        mine = [
            (k, s) for k in sorted(node.firmware.keys) if (s := by_key.get(f"{target.key} {k}"))
        ]
        if mine and target.pci is not None:
            yield from _card_actions(view, target.pci, mine, ledger)


def _card_actions(
    view: View, pci: str, mine: list[tuple[str, Setting]], ledger: FirmwareLedger
) -> Iterator[Action]:
    tool = view.firmware.tool
    assert tool is not None
    sets = [f"{key}={view.node.firmware.keys[key]}" for key, s in mine if persists(s)]
    resets = any(
        s.effect is Effect.FIRMWARE_RESET and enforces(s, view.node.effects.allow) for _, s in mine
    )
    if not sets and not resets:
        return
    boot_ids = {ledger.notes[f"{pci} {k}"].boot_id for k, _ in mine if f"{pci} {k}" in ledger.notes}
    noted = view.boot.remembers and view.boot.boot_id in boot_ids
    yield RunScript(
        name="railwright-firmware",
        script=render("firmware/railwright-firmware.sh.j2"),
        arguments=(
            view.boot.boot_id if noted else "",
            pci,
            tool,
            _RESETS[tool] if resets else "",
            *sets,
        ),
    )


def _noted(view: View, found: list[Setting], by_key: dict[str, Setting]) -> FirmwareLedger:
    """The ledger with what is now done for the first time, without what is in force by now."""
    done = {
        s.key
        for s in found
        if s.persisted.standing is Standing.RIGHT and s.running.standing is Standing.RIGHT
    }
    notes = dict(view.ledger.notes)
    for target in view.targets:
        for key in view.node.firmware.keys:
            name, at = f"{target.key} {key}", f"{target.pci} {key}"
            if name in done:
                notes.pop(at, None)
            if name not in by_key:
                continue
            setting = by_key[name]
            note = notes.get(at)
            if note is None or note.value != setting.desired:
                note = FirmwareNote(value=setting.desired, boot_id=view.boot.boot_id)
            resets = setting.effect is Effect.FIRMWARE_RESET
            if resets and enforces(setting, view.node.effects.allow):
                note = note.model_copy(update={"reset": True})
            notes[at] = note
    return FirmwareLedger(notes=notes)


COMPONENT = Component(name=NAME, sections=_SECTIONS, settings=settings, actions=actions)
