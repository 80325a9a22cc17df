"""A node as the component packages sees it, built by hand: bare, with apt or with dnf."""

from collections.abc import Mapping

from deploys.packages import actions, settings
from railwright.actions import Action, RunScript
from railwright.owned import HEADER
from railwright.repositories import source_file
from railwright.schema import EffectsSpec, Node
from railwright.schema.drivers import DriverSet, GpuDriverSpec, OfedSpec
from railwright.schema.gds import GdsSpec
from railwright.schema.repositories import AptRepository, DnfRepository, Repository
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, record, records
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
RPM = {
    "packages_audit": ok("manager rpm\n"),
    "packages": ok("manager rpm\n" + f"package {OFED} is not installed\n"),
}


def script_of(seen: Snapshot, repository: Repository) -> str:
    (script,) = [a.script for a in done(drivers(repository), seen) if isinstance(a, RunScript)]
    return script
