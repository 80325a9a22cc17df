"""What the kernel component's sections read, run by the real sh on a tree in place of the root."""

import re
import subprocess
from pathlib import Path

import pytest

from facts.kernel import SECTIONS, Kernel, tuned_option
from facts.probe import Focus, Section, script
from railwright.resolve.tmpfiles import writes
from railwright.snapshot import Snapshot, parse_probe

GRUB_CFG = """\
set superusers="admin"
password_pbkdf2 admin grub.pbkdf2.sha512.10000.SECRET
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
else
   set default="0"
fi
function savedefault {
  true
}
menuentry 'Debian GNU/Linux' --class debian $menuentry_id_option 'simple' {
\tload_video
\tif [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
\tlinux\t/boot/vmlinuz-6.1.0 root=UUID=1 ro  quiet iommu=pt
\tinitrd\t/boot/initrd.img-6.1.0
}
"""


def probe(root: Path, files: dict[str, str]) -> Snapshot:
    """The sections' output with ``files`` under ``root``, the paths without it."""
    for path, content in files.items():
        target = root / path[1:]
        target.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("-> "):
            target.symlink_to(content.removeprefix("-> "))
        else:
            target.write_text(content)
    moved = [
        Section(
            name=section.name,
            script=re.sub(
                r"(?<![\w$}\"])/(?=(?:etc|usr|boot|run|efi|proc|sys|sbin)/)",
                f"{root}/",
                section.script,
            )
            .replace(f"grep -ls {root}/sys/", "grep -ls /sys/")
            .replace("systemctl is-active tuned", "echo active"),
        )
        for section in SECTIONS
    ]
    done = subprocess.run(
        ["sh", "-c", script(moved, Focus())], capture_output=True, text=True, check=True
    )
    return parse_probe(done.stdout.replace(f"{root}/", "/"), "n1")


MINIMAL = {"/proc/cmdline": "quiet\n"}


def test_only_the_menu_of_grub_cfg_leaves_the_node(tmp_path: Path) -> None:
    seen = probe(
        tmp_path,
        {
            **MINIMAL,
            "/boot/grub/grub.cfg": GRUB_CFG,
            "/usr/sbin/grub-mkconfig": "for x in /etc/default/grub.d/*.cfg ; do :; done\n",
            "/usr/sbin/update-grub": "#!/bin/sh\n",
            "/etc/default/grub": "GRUB_CMDLINE_LINUX=\n",
            "/etc/default/grub.d/50.cfg": "GRUB_CMDLINE_LINUX=quiet\n",
        },
    )
    assert "SECRET" not in seen.text("kernel_boot")
    found = Kernel().read(seen)
    assert found.next_boot is not None
    assert found.next_boot.kind == "grub"
    assert found.next_boot.entry is not None
    assert found.next_boot.entry.origin == "/boot/grub/grub.cfg:14"
    assert found.next_boot.entry.arguments == ("root=UUID=1", "ro", "quiet", "iommu=pt")
    assert found.next_boot.command == ("/usr/sbin/update-grub",)
    assert found.cmdline.arguments == ("quiet",)


def test_knobs(tmp_path: Path) -> None:
    thp = "/sys/kernel/mm/transparent_hugepage"
    cpu = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"
    files = {
        f"{thp}/enabled": "always [madvise] never\n",
        cpu.format(0): "performance\n",
        cpu.format(11): "powersave\n",
    }
    found = Kernel().read(probe(tmp_path, {**MINIMAL, **files})).knobs
    assert found.thp == {"enabled": "madvise"}
    assert found.governors == {cpu.format(0): "performance", cpu.format(11): "powersave"}


def test_tmpfiles_that_write_and_those_that_stand_over_them(tmp_path: Path) -> None:
    line = "w /sys/kernel/mm/x - - - - {}\n"
    files = {
        "/usr/lib/tmpfiles.d/a.conf": line.format("a"),
        "/usr/lib/tmpfiles.d/b.conf": line.format("b"),
        "/usr/lib/tmpfiles.d/c.conf": line.format("c"),
        "/etc/tmpfiles.d/a.conf": "-> /dev/null",
        "/run/tmpfiles.d/b.conf": "# nothing\n",
        "/usr/lib/tmpfiles.d/tmp.conf": "q /tmp 1777 root root 10d\n",
    }
    found = probe(tmp_path, {**MINIMAL, **files}).files("kernel_tmpfiles")
    assert "/usr/lib/tmpfiles.d/tmp.conf" not in [record.path for record in found]
    (write,) = writes(found)
    assert (write.value, write.origin) == ("c", "/usr/lib/tmpfiles.d/c.conf:1")


@pytest.mark.parametrize(
    ("active", "origin"),
    [
        ("gpu", "/usr/lib/tuned/latency/tuned.conf:2"),
        ("latency gpu", "/usr/lib/tuned/latency/tuned.conf:2"),
        ("own", "/etc/tuned/own/tuned.conf:4"),
    ],
)
def test_tuned_follows_the_profiles(tmp_path: Path, active: str, origin: str) -> None:
    thp = "transparent_hugepages=never"
    files = {
        "/etc/tuned/active_profile": f"{active}\n",
        "/etc/tuned/gpu/tuned.conf": "[main]\ninclude = net, latency\n",
        "/usr/lib/tuned/net/tuned.conf": "[sysctl]\na=1\n",
        "/usr/lib/tuned/latency/tuned.conf": f"[vm]\n{thp}\n",
        "/etc/tuned/own/tuned.conf": f"[main]\ninclude=latency\n[vm]\n{thp}\n",
    }
    found = probe(tmp_path, {**MINIMAL, **files}).files("kernel_tuned")
    option = tuned_option(found, "transparent_hugepages")
    assert option is not None
    assert (option.value, option.origin) == ("never", origin)


def test_sections_are_clean_sh() -> None:
    text = script(SECTIONS, Focus())
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034", "-"],
        input=text, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
