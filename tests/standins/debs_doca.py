"""Packages of DOCA's repository for Debian 12, as far as DOCA-OFED's modules need them.

Sources: debian/ of mlnx-ofa_kernel (control, rules, *.prerm, *.postinst). NVIDIA publishes no
control file of doca-ofed; that it asks for exact versions is in azhpc-images (install_doca.sh),
which also has it that the repository has a dkms of its own. Left out are firmware tools, MPI, and
user libraries of RDMA (rdma-core 2510mlnx), which a node here takes from its distribution.
"""

from collections.abc import Iterator

from tests.standins.debs import HEADERS, Deb, dkms_scripts
from tests.standins.releases import OFED, OfedRelease


def packages() -> Iterator[Deb]:
    """Packages of DOCA's repository, of both releases."""
    for release in OFED:
        yield from _ofed(release)
    yield Deb(
        name="dkms",
        version="3.4.0-1",
        about="DOCA's own dkms, which takes the place of the distribution's if it may",
        architecture="all",
        parts={"dkms": ""},
    )


def _ofed(release: OfedRelease) -> Iterator[Deb]:
    kernel, scripts = f"{release.dkms}-1", f"{release.scripts}-1"
    marks = release.marks
    yield Deb(
        name="doca-ofed",
        version=f"{release.doca}-{release.build}",
        about=f"all of DOCA-OFED {release.doca}",
        relations={
            "Depends": f"mlnx-ofed-kernel-dkms (= {kernel}), mlnx-ofed-kernel-utils (= {kernel}), "
            f"mlnx-tools (= {release.tools}), ofed-scripts (= {scripts})"
        },
    )
    yield Deb(
        name="ofed-scripts",
        version=scripts,
        about="ofed_info",
        marks=marks,
        parts={"ofed": ""},
    )
    yield Deb(
        name="mlnx-tools",
        version=release.tools,
        about="show_gids",
        architecture="all",
        marks=marks,
        parts={"mlnx_tools": ""},
    )
    yield Deb(
        name="mlnx-ofed-kernel-utils",
        version=kernel,
        about="openibd and what it reads",
        marks=marks,
        relations={
            "Depends": "coreutils, pciutils, grep, procps, module-init-tools | kmod, lsof, "
            "mlnx-tools (>= 5.2.0)",
            "Conflicts": "mlnx-en-utils",
        },
        parts={"ofed_utils": ""},
        conffiles=(
            "/etc/infiniband/openib.conf",
            "/etc/infiniband/mlx5.conf",
            "/etc/modprobe.d/mlnx.conf",
            "/etc/modprobe.d/ib_ipoib.conf",
        ),
        scripts=_UTILS,
    )
    yield Deb(
        name="mlnx-ofed-kernel-dkms",
        version=kernel,
        about="sources of OFED's kernel modules, for dkms",
        architecture="all",
        marks=marks,
        relations={
            "Depends": "dkms, mlnx-ofed-kernel-utils, libc6-dev, gcc",
            "Recommends": f"linux-headers-arm64 | {HEADERS}",
            "Provides": "mlnx-rdma-rxe-dkms, fwctl-dkms",
            "Conflicts": "mlnx-rdma-rxe-dkms, fwctl-dkms",
            "Replaces": "mlnx-rdma-rxe-dkms, fwctl-dkms",
        },
        parts={
            "ofed_dkms": f"usr/src/mlnx-ofed-kernel-{release.dkms}",
            "ofed_dkms_force": "",
        },
        scripts=_ofed_dkms(release),
    )


# openibd is enabled, and not started: a boot does that, which is why the first start after it is
# somebody's ("manual") and the id of this boot is left behind.
_UTILS = {
    "postinst": """case $1 in
    configure)
        update-rc.d openibd defaults >/dev/null 2>&1 || true
        if [ -d /run/systemd/system ]; then
            systemctl daemon-reload >/dev/null 2>&1 || true
            systemctl enable openibd >/dev/null 2>&1 || true
            tr -d - </proc/sys/kernel/random/boot_id >/run/openibd.bootid 2>/dev/null || true
            [ -s /run/openibd.bootid ] || echo manual >/run/openibd.bootid || true
        fi
        if [ -e /etc/security/limits.conf ] && [ ! -e /.dockerenv ]; then
            for kind in soft hard; do
                grep -qE "$kind.*memlock" /etc/security/limits.conf ||
                    echo "* $kind memlock unlimited" >>/etc/security/limits.conf
            done
        fi
        ;;
esac
""",
    "prerm": """if [ "$1" = remove ]; then
    update-rc.d -f openibd remove >/dev/null 2>&1 || true
    if [ -d /run/systemd/system ]; then systemctl disable openibd >/dev/null 2>&1 || true; fi
fi
""",
}


def _ofed_dkms(release: OfedRelease) -> dict[str, str]:
    scripts = dkms_scripts("mlnx-ofed-kernel", "mlnx-ofed-kernel-dkms", release.dkms)
    # Priority 17 marks what the build has left behind.
    scripts["prerm"] += """update-alternatives --query ofa_kernel_headers 2>/dev/null |
    awk 'BEGIN { RS = "\\n\\n" } /Priority: 17/ { print $2 }' | while read -r folder; do
    update-alternatives --remove ofa_kernel_headers "$folder"
    rm -rf "$folder"
done
"""
    return scripts
