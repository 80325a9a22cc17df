"""What is decided of repositories and packages, and what is done, on recorded nodes."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from deploys.packages import COMPONENT, actions, settings
from facts.packages import parse_packages
from facts.probe import Focus
from facts.repositories import Audit
from railwright.actions import Action, InstallFile, RemoveFile, RunScript
from railwright.converge import unmet
from railwright.owned import HEADER
from railwright.repositories import source_file
from railwright.resolve.packages import Seen, Wanted, package_settings, transaction
from railwright.resolve.repositories import Sources
from railwright.schema import EffectsSpec, Node
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.repositories import AptRepository, DnfRepository, Repository
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, metadata, record, records
from tests.unit.test_openpgp import ARMOURED, FINGERPRINT

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
SERVICE = LIVE | {Effect.SERVICE}
DOCA = "https://linux.mellanox.com/public/repo/doca/3.2.1/ubuntu24.04/x86_64"
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64"
KEY = "/etc/apt/keyrings/railwright-doca.asc"
SOURCE = "/etc/apt/sources.list.d/railwright-doca.sources"
PIN = "/etc/apt/preferences.d/railwright-doca.pref"
OFED, DRIVER, GDS = "doca-ofed", "nvidia-open-580", "nvidia-gds"
VERSIONS = {OFED: "3.2.1-044000", DRIVER: "580.95.05-0ubuntu1", GDS: "13.0.2-1"}


@pytest.fixture
def key(tmp_path: Path) -> str:
    path = tmp_path / "doca.asc"
    path.write_bytes(ARMOURED)
    return str(path)


def doca(key: str, **given: object) -> AptRepository:
    asked = {"url": DOCA, "suite": "./", "key": key, "fingerprint": FINGERPRINT}
    return AptRepository.model_validate({**asked, "never": ["dkms"], **given})


def cuda(key: str, **given: object) -> DnfRepository:
    asked = {"url": CUDA, "key": key, "fingerprint": FINGERPRINT}
    return DnfRepository.model_validate({**asked, "never": ["dkms"], **given})


def drivers(repository: Repository, versions: Mapping[str, str] = VERSIONS) -> DriverSet:
    def of(name: str, **given: object) -> dict[str, object]:
        return {"repository": "doca", "packages": {name: versions[name]}, **given}

    driver = versions[DRIVER].partition("-")[0]
    return DriverSet(
        repositories={"doca": repository},
        gds=GdsSpec.model_validate(of(GDS)),
        gpu_driver=GpuDriverSpec.model_validate(of(DRIVER, version=driver)),
        ofed=OfedSpec.model_validate(of(OFED, kind="doca_ofed", version="3.2.1")),
    )


def node(asked: DriverSet, allowed: frozenset[Effect]) -> Node:
    return Node(
        name="n1",
        effects=EffectsSpec(allow=allowed),
        repositories=asked.repositories,
        ofed=asked.ofed,
        gpu_driver=asked.gpu_driver,
        gds=asked.gds,
    )


def ok(stdout: str) -> Section:
    return Section(stdout=stdout, rc=0)


def dpkg(versions: Mapping[str, str]) -> str:
    lines = "".join(f"{n}\t{v}\thold\tinstalled\n" for n, v in versions.items())
    return f"manager dpkg\n{lines}"


def madison(versions: Mapping[str, str]) -> str:
    return "".join(f" {n} | {v} | {DOCA} ./ Packages\n" for n, v in versions.items())


def host(
    files: str = "",
    installed: Mapping[str, str] | None = None,
    offered: Mapping[str, str] | None = None,
    entries: str = "",
    audit: str = "",
    **more: Section,
) -> Snapshot:
    """A Debian machine, bare but for what is given."""
    sections = {
        "identity": ok("os=ubuntu\n"),
        "repositories_files": ok(files),
        "repositories_entries": ok(entries),
        "packages_audit": ok(f"manager dpkg\n{audit}"),
        "packages": ok(dpkg(installed or {})),
        "packages_offered": ok(madison(offered or {})),
        "packages_offered_rpm": ok(""),
    }
    return Snapshot(host="n1", marker=MARKER, sections={**sections, **more})


def ours(repository: Repository) -> str:
    """Our files as they must be, the pin too."""
    written = {KEY: ARMOURED.decode(), SOURCE: source_file("doca", repository).content or ""}
    return records(written) + record(PIN, pin())


def pin(priority: str = "") -> str:
    return f'{HEADER}{priority}Package: dkms\nPin: origin "linux.mellanox.com"\nPin-Priority: -1\n'


def found(
    asked: DriverSet, seen: Snapshot, allowed: frozenset[Effect] = LIVE
) -> dict[str, Setting]:
    return {s.key: s for s in settings(node(asked, allowed), seen)}


def verdicts(
    asked: DriverSet, seen: Snapshot, allowed: frozenset[Effect] = LIVE
) -> dict[str, Verdict]:
    return {key: verdict(s, allowed) for key, s in found(asked, seen, allowed).items()}


def done(asked: DriverSet, seen: Snapshot, allowed: frozenset[Effect] = LIVE) -> list[Action]:
    on = node(asked, allowed)
    return list(actions(on, seen, settings(on, seen)))


def words(asked: DriverSet, seen: Snapshot, allowed: frozenset[Effect] = LIVE) -> tuple[str, ...]:
    return next((a.arguments for a in done(asked, seen, allowed) if isinstance(a, RunScript)), ())


INSTALL = tuple(f"install:{name}={version}" for name, version in VERSIONS.items())


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


def test_a_priority_is_a_pin_of_all_that_the_host_has(key: str) -> None:
    every = 'Package: *\nPin: origin "linux.mellanox.com"\nPin-Priority: 700\n\n'
    (written,) = [
        action
        for action in done(drivers(doca(key, priority=700)), host())
        if isinstance(action, InstallFile) and action.path == PIN
    ]
    assert written.content == pin(every)
    none = drivers(doca(key, never=[]))
    assert PIN not in found(none, host())
    # Where none is asked for any more it goes.
    assert RemoveFile(path=PIN) in done(none, host(record(PIN, pin())))


def test_a_pin_that_reaches_another_repository_of_that_host_is_told(key: str) -> None:
    other = "/etc/apt/sources.list:1:deb https://linux.mellanox.com/ubuntu noble main\n"
    setting = found(drivers(doca(key)), host(entries=other))[PIN]
    assert setting.remedy is not None
    assert "/etc/apt/sources.list:1" in setting.remedy
    assert setting.acts
    assert found(drivers(doca(key)), host())[PIN].remedy is None


def test_a_key_with_another_fingerprint_refuses_all_of_its_repository(key: str) -> None:
    asked = drivers(doca(key, fingerprint="A" * 40))
    stand = found(asked, host())
    refused = stand["key doca"].persisted
    assert refused.standing is Standing.UNREADABLE
    assert refused.detail == (
        f"key {key} of repository doca: expected the one key {'A' * 40}, found {FINGERPRINT}"
    )
    assert {name for name, s in stand.items() if s.acts} == {PIN, "dpkg"}
    assert [a.path for a in done(asked, host()) if isinstance(a, InstallFile)] == [PIN]
    assert words(asked, host()) == ()
    remedy = stand[f"package {OFED}"].remedy
    assert remedy is not None
    assert remedy.startswith("no package is changed: repository doca: key ")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (record(KEY, "no key\n"), "no key"),
        (record(KEY, ARMOURED.decode(), mode="666"), f"{FINGERPRINT} root 666"),
        (metadata(KEY).replace("file file", "file directory"), "directory"),
    ],
)
def test_a_key_that_is_not_the_right_one_on_the_node_is_replaced(
    key: str, written: str, value: str
) -> None:
    asked = drivers(doca(key))
    rest = ours(doca(key)).replace(record(KEY, ARMOURED.decode()), "")
    seen = host(rest + written, VERSIONS)
    assert found(asked, seen)["key doca"].persisted.value == value
    install, script = done(asked, seen)
    assert install == InstallFile(path=KEY, content=ARMOURED.decode())
    # The index is then verified anew, and no package is touched.
    assert isinstance(script, RunScript)
    assert script.arguments == (f"source:{SOURCE}", "refresh")


def test_a_key_that_cannot_be_read_is_told_and_stops(tmp_path: Path) -> None:
    asked = drivers(doca(str(tmp_path / "none.asc")))
    setting = found(asked, host())["key doca"]
    assert verdict(setting, LIVE) is Verdict.UNREADABLE
    assert setting.persisted.detail is not None
    assert "cannot be read" in setting.persisted.detail
    assert words(asked, host()) == ()


def test_an_entry_of_somebody_else_decides_and_is_left(key: str) -> None:
    entry = f"/etc/apt/sources.list.d/doca.list:3:deb [trusted=yes] {DOCA}/ ./\n"
    asked = drivers(doca(key))
    for files in ("", ours(doca(key))):
        seen = host(files, entries=entry)
        source = found(asked, seen)[SOURCE]
        assert verdict(source, LIVE) is Verdict.OVERRIDDEN
        assert source.persisted.decider == "/etc/apt/sources.list.d/doca.list:3"
        assert words(asked, seen) == ()
        assert SOURCE not in {getattr(action, "path", "") for action in done(asked, seen)}


@pytest.mark.parametrize(
    "entry",
    [
        f"/etc/apt/sources.list.d/doca.list:1:deb {DOCA} noble main\n",
        f"/etc/apt/sources.list.d/doca.list:1:# deb {DOCA} ./\n",
        "/etc/apt/sources.list.d/doca.list:1:deb https://mirror.example/doca ./\n",
    ],
)
def test_healthy_twin_an_entry_of_another_repository_is_no_rival(key: str, entry: str) -> None:
    asked = drivers(doca(key))
    assert words(asked, host(entries=entry))[-3:] == INSTALL


def test_sources_that_cannot_be_read_are_never_none(key: str) -> None:
    seen = host(entries="unreadable /etc/apt/sources.list.d/doca.list\n")
    with pytest.raises(ValueError, match=r"doca\.list cannot be read"):
        found(drivers(doca(key)), seen)


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
    assert Focus.of(node(asked, LIVE)).packages == ("rdma-inbox",)
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


def test_a_repository_of_another_manager_is_told_and_nothing_comes_from_it(key: str) -> None:
    asked = drivers(cuda(key))
    stand = found(asked, host())
    assert stand["key doca"].remedy == (
        "this node's package manager is dpkg, and the repository is one of dnf"
    )
    assert verdict(stand[f"package {OFED}"], LIVE) is Verdict.WRONG
    assert done(asked, host()) == []


RPM_KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-railwright-doca"
REPO = "/etc/yum.repos.d/railwright-doca.repo"
RPM = {
    "packages_audit": ok("manager rpm\n"),
    "packages": ok("manager rpm\n" + f"package {OFED} is not installed\n"),
}


def test_a_repository_of_dnf(key: str) -> None:
    asked = drivers(cuda(key, module_hotfixes=True, priority=10))
    first, second, script = done(asked, host(**RPM))
    assert first == InstallFile(path=RPM_KEY, content=ARMOURED.decode())
    assert second == InstallFile(
        path=REPO,
        content=(
            f"{HEADER}[railwright-doca]\nname=railwright doca\nbaseurl={CUDA}\nenabled=1\n"
            f"gpgcheck=1\nrepo_gpgcheck=0\ngpgkey=file://{RPM_KEY}\nmodule_hotfixes=1\n"
            "priority=10\nexcludepkgs=dkms\n"
        ),
    )
    assert isinstance(script, RunScript)
    assert script.arguments == ("source:railwright-doca", "refresh", *INSTALL)
    assert "apt-get" not in script.script
    rows = "".join(f"{n}\t{v}\tinstall\tinstalled\n" for n, v in VERSIONS.items())
    written = records({RPM_KEY: ARMOURED.decode(), REPO: second.content})
    settled = host(written, **{**RPM, "packages": ok(f"manager rpm\n{rows}")})
    assert set(verdicts(asked, settled).values()) == {Verdict.OK}
    assert done(asked, settled) == []


def test_a_section_of_somebody_else_for_the_same_repository_decides(key: str) -> None:
    entry = f"/etc/yum.repos.d/cuda.repo:1:[cuda]\n/etc/yum.repos.d/cuda.repo:2:baseurl={CUDA}/\n"
    source = found(drivers(cuda(key)), host(entries=entry, **RPM))[REPO]
    assert verdict(source, LIVE) is Verdict.OVERRIDDEN
    assert source.persisted.decider == "/etc/yum.repos.d/cuda.repo:2"


def test_what_is_asked_for_no_more_goes_sources_first(key: str) -> None:
    stand = found(DriverSet(), host(ours(doca(key))))
    assert {s.desired for s in stand.values()} == {"absent"}
    assert done(DriverSet(), host(ours(doca(key)))) == [
        RemoveFile(path=SOURCE),
        RemoveFile(path=PIN),
        RemoveFile(path=KEY),
    ]


def script_of(seen: Snapshot, repository: Repository) -> str:
    (script,) = [a.script for a in done(drivers(repository), seen) if isinstance(a, RunScript)]
    return script


def test_the_scripts_are_what_shellcheck_accepts(key: str) -> None:
    for script in (script_of(host(), doca(key)), script_of(host(**RPM), cuda(key))):
        checked = subprocess.run(
            ["shellcheck", "-s", "sh", "-"], input=script, capture_output=True, text=True
        )
        assert checked.returncode == 0, checked.stdout


STUB = """#!/bin/sh
echo "$(basename "$0") $*" >>"$LOG"
[ "$1" = -q ] && [ "$2" = repoquery ] && [ "$4" != "$MISSING" ] && echo "$4"
case "$*" in *shell) sed 's/^/shell: /' >>"$LOG" ;; esac
exit 0
"""


def ran(tmp_path: Path, script: str, *arguments: str, missing: str = "") -> tuple[int, list[str]]:
    """What the script for dnf runs, with tools that only say so."""
    for tool in ("dnf", "rpm"):
        (tmp_path / tool).write_text(STUB)
        (tmp_path / tool).chmod(0o755)
    log = tmp_path / "log"
    log.write_text("")
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), "MISSING": missing}
    ended = subprocess.run(
        ["sh", "-s", "--", *arguments], input=script, env=environment, text=True, check=False
    )
    return ended.returncode, log.read_text().splitlines()


def test_dnf_unlocks_installs_and_locks_again(tmp_path: Path, key: str) -> None:
    script = script_of(host(**RPM), cuda(key))
    asked = ("source:railwright-doca", "refresh", "install:a=3:1-1", "install:b=2-1")
    assert ran(tmp_path, script, *asked) == (
        0,
        [
            "dnf -q -y --repo=railwright-doca makecache --refresh",
            "dnf -q -y makecache --refresh",
            "dnf -q -y versionlock delete a b",
            "dnf -q repoquery --available a-3:1-1",
            "dnf -q repoquery --available b-2-1",
            "dnf -q -y install a-3:1-1 b-2-1",
            "rpm -q a",
            "dnf -q -y versionlock add a",
            "rpm -q b",
            "dnf -q -y versionlock add b",
        ],
    )


def test_dnf_installs_nothing_where_one_version_is_gone_and_locks_again(
    tmp_path: Path, key: str
) -> None:
    script = script_of(host(**RPM), cuda(key))
    status, said = ran(tmp_path, script, "install:a=1-1", "install:b=2-1", missing="b-2-1")
    assert status == 1
    assert not any(" install " in line for line in said)
    assert said[-1] == "dnf -q -y versionlock add b"


def test_dnf_removes_what_is_named_in_the_same_transaction(tmp_path: Path, key: str) -> None:
    script = script_of(host(**RPM), cuda(key))
    status, said = ran(tmp_path, script, "remove:inbox", "install:a=1-1")
    assert status == 0
    assert [line for line in said if line.startswith("shell: ")] == [
        "shell: remove  inbox",
        "shell: install  a-1-1",
        "shell: run",
        "shell: exit",
    ]
