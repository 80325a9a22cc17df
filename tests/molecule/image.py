"""Root images of containers: Debian with systemd, asked of no registry.

`python -m tests.molecule.image SUITE` prints the name of molecule's image, and builds it only if
it is missing. The name carries the hash of the recipe, so a changed recipe is a new image.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.lab.layout import DISTROS, Distro, layout
from tests.lab.sources import sources

_HERE = Path(__file__).resolve().parent


class Recipe(NamedTuple):
    """What an image is made of: Debian's packages, and ``hook``, mmdebstrap's customize hook.

    ``reads`` are files that the hook puts in.
    """

    name: str
    packages: tuple[str, ...]
    hook: Path
    reads: tuple[Path, ...] = ()

    def digest(self) -> str:
        """First 16 hex digits of the SHA-256 over all that decides the image's content."""
        digest = hashlib.sha256(" ".join(self.packages).encode())
        for path in (Path(__file__), self.hook, *self.reads):
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


MOLECULE = Recipe(
    name="container",
    # Python is left out on purpose: railwright must not need it on a node.
    packages=(
        *("chrony", "dbus", "iproute2", "kmod", "opensm", "procps"),
        *("systemd", "systemd-sysv", "udev"),
        # What drivers' packages take from the distribution.
        *("build-essential", "dkms", "libc6-dev", "lsof", "pciutils"),
    ),
    hook=_HERE / "customize.sh",
    reads=(
        _HERE.parent / "lab/image/held-package.sh",
        _HERE.parent / "lab/image/root/etc/systemd/system/railwright-lab-job.service",
    ),
)


def ensure(distro: Distro, recipe: Recipe = MOLECULE) -> str:
    """Name of ``recipe``'s podman image, built only where neither podman nor the cache has it.

    :raises subprocess.CalledProcessError: mmdebstrap or podman failed.
    """
    tag = f"{distro}-{recipe.digest()}"
    name = f"localhost/railwright-{recipe.name}:{tag}"
    if subprocess.run(("podman", "image", "exists", name), check=False).returncode == 0:
        return name
    root = layout(distro).cache / f"{recipe.name}-{tag}.tar"
    if not root.exists():
        _build(distro, recipe, root)
    _run("podman", "import", "--quiet", str(root), name)
    return name


def _build(distro: Distro, recipe: Recipe, root: Path) -> None:
    root.parent.mkdir(parents=True, exist_ok=True)
    draft = root.with_name(f"{root.stem}.draft-{os.getpid()}.tar")
    options = (
        "--variant=minbase",
        "--skip=cleanup/apt/lists",
        f"--include={','.join(recipe.packages)}",
        f"--customize-hook={recipe.hook}",
    )
    try:
        _run("mmdebstrap", *options, distro, str(draft), *sources(distro))
        draft.rename(root)
    finally:
        draft.unlink(missing_ok=True)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, stdout=sys.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("distro", choices=DISTROS)
    print(ensure(parser.parse_args().distro))
