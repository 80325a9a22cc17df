"""What the ports component decides and does about a host of ``ports_host``."""

from deploys.ports import actions, settings
from railwright.actions import Action, InstallFile
from railwright.schema import Node
from railwright.settings import Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.ports_host import by_key

CODES = {1024: 3, 4096: 5}


def devinfo(one: int = 4096, other: int = 4096) -> dict[str, Section]:
    """ibv_devinfo of two ports, by the active MTU of each."""
    text = "".join(
        f"hca_id:\tmlx5_{rail}\n\tport:\t1\n\t\tstate:\t\t\tPORT_ACTIVE (4)\n"
        f"\t\tmax_mtu:\t\t4096 (5)\n\t\tactive_mtu:\t\t{mtu} ({CODES[mtu]})\n"
        for rail, mtu in enumerate((one, other))
    )
    return {"port_mtu": Section(stdout=text, rc=0)}


def found(asked: Node, seen: Snapshot) -> dict[str, Setting]:
    return by_key(settings(asked, seen))


def done(asked: Node, seen: Snapshot) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def verdicts(asked: Node, seen: Snapshot) -> dict[str, Verdict]:
    return {s.key: verdict(s, asked.effects.allow) for s in settings(asked, seen)}


def rules(asked: Node, seen: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(asked, seen) if isinstance(a, InstallFile)}
