"""IPoIB's mode: the rules that keep it, and what puts it in force."""

from collections.abc import Mapping
from typing import Any

import pytest

from facts.ports import IPOIB_RULES
from railwright.actions import RemoveFile, Run, WriteValue
from railwright.schema import InfinibandFabric, RoceFabric
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.ports_cases import devinfo, done, found, rules, verdicts
from tests.unit.ports_host import EVERY, LIVE, files, host, node, pci

CONNECTED = InfinibandFabric(ipoib_mode="connected")


def ipoib(modes: Mapping[int, str], ours: str | None = None, extra: str = "") -> dict[str, Section]:
    text = "".join(f"mode eth{rail} {mode}\n" for rail, mode in modes.items()) + extra
    sections = {"ipoib": Section(stdout=text, rc=0)}
    if ours is not None:
        sections["ipoib_files"] = files({IPOIB_RULES: ours})
    return sections


def infiniband_host(**more: Any) -> Snapshot:
    return host(infiniband=True, **more)


LINK = LIVE | {Effect.LINK}


def test_the_mode_is_persisted_and_waits_for_the_link() -> None:
    asked, bare = node(CONNECTED), infiniband_host()
    content = rules(asked, bare)[IPOIB_RULES]
    assert f'KERNELS=="{pci(0)}", ATTR{{type}}=="32", ATTR{{mode}}="connected"' in content
    assert done(asked, bare)[-1] == Run(command=("udevadm", "control", "--reload"))
    after = infiniband_host(sections=ipoib({0: "datagram", 1: "datagram"}, content))
    assert verdicts(asked, after)["rail0 ipoib mode"] is Verdict.PENDING
    assert done(asked, after) == []
    allowed = node(CONNECTED, allow=LINK)
    assert done(allowed, after) == [
        WriteValue(path=f"/sys/class/net/eth{rail}/mode", value="connected") for rail in (0, 1)
    ]


def test_a_converged_mode_is_ok_and_left_alone() -> None:
    asked = node(CONNECTED, allow=LINK)
    content = rules(asked, infiniband_host())[IPOIB_RULES]
    seen = infiniband_host(sections=ipoib({0: "connected", 1: "connected"}, content) | devinfo())
    assert set(verdicts(asked, seen).values()) == {Verdict.OK}
    assert done(asked, seen) == []


def test_a_rule_for_another_mode_is_wrong_and_put_right() -> None:
    asked = node(CONNECTED)
    content = rules(asked, infiniband_host())[IPOIB_RULES].replace("connected", "datagram")
    seen = infiniband_host(sections=ipoib({0: "connected", 1: "connected"}, content))
    mode = found(asked, seen)["rail0 ipoib mode"]
    assert (mode.persisted.standing, mode.persisted.value) == (Standing.WRONG, "datagram")
    assert verdict(mode, LIVE) is Verdict.NOT_PERSISTED
    assert "datagram" not in rules(asked, seen)[IPOIB_RULES]


@pytest.mark.parametrize(
    ("extra", "decider"),
    [
        ("manager NetworkManager\n", "NetworkManager"),
        ("openib no\n", "/etc/infiniband/openib.conf (SET_IPOIB_CM)"),
        ("openib yes\n", None),
    ],
)
def test_who_overrides_the_rule_is_named(extra: str, decider: str | None) -> None:
    asked = node(CONNECTED)
    content = rules(asked, infiniband_host())[IPOIB_RULES]
    seen = infiniband_host(sections=ipoib({0: "datagram", 1: "connected"}, content, extra))
    states = found(asked, seen)
    assert states["rail0 ipoib mode"].running.decider == decider
    assert states["rail1 ipoib mode"].running.decider is None
    assert (decider is None) == (states["rail0 ipoib mode"].remedy is None)


def test_the_port_that_ssh_came_in_by_is_left_alone() -> None:
    asked = node(CONNECTED, allow=EVERY)
    seen = infiniband_host(way_in="eth0")
    states = found(asked, seen)
    assert states["rail0 ipoib mode"].remedy == "ssh came in by eth0"
    assert changes(states["rail0 ipoib mode"], EVERY) == []
    assert pci(0) not in rules(asked, seen)[IPOIB_RULES]
    assert pci(1) in rules(asked, seen)[IPOIB_RULES]
    written = [a.path for a in done(asked, seen) if isinstance(a, WriteValue)]
    assert written == ["/sys/class/net/eth1/mode"]


def test_a_rule_that_is_there_stays_for_the_port_that_ssh_came_in_by() -> None:
    asked = node(CONNECTED)
    content = rules(asked, infiniband_host())[IPOIB_RULES]
    seen = infiniband_host(way_in="eth0", sections=ipoib({0: "datagram", 1: "connected"}, content))
    assert IPOIB_RULES not in rules(asked, seen)


def test_where_the_way_in_is_not_known_no_port_is_touched() -> None:
    assert done(node(CONNECTED, allow=EVERY), infiniband_host(way_in=None)) == []


def test_no_interface_yet_is_late() -> None:
    seen = infiniband_host(sections=ipoib({}))
    mode = found(node(CONNECTED), seen)["rail0 ipoib mode"]
    assert mode.running.standing is Standing.LATE


def test_rules_go_where_no_mode_is_asked_for() -> None:
    content = rules(node(CONNECTED), infiniband_host())[IPOIB_RULES]
    seen = infiniband_host(sections=ipoib({0: "connected", 1: "connected"}, content) | devinfo())
    assert done(node(InfinibandFabric()), seen)[0] == RemoveFile(path=IPOIB_RULES)
    assert done(node(RoceFabric()), host(sections=ipoib({}, content)))[0] == RemoveFile(
        path=IPOIB_RULES
    )


def test_in_a_container_the_rule_is_persisted() -> None:
    asked = node(CONNECTED)
    seen = infiniband_host(container=True)
    content = rules(asked, seen)[IPOIB_RULES]
    assert content == rules(asked, infiniband_host())[IPOIB_RULES]
    after = infiniband_host(container=True, sections=ipoib({}, content))
    assert set(verdicts(asked, after).values()) == {Verdict.OK}
    assert done(asked, after) == []
