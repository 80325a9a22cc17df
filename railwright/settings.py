"""Settings in three states, and the verdict that follows from them.

A setting is *desired* by the inventory, *persisted* by a chain of files or services of which one
decides what holds after a reboot, and *running* now. Components say how each of the two observed
states stands; what follows from that is the same for all of them and stands here.
"""

from enum import Enum

from railwright.model import Model


class Effect(str, Enum):
    """What it takes to bring a persisted setting into force.

    A set, not a scale: allowing ``reboot`` does not allow ``link``.
    """

    LIVE = "live"
    NEW_PROCESSES = "new_processes"
    SERVICE = "service"
    REMOUNT = "remount"
    LINK = "link"
    DRIVER = "driver"
    FIRMWARE_RESET = "firmware_reset"
    REBOOT = "reboot"
    COLD_CYCLE = "cold_cycle"


class Standing(str, Enum):
    """How one observed state of a setting stands to what is desired."""

    RIGHT = "right"
    WRONG = "wrong"
    ABSENT = "absent"
    """Nothing sets it (persisted), or it does not exist yet (running)."""
    OVERRIDDEN = "overridden"
    """Ours is right, but another file or service decides. Persisted only."""
    STALE = "stale"
    """The source is right, what is generated from it is not. Persisted only."""
    LATE = "late"
    """Comes into being when a module loads or a service starts. Running only."""
    DEGRADED = "degraded"
    """In place, but not working. Running only."""
    UNREADABLE = "unreadable"
    NOT_APPLICABLE = "not_applicable"


PERSISTED_STANDINGS = frozenset(
    {
        Standing.RIGHT,
        Standing.WRONG,
        Standing.ABSENT,
        Standing.OVERRIDDEN,
        Standing.STALE,
        Standing.UNREADABLE,
        Standing.NOT_APPLICABLE,
    }
)
RUNNING_STANDINGS = frozenset(
    {
        Standing.RIGHT,
        Standing.WRONG,
        Standing.ABSENT,
        Standing.LATE,
        Standing.DEGRADED,
        Standing.UNREADABLE,
        Standing.NOT_APPLICABLE,
    }
)


class Verdict(str, Enum):
    """What is to be said of a setting. Only ``ok`` and ``not_applicable`` are not drift."""

    OK = "ok"
    NOT_RUNNING = "not_running"
    NOT_PERSISTED = "not_persisted"
    WRONG = "wrong"
    OVERRIDDEN = "overridden"
    NOT_GENERATED = "not_generated"
    PENDING = "pending"
    DEGRADED = "degraded"
    UNREADABLE = "unreadable"
    NOT_APPLICABLE = "not_applicable"


class State(Model):
    """One observed state: how it stands, its value, who decides it, and what to know about it.

    ``value`` is written as the component writes ``desired``, so that the two compare as text;
    None where there is none. ``decider`` is a file (``/etc/sysctl.d/x.conf:3``) or a service.
    """

    standing: Standing
    value: str | None = None
    decider: str | None = None
    detail: str | None = None


NOTHING = State(standing=Standing.NOT_APPLICABLE)
"""The state of a setting that has no such state."""
NO_PORTS = State(standing=Standing.NOT_APPLICABLE, detail="a container has no ports of its own")
HOSTS_KERNEL = State(
    standing=Standing.NOT_APPLICABLE, detail="a container shares its host's kernel"
)
"""What runs in a container, of ports and of the kernel."""


class Setting(Model):
    """One thing that the inventory asks of one node, and how it is there.

    ``effect`` is what it takes to bring the desired value into force; ``why`` the reason and the
    source of the desired value where railwright recommends it; ``remedy`` says what a person must
    do where railwright may not (a foreign file that overrides ours). A setting with ``acts`` False
    is reported and never acted on.
    """

    component: str
    key: str
    desired: str
    persisted: State
    running: State
    effect: Effect = Effect.LIVE
    acts: bool = True
    remedy: str | None = None
    why: str | None = None


def looked_at(
    component: str,
    key: str,
    desired: str,
    running: State,
    *,
    remedy: str | None = None,
    why: str | None = None,
) -> Setting:
    """A setting that no run can bring about: it has a running state, and nothing persists it."""
    return Setting(
        component=component,
        key=key,
        desired=desired,
        persisted=NOTHING,
        running=running,
        acts=False,
        remedy=remedy,
        why=why,
    )


class Change(Model):
    """What a run does to one state of one setting; ``before`` is None where nothing was there."""

    component: str
    key: str
    state: str
    before: str | None
    after: str

    def __str__(self) -> str:
        return f"{self.component} {self.key}: {self.state} {self.before or 'absent'} → {self.after}"


def verdict_of(persisted: Standing, running: Standing, effect_allowed: bool) -> Verdict:
    """The verdict, a total function of the two standings; the first rule that fits decides.

    Raises ValueError for a standing that its state cannot have.
    """
    if persisted not in PERSISTED_STANDINGS or running not in RUNNING_STANDINGS:
        raise ValueError(f"no such state: persisted {persisted.value}, running {running.value}")
    if Standing.UNREADABLE in (persisted, running):
        return Verdict.UNREADABLE
    if persisted is running is Standing.NOT_APPLICABLE:
        return Verdict.NOT_APPLICABLE
    if running is Standing.DEGRADED:
        return Verdict.DEGRADED
    if persisted is Standing.OVERRIDDEN:
        return Verdict.OVERRIDDEN
    if persisted is Standing.STALE:
        return Verdict.NOT_GENERATED
    in_force = running in (Standing.RIGHT, Standing.NOT_APPLICABLE)
    if persisted in (Standing.RIGHT, Standing.NOT_APPLICABLE):
        if in_force:
            return Verdict.OK
        if running is Standing.LATE or not effect_allowed:
            return Verdict.PENDING
        return Verdict.NOT_RUNNING
    # Nothing persists it: with no running state of its own (a container) that alone is wrong.
    return Verdict.NOT_PERSISTED if running is Standing.RIGHT else Verdict.WRONG


def verdict(setting: Setting, allowed: frozenset[Effect]) -> Verdict:
    """The verdict on ``setting`` where the inventory allows the effects ``allowed``."""
    return verdict_of(
        setting.persisted.standing, setting.running.standing, setting.effect in allowed
    )


def is_drift(found: Verdict) -> bool:
    return found not in (Verdict.OK, Verdict.NOT_APPLICABLE)


def persists(setting: Setting) -> bool:
    """Whether a run writes the persisted state."""
    return setting.acts and setting.persisted.standing in (
        Standing.WRONG,
        Standing.ABSENT,
        Standing.STALE,
    )


def enforces(setting: Setting, allowed: frozenset[Effect]) -> bool:
    """Whether a run brings the desired value into force.

    Not where the effect is not allowed, nor where the persisted state cannot be read: what is put
    in force then could be lost at the next boot without a word. Nor where another decider wins
    and the effect would only bring into force what that one says.
    """
    return (
        setting.acts
        and setting.effect in allowed
        and setting.persisted.standing is not Standing.UNREADABLE
        and (setting.persisted.standing is not Standing.OVERRIDDEN or setting.effect is Effect.LIVE)
        and setting.running.standing in (Standing.WRONG, Standing.ABSENT)
    )


def by_reboot(setting: Setting, allowed: frozenset[Effect]) -> Setting:
    """``setting`` with a reboot in place of a driver's reload, where that alone is allowed.

    What is persisted comes into force by either.
    """
    if (
        setting.effect is Effect.DRIVER
        and Effect.REBOOT in allowed
        and Effect.DRIVER not in allowed
    ):
        return setting.model_copy(update={"effect": Effect.REBOOT})
    return setting


def changes(setting: Setting, allowed: frozenset[Effect]) -> list[Change]:
    """What a run will do to ``setting``, as the dry run announces it."""
    found = []
    if persists(setting):
        found.append(_change(setting, "persisted", setting.persisted))
    if enforces(setting, allowed):
        found.append(_change(setting, "running", setting.running))
    return found


def _change(setting: Setting, state: str, before: State) -> Change:
    return Change(
        component=setting.component,
        key=setting.key,
        state=state,
        before=before.value,
        after=setting.desired,
    )
