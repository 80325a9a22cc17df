"""What the huge pages component decides and does."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploys.hugepages import COMPONENT, actions, settings
from facts.hugepages import SCRIPT_PATH, UNIT, unit_requests
from railwright.actions import Action, InstallFile, RemoveFile, Run, RunScript, render
from railwright.converge import settings_of, unmet
from railwright.files import FileRecord
from railwright.schema import EffectsSpec, HugepagePool, HugepagesSpec, Node
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, enablement, records
from tests.unit.units import unit

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
START = UNIT.started_key
ENABLE = UNIT.key


def node(allow: frozenset[Effect] = LIVE, **pools: HugepagePool) -> Node:
    """``two`` is the pool of 2M, ``one`` that of 1G."""
    sizes = {"two": "2M", "one": "1G"}
    return Node(
        name="n1",
        hugepages=HugepagesSpec.model_validate({"pools": {sizes[k]: p for k, p in pools.items()}}),
        effects=EffectsSpec(allow=allow),
    )


def boot(**per_node: int) -> HugepagePool:
    return HugepagePool(per_node={int(k[1:]): v for k, v in per_node.items()})


def runtime(**per_node: int) -> HugepagePool:
    return HugepagePool(per_node={int(k[1:]): v for k, v in per_node.items()}, allocate="runtime")


def host(
    pages: Mapping[tuple[int, int], int] | None = None,
    files: Mapping[str, str] | None = None,
    enabled: bool = False,
    state: str = "inactive",
    surplus: int = 0,
    container: bool = False,
) -> Snapshot:
    """Two nodes of 8 GiB with pages by (node, size); node 1 is the more fragmented one."""
    counts = {(n, s): 0 for n in (0, 1) for s in (2048, 1048576)} | dict(pages or {})
    lines = ["page_size=4096"]
    lines += [
        "Node 0, zone   Normal" + "      9" * 9 + "    100    900",
        "Node 1, zone   Normal" + "      9" * 9 + "     50     30",
    ]
    for n in (0, 1):
        lines.append(f"node{n}/meminfo:Node {n} MemTotal:        8388608 kB")
        lines.append(f"node{n}/meminfo:Node {n} MemFree:         4194304 kB")
    for (n, size), count in counts.items():
        pool = f"node{n}/hugepages/hugepages-{size}kB"
        lines += [f"{pool}/nr_hugepages:{count}", f"{pool}/surplus_hugepages:{surplus}"]
    there = records(files or {}) + (enablement(UNIT) if enabled else "")
    identity = "kernel=6.1.0\n" + ("container=podman\n" if container else "")
    return Snapshot(
        host="n1",
        marker=MARKER,
        sections={
            "identity": Section(stdout=identity, rc=0),
            "hugepages": Section(stdout="\n".join(lines) + "\n", rc=0),
            "hugepages_files": Section(stdout=there, rc=0),
            "hugepages_unit": Section(stdout=unit(UNIT.name, active=state), rc=0),
        },
    )


def found(node: Node, snapshot: Snapshot) -> dict[str, Setting]:
    return {setting.key: setting for setting in settings(node, snapshot)}


def done(node: Node, snapshot: Snapshot) -> list[Action]:
    return list(actions(node, snapshot, settings(node, snapshot)))


def installed(node: Node, snapshot: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(node, snapshot) if isinstance(a, InstallFile)}


def converged(node: Node, **more: Any) -> Snapshot:
    """The host after a run: our files as the run installs them, the unit enabled and active."""
    files = installed(node, host())
    pages = {
        (number, {"2M": 2048, "1G": 1048576}[size]): count
        for size, pool in node.hugepages.pools.items()
        for number, count in pool.per_node.items()
    }
    values: dict[str, object] = {
        "pages": pages,
        "files": files,
        "enabled": bool(files),
        "state": "active" if files else "inactive",
    }
    return host(**{**values, **more})


def test_nothing_asked_for_and_nothing_of_ours_is_no_setting() -> None:
    bare = host()
    assert settings(node(), bare) == []
    assert done(node(), bare) == []


ASKED = [
    node(two=boot(n0=32, n1=64)),
    node(two=runtime(n0=32, n1=64)),
    node(two=runtime(n0=32), one=runtime(n1=2)),
    node(two=boot(n0=0)),
]


@pytest.mark.parametrize("asked", ASKED)
def test_a_converged_host_is_ok_and_left_alone(asked: Node) -> None:
    snapshot = converged(asked)
    assert {verdict(s, LIVE) for s in settings(asked, snapshot)} <= {
        Verdict.OK,
        Verdict.NOT_APPLICABLE,
    }
    assert done(asked, snapshot) == []


@pytest.mark.parametrize("asked", ASKED[:3])
def test_what_is_announced_of_a_bare_host_is_what_the_run_makes_of_it(asked: Node) -> None:
    before, after = found(asked, host()), found(asked, converged(asked))
    for key, setting in before.items():
        expected = changes(setting, LIVE)
        assert unmet(after.values(), key, expected) == []
        for change in expected:
            assert getattr(setting, change.state).value == change.before
            assert getattr(after[key], change.state).value == change.after
        announced = {change.state for change in expected}
        for state in {"persisted", "running"} - announced:
            assert getattr(setting, state).value == getattr(after[key], state).value


def test_row_29_a_node_that_is_short_is_told_with_its_fragmentation() -> None:
    asked = node(two=runtime(n0=2048, n1=4096))
    snapshot = converged(asked, pages={(0, 2048): 2048, (1, 2048): 3738})
    short = found(asked, snapshot)["2M node1"]
    assert verdict(short, LIVE) is Verdict.NOT_RUNNING
    assert short.running.value == "3738"
    # Blocks of order 9 and 10: 50 * 2 MiB + 30 * 4 MiB.
    assert short.running.detail == (
        "asked 4096, has 3738; node 1 has 4096 MiB free, 220 MiB of it in blocks of 2M or larger"
    )
    assert short.remedy is not None
    assert "allocate='boot'" in short.remedy
    # The run tries again; where it stays short that is said, and not taken for done.
    assert done(asked, snapshot) == [Run(command=("systemctl", "restart", UNIT.name))]
    again = settings(asked, snapshot)
    assert unmet(again, "2M node1", changes(short, LIVE)) == [
        f"hugepages 2M node1: running 3738 → 4096: is 3738 ({short.running.detail})"
    ]


def test_row_29_twin_the_other_node_and_a_full_host_give_no_verdict() -> None:
    asked = node(two=runtime(n0=2048, n1=4096))
    short = converged(asked, pages={(0, 2048): 2048, (1, 2048): 3738})
    assert verdict(found(asked, short)["2M node0"], LIVE) is Verdict.OK
    assert verdict(found(asked, converged(asked))["2M node1"], LIVE) is Verdict.OK


def test_too_many_pages_are_lowered() -> None:
    asked = node(two=boot(n0=32))
    snapshot = host({(0, 2048): 64})
    setting = found(asked, snapshot)["2M node0"]
    assert (setting.running.standing, setting.running.detail) == (
        Standing.WRONG,
        "asked 32, has 64",
    )
    assert setting.remedy is None
    (action,) = done(asked, snapshot)
    assert isinstance(action, RunScript)
    assert action.arguments == ("2M:0=32",)
    assert "failed: railwright-hugepages 2M:0=32" in render([action])


def test_surplus_pages_are_not_counted_and_told() -> None:
    snapshot = host({(0, 2048): 38}, surplus=6)
    setting = found(node(two=boot(n0=32)), snapshot)["2M node0"]
    assert setting.running.standing is Standing.RIGHT
    assert setting.running.detail == "6 surplus pages besides"


def test_pages_of_1g_at_boot_wait_for_a_reboot() -> None:
    asked = node(one=boot(n0=2))
    setting = found(asked, host())["1G node0"]
    assert verdict(setting, LIVE) is Verdict.PENDING
    assert setting.effect is Effect.REBOOT
    assert done(asked, host()) == []


def test_pages_of_1g_at_runtime_are_tried() -> None:
    setting = found(node(one=runtime(n0=2)), host())["1G node0"]
    assert (setting.effect, verdict(setting, LIVE)) == (Effect.LIVE, Verdict.WRONG)


LACKS = [
    (node(two=runtime(n7=8)), "2M node7", "no NUMA node 7", "it has the nodes 0, 1"),
    (node(two=boot(n7=8)), "2M node7", "no NUMA node 7", "it has the nodes 0, 1"),
    (node(one=boot(n0=9)), "1G node0", "are more than node 0 has", "it has 8192 MiB in all"),
]


@pytest.mark.parametrize(("asked", "key", "detail", "remedy"), LACKS)
def test_what_the_host_lacks_is_drift_that_no_run_acts_on(
    asked: Node, key: str, detail: str, remedy: str
) -> None:
    setting = found(asked, host())[key]
    every = frozenset(Effect)
    assert verdict(setting, every) is Verdict.NOT_RUNNING
    assert detail in (setting.running.detail or "")
    assert setting.remedy == remedy
    assert changes(setting, every) == []
    assert done(asked, host()) == []


def test_a_page_size_that_the_host_lacks() -> None:
    bare = host()
    text = bare.text("hugepages").replace("1048576kB", "524288kB")
    small = Section(stdout=text, rc=0)
    snapshot = bare.model_copy(update={"sections": {**bare.sections, "hugepages": small}})
    setting = found(node(one=boot(n0=1)), snapshot)["1G node0"]
    assert setting.running.detail == "this host has no pages of 1G"
    assert setting.remedy == "it has pages of: 2M, 524288K (1G needs the CPU flag pdpe1gb)"
    assert not setting.acts


def test_the_unit_asks_for_what_the_host_can_give() -> None:
    asked = node(two=runtime(n0=32, n7=8))
    unit = installed(asked, host())[UNIT.path]
    assert f"ExecStart={SCRIPT_PATH} 2M:0=32\n" in unit
    record = FileRecord(path=UNIT.path, kind="file", content=unit)
    assert unit_requests([record]) == {("2M", 0): 32}


def test_the_unit_is_enabled_after_it_is_read_and_started() -> None:
    commands = [a.command for a in done(ASKED[1], host()) if isinstance(a, Run)]
    assert commands == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", UNIT.name),
        ("systemctl", "restart", UNIT.name),
    ]


def test_nothing_is_started_where_that_is_not_allowed() -> None:
    asked = node(allow=frozenset(), two=runtime(n0=32))
    commands = [a.command for a in done(asked, host()) if isinstance(a, Run)]
    assert ("systemctl", "enable", UNIT.name) in commands
    assert ("systemctl", "restart", UNIT.name) not in commands


def test_a_unit_that_is_disabled_is_enabled_alone() -> None:
    asked = ASKED[1]
    snapshot = converged(asked, enabled=False)
    assert verdict(found(asked, snapshot)[ENABLE], LIVE) is Verdict.WRONG
    assert done(asked, snapshot) == [Run(command=("systemctl", "enable", UNIT.name))]


def test_a_unit_that_failed_for_want_of_pages_is_degraded() -> None:
    asked = ASKED[1]
    snapshot = converged(asked, pages={(0, 2048): 32, (1, 2048): 5}, state="failed")
    setting = found(asked, snapshot)[START]
    assert verdict(setting, LIVE) is Verdict.DEGRADED
    assert setting.running.detail == "it could not set 2M node1"


def test_a_unit_that_failed_and_has_its_pages_since_is_started() -> None:
    asked = ASKED[1]
    snapshot = converged(asked, state="failed")
    assert verdict(found(asked, snapshot)[START], LIVE) is Verdict.NOT_RUNNING
    assert done(asked, snapshot) == [Run(command=("systemctl", "restart", UNIT.name))]


def test_a_unit_whose_state_cannot_be_read_is_not_ok() -> None:
    asked = ASKED[1]
    mute = Section(stdout="", stderr="Failed to connect to bus", rc=1)
    snapshot = converged(asked)
    snapshot = snapshot.model_copy(
        update={"sections": {**snapshot.sections, "hugepages_unit": mute}}
    )
    setting = found(asked, snapshot)[START]
    assert verdict(setting, LIVE) is Verdict.UNREADABLE
    assert setting.running.detail == "systemctl show: Failed to connect to bus"


def test_the_unit_goes_when_no_pool_needs_it() -> None:
    files = installed(ASKED[1], host())
    snapshot = host(files=files, enabled=True, state="active")
    assert {s.key for s in settings(node(), snapshot)} == {UNIT.path, SCRIPT_PATH, ENABLE}
    assert done(node(), snapshot) == [
        Run(command=("systemctl", "disable", "--now", UNIT.name)),
        RemoveFile(path=UNIT.link),
        RemoveFile(path=UNIT.path),
        RemoveFile(path=SCRIPT_PATH),
        Run(command=("systemctl", "daemon-reload")),
    ]
    # All three are gone after it, which is what was announced.
    for setting in settings(node(), snapshot):
        assert unmet([], setting.key, changes(setting, LIVE)) == []


def test_in_a_container_the_unit_is_persisted_and_nothing_is_reserved() -> None:
    asked = node(two=runtime(n0=32, n7=8))
    snapshot = host(container=True)
    assert not [
        c for s in settings(asked, snapshot) for c in changes(s, LIVE) if c.state == "running"
    ]
    commands = [a.command for a in done(asked, snapshot) if isinstance(a, Run)]
    assert ("systemctl", "restart", UNIT.name) not in commands
    # What the hosts of the image have is not known yet.
    assert "2M:0=32,7=8" in installed(asked, snapshot)[UNIT.path]
    assert "ConditionVirtualization=!container" in installed(asked, snapshot)[UNIT.path]
    assert found(asked, snapshot)["2M node0"].running.standing is Standing.NOT_APPLICABLE


def test_a_probe_that_was_cut_is_unreadable() -> None:
    cut = host()
    sections = {**cut.sections, "hugepages": Section(stdout="page_si", rc=None, ended="deadline")}
    (setting,) = settings_of(COMPONENT, ASKED[0], cut.model_copy(update={"sections": sections}))
    assert verdict(setting, LIVE) is Verdict.UNREADABLE


@given(
    st.dictionaries(st.integers(0, 1), st.integers(0, 4096), min_size=1),
    st.integers(0, 4096),
    st.integers(0, 4096),
    st.sampled_from(["boot", "runtime"]),
)
def test_a_run_acts_just_where_it_announces(
    per_node: dict[int, int], zero: int, one: int, allocate: str
) -> None:
    pool = HugepagePool.model_validate({"per_node": per_node, "allocate": allocate})
    asked = node(two=pool)
    snapshot = converged(asked, pages={(0, 2048): zero, (1, 2048): one})
    announced = {c.key for s in settings(asked, snapshot) for c in changes(s, LIVE)}
    has = {0: zero, 1: one}
    assert announced == {f"2M node{n}" for n, count in per_node.items() if has[n] != count}
    assert bool(done(asked, snapshot)) == bool(announced)
