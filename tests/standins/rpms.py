"""The vendors' packages of EL 9 as rpms, and the dnf repositories that they come from.

Names, epochs, what they need of each other and where their files are follow the packages of DOCA's
repository and of CUDA's for rhel9. Each says of itself that it is a stand-in.
"""

import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.standins.keys import Key, gpg
from tests.standins.marks import Marks, copy
from tests.standins.releases import (
    CUDA,
    CUFILE,
    CUFILE_MARKS,
    DRIVERS,
    NVIDIA_FS,
    OFED,
    OfedRelease,
    driver_marks,
    fs_marks,
)

EPOCH = 3
"""Of NVIDIA's driver packages; fabric manager, nvidia-fs and CUDA's own have none."""


class Part(NamedTuple):
    """A part of the payload, and the folder that it is put in."""

    payload: str
    marks: Marks
    under: str = ""


class Rpm(NamedTuple):
    """One package: ``version`` is EPOCH:VERSION-RELEASE as an inventory has it."""

    name: str
    version: str
    parts: tuple[Part, ...] = ()
    requires: tuple[str, ...] = ()
    provides: tuple[str, ...] = ()
    conflicts: tuple[str, ...] = ()
    post: str = ""
    arch: str = "noarch"

    @property
    def file(self) -> str:
        return f"{self.name}-{self.version.rpartition(':')[2]}.{self.arch}.rpm"


DISTRIBUTION = Rpm(
    "standin-el9-base",
    "9-1.el9",
    provides=("/bin/sh", "/bin/bash", "dkms = 3.2.1", "kernel-devel", "systemd"),
)
"""Stands for what packages of the distribution provide to the vendors'."""

# What DKMS packages do when they come; a node without dkms has no kernel to build for.
_DKMS = """\
command -v dkms >/dev/null || exit 0
dkms add -m {module} -v {version} --rpm_safe_upgrade || :
dkms build -m {module} -v {version} && dkms install -m {module} -v {version} --force || :
"""


# The default file is the one of the CUDA that was installed last.
_ALTERNATIVE = f"""\
update-alternatives --install /etc/cufile.json cufile.json \\
    /usr/local/cuda-{CUDA}/gds/cufile.json {CUDA.replace(".", "")}
"""


def _dkms(module: str, version: str) -> str:
    return _DKMS.format(module=module, version=version)


def ofed(release: OfedRelease) -> Iterator[Rpm]:
    """The packages of DOCA's repository."""
    # Where a deb has one version, an rpm's is parted: 25.10-OFED.25.10.1.7.1.
    scripts = release.scripts.replace(".OFED.", "-OFED.")
    kernel = f"{scripts}.1.rhel9"
    module = "mlnx-ofa_kernel"
    yield Rpm(
        "doca-ofed",
        f"{release.doca}-{release.build}.el9",
        requires=(
            f"{module} = {kernel}",
            f"{module}-dkms = {kernel}",
            f"ofed-scripts = {scripts}",
            "mlnx-tools",
        ),
        arch="x86_64",
    )
    yield Rpm(
        module,
        kernel,
        parts=(Part("ofed_utils", release.marks),),
        requires=("/bin/sh", "systemd", f"ofed-scripts = {scripts}"),
        post="systemctl daemon-reload || :\n",
        arch="x86_64",
    )
    yield Rpm(
        f"{module}-dkms",
        kernel,
        parts=(Part("ofed_dkms", release.marks, f"usr/src/{module}-{release.dkms}"),),
        requires=("dkms", "kernel-devel", f"{module} = {kernel}"),
        conflicts=(f"kmod-{module}",),
        post=_dkms(module, release.dkms),
    )
    yield Rpm("ofed-scripts", scripts, (Part("ofed", release.marks),), arch="x86_64")
    yield Rpm("mlnx-tools", release.tools, (Part("mlnx_tools", release.marks),))


def driver(release: str) -> Iterator[Rpm]:
    """The GPU driver's packages of CUDA's repository: both flavours of its modules."""
    version, marks = f"{EPOCH}:{release}-1.el9", driver_marks(release)
    flavours = ("kmod-nvidia-open-dkms", "kmod-nvidia-latest-dkms")
    for flavour, other in (flavours, flavours[::-1]):
        yield Rpm(
            flavour,
            version,
            parts=(Part("nvidia_dkms", marks, f"usr/src/nvidia-{release}"),),
            requires=("dkms", "kernel-devel", f"nvidia-kmod-common = {version}"),
            provides=(f"nvidia-kmod = {version}",),
            conflicts=(other,),
            post=_dkms("nvidia", release),
        )
    yield Rpm(
        "nvidia-kmod-common",
        version,
        parts=(Part("nvidia_modprobe", marks),),
        requires=(f"nvidia-kmod = {version}",),
    )
    for name, part, needs in (
        ("libnvidia-ml", "nvidia_ml", ()),
        ("nvidia-driver-libs", "nvidia_libs", (f"libnvidia-ml = {version}",)),
        (
            "nvidia-driver-cuda",
            "nvidia_smi",
            (f"libnvidia-ml = {version}", f"nvidia-kmod-common = {version}"),
        ),
    ):
        yield Rpm(name, version, (Part(part, marks),), needs, arch="x86_64")
    yield Rpm(
        "nvidia-persistenced",
        version,
        parts=(Part("nvidia_persistenced", marks),),
        requires=("systemd", f"nvidia-driver-cuda = {version}"),
        post="systemctl daemon-reload || :\n",
        arch="x86_64",
    )
    yield Rpm(
        "nvidia-fabricmanager",
        f"{release}-1",
        parts=(Part("nvidia_fabricmanager", marks),),
        requires=("systemd",),
        post="systemctl daemon-reload || :\n",
        arch="x86_64",
    )
    yield Rpm(
        "nvidia-open",
        version,
        requires=(f"kmod-nvidia-open-dkms = {version}", f"nvidia-driver-libs = {version}"),
    )


def gds(release: str) -> Iterator[Rpm]:
    """GPUDirect Storage's packages of CUDA's repository; ``release`` is nvidia-fs's."""
    yield Rpm(
        "nvidia-fs-dkms",
        f"{release}-1",
        parts=(Part("nvidia_fs_dkms", fs_marks(release), f"usr/src/nvidia-fs-{release}"),),
        requires=("dkms", "kernel-devel"),
        post=_dkms("nvidia-fs", release),
    )
    cuda = CUDA.replace(".", "-")
    yield Rpm(
        f"libcufile-{cuda}",
        f"{CUFILE}-1",
        parts=(Part("libcufile", CUFILE_MARKS),),
        requires=("/bin/sh",),
        post=_ALTERNATIVE,
        arch="x86_64",
    )
    yield Rpm(
        f"gds-tools-{cuda}",
        f"{CUFILE}-1",
        parts=(Part("gds_tools", CUFILE_MARKS),),
        requires=(f"libcufile-{cuda} >= {CUFILE}",),
        arch="x86_64",
    )


def build(folder: Path, keys: Mapping[str, Key]) -> None:
    """Make ``dnf/doca``, ``dnf/cuda``, ``dnf/doca-other-key`` and ``dnf/base`` in ``folder``.

    ``keys`` are by name: the third has DOCA's packages signed by ``other``; indexes are signed like
    their packages. ``base`` is not signed: it stands for what a node has from the start. Raises
    subprocess.CalledProcessError where a tool failed.
    """
    root = folder / "dnf"
    _make(root / "base", [DISTRIBUTION])
    _make(root / "doca", [rpm for release in OFED for rpm in ofed(release)])
    shutil.copytree(root / "doca", root / "doca-other-key")
    cuda = {rpm.file: rpm for release in DRIVERS for rpm in driver(release)}
    # Two releases of nvidia-fs have one libcufile.
    cuda |= {rpm.file: rpm for release in NVIDIA_FS for rpm in gds(release)}
    _make(root / "cuda", cuda.values())
    for name, signer in (("doca", "doca"), ("cuda", "cuda"), ("doca-other-key", "other")):
        _publish(root / name, keys[signer])


def _make(repository: Path, rpms: Iterable[Rpm]) -> None:
    repository.mkdir(parents=True)
    for rpm in rpms:
        with TemporaryDirectory() as name:
            _rpmbuild(rpm, Path(name), repository)


def _rpmbuild(rpm: Rpm, work: Path, repository: Path) -> None:
    tree = work / "tree"
    tree.mkdir()
    for part in rpm.parts:
        copy(part.payload, tree / part.under, part.marks)
    if (tree / "lib").is_dir():
        # EL has one tree of libraries, and its packages say so.
        shutil.copytree(tree / "lib", tree / "usr/lib", dirs_exist_ok=True, symlinks=True)
        shutil.rmtree(tree / "lib")
    if rpm.name == "mlnx-ofa_kernel-dkms":
        # The module has another name on EL.
        (conf,) = tree.glob("usr/src/*/dkms.conf")
        conf.write_text(conf.read_text().replace("=mlnx-ofed-kernel", "=mlnx-ofa_kernel"))
    spec = work / f"{rpm.name}.spec"
    spec.write_text(_spec(rpm, tree))
    defines = {
        "_topdir": str(work / "top"),
        "_rpmdir": str(repository),
        "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
        # Nothing of it is compiled, and nothing is looked into for what it needs.
        "debug_package": "%{nil}",
        "__os_install_post": "%{nil}",
    }
    options = [word for name, value in defines.items() for word in ("-D", f"{name} {value}")]
    _run("rpmbuild", "-bb", "--quiet", "--target", rpm.arch, *options, str(spec))


def _spec(rpm: Rpm, tree: Path) -> str:
    epoch, _, rest = rpm.version.rpartition(":")
    version, release = rest.rsplit("-", 1)
    tags = {
        "Name": rpm.name,
        "Version": version,
        "Release": release,
        "Summary": f"Stand-in for {rpm.name}",
        "License": "Apache-2.0",
        "AutoReqProv": "no",
        **({"Epoch": epoch} if epoch else {}),
    }
    lists = {"Requires": rpm.requires, "Provides": rpm.provides, "Conflicts": rpm.conflicts}
    lines = [f"{tag}: {value}" for tag, value in tags.items()]
    lines += [f"{tag}: {value}" for tag, values in lists.items() for value in values]
    lines += ["%description", "A stand-in of railwright's tests: nothing of the vendor's is in it."]
    lines += ["%install", "mkdir -p %{buildroot}", f"cp -a {tree}/. %{{buildroot}}/"]
    if rpm.post:
        lines += ["%post", rpm.post.rstrip()]
    return "\n".join([*lines, "%files", *_files(tree), ""])


def _files(tree: Path) -> Iterator[str]:
    for path in sorted(tree.rglob("*")):
        if path.is_symlink() or path.is_file():
            name = f"/{path.relative_to(tree)}"
            owned = f"%attr({path.stat().st_mode & 0o777:o}, root, root)"
            if path.is_symlink():
                yield name
            elif name.startswith("/etc/") and not name.startswith("/etc/init.d/"):
                yield f"{owned} %config(noreplace) {name}"
            else:
                yield f"{owned} {name}"


def _publish(repository: Path, key: Key) -> None:
    """Sign all packages, write the index and sign it."""
    # rpm would look for gpg2, which not every distribution has.
    signing = {
        "__gpg": shutil.which("gpg") or "gpg",
        "_gpg_name": key.fingerprint,
        "_gpg_path": str(key.home),
    }
    options = [word for name, value in signing.items() for word in ("-D", f"{name} {value}")]
    packages = map(str, sorted(repository.glob("*.rpm")))
    _run("rpmsign", *options, "--addsign", *packages)
    _run("createrepo_c", "--quiet", "--no-database", str(repository))
    index = repository / "repodata/repomd.xml"
    gpg(key.home, "--armor", "--detach-sign", str(index))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
