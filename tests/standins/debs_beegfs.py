"""Packages of BeeGFS's client in its two majors, and in its two ways of building the module.

Sources: debian/ of ThinkParQ/beegfs (control, rules, beegfs-client.postinst), dkms.conf.in and
build/dist of its client_module, 7.4 and 8. The tools of 7 (beegfs-utils) are left out.
"""

from collections.abc import Iterator

from tests.standins.debs import Deb, dkms_scripts, enabled_scripts
from tests.standins.marks import Marks

RELEASES = {7: "7.4.6", 8: "8.3.1"}
"""The release by its major. All packages have the epoch 20."""
_HEADERS = "linux-headers-amd64"
_CONF = "/etc/beegfs/beegfs-client.conf"


def package(major: int) -> str:
    """The version of the packages of ``major``."""
    return f"20:{RELEASES[major]}"


def packages() -> Iterator[Deb]:
    """Both majors; both ways to build of each."""
    for major, release in RELEASES.items():
        marks = Marks(release, str(major))
        yield _dkms(major, marks)
        yield _classic(major, marks)
    yield Deb(
        name="beegfs-helperd",
        version=package(7),
        about="the helper that the client of 7 logs and resolves names by",
        parts={"beegfs_helperd": ""},
        conffiles=("/etc/beegfs/beegfs-helperd.conf",),
        scripts=enabled_scripts("beegfs-helperd.service"),
    )
    yield Deb(
        name="beegfs-tools",
        version=package(8),
        about="the tool beegfs of 8",
        marks=Marks(RELEASES[8], "8"),
        parts={"beegfs_tools": ""},
    )


def _dkms(major: int, marks: Marks) -> Deb:
    source = f"usr/src/beegfs-{marks.version}"
    return Deb(
        name="beegfs-client-dkms",
        version=package(major),
        about="sources of BeeGFS's client, for dkms",
        architecture="all",
        marks=marks,
        relations={"Depends": "dkms", "Conflicts": "beegfs-client", "Recommends": _HEADERS},
        parts={
            "beegfs_dkms": source,
            "beegfs_module": f"{source}/build",
            "standin_fs": f"{source}/build",
            f"beegfs_conf_{major}": "",
            "beegfs_build": "",
            **_mount_helper(major),
        },
        conffiles=(_CONF, "/etc/beegfs/beegfs-client-build.mk"),
        scripts=dkms_scripts("beegfs", "beegfs-client-dkms", marks.version),
    )


def _classic(major: int, marks: Marks) -> Deb:
    source = f"opt/beegfs/src/client/client_module_{major}/build"
    scripts = enabled_scripts("beegfs-client.service")
    # What is installed anew is built anew, at the service's next start.
    scripts["postinst"] = _FORCED + scripts["postinst"]
    return Deb(
        name="beegfs-client",
        version=package(major),
        about="BeeGFS's client, which its service builds",
        architecture="all",
        marks=marks,
        relations={
            "Depends": "build-essential",
            "Conflicts": "beegfs-client-dkms",
            "Recommends": _HEADERS,
        },
        parts={
            "beegfs_module": source,
            "standin_fs": source,
            f"beegfs_conf_{major}": "",
            "beegfs_classic": "",
            **_mount_helper(major),
        },
        conffiles=(
            _CONF,
            "/etc/beegfs/beegfs-client-autobuild.conf",
            "/etc/beegfs/beegfs-mounts.conf",
            "/etc/default/beegfs-client",
            "/etc/init.d/beegfs-client",
        ),
        scripts=scripts,
    )


def _mount_helper(major: int) -> dict[str, str]:
    """8 has names resolved by it; 7 by its helper."""
    return {"beegfs_mount": ""} if major == 8 else {}


_FORCED = """mkdir -p /var/lib/beegfs/client
touch /var/lib/beegfs/client/force-auto-build
"""
