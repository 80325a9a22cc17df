"""Packages of Lustre's client as Whamcloud's repository for Debian and Ubuntu has them.

Sources: debian/ of lustre-release (control, lustre-client-modules-dkms.postinst and .prerm,
lustre-client-utils.install), lustre/scripts/systemd/lnet.service. The modules are the ones that the
tools look for; of what is mounted there is an empty directory.
"""

from collections.abc import Iterator

from tests.standins.debs import HEADERS, Deb, enabled_scripts
from tests.standins.marks import Marks

VERSION = "2.16.1"
PACKAGE = f"{VERSION}-1"
_MARKS = Marks(VERSION, "2.16")
_DKMS = "lustre-client-modules"


def packages() -> Iterator[Deb]:
    """The client: its modules' sources for dkms, and its tools."""
    yield Deb(
        name="lustre-client-modules-dkms",
        version=PACKAGE,
        about="sources of Lustre's client modules, for dkms",
        architecture="all",
        marks=_MARKS,
        relations={
            "Depends": "dkms (>= 2.0.0), gcc, make",
            "Recommends": f"{HEADERS}, lustre-client-utils",
            "Provides": "lustre-client-modules",
        },
        parts={
            "lustre_dkms": f"usr/src/{_DKMS}-{VERSION}",
            "standin_fs": f"usr/src/{_DKMS}-{VERSION}",
        },
        scripts=_SCRIPTS,
    )
    yield Deb(
        name="lustre-client-utils",
        version=PACKAGE,
        about="lnetctl, lctl, lfs, mount.lustre and lnet.service",
        marks=_MARKS,
        relations={"Depends": "iproute2, kmod, mount"},
        parts={"lustre_utils": ""},
        conffiles=("/etc/lnet.conf",),
        # It is enabled, and started by a boot.
        scripts=enabled_scripts("lnet.service"),
    )


# What cannot be built is no failure of the package's.
_SCRIPTS = {
    "postinst": f"""case $1 in
    configure)
        dkms add -m {_DKMS} -v {VERSION}
        if dkms build -m {_DKMS} -v {VERSION}; then
            dkms install -m {_DKMS} -v {VERSION} --force || true
        fi
        ;;
esac
""",
    "prerm": f"""case $1 in
    remove | upgrade | deconfigure)
        dkms remove -m {_DKMS} -v {VERSION} --all || true
        ;;
esac
""",
}
