"""How a key in a NIC's NVRAM stands, and what may be done until it is in force.

A reboot that did not bring a key into force is never done again: on some NICs and servers only a
cold power cycle does it, and a tool that reboots until it sees the value reboots for ever.
Source: k8snetworkplumbingwg/sriov-network-operator#449, Mellanox/nic-configuration-operator#188.
"""

from facts.mlxconfig import Parameter
from railwright.ledger import FirmwareNote
from railwright.model import Model
from railwright.schema.firmware import effect_of, known_key, number_of
from railwright.settings import NOTHING, Effect, Standing, State

COLD_REMEDY = (
    "cut the power of the node and give it again (a reboot and a warm reset leave the NIC's "
    "standby power on)"
)
_OFTEN = "it may take a cold power cycle"


class Boot(Model):
    """The running boot of a node; ``remembers`` where the ledger outlives it."""

    boot_id: str
    remembers: bool


class Due(Model):
    """What brings a key into force; ``waits`` where railwright itself may not do it, and why."""

    effect: Effect
    waits: str | None = None
    remedy: str | None = None


def text_of(key: str, value: int | str) -> str:
    """``value`` as the tool writes it: ``ETH(2)``, or ``16`` where it has no name."""
    known, number = known_key(key), number_of(key, value)
    names = {} if known is None else {n: name for name, n in known.names.items()}
    if number is None:
        return str(value)
    return f"{names[number]}({number})" if number in names else str(number)


def persisted(key: str, value: int | str, parameter: Parameter) -> State:
    """How the value of the next boot stands."""
    state = _state(key, value, parameter.next, parameter.next_name)
    if state is None:
        return State(standing=Standing.NOT_APPLICABLE, detail="the NIC has no value for it")
    return state


def running(key: str, value: int | str, parameter: Parameter) -> State:
    """How the value in force stands."""
    state = _state(key, value, parameter.current, parameter.current_name)
    if state is not None:
        return state
    if parameter.next is None and parameter.next_name is None:
        return NOTHING
    detail = "this firmware does not tell what is in force"
    return State(standing=Standing.UNREADABLE, detail=detail)


def _state(key: str, value: int | str, number: int | None, name: str | None) -> State | None:
    if number is None and name is None:
        return None
    if number is None:
        detail = f"it is {name}: name one element, such as {key}[0]"
        return State(standing=Standing.UNREADABLE, value=name, detail=detail)
    wanted = number_of(key, value)
    right = number == wanted if wanted is not None else (name or "").lower() == str(value).lower()
    shown = f"{name}({number})" if name is not None else text_of(key, number)
    return State(
        standing=Standing.RIGHT if right else Standing.WRONG,
        value=text_of(key, value) if right else shown,
    )


def due(
    key: str, desired: str, note: FirmwareNote | None, boot: Boot, allowed: frozenset[Effect]
) -> Due:
    """What brings ``desired`` into force, given when it was first set."""
    least = effect_of(key)
    if least is Effect.COLD_CYCLE:
        waits = "comes into force with a cold power cycle, not with a reboot"
        return Due(effect=least, waits=waits, remedy=COLD_REMEDY)
    tried = note if note is not None and note.value == desired else None
    if tried is not None and tried.boot_id != boot.boot_id:
        waits = "was set before the last boot, which did not bring it into force"
        return Due(
            effect=Effect.COLD_CYCLE, waits=f"{waits}: needs a cold power cycle", remedy=COLD_REMEDY
        )
    if not boot.remembers:
        waits = "the node would not remember that it was rebooted for it"
        return Due(
            effect=least, waits=waits, remedy=f"reboot it once by hand; where that fails {_OFTEN}"
        )
    if least is Effect.REBOOT or (tried is not None and tried.reset):
        return Due(effect=Effect.REBOOT)
    # A reboot does what a firmware reset does, and is the less gentle one.
    if Effect.FIRMWARE_RESET not in allowed and Effect.REBOOT in allowed:
        return Due(effect=Effect.REBOOT)
    return Due(effect=Effect.FIRMWARE_RESET)
