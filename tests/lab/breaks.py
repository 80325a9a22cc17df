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


def _sysctl(
    key: str, verdict: str, *names: str, after: str = "ok", still: tuple[str, ...] = ()
) -> Says:
    return Says("sysctl", key, verdict, names, after=after, still=still)


def _sysctl_fails(node: str, *keys: str) -> tuple[str, ...]:
    return tuple(f"test_sysctl.py::test_sysctl[{node}-{key}]" for key in keys)


def _sysctl_rows() -> tuple[Break, ...]:
    return (
        Break(
            name="sysctl overridden by a later file in /usr/lib/sysctl.d",
            node="gpu001",
            script="""
echo 'vm.swappiness = 60' >/usr/lib/sysctl.d/99-zzz-vendor.conf
sysctl -qw vm.swappiness=60
""",
            says=(
                _sysctl(
                    "vm.swappiness",
                    "overridden",
                    "persisted 60 by /usr/lib/sysctl.d/99-zzz-vendor.conf:1",
                    "running 60",
                    after="overridden",
                    still=("running 1 ",),
                ),
            ),
            fails=_sysctl_fails("gpu001", "vm.swappiness"),
            undo="rm -f /usr/lib/sysctl.d/99-zzz-vendor.conf",
        ),
        Break(
            name="sysctl overridden by a later file in /etc/sysctl.d",
            node="gpu001",
            script="""
printf '# of the site\\nnet/core/somaxconn=4096\\n' >/etc/sysctl.d/zz-site.conf
""",
            says=(
                _sysctl(
                    "net.core.somaxconn",
                    "overridden",
                    "persisted 4096 by /etc/sysctl.d/zz-site.conf:2",
                    after="overridden",
                ),
            ),
            fails=_sysctl_fails("gpu001", "net.core.somaxconn"),
            undo="rm -f /etc/sysctl.d/zz-site.conf",
        ),
        Break(
            name="sysctl overridden by /etc/sysctl.conf when somebody reloads",
            node="gpu001",
            script="echo 'vm.zone_reclaim_mode = 1' >>/etc/sysctl.conf",
            says=(
                _sysctl(
                    "vm.zone_reclaim_mode",
                    "overridden",
                    "/etc/sysctl.conf:",
                    "`sysctl --system`",
                    after="overridden",
                ),
            ),
            fails=_sysctl_fails("gpu001", "vm.zone_reclaim_mode"),
            # Debian 13 has no such file.
            undo="""
sed -i '/^vm.zone_reclaim_mode/d' /etc/sysctl.conf
[ -s /etc/sysctl.conf ] || rm -f /etc/sysctl.conf
""",
        ),
        Break(
            name="sysctl set in the files only",
            node="gpu001",
            script="sysctl -qw net.core.netdev_max_backlog=1000",
            says=(_sysctl("net.core.netdev_max_backlog", "not_running", "running 1000"),),
            fails=_sysctl_fails("gpu001", "net.core.netdev_max_backlog"),
        ),
        Break(
            name="sysctl set live only",
            node="gpu002",
            script=f"sed -i '/^vm.max_map_count/d' {OUR_SYSCTL}",
            says=(
                _sysctl("vm.max_map_count", "not_persisted"),
                _sysctl(OUR_SYSCTL, "wrong", OUR_SYSCTL),
            ),
            fails=_sysctl_fails("gpu002", "vm.max_map_count"),
        ),
        Break(
            name="sysctl wrong in our file and live",
            node="gpu002",
            script=f"""
sed -i 's/^kernel.panic = .*/kernel.panic = 0/' {OUR_SYSCTL}
sysctl -qw kernel.panic=0
""",
            says=(_sysctl("kernel.panic", "wrong", f"persisted 0 by {OUR_SYSCTL}:", "running 0"),),
            fails=_sysctl_fails("gpu002", "kernel.panic"),
        ),
        Break(
            name="comment with slashes in our own sysctl file",
            node="gpu002",
            script=f"echo '// raised by hand' >>{OUR_SYSCTL}",
            says=(_sysctl(OUR_SYSCTL, "wrong", OUR_SYSCTL),),
            fails=("test_sysctl.py::test_sysctl_lines_are_assignments[gpu002-lines]",),
        ),
        Break(
            name="comment with slashes in a foreign sysctl file",
            node="gpu001",
            script="""
printf '# of the site\\n// see the wiki\\n' >/etc/sysctl.d/50-site.conf
""",
            says=(
                _sysctl(
                    "/etc/sysctl.d/50-site.conf",
                    "wrong",
                    "/etc/sysctl.d/50-site.conf:2",
                    "// see the wiki",
                    after="wrong",
                ),
            ),
            fails=("test_sysctl.py::test_sysctl_lines_are_assignments[gpu001-lines]",),
            undo="rm -f /etc/sysctl.d/50-site.conf",
        ),
        Break(
            name="NUMA balancing at 2, which is on",
            node="gpu001",
            script="sysctl -qw kernel.numa_balancing=2",
            says=(_sysctl("kernel.numa_balancing", "not_running", "running 2"),),
            fails=_sysctl_fails("gpu001", "kernel.numa_balancing"),
        ),
    )


def _kernel_rows() -> tuple[Break, ...]:
    arguments = ("iommu", "nowatchdog", "intel_idle.max_cstate", "processor.max_cstate")
    reset = "/etc/default/grub.d/zz-site.cfg"
    return (
        Break(
            name="transparent huge pages changed live",
            node="gpu001",
            script="echo always >/sys/kernel/mm/transparent_hugepage/enabled",
            says=(Says("kernel", "thp enabled", "not_running", ("running always",)),),
            fails=("test_kernel.py::test_thp[gpu001-enabled]",),
        ),
        Break(
            name="our drop-in removed, all still in force",
            node="gpu002",
            script=f"rm {OUR_TMPFILES}",
            says=(
                Says("kernel", "thp enabled", "not_persisted"),
                Says("kernel", "thp defrag", "not_persisted"),
                Says("kernel", OUR_TMPFILES, "wrong"),
            ),
            fails=("test_kernel.py::test_thp[gpu002-enabled]",),
        ),
        Break(
            name="grub.cfg made before the drop-in",
            node="gpu001",
            script="sed -i 's/ iommu=pt//' /boot/grub/grub.cfg",
            says=(
                Says(
                    "kernel",
                    "argument iommu",
                    "not_generated",
                    (f"{OUR_GRUB}:", "/boot/grub/grub.cfg was made before"),
                    effect="reboot",
                ),
            ),
            fails=("test_kernel.py::test_argument[gpu001-iommu]",),
        ),
        Break(
            name="a later file of grub.d resets GRUB_CMDLINE_LINUX_DEFAULT",
            node="gpu002",
            script=f"""echo 'GRUB_CMDLINE_LINUX_DEFAULT="quiet"' >{reset}""",
            says=tuple(
                Says(
                    "kernel",
                    f"argument {name}",
                    "overridden",
                    (f"{reset}:1",),
                    effect="reboot",
                    after="overridden",
                )
                for name in (*arguments, "hugepages")
            ),
            fails=tuple(f"test_kernel.py::test_argument[gpu002-{name}]" for name in arguments),
            undo=f"rm -f {reset}",
        ),
        Break(
            name="huge pages short on one NUMA node",
            node="gpu001",
            script="""
cd /sys/devices/system/node/node1/hugepages/hugepages-2048kB
echo 10 >nr_hugepages
""",
            says=(Says("hugepages", "2M node1", "not_running", ("asked 64, has 10",)),),
            fails=("test_hugepages.py::test_hugepages[gpu001-2M node1]",),
        ),
    )


def _module_rows() -> tuple[Break, ...]:
    return (
        Break(
            name="blacklisted module loaded",
            node="gpu001",
            # Without -i the install line of the blacklist would keep it out.
            script="modprobe -i rds",
            says=(
                Says(
                    "modules",
                    "blacklist rds",
                    "pending",
                    ("waits for driver",),
                    effect="driver",
                    after="pending",
                    still=("waits for driver",),
                ),
            ),
            fails=("test_modules.py::test_module_is_kept_out[gpu001-rds]",),
            undo="modprobe -r rds",
        ),
        Break(
            name="modules loaded, but not listed for the next boot",
            node="gpu001",
            script=f"rm {OUR_LOAD}",
            says=(
                Says("modules", "load sunrpc", "not_persisted"),
                Says("modules", "load rdma_rxe", "not_persisted"),
                Says("modules", "load rdma_ucm", "not_persisted"),
                Says("modules", "load nvme_rdma", "not_persisted"),
                Says("modules", "load nf_conntrack", "not_persisted"),
                Says("modules", OUR_LOAD, "wrong"),
            ),
            fails=("test_modules.py::test_module_is_loaded[gpu001-sunrpc]",),
        ),
        Break(
            name="row 37: module gone, and its sysctls with it",
            node="gpu002",
            script="modprobe -r nf_conntrack",
            says=(
                Says("modules", "load nf_conntrack", "not_running"),
                Says("modules", "option nf_conntrack.acct", "not_running"),
                _sysctl(
                    "net.netfilter.nf_conntrack_max",
                    "not_running",
                    "comes with the module nf_conntrack",
                ),
            ),
            fails=("test_modules.py::test_module_is_loaded[gpu002-nf_conntrack]",),
        ),
    )


def _limit_rows() -> tuple[Break, ...]:
    limits = ("memlock", "nofile", "nproc")
    return (
        Break(
            name="memlock unlimited in limits.conf, services get 8 MiB",
            node="gpu002",
            script=f"""
echo '* - memlock unlimited  # a break' >>/etc/security/limits.conf
rm {OUR_MANAGER}
systemctl daemon-reexec
systemctl restart {JOB}
""",
            says=(
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
            ),
            fails=(
                "test_limits.py::test_new_service[gpu002-memlock-of-services]",
                f"test_limits.py::test_service[gpu002-memlock-of-{JOB}]",
            ),
            undo=f"""
sed -i '/# a break$/d' /etc/security/limits.conf
systemctl restart {JOB}
""",
        ),
    )


def _time_rows() -> tuple[Break, ...]:
    return (
        Break(
            name="chronyd stopped",
            node="gpu001",
            script="systemctl stop chrony.service",
            says=(
                Says("time", "service", "not_running", ("chrony.service",)),
                Says("time", "source 10.0.2.2", "not_running", ("chronyd does not answer",)),
                Says("time", "synchronised", "not_running", ("chronyd does not answer",)),
            ),
            fails=("test_time.py::test_time_service[gpu001-chrony]",),
        ),
        Break(
            name="our file with a mode in which chronyd cannot read it",
            node="gpu002",
            script=f"chmod 600 {OUR_SOURCES}; chronyc reload sources",
            says=(
                Says("time", OUR_SOURCES, "wrong", ("root 600",)),
                Says("time", "source 10.0.2.2", "not_running", ("chronyd does not know it",)),
            ),
            fails=("test_time.py::test_time_source[gpu002-10.0.2.2]",),
        ),
    )


_UPGRADE = """
apt-get install -qq -y --allow-change-held-packages railwright-lab-held=1.1
"""
_HELD = "version railwright-lab-held"
# apt takes the hold off what it is told to install.
_UNHELD = Says("holds", "hold railwright-lab-held", "wrong", ("persisted not held",))


def _hold_rows() -> tuple[Break, ...]:
    return (
        Break(
            name="held package upgraded, its version named in the inventory",
            node="gpu001",
            script=_UPGRADE,
            says=(
                Says(
                    "holds",
                    _HELD,
                    "wrong",
                    ("must be 1.0, is 1.1", "apt-get install"),
                    effect="service",
                ),
                _UNHELD,
            ),
            fails=("test_holds.py::test_hold_version[gpu001-railwright-lab-held]",),
        ),
        Break(
            name="held package upgraded, no version named",
            node="gpu002",
            script=_UPGRADE,
            says=(
                Says(
                    "holds",
                    _HELD,
                    "wrong",
                    ("held at 1.0, is 1.1", "name 1.1 in the inventory to accept it"),
                    effect="service",
                    after="wrong",
                    still=("held at 1.0, is 1.1",),
                ),
                _UNHELD,
            ),
            fails=("test_holds.py::test_hold_version[gpu002-railwright-lab-held]",),
            undo="""
apt-get install -qq -y --allow-downgrades --allow-change-held-packages railwright-lab-held=1.0
apt-mark hold railwright-lab-held
""",
        ),
    )


BREAKS: tuple[Break, ...] = (
    *_sysctl_rows(),
    *_kernel_rows(),
    *_module_rows(),
    *_limit_rows(),
    *_time_rows(),
    *_hold_rows(),
)
