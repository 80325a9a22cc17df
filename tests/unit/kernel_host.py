"""A node as the kernel component sees it: Debian with GRUB, built by hand after a real one."""

from collections.abc import Mapping
from typing import Any

from deploys.kernel import actions, settings
from railwright.actions import Action
from railwright.resolve.grub import DROPIN
from railwright.schema import EffectsSpec, HugepagePool, HugepagesSpec, KernelSpec, Node
from railwright.settings import Effect, Setting, Verdict, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.records import MARKER, metadata, records

LIVE = frozenset({Effect.LIVE, Effect.NEW_PROCESSES})
REBOOT = LIVE | {Effect.REBOOT}
DEBIAN_DEFAULTS = """\
GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR=`lsb_release -i -s 2> /dev/null || echo Debian`
GRUB_CMDLINE_LINUX_DEFAULT="quiet"
GRUB_CMDLINE_LINUX=""
"""
CLOUDIMG = "/etc/default/grub.d/50-cloudimg-settings.cfg"
MKCONFIG = {"/usr/sbin/grub-mkconfig": "163:for x in ${sysconfdir}/default/grub.d/*.cfg ; do"}
THP = "/sys/kernel/mm/transparent_hugepage"
GOVERNOR = "/sys/devices/system/cpu/cpu{}/cpufreq/scaling_governor"


def grub_cfg(arguments: str) -> str:
    """The lines of a Debian grub.cfg that the probe sends."""
    linux = "linux\t/boot/vmlinuz-6.1.0-57-amd64 root=UUID=1-2 ro "
    option = "$menuentry_id_option"
    return f"""\
14:   set default="${{next_entry}}"
19:   set default="0"
38:function savedefault {{
43:}}
86:menuentry 'Debian GNU/Linux' --class debian {option} 'gnulinux-simple-1-2' {{
94:\t{linux} {arguments}
97:}}
98:submenu 'Advanced options for Debian GNU/Linux' {option} 'gnulinux-advanced-1-2' {{
99:\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-57-amd64' {option} 'gnulinux-6.1.0-57-adv' {{
107:\t\t{linux} {arguments} advanced
110:\t}}
111:\tmenuentry 'Debian GNU/Linux, with Linux 6.1.0-57-amd64 (recovery mode)' {option} 'rec' {{
119:\t\t{linux} single
122:\t}}
123:}}
"""


def snapshot(
    cmdline: str = "quiet",
    boot: Mapping[str, str] | None = None,
    *,
    generated: str | None = None,
    thp: str = "[always] madvise never",
    governors: tuple[str, ...] = (),
    tmpfiles: Mapping[str, str] | None = None,
    tuned: Mapping[str, str] | None = None,
    identity: str = "",
    kernel: str = "6.1.0-57-amd64",
    tools: tuple[str, ...] = ("/usr/sbin/update-grub",),
) -> Snapshot:
    """``generated`` are the arguments in grub.cfg, by default those of the running kernel."""
    files = {
        "/boot/grub/grub.cfg": grub_cfg(cmdline if generated is None else generated),
        **MKCONFIG,
        "/etc/default/grub": DEBIAN_DEFAULTS,
        **(boot or {}),
    }
    knobs = f"{THP}/enabled:{thp}\n{THP}/defrag:always defer defer+madvise [madvise] never\n"
    knobs += "".join(f"{GOVERNOR.format(cpu)}:{value}\n" for cpu, value in enumerate(governors))
    parts = {
        "identity": f"kernel={kernel}\n{identity}",
        "cmdline": f"BOOT_IMAGE=/boot/vmlinuz-{kernel} root=UUID=1-2 ro {cmdline}\n",
        "kernel_boot": records(files) + "".join(metadata(tool, mode="755") for tool in tools),
        "kernel_knobs": knobs,
        "kernel_tmpfiles": records(tmpfiles or {}),
        "kernel_tuned": records(tuned or {}),
    }
    sections = {name: Section(stdout=text, rc=0) for name, text in parts.items()}
    return Snapshot(host="n1", marker=MARKER, sections=sections)


def container(**more: Any) -> Snapshot:
    return snapshot(identity="container=podman\n", **more)


def node(
    arguments: Mapping[str, object] | None = None,
    *,
    thp: Mapping[str, str] | None = None,
    pages: Mapping[str, Mapping[int, int]] | None = None,
    allow: frozenset[Effect] = LIVE,
    **kernel: object,
) -> Node:
    spec = {"arguments": dict(arguments or {}), "thp": dict(thp or {}), **kernel}
    pools = {size: HugepagePool(per_node=dict(counts)) for size, counts in (pages or {}).items()}
    return Node(
        name="n1",
        kernel=KernelSpec.model_validate(spec),
        hugepages=HugepagesSpec.model_validate({"pools": pools}),
        effects=EffectsSpec(allow=allow),
    )


def of(key: str, asked: Node, seen: Snapshot) -> Setting:
    return next(setting for setting in settings(asked, seen) if setting.key == key)


def verdicts(asked: Node, seen: Snapshot) -> dict[str, Verdict]:
    return {s.key: verdict(s, asked.effects.allow) for s in settings(asked, seen)}


def done(asked: Node, seen: Snapshot) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def ours(asked: Node, seen: Snapshot) -> dict[str, str]:
    """The files that a run on ``seen`` installs."""
    return {a.path: a.content for a in done(asked, seen) if a.action == "install"}


def converged(asked: Node, arguments: str, booted: str | None = None) -> Snapshot:
    """A node after a run that put ``arguments`` into grub.cfg; ``booted`` by default with them."""
    files = ours(asked, snapshot())
    boot = {path: text for path, text in files.items() if path == DROPIN}
    tmpfiles = {path: text for path, text in files.items() if path != DROPIN}
    return snapshot(
        arguments if booted is None else booted, boot, generated=arguments, tmpfiles=tmpfiles
    )
