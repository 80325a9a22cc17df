"""All stand-in repositories in one folder, built anew only where what they are made of changed."""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path

from tests.standins import (
    debs_beegfs,
    debs_cuda,
    debs_doca,
    debs_lab,
    debs_lustre,
    keys,
    repository,
    rpms,
)
from tests.standins.debs import Deb, build
from tests.standins.keys import Key
from tests.standins.marks import PAYLOAD

RPM_TOOLS = ("rpmbuild", "rpmsign", "createrepo_c")
_SECRETS = "secret"
_STAMP = "recipe"

# Labels as apt_preferences of NVIDIA's guides and azhpc-images pin by them (l=DOCA-HOST).
_DOCA = ("NVIDIA", "DOCA-HOST")
_CUDA = ("NVIDIA", "NVIDIA CUDA")
_LUSTRE = ("Whamcloud", "lustre-client")
_BEEGFS = ("ThinkParQ", "BeeGFS")


def has_rpm_tools() -> bool:
    """Whether repositories of dnf can be made here."""
    return all(shutil.which(tool) for tool in RPM_TOOLS)


def recipe_key() -> str:
    """A hash of all that decides what the repositories hold; without the tools of rpm, of debs."""
    digest = hashlib.sha256(str(has_rpm_tools()).encode())
    code = Path(__file__).parent
    for path in sorted([*PAYLOAD.rglob("*"), *code.glob("*.py")]):
        if path.is_symlink() or path.is_file():
            content = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
            name = str(path.relative_to(code))
            digest.update(f"{name}\0{path.lstat().st_mode:o}\0".encode() + content)
    return digest.hexdigest()[:16]


def ensure(folder: Path) -> Path:
    """The repositories in ``folder``, built if it has none of this recipe; ``folder`` itself.

    ``apt/doca``, ``apt/cuda``, ``apt/lustre`` and ``apt/beegfs`` are signed by a key each,
    ``apt/doca-other-key`` is DOCA's signed by another one, ``apt/lab`` stands in for hardware;
    ``dnf/`` likewise where the tools of rpm are here. ``keys/`` has the public keys and
    fingerprints.json. Keys stay what they are when the rest is built anew.
    Raises CalledProcessError where a tool fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stamp, wanted = folder / _STAMP, recipe_key()
        if not stamp.exists() or stamp.read_text() != wanted:
            stamp.unlink(missing_ok=True)
            _build(folder)
            stamp.write_text(wanted)
    return folder


def _build(folder: Path) -> None:
    made = keys.make(folder / "keys", folder / _SECRETS)
    try:
        for name in ("apt", "dnf"):
            shutil.rmtree(folder / name, ignore_errors=True)
        doca, cuda = list(debs_doca.packages()), list(debs_cuda.packages())
        apt(folder / "apt/doca", doca, made["doca"], *_DOCA)
        apt(folder / "apt/doca-other-key", doca, made["other"], *_DOCA)
        apt(folder / "apt/cuda", cuda, made["cuda"], *_CUDA)
        apt(folder / "apt/lustre", list(debs_lustre.packages()), made["lustre"], *_LUSTRE)
        apt(folder / "apt/beegfs", list(debs_beegfs.packages()), made["beegfs"], *_BEEGFS)
        apt(folder / "apt/lab", list(debs_lab.packages()), made["cuda"], "railwright", "lab")
        if has_rpm_tools():
            rpms.build(folder, made)
    finally:
        for key in made.values():
            keys.stop_agent(key)


def apt(folder: Path, debs: Iterable[Deb], key: Key, origin: str, label: str) -> None:
    """A repository of apt with ``debs``, in ``folder``, which it makes."""
    folder.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as work:
        files = [build(deb, folder, Path(work)) for deb in debs]
    repository.write(folder, files, key, origin=origin, label=label)
