"""Time from what a node shows to what is done."""

import pytest

from deploys.time import COMPONENT, SOURCES_FILE, actions, settings
from facts.chrony import SECTIONS
from railwright.actions import Action, InstallFile, RemoveFile, Run
from railwright.owned import HEADER
from railwright.schema import EffectsSpec, Node
from railwright.schema.time import TimeSource, TimeSpec
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, records
from tests.unit.units import unit

MAIN = "/etc/chrony/chrony.conf"
DEBIAN = "pool 2.debian.pool.ntp.org iburst\nsourcedir /etc/chrony/sources.d\n"
RHEL = "pool 2.rhel.pool.ntp.org iburst\nsourcedir /run/chrony-dhcp\n"
SOURCE = "server 10.0.0.1 port 123 iburst"
NODE = Node(name="n1", time=TimeSpec(sources={"10.0.0.1": TimeSource()}))
NO_TIME = Node(name="n1")
FOLLOWS = (
    "0A000001,10.0.0.1,6,1796028058.2,0.000003458,0.00004,0.00004,0.000,2.610,1.000,0.002,0.3,"
    "2.1,Normal\n"
)
STARTING = "00000000,,0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,1.0,1.0,0.0,Not synchronised\n"
LISTED = "^,*,10.0.0.1,5,6,17,39,0.0,0.0,0.0\n"
POOL = "^,?,2.debian.pool.ntp.org,0,6,0,4294967295,0.0,0.0,0.0\n"
DOWN = Section(stdout="506 Cannot talk to daemon\n", rc=1)
RELOAD = Run(command=("chronyc", "reload", "sources"))
WAIT = Run(command=("sh", "-c", "chronyc -n waitsync 15 0.01 0 1 >/dev/null || :"))
ENABLE = Run(command=("systemctl", "enable", "chrony.service"))
START = Run(command=("systemctl", "start", "chrony.service"))
INSTALL = InstallFile(path=SOURCES_FILE, content=f"{HEADER}{SOURCE}\n")


def ok(stdout: str) -> Section:
    return Section(stdout=stdout, rc=0)


def snapshot(
    files: dict[str, str] | None = None,
    installed: str = "installed=yes\ninstaller=apt-get\n",
    units: str = unit("chrony.service"),
    identity: str = "os=debian\n",
    **more: Section,
) -> Snapshot:
    """A node as the inventory wants it, but for what is given."""
    given = {MAIN: DEBIAN, SOURCES_FILE: INSTALL.content} if files is None else files
    sections = {
        "identity": ok(identity),
        "chrony_files": ok(records(given)),
        "chrony_installed": ok(installed),
        "chrony_units": ok(units),
        "chrony_tracking": ok(FOLLOWS),
        "chrony_sources": ok(LISTED + POOL),
    }
    return Snapshot(host="n1", marker=MARKER, sections={**sections, **more})


BARE = {"chrony_tracking": ok(STARTING), "chrony_sources": ok(POOL)}
STOPPED = {"chrony_tracking": DOWN, "chrony_sources": DOWN}
CONTAINER = "container=podman\n"
GONE = unit("chrony.service", "inactive", "", "not-found")


def of(key: str, seen: Snapshot, node: Node = NODE) -> Setting:
    return next(setting for setting in settings(node, seen) if setting.key == key)


def verdicts(seen: Snapshot, node: Node = NODE) -> dict[str, Verdict]:
    return {s.key: verdict(s, node.effects.allow) for s in settings(node, seen)}


def done(seen: Snapshot, node: Node = NODE) -> list[Action]:
    return list(actions(node, seen, settings(node, seen)))


def announced(seen: Snapshot, node: Node = NODE) -> set[tuple[str, str]]:
    allowed = node.effects.allow
    return {(c.key, c.state) for s in settings(node, seen) for c in changes(s, allowed)}


def test_a_node_that_is_right_is_left_alone() -> None:
    found = verdicts(snapshot())
    assert set(found) == {
        SOURCES_FILE,
        "package chrony",
        "source 10.0.0.1",
        "service",
        "synchronised",
    }
    assert set(found.values()) == {Verdict.OK}
    assert done(snapshot()) == []
    assert COMPONENT.sections == SECTIONS


def test_without_sources_the_time_is_left_alone() -> None:
    seen = snapshot(files={MAIN: DEBIAN})
    assert settings(NO_TIME, seen) == []
    assert done(seen, NO_TIME) == []


def test_our_file_goes_with_the_last_source() -> None:
    assert announced(snapshot(), NO_TIME) == {(SOURCES_FILE, "persisted")}
    assert done(snapshot(), NO_TIME) == [RemoveFile(path=SOURCES_FILE), RELOAD]
    # There is nobody to be told.
    stopped = snapshot(**STOPPED)
    assert done(stopped, NO_TIME) == [RemoveFile(path=SOURCES_FILE)]


def test_a_bare_node() -> None:
    seen = snapshot(files={MAIN: DEBIAN}, **BARE)
    assert announced(seen) == {
        (SOURCES_FILE, "persisted"),
        ("source 10.0.0.1", "persisted"),
        ("source 10.0.0.1", "running"),
    }
    assert verdicts(seen)["synchronised"] is Verdict.DEGRADED
    assert done(seen) == [INSTALL, RELOAD, WAIT]


def test_what_is_announced_is_what_comes_true() -> None:
    bare, after = snapshot(files={MAIN: DEBIAN}, **BARE), snapshot()
    for setting in settings(NODE, bare):
        found = of(setting.key, after)
        for change in changes(setting, NODE.effects.allow):
            state = found.persisted if change.state == "persisted" else found.running
            assert (state.standing, state.value) == (Standing.RIGHT, change.after)


def test_chrony_is_installed_enabled_and_started() -> None:
    seen = snapshot(files={}, installed="installer=apt-get\n", units=GONE, **STOPPED)
    assert announced(seen) == {
        (SOURCES_FILE, "persisted"),
        ("package chrony", "persisted"),
        ("source 10.0.0.1", "persisted"),
        ("source 10.0.0.1", "running"),
        ("service", "persisted"),
        ("service", "running"),
    }
    first, *rest = done(seen)
    assert isinstance(first, Run)
    assert first.command[3:6] == ("apt-get", "install", "-qq")
    assert first.command[-1] == "chrony"
    assert rest == [INSTALL, ENABLE, START, RELOAD, WAIT]


@pytest.mark.parametrize(
    ("active", "file", "expected"),
    [
        ("inactive", "enabled", [START]),
        ("failed", "enabled", [START]),
        ("inactive", "disabled", [ENABLE, START]),
        ("active", "disabled", [ENABLE]),
        ("active", "enabled-runtime", [ENABLE]),
        ("active", "enabled", []),
    ],
)
def test_service(active: str, file: str, expected: list[Run]) -> None:
    down = {} if active == "active" else STOPPED
    seen = snapshot(units=unit("chrony.service", active, file), **down)
    # What starts reads its sources; they are reloaded where they were missing.
    assert [a for a in done(seen) if a not in (RELOAD, WAIT)] == expected
    assert (verdicts(seen)["service"] is Verdict.OK) == (expected == [])


def test_nothing_live_is_done_where_live_is_not_allowed() -> None:
    node = NODE.model_copy(update={"effects": EffectsSpec(allow=frozenset({Effect.REBOOT}))})
    seen = snapshot(files={MAIN: DEBIAN}, units=unit("chrony.service", "inactive"), **STOPPED)
    assert done(seen, node) == [INSTALL]
    assert verdicts(snapshot(**BARE), node)["source 10.0.0.1"] is Verdict.PENDING


def test_a_masked_service_is_a_persons_will() -> None:
    masked = unit("chrony.service", "inactive", "masked", "masked")
    seen = snapshot(units=masked, **STOPPED)
    service = of("service", seen)
    assert verdict(service, NODE.effects.allow) is Verdict.OVERRIDDEN
    assert service.persisted.decider == "/etc/systemd/system/chrony.service"
    assert service.remedy == "systemctl unmask chrony.service"
    assert verdicts(seen)["source 10.0.0.1"] is Verdict.PENDING
    assert done(seen) == []


def test_another_line_for_the_address_wins_and_is_named() -> None:
    main = f"{DEBIAN}server 10.0.0.1 port 1123\n"
    seen = snapshot(files={MAIN: main, SOURCES_FILE: INSTALL.content})
    source = of("source 10.0.0.1", seen)
    assert verdict(source, NODE.effects.allow) is Verdict.OVERRIDDEN
    assert source.persisted.value == "server 10.0.0.1 port 1123"
    assert source.persisted.decider == f"{MAIN}:3"
    assert source.remedy is not None
    assert f"{MAIN}:3" in source.remedy
    assert done(seen) == []


def test_the_same_line_elsewhere_is_as_good() -> None:
    seen = snapshot(files={MAIN: f"{DEBIAN}server 10.0.0.1 iburst\n"})
    assert of("source 10.0.0.1", seen).persisted.decider == f"{MAIN}:3"
    assert announced(seen) == {(SOURCES_FILE, "persisted")}


def test_other_options_in_our_file_are_put_right() -> None:
    seen = snapshot(files={MAIN: DEBIAN, SOURCES_FILE: f"{HEADER}server 10.0.0.1\n"})
    assert announced(seen) == {(SOURCES_FILE, "persisted"), ("source 10.0.0.1", "persisted")}
    assert of("source 10.0.0.1", seen).persisted.value == "server 10.0.0.1 port 123"
    assert done(seen) == [INSTALL, RELOAD, WAIT]


def test_a_source_that_chronyd_was_not_told_is_reloaded() -> None:
    seen = snapshot(chrony_sources=ok(POOL))
    assert announced(seen) == {("source 10.0.0.1", "running")}
    assert done(seen) == [RELOAD, WAIT]


def test_rhel_says_what_a_person_must_add() -> None:
    seen = snapshot(
        files={"/etc/chrony.conf": RHEL},
        installed="installed=yes\ninstaller=dnf\n",
        units=unit("chronyd.service"),
        **BARE,
    )
    source = of("source 10.0.0.1", seen)
    assert verdict(source, NODE.effects.allow) is Verdict.OVERRIDDEN
    assert source.persisted.decider == "/etc/chrony.conf"
    assert source.remedy == "add the line 'sourcedir /etc/chrony/sources.d' to /etc/chrony.conf"
    assert announced(seen) == {(SOURCES_FILE, "persisted")}
    assert verdicts(seen)["service"] is Verdict.OK


def test_rhel_installs_by_dnf() -> None:
    seen = snapshot(files={}, installed="installer=dnf\n", units=GONE, **STOPPED)
    assert done(seen)[0] == Run(command=("dnf", "install", "-y", "chrony"))
    assert Run(command=("systemctl", "enable", "chronyd.service")) in done(seen)


def test_no_installer_is_told() -> None:
    package = of("package chrony", snapshot(files={}, installed="", units=GONE, **STOPPED))
    assert (package.acts, package.remedy) == (False, "install chrony")


def test_a_container_has_no_clock_of_its_own() -> None:
    seen = snapshot(files={MAIN: DEBIAN}, identity=CONTAINER, **BARE)
    assert done(seen) == [INSTALL]
    assert announced(seen) == {(SOURCES_FILE, "persisted"), ("source 10.0.0.1", "persisted")}
    assert of("synchronised", seen).running.standing is Standing.NOT_APPLICABLE
    disabled = snapshot(identity=CONTAINER, units=unit("chrony.service", "inactive", "disabled"))
    assert done(disabled) == [ENABLE]


@pytest.mark.parametrize(
    ("tracking", "standing", "value"),
    [
        (ok(FOLLOWS), Standing.RIGHT, "within 10 ms"),
        (ok(FOLLOWS.replace("0.000003458", "-0.010")), Standing.RIGHT, "within 10 ms"),
        (ok(FOLLOWS.replace("0.000003458", "-0.0101")), Standing.DEGRADED, "off by +10.100 ms"),
        (ok(FOLLOWS.replace("0.000003458", "0.25")), Standing.DEGRADED, "off by -250.000 ms"),
        (ok(STARTING), Standing.DEGRADED, "not synchronised"),
        (ok(FOLLOWS.replace("0A000001,10.0.0.1", "7F7F0101,")), Standing.DEGRADED, None),
        (DOWN, Standing.ABSENT, None),
        (Section(stdout="501 Not authorised\n", rc=1), Standing.UNREADABLE, None),
        (Section(stdout="", rc=1), Standing.UNREADABLE, None),
        (ok("Segmentation fault\n"), Standing.UNREADABLE, None),
        (Section(stdout=FOLLOWS, rc=None, ended="deadline"), Standing.UNREADABLE, None),
    ],
)
def test_clock(tracking: Section, standing: Standing, value: str | None) -> None:
    setting = of("synchronised", snapshot(chrony_tracking=tracking))
    assert setting.running.standing is standing
    assert value is None or setting.running.value == value
    assert not setting.acts


def test_a_clock_that_follows_itself_says_so() -> None:
    seen = snapshot(chrony_tracking=ok(FOLLOWS.replace("0A000001,10.0.0.1", "7F7F0101,")))
    detail = of("synchronised", seen).running.detail
    assert detail is not None
    assert "follows its own clock, stratum 6" in detail


def test_a_second_daemon_is_a_conflict() -> None:
    both = f"{unit('chrony.service')}\n{unit('systemd-timesyncd.service')}"
    rival = of("rival systemd-timesyncd.service", snapshot(units=both))
    assert verdict(rival, NODE.effects.allow) is Verdict.NOT_RUNNING
    assert rival.remedy is not None
    assert not rival.acts
    idle = f"{unit('chrony.service')}\n{unit('systemd-timesyncd.service', 'inactive')}"
    assert set(verdicts(snapshot(units=idle))) == set(verdicts(snapshot()))


@pytest.mark.parametrize(
    ("name", "key"),
    [("chrony_units", "service"), ("chrony_sources", "source 10.0.0.1")],
)
def test_what_cannot_be_read_is_never_right(name: str, key: str) -> None:
    failed = Section(stdout="", stderr="Failed to connect to bus: Host is down", rc=1)
    setting = of(key, snapshot(**{name: failed}))
    assert verdict(setting, NODE.effects.allow) is Verdict.UNREADABLE
    assert setting.running.detail is not None
    assert "Host is down" in setting.running.detail


def test_names_and_options() -> None:
    sources = {
        "NTP.example": TimeSource(pool=True, iburst=False, prefer=True, port=1123),
        "2001:DB8::1": TimeSource(),
    }
    node = Node(name="n1", time=TimeSpec(sources=sources))
    [install, *_] = done(snapshot(), node)
    assert isinstance(install, InstallFile)
    assert install.content == (
        f"{HEADER}server 2001:db8::1 port 123 iburst\npool ntp.example port 1123 prefer\n"
    )
    listed = ok("^,*,2001:db8::1,5,6,17,39,0.0,0.0,0.0\n^,-,ntp.example,5,6,17,39,0.0,0.0,0.0\n")
    after = snapshot(files={MAIN: DEBIAN, SOURCES_FILE: install.content}, chrony_sources=listed)
    assert set(verdicts(after, node).values()) == {Verdict.OK}
