"""The root image of a virtual node: built once per recipe, then shared by all nodes."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import qemu
from .layout import LabError, Layout
from .sources import sources

_RECIPE = Path(__file__).parent / "image"
_NIC = Path(__file__).parent / "nic"
_DISK_MIB = 4096
_PARTITION_SECTOR = 2048
# The whole list, as mke2fs' default differs between releases: GRUB of Debian 12 cannot read
# metadata_csum_seed nor orphan_file.
_EXT4 = (
    "none,has_journal,ext_attr,resize_inode,dir_index,filetype,extent,64bit,flex_bg,sparse_super,"
    "large_file,huge_file,dir_nlink,extra_isize,metadata_csum"
)
_FINISHED = b"railwright-lab: image finished"
_FINISH = "root=/dev/vda1 ro console=ttyS0 init=/usr/local/lib/railwright-lab/finish"
_FINISH_SECONDS = 600


@dataclass(frozen=True)
class Image:
    """A finished image in the cache."""

    folder: Path

    @property
    def disk(self) -> Path:
        """Raw disk with one bootable partition; nodes lay their own disk over it."""
        return self.folder / "disk.raw"

    @property
    def kernel(self) -> Path:
        return self.folder / "vmlinuz"

    @property
    def initrd(self) -> Path:
        return self.folder / "initrd.img"


def node_packages(layout: Layout) -> list[str]:
    lists = ["packages.txt", *(["storage.txt"] if layout.kind == "storage" else [])]
    lines = [line for name in lists for line in (_RECIPE / name).read_text().splitlines()]
    return [line for line in lines if not line.startswith("#")]


def recipe_key(layout: Layout) -> str:
    """Distribution, kind, and a hash of all that decides what the image holds."""
    distro = layout.distro
    digest = hashlib.sha256(repr((distro, _DISK_MIB, _PARTITION_SECTOR, _EXT4, _FINISH)).encode())
    for path in sorted([*_RECIPE.rglob("*"), *_NIC.rglob("*")]):
        if path.is_file():
            name = str(path.relative_to(_RECIPE.parent))
            digest.update(name.encode() + b"\0" + path.read_bytes())
    return f"{distro}-{layout.kind}-{digest.hexdigest()[:16]}"


def ensure_image(layout: Layout, say: Callable[[str], None]) -> Image:
    """The image of the layout's distribution, built if the cache has none (about two minutes).

    :raises LabError: a build step failed; the message names its log.
    """
    image = Image(layout.cache / recipe_key(layout))
    layout.cache.mkdir(parents=True, exist_ok=True)
    with _locked(image.folder.with_suffix(".lock")):
        if not image.folder.exists():
            _require_root()
            say(f"building the {layout.distro} image ({layout.kind}), which takes minutes, once")
            with tempfile.TemporaryDirectory(prefix="build-", dir=layout.cache) as folder:
                draft = Image(Path(folder) / "image")
                draft.folder.mkdir()
                _build(draft, Path(folder) / "root", layout)
                draft.folder.rename(image.folder)
    return image


def _build(image: Image, root: Path, layout: Layout) -> None:
    log = layout.state / "image.log"
    _step(log, "root", _mmdebstrap(layout, root))
    for name in ("vmlinuz", "initrd.img"):
        (found,) = (root / "boot").glob(f"{name}-*")
        shutil.copy(found, image.folder / name)
    _make_disk(image.disk, root, log)
    console = layout.state / "image.console"
    console.unlink(missing_ok=True)
    accelerator = qemu.accelerator(layout.state / "accelerator", image.kernel)
    boot = qemu.Boot(image.kernel, image.initrd, _FINISH)
    command = qemu.build_command(accelerator, console, image.disk, boot)
    _step(log, "GRUB", command, timeout=_FINISH_SECONDS)
    if _FINISHED not in console.read_bytes():
        raise LabError(f"GRUB could not be installed on the image: see {console}")


def _mmdebstrap(layout: Layout, root: Path) -> list[str]:
    hooks = ["customize.sh", *(["storage.sh"] if layout.kind == "storage" else [])]
    return [
        *("mmdebstrap", "--mode=root", "--variant=minbase"),
        *("--skip=cleanup/apt/lists", f"--include={','.join(node_packages(layout))}"),
        *(f"--customize-hook={_RECIPE / name}" for name in hooks),
        *(layout.distro, str(root), *sources(layout.distro)),
    ]


def _make_disk(disk: Path, root: Path, log: Path) -> None:
    with disk.open("wb") as file:
        file.truncate(_DISK_MIB * 2**20)
    table = f"label: dos\nstart={_PARTITION_SECTOR}, type=83, bootable\n"
    _step(log, "partition", ["sfdisk", "--quiet", str(disk)], text=table)
    offset = _PARTITION_SECTOR * 512
    filesystem = ["mke2fs", "-q", "-t", "ext4", "-O", _EXT4, "-L", "railwright-lab"]
    filesystem += ["-E", f"offset={offset}", "-d", str(root), str(disk)]
    _step(log, "file system", [*filesystem, f"{_DISK_MIB * 1024 - offset // 1024}k"])


def _step(
    log: Path, name: str, command: list[str], text: str = "", timeout: float | None = None
) -> None:
    with log.open("ab") as file:
        try:
            subprocess.run(
                command, input=text.encode(), stdout=file, stderr=file, check=True, timeout=timeout
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise LabError(f"image build, {name}: {error}; see {log}") from error


def _require_root() -> None:
    if os.geteuid() != 0:
        raise LabError("the image is not in the cache, and only root can build it")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
