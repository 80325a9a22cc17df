"""What the last reboot of a node by railwright was for, so that none is made twice in vain.

An argument that another boot entry does not have, or a firmware key that needs power to be cut,
is persisted and is not in force after a reboot. Another reboot would bring no more.
"""

import json
from collections.abc import Iterable

from pydantic import ValidationError

from railwright.actions import InstallFile
from railwright.model import Model
from railwright.settings import Effect, Setting, Standing
from railwright.snapshot import Snapshot

PATH = "/var/lib/railwright/reboot.json"
SECTION = "reboot_ledger"


class Reboot(Model):
    """The boot that railwright ended, and what it ended it for: ``component key`` to desired."""

    boot_id: str
    wanted: dict[str, str]


def read_reboot(snapshot: Snapshot) -> Reboot | None:
    """The last reboot by railwright, None where none is known of.

    Raises ValueError where the file is there and cannot be read.
    """
    if SECTION not in snapshot.sections:
        # A snapshot that was saved before this was read.
        return None
    record = next((file for file in snapshot.files(SECTION) if file.path == PATH), None)
    if record is None:
        return None
    try:
        return Reboot.model_validate_json(record.content or "")
    except ValidationError as error:
        raise ValueError(f"{PATH}: {error.errors(include_url=False)[0]['msg']}") from None


def note(settings: Iterable[Setting], snapshot: Snapshot) -> InstallFile:
    """What notes, before the reboot, that it is made for ``settings``."""
    reboot = Reboot(
        boot_id=snapshot.facts("identity").get("boot_id", ""),
        wanted={_name(setting): setting.desired for setting in settings},
    )
    content = json.dumps(reboot.to_json(), indent=1, sort_keys=True) + "\n"
    return InstallFile(path=PATH, content=content, mode="644")


def after_reboot(settings: list[Setting], snapshot: Snapshot) -> list[Setting]:
    """``settings``, where those that a reboot has not brought into force are degraded."""
    if not any(_waits(setting) for setting in settings):
        return settings
    try:
        last = read_reboot(snapshot)
    except ValueError as error:
        reason = f"whether a reboot was made for it cannot be read ({error})"
        return [_degraded(one, reason) if _waits(one) else one for one in settings]
    if last is None or last.boot_id == snapshot.facts("identity").get("boot_id"):
        return settings
    reason = "railwright rebooted the node for it once, and it is not in force"
    return [
        _degraded(one, reason)
        if _waits(one) and last.wanted.get(_name(one)) == one.desired
        else one
        for one in settings
    ]


def _name(setting: Setting) -> str:
    return f"{setting.component} {setting.key}"


def _waits(setting: Setting) -> bool:
    # Where another decider wins, that is what is to be told: no reboot is made for it either.
    return (
        setting.effect is Effect.REBOOT
        and setting.running.standing in (Standing.WRONG, Standing.ABSENT)
        and setting.persisted.standing is not Standing.OVERRIDDEN
    )


def _degraded(setting: Setting, reason: str) -> Setting:
    running = setting.running
    detail = f"{reason}; {running.detail}" if running.detail else reason
    return setting.model_copy(
        update={
            "running": running.model_copy(update={"standing": Standing.DEGRADED, "detail": detail}),
            "remedy": setting.remedy
            or f"see what keeps it out of force; remove {PATH} to allow another reboot for it",
        }
    )
