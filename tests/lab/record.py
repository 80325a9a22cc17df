"""Record snapshots of one node in many states, for the tests that replay them.

``python -m tests.lab.record gpu001`` takes the converged node through each state below and back.
What is right for each recorded state is written by hand, in tests/snapshots/verdicts.yaml.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass

from .demo import INVENTORY, ROOT, DemoError, run
from .lab import Lab
from .layout import DISTROS

SNAPSHOTS = ROOT / "tests" / "snapshots"


@dataclass(frozen=True)
class Scene:
    """A state of the node: how it gets there from the converged one, and back."""

    name: str
    enter: str
    leave: str


_QOS = "systemctl start railwright-qos@0000:16:00.0 railwright-qos-watch"
_SYSTEMD = "/etc/systemd/system.conf.d/99-zz-railwright.conf"
_GRUB = "/etc/default/grub.d/99-zzz-site.cfg"

SCENES = (
    Scene("converged", "true", "true"),
    Scene(
        "live_sysctls",
        "sysctl -q -w kernel.numa_balancing=2 vm.swappiness=60",
        "sysctl -q -w kernel.numa_balancing=0 vm.swappiness=1",
    ),
    Scene(
        "sysctl_overridden",
        "echo 'vm.swappiness = 10' >/etc/sysctl.d/99-zzz-site.conf",
        "rm /etc/sysctl.d/99-zzz-site.conf",
    ),
    Scene(
        "sysctl_bad_lines",
        "printf '// ====\\n// site tuning\\nvm.swappiness = 1\\n' >/etc/sysctl.d/10-site.conf",
        "rm /etc/sysctl.d/10-site.conf",
    ),
    Scene(
        "sysctl_drop_in_gone",
        "mv /etc/sysctl.d/99-zz-railwright.conf /root/",
        "mv /root/99-zz-railwright.conf /etc/sysctl.d/",
    ),
    Scene(
        "thp_live",
        "echo always >/sys/kernel/mm/transparent_hugepage/enabled",
        "echo madvise >/sys/kernel/mm/transparent_hugepage/enabled",
    ),
    Scene(
        "hugepages_short",
        "echo 10 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages",
        "echo 64 >/sys/devices/system/node/node1/hugepages/hugepages-2048kB/nr_hugepages",
    ),
    Scene(
        "grub_reset",
        f"echo 'GRUB_CMDLINE_LINUX_DEFAULT=\"console=ttyS0\"' >{_GRUB}",
        f"rm {_GRUB}",
    ),
    Scene(
        "grub_stale",
        "cp -p /boot/grub/grub.cfg /root/ && sed -i 's/ iommu=pt//' /boot/grub/grub.cfg",
        "cp -p /root/grub.cfg /boot/grub/grub.cfg",
    ),
    Scene("blacklisted_loaded", "modprobe -i rds", "modprobe -r rds"),
    Scene(
        "held_upgraded",
        "apt-get install -qy --allow-change-held-packages railwright-lab-held=1.1",
        "apt-get install -qy --allow-downgrades --allow-change-held-packages "
        "railwright-lab-held=1.0 && apt-mark hold railwright-lab-held",
    ),
    Scene(
        "services_limited",
        f"mv {_SYSTEMD} /root/system.conf && systemctl daemon-reexec && "
        "systemctl restart railwright-lab-job",
        f"mv /root/system.conf {_SYSTEMD} && systemctl daemon-reexec && "
        "systemctl restart railwright-lab-job",
    ),
    Scene("clock_stopped", "systemctl stop chrony", "systemctl start chrony"),
    Scene(
        "rail_lossy",
        # The watch would put it right, as the change drops the link.
        "systemctl stop railwright-qos-watch && dcb pfc set dev rail3 prio-pfc all:off 4:on",
        _QOS,
    ),
    Scene("rail_pauses", "ethtool -A rail3 autoneg off rx on tx on", _QOS),
    Scene(
        "rail_without_its_table",
        "ip -4 rule del from 10.64.48.2 && ip -4 route flush table 103",
        "networkctl reconfigure rail3 && sleep 5",
    ),
    Scene("rail_mtu", "ip link set rail5 mtu 1500", "ip link set rail5 mtu 9000"),
    Scene("rail_down", "ip link set rail6 down", "ip link set rail6 up && sleep 5"),
    Scene(
        "qos_unit_gone",
        "mv /etc/railwright/qos/0000:16:00.0.conf /root/",
        "mv /root/0000:16:00.0.conf /etc/railwright/qos/",
    ),
    Scene(
        "sysctl_missing",
        "mv /usr/sbin/sysctl /root/sysctl",
        "mv /root/sysctl /usr/sbin/sysctl",
    ),
)


def record(lab: Lab, node: str, name: str) -> None:
    """Save a snapshot of ``node`` as it is now. Raises DemoError where it cannot be read."""
    done = run(
        ("railwright", "snapshot", INVENTORY, "--limit", node, "--out", str(SNAPSHOTS / name)),
        lab.layout.distro,
    )
    if done.returncode != 0:
        raise DemoError(f"{name}: {done.stdout}{done.stderr}")
    print(f"{name} recorded", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("node")
    parser.add_argument("scenes", nargs="*", help="only these (default: all)")
    options = parser.parse_args()
    distro = next(name for name in DISTROS if name == os.environ.get("DISTRO", "bookworm"))
    lab = Lab(distro)
    for scene in SCENES:
        if options.scenes and scene.name not in options.scenes:
            continue
        try:
            _do(lab, options.node, scene.enter)
            record(lab, options.node, scene.name)
        finally:
            _do(lab, options.node, scene.leave)
    return 0


def _do(lab: Lab, node: str, script: str) -> None:
    done: subprocess.CompletedProcess[str] = lab.run(node, script)
    if done.returncode != 0:
        raise DemoError(f"{script}: {done.stderr}")


if __name__ == "__main__":
    sys.exit(main())
