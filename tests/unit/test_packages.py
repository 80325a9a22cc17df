"""What is decided of packages, and the one transaction, on recorded nodes."""

from pathlib import Path

from deploys.packages import COMPONENT
from facts.packages import parse_packages
from facts.repositories import Audit
from railwright.actions import InstallFile, RunScript
from railwright.converge import unmet
from railwright.focus import focus_of
from railwright.owned import HEADER
from railwright.resolve.packages import Seen, Wanted, package_settings, transaction
from railwright.resolve.repositories import Sources
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec
from railwright.settings import Effect, Standing, Verdict, changes
from railwright.snapshot import Section
from tests.unit.packages_host import (
    DOCA,
    DRIVER,
    GDS,
    INSTALL,
    KEY,
    LIVE,
    OFED,
    PIN,
    SERVICE,
    SOURCE,
    VERSIONS,
    doca,
    done,
    dpkg,
    drivers,
    found,
    host,
    node,
    ok,
    ours,
    pin,
    verdicts,
    words,
)
from tests.unit.test_openpgp import ARMOURED


def test_nothing_asked_for_and_nothing_of_ours_is_no_setting() -> None:
    assert found(DriverSet(), host()) == {}
    assert done(DriverSet(), host()) == []
    # What somebody else's sources say, and how dpkg is, is then no matter.
    broken = ok("manager dpkg\nfailed\n")
    seen = host(entries="unreadable /etc/apt/sources.list\n", packages_audit=broken)
    assert found(DriverSet(), seen) == {}


def test_a_bare_node_gets_key_pin_and_source_and_then_one_transaction_in_order(key: str) -> None:
    asked = drivers(doca(key))
    *files, script = done(asked, host())
    assert files == [
        InstallFile(path=KEY, content=ARMOURED.decode()),
        InstallFile(path=PIN, content=pin()),
        InstallFile(
            path=SOURCE,
            content=f"{HEADER}Types: deb\nURIs: {DOCA}\nSuites: ./\nSigned-By: {KEY}\n",
        ),
    ]
    assert isinstance(script, RunScript)
    # OFED, GPU driver, GDS, however the inventory has them.
    assert script.arguments == (f"source:{SOURCE}", "refresh", *INSTALL)


def test_what_is_announced_of_a_bare_node_is_what_the_run_makes_of_it(key: str) -> None:
    asked = drivers(doca(key))
    after = found(asked, host(ours(doca(key)), VERSIONS))
    for name, setting in found(asked, host()).items():
        expected = changes(setting, LIVE)
        assert expected or name == "dpkg"
        assert unmet(after.values(), name, expected) == []


def test_a_converged_node_is_ok_and_left_alone_and_nobody_is_asked_for_the_key(key: str) -> None:
    Path(key).unlink()
    seen = host(ours(doca(key)), VERSIONS)
    assert set(verdicts(drivers(doca(key)), seen).values()) == {Verdict.OK}
    assert done(drivers(doca(key)), seen) == []
    assert {section.name for section in COMPONENT.sections} == {*seen.sections} - {"identity"}


def test_a_container_is_as_any_node(key: str) -> None:
    inside = ok("container=podman\n")
    seen = host(identity=inside)
    assert words(drivers(doca(key)), seen)[-3:] == INSTALL
    settled = host(ours(doca(key)), VERSIONS, identity=inside)
    assert {s.running.standing for s in found(drivers(doca(key)), settled).values()} == {
        Standing.NOT_APPLICABLE
    }
    assert set(verdicts(drivers(doca(key)), settled).values()) == {Verdict.OK}


NEWER = {**VERSIONS, DRIVER: "580.105.08-0ubuntu1"}


def test_another_version_waits_for_the_effect_and_all_wait_together(key: str) -> None:
    fresh = {name: version for name, version in VERSIONS.items() if name != GDS}
    seen = host(ours(doca(key)), fresh, offered=NEWER)
    asked = drivers(doca(key), NEWER)
    driver, gds = (found(asked, seen)[f"package {name}"] for name in (DRIVER, GDS))
    assert (driver.effect, driver.acts) == (Effect.SERVICE, False)
    assert (gds.effect, gds.acts) == (Effect.LIVE, False)
    assert driver.remedy == (f"no package is changed: allow the effect service: package {DRIVER}")
    assert done(asked, seen) == []
    # Nothing is fetched anew either: the source is right, and what is asked for is offered.
    assert words(asked, seen, SERVICE) == (
        f"install:{DRIVER}={NEWER[DRIVER]}",
        f"install:{GDS}={NEWER[GDS]}",
    )


def test_a_version_that_nothing_offers_is_told_and_looked_for_anew(key: str) -> None:
    seen = host(ours(doca(key)), VERSIONS, offered=VERSIONS)
    asked = drivers(doca(key), NEWER)
    setting = found(asked, seen, SERVICE)[f"package {DRIVER}"]
    assert setting.persisted.detail == (
        f"no repository is known to offer {NEWER[DRIVER]}; offered: {VERSIONS[DRIVER]}"
    )
    assert setting.remedy is not None
    assert words(asked, seen, SERVICE) == (
        f"source:{SOURCE}",
        "refresh",
        f"install:{DRIVER}={NEWER[DRIVER]}",
    )
    unknown = host(ours(doca(key)), VERSIONS, packages_offered=Section(stdout="", rc=100))
    assert found(asked, unknown, SERVICE)[f"package {DRIVER}"].persisted.detail is None
    assert "refresh" in words(asked, unknown, SERVICE)


FABRIC = "nvidia-fabricmanager-530"


PAIR = {"nvidia-driver-530": "530.41.03-0ubuntu0.22.04.1", FABRIC: "530.41.03-1"}


def test_bug_38_a_fabric_manager_of_another_patch_level_is_put_right(key: str) -> None:
    driver = GpuDriverSpec(version="530.41.03", packages=PAIR)
    asked = DriverSet(gpu_driver=driver)
    seen = host(installed={**PAIR, FABRIC: "530.30.02-1"}, offered=PAIR)
    verdicts_of = verdicts(asked, seen, SERVICE)
    assert verdicts_of[f"package {FABRIC}"] is Verdict.WRONG
    assert words(asked, seen, SERVICE) == (f"install:{FABRIC}=530.41.03-1",)
    # The healthy twin: of one version, and nothing is done.
    healthy = host(installed=PAIR)
    assert set(verdicts(asked, healthy, SERVICE).values()) == {Verdict.OK}
    assert words(asked, healthy, SERVICE) == ()


def test_what_is_named_to_go_goes_in_the_same_transaction() -> None:
    wanted = Wanted({OFED: "3.2.1-1"}, frozenset({"rdma-inbox", "gone"}), ())
    packages = parse_packages(dpkg({"rdma-inbox": "50.0-2"}))
    seen = Seen(packages, Audit(manager="dpkg"), {OFED: {"3.2.1-1"}})
    bare = Sources({}, "dpkg", [], [])
    waiting = {s.key: s for s in package_settings(wanted, seen, [], LIVE)}
    assert transaction(wanted, seen, bare, waiting) is None
    stand = {s.key: s for s in package_settings(wanted, seen, [], SERVICE)}
    assert stand["package gone"].persisted.standing is Standing.RIGHT
    script = transaction(wanted, seen, bare, stand)
    assert script is not None
    assert script.arguments == ("remove:rdma-inbox", f"install:{OFED}=3.2.1-1")


def test_an_inbox_package_that_the_inventory_names_to_go_is_looked_at_and_removed() -> None:
    ofed = OfedSpec(kind="doca_ofed", version="3.2.1", removes=frozenset({"rdma-inbox"}))
    asked = DriverSet(ofed=ofed)
    assert focus_of(node(asked, LIVE)).packages == ("rdma-inbox",)
    there = host(installed={"rdma-inbox": "50.0-2"})
    assert verdicts(asked, there)["package rdma-inbox"] is Verdict.WRONG
    assert words(asked, there) == ()
    assert words(asked, there, SERVICE) == ("remove:rdma-inbox",)
    # The healthy twin: it is not there.
    assert verdicts(asked, host())["package rdma-inbox"] is Verdict.OK
    assert words(asked, host(), SERVICE) == ()


def test_a_library_is_changed_in_each_architecture(key: str) -> None:
    both = {f"{DRIVER}:amd64": VERSIONS[DRIVER], f"{DRIVER}:i386": VERSIONS[DRIVER]}
    rest = {name: version for name, version in VERSIONS.items() if name != DRIVER}
    seen = host(ours(doca(key)), {**rest, **both}, offered=NEWER)
    assert words(drivers(doca(key), NEWER), seen, SERVICE) == (
        f"install:{DRIVER}:amd64={NEWER[DRIVER]}",
        f"install:{DRIVER}:i386={NEWER[DRIVER]}",
    )


def test_what_an_earlier_run_left_off_is_finished_first(key: str) -> None:
    seen = host(ours(doca(key)), VERSIONS, audit=f"half-configured ok {DRIVER}\n")
    asked = drivers(doca(key))
    stand = found(asked, seen)
    assert stand["dpkg"].persisted.value == f"{DRIVER} half-configured"
    driver = stand[f"package {DRIVER}"]
    # It has its version, and nothing else is changed for it.
    assert (driver.persisted.value, driver.effect) == (
        f"{VERSIONS[DRIVER]} half-configured",
        Effect.LIVE,
    )
    assert words(asked, seen)[0] == "configure"
    assert words(asked, seen)[-1] == f"install:{DRIVER}={VERSIONS[DRIVER]}"
    journal = host(ours(doca(key)), VERSIONS, audit="update 0001\n")
    assert words(asked, journal) == ("configure",)


def test_a_package_manager_that_is_not_known_is_unreadable(key: str) -> None:
    seen = host(packages_audit=ok(""), packages=ok(""))
    asked = drivers(doca(key))
    assert verdicts(asked, seen)[f"package {OFED}"] is Verdict.UNREADABLE
    assert done(asked, seen) == []
