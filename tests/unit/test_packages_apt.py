"""Repositories and the transaction of packages against apt and dpkg themselves."""

import fcntl
import threading
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from deploys.packages import actions, settings
from facts.packages import OFFERED, PACKAGES
from facts.repositories import AUDIT, ENTRIES, parse_audit
from railwright.actions import Action, InstallFile, RemoveFile, RunScript
from railwright.converge import unmet
from railwright.schema import EffectsSpec, Node
from railwright.schema.drivers import GpuDriverSpec, OfedSpec
from railwright.schema.repositories import AptRepository
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.apt_root import AptRoot, Signer, build, publish, signer
from tests.unit.records import MARKER, records

ALLOWED = frozenset({Effect.LIVE, Effect.SERVICE})


Packages = Mapping[tuple[str, str], Path]


class Vendor:
    """A repository with two versions of a driver, its library, and what stands in their way."""

    def __init__(self, folder: Path, packages: Packages, key: Signer) -> None:
        self.folder, self.packages, self.key = folder, packages, key
        self.url = self.publish(self.packages)
        self.key_file = folder / "key.asc"
        self.key_file.write_bytes(key.key)

    def publish(self, which: Iterable[tuple[str, str]]) -> str:
        return publish(self.folder / "repo", [self.packages[one] for one in which], self.key)

    def repository(self, **given: object) -> AptRepository:
        asked = {"url": self.url, "key": str(self.key_file), "suite": "./"}
        asked |= {"fingerprint": self.key.fingerprint}
        return AptRepository.model_validate(asked | given)

    def node(self, version: str = "1.0", **given: object) -> Node:
        of = {"repository": "stand-in"}
        lib = {"rw-driver": version, "rw-lib": version}
        driver = {**of, "version": "580.95.05", "packages": lib}
        ofed = {**of, "kind": "doca_ofed", "version": "3.2.1", "packages": {"rw-ofed": version}}
        return Node(
            name="n1",
            effects=EffectsSpec(allow=ALLOWED),
            repositories={"stand-in": self.repository(**given)},
            ofed=OfedSpec.model_validate(ofed),
            gpu_driver=GpuDriverSpec.model_validate(driver),
        )


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Signer, Signer]]:
    folder = tmp_path_factory.mktemp("keys")
    with signer(folder / "one") as one, signer(folder / "two") as two:
        yield one, two


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Packages:
    folder = tmp_path_factory.mktemp("packages")
    made = {("rw-inbox", "1.0"): build(folder, "rw-inbox", "1.0")}
    for version in ("1.0", "1.1"):
        in_step = {"Breaks": f"rw-driver (<< {version})", "Conflicts": "rw-inbox"}
        made["rw-ofed", version] = build(folder, "rw-ofed", version)
        made["rw-lib", version] = build(folder, "rw-lib", version, **in_step)
        exactly = {"Depends": f"rw-lib (= {version})"}
        made["rw-driver", version] = build(folder, "rw-driver", version, **exactly)
    return made


@pytest.fixture
def vendor(tmp_path: Path, packages: Packages, keys: tuple[Signer, Signer]) -> Vendor:
    return Vendor(tmp_path, packages, keys[0])


@pytest.fixture
def root(tmp_path: Path) -> AptRoot:
    return AptRoot(tmp_path / "root")


def look(root: AptRoot, node: Node) -> Snapshot:
    """The probe of the root."""
    wanted: dict[str, str] = {}
    for _, spec in node.drivers.packaged():
        wanted |= spec.packages
    apt = root.root / "etc/apt"
    ours = {
        f"/{path.relative_to(root.root)}": path.read_text().replace(f"{root.root}/etc", "/etc")
        for path in sorted(apt.rglob("*railwright-*"))
    }
    sections = {"repositories_files": Section(stdout=records(ours), rc=0)}
    for section in (PACKAGES, AUDIT, OFFERED, ENTRIES):
        sections[section.name] = root.section(section.script, wanted)
    sections["packages_offered_rpm"] = Section(stdout="", rc=0)
    return Snapshot(host="n1", marker=MARKER, sections=sections)


def found(root: AptRoot, node: Node) -> dict[str, Setting]:
    return {s.key: s for s in settings(node, look(root, node))}


def planned(root: AptRoot, node: Node) -> list[Action]:
    seen = look(root, node)
    return list(actions(node, seen, settings(node, seen)))


def converge(root: AptRoot, node: Node) -> str:
    """Do what is planned; what was said where it failed, and nothing where all went well."""
    said = ""
    for action in planned(root, node):
        if isinstance(action, InstallFile):
            root.write(action)
        elif isinstance(action, RemoveFile):
            root.remove(action)
        else:
            assert isinstance(action, RunScript)
            done = root.transact(action)
            said += done.stdout + done.stderr if done.returncode else ""
    return said


def states(version: str) -> Mapping[str, str]:
    return dict.fromkeys(("rw-ofed", "rw-driver", "rw-lib"), f"{version} hold installed")


def test_a_bare_root_gets_the_signed_repository_and_its_packages(
    root: AptRoot, vendor: Vendor
) -> None:
    node = vendor.node(priority=700, never=["rw-inbox"])
    before = found(root, node)
    assert converge(root, node) == ""
    assert root.installed() == states("1.0")
    after = found(root, node)
    for key, setting in before.items():
        expected = changes(setting, ALLOWED)
        assert expected or key == "dpkg"
        assert unmet(after.values(), key, expected) == []
    assert {verdict(s, ALLOWED) for s in after.values()} == {Verdict.OK}
    assert planned(root, node) == []
    # apt itself reads the pin so.
    policy = root.run("apt-cache", "policy", "rw-inbox", "rw-lib").stdout
    assert "1.0 -1" in policy
    assert "1.1 700" in policy


def test_an_index_signed_by_another_key_is_refused_by_apt(
    root: AptRoot, vendor: Vendor, keys: tuple[Signer, Signer]
) -> None:
    keys[1].sign(vendor.folder / "repo" / "Release")
    said = converge(root, vendor.node())
    assert "is not signed" in said
    assert "no package is changed" in said
    assert root.installed() == {}


def test_a_key_with_another_fingerprint_is_refused_before_anything_is_touched(
    root: AptRoot, vendor: Vendor, keys: tuple[Signer, Signer]
) -> None:
    node = vendor.node(fingerprint=keys[1].fingerprint)
    key = found(root, node)["key stand-in"]
    assert key.persisted.standing is Standing.UNREADABLE
    assert key.persisted.detail == (
        f"key {vendor.key_file} of repository stand-in: "
        f"expected the one key {keys[1].fingerprint}, found {keys[0].fingerprint}"
    )
    assert planned(root, node) == []


def test_both_move_to_another_version_in_one_transaction_and_back(
    root: AptRoot, vendor: Vendor
) -> None:
    assert converge(root, vendor.node("1.0")) == ""
    for version in ("1.1", "1.0"):
        assert converge(root, vendor.node(version)) == ""
        assert root.installed() == states(version)
        assert planned(root, vendor.node(version)) == []


def test_a_version_that_vanished_changes_nothing_at_all(root: AptRoot, vendor: Vendor) -> None:
    assert converge(root, vendor.node("1.0")) == ""
    vendor.publish(one for one in vendor.packages if one != ("rw-lib", "1.1"))
    root.run("apt-get", "update")
    node = vendor.node("1.1")
    lib = found(root, node)["package rw-lib"]
    assert lib.persisted.detail == "no repository is known to offer 1.1; offered: 1.0"
    said = converge(root, node)
    assert "no repository offers rw-lib 1.1; offered: 1.0" in said
    assert root.installed() == states("1.0")


def test_a_version_that_is_newer_than_the_index_is_found(root: AptRoot, vendor: Vendor) -> None:
    vendor.publish(one for one in vendor.packages if one[1] == "1.0")
    assert converge(root, vendor.node("1.0")) == ""
    vendor.publish(vendor.packages)
    assert converge(root, vendor.node("1.1")) == ""
    assert root.installed() == states("1.1")


def test_what_stands_in_the_way_goes_only_where_it_is_named(root: AptRoot, vendor: Vendor) -> None:
    root.run("dpkg", f"--root={root.root}", "-i", str(vendor.packages["rw-inbox", "1.0"]))
    assert root.installed() == {"rw-inbox": "1.0 install installed"}
    said = converge(root, vendor.node())
    assert "rw-inbox would be removed, which nothing names" in said
    assert root.installed() == {"rw-inbox": "1.0 install installed"}
    script = next(a for a in planned(root, vendor.node()) if isinstance(a, RunScript))
    words = (*script.arguments, "remove:rw-inbox")
    done = root.transact(script.model_copy(update={"arguments": words}))
    assert done.returncode == 0, done.stdout
    installed = root.installed()
    assert {name: installed[name] for name in states("1.0")} == states("1.0")
    assert "rw-inbox" not in installed


def test_what_somebody_else_holds_is_not_changed_for_it(root: AptRoot, vendor: Vendor) -> None:
    assert converge(root, vendor.node("1.0")) == ""
    node = vendor.node("1.1")
    alone = GpuDriverSpec(repository="stand-in", packages={"rw-driver": "1.1"})
    said = converge(root, node.model_copy(update={"gpu_driver": alone}))
    assert "you have held broken packages" in said
    assert root.installed() == states("1.0")


def test_an_interrupted_run_heals(root: AptRoot, vendor: Vendor) -> None:
    unpack = ["dpkg", f"--root={root.root}", "--unpack"]
    root.run(*unpack, str(vendor.packages["rw-driver", "1.0"]))
    node = vendor.node()
    setting = found(root, node)["dpkg"]
    assert setting.persisted.value == "rw-driver unpacked"
    assert verdict(setting, ALLOWED) is Verdict.WRONG
    assert converge(root, node) == ""
    assert root.installed() == states("1.0")
    assert {verdict(s, ALLOWED) for s in found(root, node).values()} == {Verdict.OK}


def test_an_interruption_that_dpkg_kept_a_journal_of_is_seen(root: AptRoot) -> None:
    (root.root / "var/lib/dpkg/updates/0001").touch()
    assert parse_audit(root.section(AUDIT.script, {"x": "1"}).stdout).journal


def test_a_source_of_somebody_else_for_it_is_left_and_told(root: AptRoot, vendor: Vendor) -> None:
    other = root.root / "etc/apt/sources.list.d/vendor.list"
    other.write_text(f"# by hand\ndeb {vendor.url} ./\n")
    node = vendor.node()
    source = found(root, node)["/etc/apt/sources.list.d/railwright-stand-in.sources"]
    assert source.persisted.decider == "/etc/apt/sources.list.d/vendor.list:2"
    converge(root, node)
    assert root.installed() == {}
    # Had ours been written, apt would read no source at all.
    assert root.run("apt-get", "update").stderr.count("Conflicting values") == 0
    other.unlink()
    assert converge(root, node) == ""
    assert root.installed() == states("1.0")


def test_a_repository_that_is_asked_for_no_more_leaves_nothing(
    root: AptRoot, vendor: Vendor
) -> None:
    assert converge(root, vendor.node(priority=700)) == ""
    bare = Node(name="n1")
    assert converge(root, bare) == ""
    assert list((root.root / "etc/apt").rglob("*railwright*")) == []
    assert found(root, bare) == {}


def test_another_run_that_fetches_indexes_is_waited_for(root: AptRoot, vendor: Vendor) -> None:
    lock = (root.root / "var/lib/apt/lists/lock").open("w")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    # As apt-daily's does, after a while.
    other = threading.Timer(2, lock.close)
    other.start()
    try:
        assert converge(root, vendor.node()) == ""
    finally:
        other.join()
    assert root.installed() == states("1.0")
