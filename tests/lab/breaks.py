"""The table of breaks: what is broken on a node, what is to be said of it, what a run does.

All rows are broken at once, on two nodes, so that one look and one run serve them all; none hides
another. gpu002 allows no restart of a service and names no version (inventories/breaks.py).
"""

from dataclasses import dataclass

OUR_SYSCTL = "/etc/sysctl.d/99-zz-railwright.conf"
OUR_TMPFILES = "/etc/tmpfiles.d/00-railwright.conf"
OUR_MANAGER = "/etc/systemd/system.conf.d/99-zz-railwright.conf"
OUR_GRUB = "/etc/default/grub.d/99-zz-railwright.cfg"
OUR_LOAD = "/etc/modules-load.d/99-zz-railwright.conf"
OUR_SOURCES = "/etc/chrony/sources.d/railwright.sources"
JOB = "railwright-lab-job.service"
HELD = "railwright-lab-held"


@dataclass(frozen=True)
class Says:
    """What is said of one setting: verdict, effect that it waits for, words that must be there.

    ``after`` is the verdict after the run, ``still`` what must then be said of it.
    """

    component: str
    key: str
    verdict: str
    names: tuple[str, ...] = ()
    effect: str = "live"
    after: str = "ok"
    still: tuple[str, ...] = ()


@dataclass(frozen=True)
class Break:
    """One row. ``script`` breaks the node; ``undo`` takes away what no run may touch.

    ``says`` is all that is reported of it; ``fails`` are tests of verify that must fail; ``undo``
    does no harm where there is nothing left to undo.
    """

    name: str
    node: str
    script: str
    says: tuple[Says, ...]
    fails: tuple[str, ...]
    undo: str = ""


def _row(
    name: str, node: str, script: str, *says: Says, fails: tuple[str, ...], undo: str = ""
) -> Break:
    """A row; ``fails`` come without the node, which stands first in the brackets of their ids."""
    on_node = tuple(test.replace("[", f"[{node}-", 1) for test in fails)
    return Break(name, node, script, says, on_node, undo)


def _stays(
    component: str,
    key: str,
    verdict: str,
    names: tuple[str, ...],
    effect: str = "live",
    still: tuple[str, ...] = (),
) -> Says:
    """What no run may put right: its verdict is the same after one."""
    return Says(component, key, verdict, names, effect, verdict, still)


def _overridden_rows() -> tuple[Break, ...]:
    vendor, site = "/usr/lib/sysctl.d/99-zzz-vendor.conf", "/etc/sysctl.d/zz-site.conf"
    return (
        _row(
            "sysctl overridden by a later file in /usr/lib/sysctl.d",
            "gpu001",
            f"""
echo 'vm.swappiness = 60' >{vendor}
sysctl -qw vm.swappiness=60
""",
            _stays(
                "sysctl",
                "vm.swappiness",
                "overridden",
                (f"persisted 60 by {vendor}:1", "running 60"),
                still=("running 1 ",),
            ),
            fails=("test_sysctl.py::test_sysctl[vm.swappiness]",),
            undo=f"rm -f {vendor}",
        ),
        _row(
            "sysctl overridden by a later file in /etc/sysctl.d",
            "gpu001",
            f"printf '# of the site\\nnet/core/somaxconn=4096\\n' >{site}",
            _stays("sysctl", "net.core.somaxconn", "overridden", (f"persisted 4096 by {site}:2",)),
            fails=("test_sysctl.py::test_sysctl[net.core.somaxconn]",),
            undo=f"rm -f {site}",
        ),
        _row(
            "sysctl overridden by /etc/sysctl.conf when somebody reloads",
            "gpu001",
            "echo 'vm.zone_reclaim_mode = 1' >>/etc/sysctl.conf",
            _stays(
                "sysctl",
                "vm.zone_reclaim_mode",
                "overridden",
                ("/etc/sysctl.conf:", "`sysctl --system`"),
            ),
            fails=("test_sysctl.py::test_sysctl[vm.zone_reclaim_mode]",),
            # Debian 13 has no such file.
            undo="""
sed -i '/^vm.zone_reclaim_mode/d' /etc/sysctl.conf
[ -s /etc/sysctl.conf ] || rm -f /etc/sysctl.conf
""",
        ),
    )


def _sysctl_rows() -> tuple[Break, ...]:
    site = "/etc/sysctl.d/50-site.conf"
    lines = ("test_sysctl.py::test_sysctl_lines_are_assignments[lines]",)
    return (
        _row(
            "sysctl set in the files only",
            "gpu001",
            "sysctl -qw net.core.netdev_max_backlog=1000",
            Says("sysctl", "net.core.netdev_max_backlog", "not_running", ("running 1000",)),
            fails=("test_sysctl.py::test_sysctl[net.core.netdev_max_backlog]",),
        ),
        _row(
            "sysctl set live only",
            "gpu002",
            f"sed -i '/^vm.max_map_count/d' {OUR_SYSCTL}",
            Says("sysctl", "vm.max_map_count", "not_persisted"),
            Says("sysctl", OUR_SYSCTL, "wrong", (OUR_SYSCTL,)),
            fails=("test_sysctl.py::test_sysctl[vm.max_map_count]",),
        ),
        _row(
            "sysctl wrong in our file and live",
            "gpu002",
            f"""
sed -i 's/^kernel.panic = .*/kernel.panic = 0/' {OUR_SYSCTL}
sysctl -qw kernel.panic=0
""",
            Says("sysctl", "kernel.panic", "wrong", (f"persisted 0 by {OUR_SYSCTL}:", "running 0")),
            fails=("test_sysctl.py::test_sysctl[kernel.panic]",),
        ),
        _row(
            "comment with slashes in our own sysctl file",
            "gpu002",
            f"echo '// raised by hand' >>{OUR_SYSCTL}",
            Says("sysctl", OUR_SYSCTL, "wrong", (OUR_SYSCTL,)),
            fails=lines,
        ),
        _row(
            "comment with slashes in a foreign sysctl file",
            "gpu001",
            f"printf '# of the site\\n// see the wiki\\n' >{site}",
            _stays("sysctl", site, "wrong", (f"{site}:2", "// see the wiki")),
            fails=lines,
            undo=f"rm -f {site}",
        ),
        _row(
            "NUMA balancing at 2, which is on",
            "gpu001",
            "sysctl -qw kernel.numa_balancing=2",
            Says("sysctl", "kernel.numa_balancing", "not_running", ("running 2",)),
            fails=("test_sysctl.py::test_sysctl[kernel.numa_balancing]",),
        ),
    )


def _kernel_rows() -> tuple[Break, ...]:
    arguments = ("iommu", "nowatchdog", "intel_idle.max_cstate", "processor.max_cstate")
    reset = "/etc/default/grub.d/zz-site.cfg"
    stale = (f"{OUR_GRUB}:", "/boot/grub/grub.cfg was made before")
    return (
        _row(
            "transparent huge pages changed live",
            "gpu001",
            "echo always >/sys/kernel/mm/transparent_hugepage/enabled",
            Says("kernel", "thp enabled", "not_running", ("running always",)),
            fails=("test_kernel.py::test_thp[enabled]",),
        ),
        _row(
            "our drop-in removed, all still in force",
            "gpu002",
            f"rm {OUR_TMPFILES}",
            Says("kernel", "thp enabled", "not_persisted"),
            Says("kernel", "thp defrag", "not_persisted"),
            Says("kernel", OUR_TMPFILES, "wrong"),
            fails=("test_kernel.py::test_thp[enabled]",),
        ),
        _row(
            "grub.cfg made before the drop-in",
            "gpu001",
            "sed -i 's/ iommu=pt//' /boot/grub/grub.cfg",
            Says("kernel", "argument iommu", "not_generated", stale, effect="reboot"),
            fails=("test_kernel.py::test_argument[iommu]",),
        ),
        _row(
            "a later file of grub.d resets GRUB_CMDLINE_LINUX_DEFAULT",
            "gpu002",
            f"""echo 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"' >{reset}""",
            *(
                _stays("kernel", f"argument {name}", "overridden", (f"{reset}:1",), effect="reboot")
                for name in (*arguments, "hugepages")
            ),
            fails=tuple(f"test_kernel.py::test_argument[{name}]" for name in arguments),
            undo=f"rm -f {reset}",
        ),
        _row(
            "huge pages short on one NUMA node",
            "gpu001",
            "echo 10 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages",
            Says("hugepages", "2M node1", "not_running", ("asked 64, has 10",)),
            fails=("test_hugepages.py::test_hugepages[2M node1]",),
        ),
    )


def _module_rows() -> tuple[Break, ...]:
    listed = ("sunrpc", "rdma_rxe", "rdma_ucm", "nvme_rdma", "nf_conntrack")
    waits = ("waits for driver",)
    comes = ("comes with the module nf_conntrack",)
    return (
        _row(
            "blacklisted module loaded",
            "gpu001",
            # Without -i the install line of the blacklist would keep it out.
            "modprobe -i rds",
            _stays("modules", "blacklist rds", "pending", waits, effect="driver", still=waits),
            fails=("test_modules.py::test_module_is_kept_out[rds]",),
            undo="modprobe -r rds",
        ),
        _row(
            "modules loaded, but not listed for the next boot",
            "gpu001",
            f"rm {OUR_LOAD}",
            *(Says("modules", f"load {name}", "not_persisted") for name in listed),
            Says("modules", OUR_LOAD, "wrong"),
            fails=("test_modules.py::test_module_is_loaded[sunrpc]",),
        ),
        _row(
            "row 37: module gone, and its sysctls with it",
            "gpu002",
            "modprobe -r nf_conntrack",
            Says("modules", "load nf_conntrack", "not_running"),
            Says("modules", "option nf_conntrack.acct", "not_running"),
            Says("sysctl", "net.netfilter.nf_conntrack_max", "not_running", comes),
            fails=("test_modules.py::test_module_is_loaded[nf_conntrack]",),
        ),
    )


def _limit_rows() -> tuple[Break, ...]:
    limits = ("memlock", "nofile", "nproc")
    return (
        _row(
            "memlock unlimited in limits.conf, services get 8 MiB",
            "gpu002",
            f"""
echo '* - memlock unlimited  # a break' >>/etc/security/limits.conf
rm {OUR_MANAGER}
systemctl daemon-reexec
systemctl restart {JOB}
""",
            Says("limits", OUR_MANAGER, "wrong"),
            *(
                Says("limits", f"systemd default {name}", "wrong", effect="new_processes")
                for name in limits
            ),
            *(
                Says(
                    "limits",
                    f"service {JOB} {name}",
                    "wrong",
                    ("process ",),
                    effect="service",
                    after="pending",
                    still=(f"{JOB} keeps it until it is restarted", "waits for service"),
                )
                for name in limits
            ),
            fails=(
                "test_limits.py::test_new_service[memlock-of-services]",
                f"test_limits.py::test_service[memlock-of-{JOB}]",
            ),
            undo=f"""
sed -i '/# a break$/d' /etc/security/limits.conf
systemctl restart {JOB}
""",
        ),
    )


def _time_rows() -> tuple[Break, ...]:
    silent = ("chronyd does not answer",)
    return (
        _row(
            "chronyd stopped",
            "gpu001",
            "systemctl stop chrony.service",
            Says("time", "service", "not_running", ("chrony.service",)),
            Says("time", "source 10.0.2.2", "not_running", silent),
            Says("time", "synchronised", "not_running", silent),
            fails=("test_time.py::test_time_service[chrony]",),
        ),
        _row(
            "our file with a mode in which chronyd cannot read it",
            "gpu002",
            f"chmod 600 {OUR_SOURCES}; chronyc reload sources",
            Says("time", OUR_SOURCES, "wrong", ("root 600",)),
            Says("time", "source 10.0.2.2", "not_running", ("chronyd does not know it",)),
            fails=("test_time.py::test_time_source[10.0.2.2]",),
        ),
    )


def _hold_rows() -> tuple[Break, ...]:
    version = f"version {HELD}"
    upgrade = f"apt-get install -qq -y --allow-change-held-packages {HELD}=1.1"
    # apt takes the hold off what it is told to install.
    unheld = Says("holds", f"hold {HELD}", "wrong", ("persisted not held",))
    named = ("must be 1.0, is 1.1", "apt-get install")
    moved, accept = "held at 1.0, is 1.1", "name 1.1 in the inventory to accept it"
    fails = (f"test_holds.py::test_hold_version[{HELD}]",)
    return (
        _row(
            "held package upgraded, its version named in the inventory",
            "gpu001",
            upgrade,
            Says("holds", version, "wrong", named, effect="service"),
            unheld,
            fails=fails,
        ),
        _row(
            "held package upgraded, no version named",
            "gpu002",
            upgrade,
            _stays("holds", version, "wrong", (moved, accept), effect="service", still=(moved,)),
            unheld,
            fails=fails,
            undo=f"""
apt-get install -qq -y --allow-downgrades --allow-change-held-packages {HELD}=1.0
apt-mark hold {HELD}
""",
        ),
    )


BREAKS: tuple[Break, ...] = (
    *_overridden_rows(),
    *_sysctl_rows(),
    *_kernel_rows(),
    *_module_rows(),
    *_limit_rows(),
    *_time_rows(),
    *_hold_rows(),
)
