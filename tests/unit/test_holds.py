"""Holds from what a node shows to what is done; rows of the bug list by number."""

import pytest

from deploys.holds import COMPONENT, actions, pattern, settings
from facts.packages import HOLDS_FILE, SECTIONS, VERSIONLOCK_FILE
from railwright.actions import Action, InstallFile, RemoveFile, Run
from railwright.ledger import PATH as LEDGER
from railwright.ledger import Ledger
from railwright.owned import HEADER
from railwright.schema import EffectsSpec, Node
from railwright.schema.holds import HoldsSpec
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, records

LIB = "libnvidia-compute-460"
OLD, NEW = "460.56-0ubuntu0.20.04.1", "460.73.01-0ubuntu0.20.04.1"
DROP_IN = f'{HEADER}Unattended-Upgrade::Package-Blacklist {{\n    "^{LIB}$";\n}};\n'
LISTED = f'Unattended-Upgrade::Package-Blacklist:: "^{LIB}$";\n'
UPGRADED = f"""\
Start-Date: 2021-04-20  06:25:32
Commandline: /usr/bin/unattended-upgrade
Upgrade: {LIB}:amd64 ({OLD}, {NEW}), libnvidia-decode-460:amd64 ({OLD}, {NEW})
End-Date: 2021-04-20  06:26:01
"""
INSTALL = InstallFile(
    path=HOLDS_FILE,
    content=DROP_IN,
    check=("apt-config", "dump", "APT::Architecture", "-c"),
)
HOLD = Run(command=("apt-mark", "hold", f"{LIB}:amd64"))


def node(version: str | None = None, *others: str) -> Node:
    packages: dict[str, str | None] = {LIB: version, **dict.fromkeys(others)}
    # A package's own scripts may restart its daemon, which is not allowed by itself.
    effects = EffectsSpec(allow={Effect.LIVE, Effect.NEW_PROCESSES, Effect.SERVICE})
    return Node(name="n1", holds=HoldsSpec(packages=packages), effects=effects)


def remember(version: str) -> InstallFile:
    return InstallFile(path=LEDGER, content=Ledger(held={LIB: version}).text)


def dpkg(*packages: tuple[str, str, str]) -> Section:
    lines = "".join(f"{n}\t{v}\t{want}\tinstalled\n" for n, v, want in packages)
    return Section(stdout=f"manager dpkg\n{lines}", rc=0)


def one(version: str = OLD, want: str = "hold") -> Section:
    return dpkg((f"{LIB}:amd64", version, want))


def ok(stdout: str) -> Section:
    return Section(stdout=stdout, rc=0)


def snapshot(files: dict[str, str] | None = None, **more: Section) -> Snapshot:
    """A node with the library held since OLD, but for what is given."""
    given = {HOLDS_FILE: DROP_IN, LEDGER: remember(OLD).content} if files is None else files
    sections = {
        "identity": ok("os=ubuntu\n"),
        "holds_files": ok(records(given)),
        "packages": one(),
        "packages_offered": ok(""),
        "apt_history": ok(""),
        "apt_blacklist": ok(LISTED),
    }
    return Snapshot(host="n1", marker=MARKER, sections={**sections, **more})


def of(key: str, seen: Snapshot, asked: Node) -> Setting:
    return next(setting for setting in settings(asked, seen) if setting.key == key)


def verdicts(seen: Snapshot, asked: Node) -> dict[str, Verdict]:
    return {s.key: verdict(s, asked.effects.allow) for s in settings(asked, seen)}


def done(seen: Snapshot, asked: Node) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def announced(seen: Snapshot, asked: Node) -> set[tuple[str, str | None, str]]:
    allowed = asked.effects.allow
    found = [c for s in settings(asked, seen) for c in changes(s, allowed)]
    return {(c.key, c.before, c.after) for c in found if c.key != HOLDS_FILE}


def test_bug_39_an_unattended_upgrade_of_a_held_library_is_told() -> None:
    seen = snapshot(packages=one(NEW, "install"), apt_history=ok(UPGRADED))
    found = of(f"version {LIB}", seen, node())
    assert verdict(found, node().effects.allow) is Verdict.WRONG
    assert (found.desired, found.persisted.value) == (OLD, NEW)
    assert found.persisted.detail == (
        f"held at {OLD}, is {NEW}, by /usr/bin/unattended-upgrade on 2021-04-20 06:25:32"
    )
    # Which of the two it should be is for the inventory to say.
    assert not found.acts
    assert found.remedy is not None
    assert NEW in found.remedy
    assert announced(seen, node()) == {(f"hold {LIB}", "not held", "held")}
    assert done(seen, node()) == [HOLD]


def test_bug_39_goes_back_where_the_inventory_names_a_version_that_is_offered() -> None:
    offered = ok(f"{LIB} | {OLD} | http://archive.example focal/main amd64 Packages\n")
    seen = snapshot(
        packages=one(NEW, "install"), apt_history=ok(UPGRADED), packages_offered=offered
    )
    assert announced(seen, node(OLD)) == {
        (f"hold {LIB}", "not held", "held"),
        (f"version {LIB}", NEW, OLD),
    }
    install, hold = done(seen, node(OLD))
    assert isinstance(install, Run)
    assert install.command[-1] == f"{LIB}:amd64={OLD}"
    assert {"--allow-downgrades", "--no-remove"} <= set(install.command)
    assert hold == HOLD


def test_bug_39_stays_where_no_repository_has_the_version() -> None:
    offered = ok(f"{LIB} | {NEW} | http://archive.example focal/main amd64 Packages\n")
    seen = snapshot(packages=one(NEW), packages_offered=offered)
    found = of(f"version {LIB}", seen, node(OLD))
    assert found.persisted.detail == f"must be {OLD}, is {NEW}"
    assert found.remedy is not None
    assert "no repository" in found.remedy
    assert done(seen, node(OLD)) == []


def test_bug_39_healthy_twin() -> None:
    # The same upgrade, of a library that is not held; and the held one as it was.
    log = UPGRADED.replace(LIB, "libnvidia-compute-455")
    seen = snapshot(apt_history=ok(log))
    for asked in (node(), node(OLD)):
        assert set(verdicts(seen, asked).values()) == {Verdict.OK}
        assert done(seen, asked) == []


def test_the_effect_must_be_allowed() -> None:
    asked = node(OLD).model_copy(update={"effects": EffectsSpec(allow=frozenset({Effect.LIVE}))})
    offered = ok(f"{LIB} | {OLD} | http://archive.example focal/main amd64 Packages\n")
    seen = snapshot(packages=one(NEW), packages_offered=offered)
    found = of(f"version {LIB}", seen, asked)
    assert (found.effect, found.acts) == (Effect.SERVICE, False)
    assert found.remedy == "allow the effect service"
    assert done(seen, asked) == []


def test_a_bare_node() -> None:
    seen = snapshot(files={}, packages=one(want="install"), apt_blacklist=ok(""))
    assert announced(seen, node()) == {
        (f"hold {LIB}", "not held", "held"),
        (f"blacklist {LIB}", None, "blacklisted"),
    }
    assert done(seen, node()) == [INSTALL, HOLD, remember(OLD)]
    assert set(COMPONENT.sections) >= set(SECTIONS)


def test_settings_and_versions_are_the_same_before_and_after() -> None:
    before = settings(node(), snapshot(files={}, packages=one(want="install")))
    after = settings(node(), snapshot())
    assert [s.key for s in before] == [s.key for s in after]
    assert {s.persisted.value for s in after} >= {OLD, "held", "blacklisted"}
    version = of(f"version {LIB}", snapshot(files={}), node())
    assert (version.persisted.standing, version.persisted.value) == (
        Standing.NOT_APPLICABLE,
        OLD,
    )


def test_nothing_is_held_and_nothing_of_ours_is_there() -> None:
    asked = Node(name="n1")
    bare = snapshot(files={}, packages=ok(""), apt_blacklist=ok(""))
    assert settings(asked, bare) == []
    assert done(bare, asked) == []
    left = snapshot(files={HOLDS_FILE: DROP_IN}, packages=ok(""))
    assert done(left, asked) == [RemoveFile(path=HOLDS_FILE)]


def test_a_package_that_is_not_installed_is_only_blacklisted() -> None:
    seen = snapshot(files={}, packages=ok("manager dpkg\n"), apt_blacklist=ok(""))
    found = verdicts(seen, node())
    assert found[f"hold {LIB}"] is Verdict.NOT_APPLICABLE
    assert f"version {LIB}" not in found
    assert verdicts(seen, node(OLD))[f"version {LIB}"] is Verdict.NOT_APPLICABLE
    assert done(seen, node()) == [INSTALL]


def test_every_architecture_is_held() -> None:
    both = dpkg((f"{LIB}:amd64", OLD, "hold"), (f"{LIB}:i386", OLD, "install"))
    assert verdicts(snapshot(packages=both), node())[f"hold {LIB}"] is Verdict.WRONG
    mixed = dpkg((f"{LIB}:amd64", OLD, "hold"), (f"{LIB}:i386", NEW, "hold"))
    found = of(f"version {LIB}", snapshot(packages=mixed), node())
    assert found.persisted.value == f"{OLD}, {NEW}"


def test_epoch_0_is_no_epoch() -> None:
    seen = snapshot(packages=one(f"0:{OLD}"))
    assert verdicts(seen, node(OLD))[f"version {LIB}"] is Verdict.OK


@pytest.mark.parametrize(
    ("listed", "expected"),
    [
        (LISTED, Verdict.OK),
        (LISTED.replace(f"^{LIB}$", "libnvidia"), Verdict.OK),
        (LISTED.replace(f"^{LIB}$", "nvidia"), Verdict.OVERRIDDEN),
        (LISTED.replace(f"^{LIB}$", "("), Verdict.OVERRIDDEN),
        ("", Verdict.OVERRIDDEN),
    ],
)
def test_blacklist_is_what_apt_makes_of_all_its_files(listed: str, expected: Verdict) -> None:
    seen = snapshot(apt_blacklist=ok(listed))
    assert verdicts(seen, node())[f"blacklist {LIB}"] is expected
    assert done(seen, node()) == []


@pytest.mark.parametrize(
    ("name", "section", "key"),
    [
        ("apt_blacklist", Section(stdout="", stderr="E: Syntax error", rc=100), f"blacklist {LIB}"),
        ("packages", ok(""), f"hold {LIB}"),
    ],
)
def test_what_cannot_be_read_is_never_right(name: str, section: Section, key: str) -> None:
    assert verdicts(snapshot(**{name: section}), node())[key] is Verdict.UNREADABLE


def test_a_history_that_cannot_be_read_names_nobody() -> None:
    capped = Section(stdout=UPGRADED, rc=None, ended="capped")
    seen = snapshot(packages=one(NEW), apt_history=capped, packages_offered=capped)
    found = of(f"version {LIB}", seen, node(OLD))
    assert found.persisted.detail == f"must be {OLD}, is {NEW}"
    assert not found.acts


def test_a_broken_ledger_is_told_and_left() -> None:
    seen = snapshot(files={LEDGER: "{", HOLDS_FILE: DROP_IN}, packages=one(want="install"))
    found = of(LEDGER, seen, node())
    assert verdict(found, node().effects.allow) is Verdict.UNREADABLE
    assert found.remedy is not None
    assert done(seen, node()) == [HOLD]


def test_a_lost_ledger_is_no_drift_and_no_reason_to_act() -> None:
    seen = snapshot(files={HOLDS_FILE: DROP_IN})
    assert not any(v is Verdict.WRONG for v in verdicts(seen, node()).values())
    assert done(seen, node()) == []


def test_the_ledger_remembers_the_first_version_and_what_the_inventory_names() -> None:
    other = {LEDGER: Ledger(held={LIB: OLD, "gone": "1"}).text}
    upgraded = snapshot(files=other, packages=one(NEW, "install"))
    assert remember(OLD) in done(upgraded, node())
    assert remember(NEW) in done(upgraded, node(NEW))


def test_a_name_is_a_regular_expression_of_itself() -> None:
    assert pattern("libstdc++6") == r"^libstdc\+\+6$"
    assert pattern("python3.11-dev") == r"^python3\.11-dev$"


RPM = "manager rpm\nnvidia-driver\t3:550.54.14-1.el9\tinstall\tinstalled\n"


@pytest.mark.parametrize(
    ("lock", "expected"),
    # What dnf 4.14 itself does with each line, asked for an upgrade of a locked package.
    [
        ("nvidia-driver-3:550.54.14-1.el9.*", Verdict.OK),
        ("nvidia-driver-550.54.14-1.el9.*", Verdict.OK),
        ("nvidia-driver-550.54.14-1.el9.x86_64", Verdict.OK),
        ("nvidia-driver-3:550.54.14-1.el9", Verdict.OK),
        ("nvidia-driver-3:550.54.14", Verdict.OK),
        ("nvidia-driver-550.54.14", Verdict.OK),
        ("nvidia-driver", Verdict.WRONG),
        ("nvidia-driver.x86_64", Verdict.WRONG),
        # As yum had it.
        ("3:nvidia-driver-550.54.14-1.el9.*", Verdict.WRONG),
        ("nvidia-driver-3:560.35.03-1.el9.*", Verdict.WRONG),
        ("nvidia-driver-3:550.54.14-1.el9.*\nnvidia-driver-3:560.35.03-1.el9.*", Verdict.WRONG),
        ("nvidia-driver-3:550.54.14-1.el9.*\nnvidia-driver", Verdict.WRONG),
        ("nvidia-driver-3:550.54.14-1.el9.*  # why", Verdict.WRONG),
        ("# nvidia-driver-3:550.54.14-1.el9.*", Verdict.WRONG),
        ("!nvidia-driver-3:550.54.14-1.el9.*", Verdict.WRONG),
        ("nvidia-driver-libs-3:550.54.14-1.el9.*", Verdict.WRONG),
        ("", Verdict.WRONG),
    ],
)
def test_versionlock(lock: str, expected: Verdict) -> None:
    asked = Node(name="n1", holds=HoldsSpec(packages={"nvidia-driver": None}))
    files = {VERSIONLOCK_FILE: f"# dnf\n{lock}\n"}
    seen = snapshot(files=files, packages=ok(RPM), apt_blacklist=ok(""))
    found = verdicts(seen, asked)
    assert set(found) == {"hold nvidia-driver", "version nvidia-driver"}
    assert found["hold nvidia-driver"] is expected
    lock = ("dnf", "-q", "-y", "versionlock")
    again = [Run(command=(*lock, what, "nvidia-driver")) for what in ("delete", "add")]
    ledger = InstallFile(
        path=LEDGER, content=Ledger(held={"nvidia-driver": "3:550.54.14-1.el9"}).text
    )
    assert done(seen, asked) == ([] if expected is Verdict.OK else [*again, ledger])
