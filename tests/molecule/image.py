"""Root image of the molecule container: Debian with systemd, asked of no registry.

`python -m tests.molecule.image SUITE` prints the image's name, and builds it only if it is
missing. The name carries the hash of the recipe, so a changed recipe is a new image.
"""

import argparse
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.lab.layout import DISTROS, Distro, layout
from tests.lab.sources import sources

_HERE = Path(__file__).resolve().parent
_RECIPE = (
    Path(__file__),
    _HERE / "customize.sh",
    _HERE.parent / "lab/image/held-package.sh",
    _HERE.parent / "lab/image/root/etc/systemd/system/railwright-lab-job.service",
)
# Python is left out on purpose: railwright must not need it on a node.
_PACKAGES = (
    "chrony",
    "dbus",
    "iproute2",
    "kmod",
    "opensm",
    "procps",
    "systemd",
    "systemd-sysv",
    "udev",
)


def recipe_hash() -> str:
    """First 16 hex digits of the SHA-256 over every file that decides the image's content."""
    digest = hashlib.sha256()
    for path in _RECIPE:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def ensure(distro: Distro) -> str:
    """Name of the podman image of ``distro``, built only where neither podman nor the cache has it.

    :raises subprocess.CalledProcessError: mmdebstrap or podman failed.
    """
    tag = f"{distro}-{recipe_hash()}"
    name = f"localhost/railwright-container:{tag}"
    if subprocess.run(("podman", "image", "exists", name), check=False).returncode == 0:
        return name
    root = layout(distro).cache / f"container-{tag}.tar"
    if not root.exists():
        _build(distro, root)
    _run("podman", "import", "--quiet", str(root), name)
    return name


def _build(distro: Distro, root: Path) -> None:
    root.parent.mkdir(parents=True, exist_ok=True)
    draft = root.with_name(f"{root.stem}.draft-{os.getpid()}.tar")
    options = (
        "--variant=minbase",
        "--skip=cleanup/apt/lists",
        f"--include={','.join(_PACKAGES)}",
        f"--customize-hook={_HERE / 'customize.sh'}",
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
