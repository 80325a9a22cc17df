"""Kernel arguments, THP and governors, read from /proc, /sys, grub.cfg and systemd-tmpfiles."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each

GRUB_CFG = ("/boot/grub/grub.cfg", "/boot/grub2/grub.cfg")
DROPIN = "/etc/default/grub.d/99-zz-railwright.cfg"
THP = "/sys/kernel/mm/transparent_hugepage"
GOVERNOR = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"


def _arguments(node: Node) -> Iterator[tuple[str, str]]:
    for name, value in node.kernel.arguments.items():
        yield name, name if value is True else f"{name}={value}"
    if node.kernel.max_cstate is not None:
        for name in ("intel_idle.max_cstate", "processor.max_cstate"):
            yield name, f"{name}={node.kernel.max_cstate}"


def _pools(node: Node) -> Iterator[tuple[str, str]]:
    for size, pool in node.hugepages.pools.items():
        counts = [f"{numa}:{count}" for numa, count in sorted(pool.per_node.items()) if count]
        if pool.allocate == "boot" and counts:
            yield f"hugepages-{size}", f"hugepagesz={size} hugepages={','.join(counts)}"


def _thp(node: Node) -> Iterator[tuple[str, str]]:
    for name in ("enabled", "defrag", "shmem_enabled"):
        value = getattr(node.kernel.thp, name)
        if value is not None:
            yield name, value


def _governors(node: Node) -> Iterator[tuple[str, str]]:
    if node.kernel.governor is not None:
        yield "governor", node.kernel.governor


def _next_arguments(host: Host) -> str | None:
    """What the boot loader starts Linux with; None where this host's boot loader is elsewhere."""
    for path in GRUB_CFG:
        lines = host.run(f"cat {path}").stdout.splitlines()
        found = [line.strip() for line in lines if re.match(r"\s*linux(efi|16)?\s", line)]
        if found:
            return found[0]
    info = host.run("grubby --info=DEFAULT")
    args = re.search(r'^args="(.*)"$', info.stdout, re.MULTILINE)
    return args[1] if args else None


def _asked_arguments(host: Host) -> str | None:
    """What the node's own sh makes of grub's files; None where grub-mkconfig reads no drop-ins."""
    if host.run("grep -qs default/grub.d /usr/sbin/grub-mkconfig").rc != 0:
        return None
    return host.check_output(
        "sh -ec '. /etc/default/grub; for x in /etc/default/grub.d/*.cfg; do . $x; done; "
        'echo "$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX_DEFAULT"\''
    )


def _everywhere(host: Host) -> list[str]:
    """The arguments that the kernel has, will have, and will have when grub.cfg is made anew."""
    lines = [host.file("/proc/cmdline").content_string, _next_arguments(host)]
    return [line for line in (*lines, _asked_arguments(host)) if line is not None]


def _words(line: str, name: str) -> list[str]:
    return [word for word in line.split() if word.partition("=")[0] == name]


def _owns_nothing(host: Host) -> None:
    """A container boots nothing: there must be no drop-in that says it does."""
    assert not host.file(DROPIN).exists


@for_each(_arguments)
def test_argument(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    name, wanted = case
    if not owns_kernel:
        _owns_nothing(host)
        return
    for line in _everywhere(host):
        assert _words(line, name)[-1:] == [wanted], line


@for_each(_pools)
def test_pool_at_boot(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    _, wanted = case
    if not owns_kernel:
        _owns_nothing(host)
        return
    for line in _everywhere(host):
        assert f" {wanted} " in f" {' '.join(line.split())} ", line
        size = wanted.split()[0]
        assert line.split().count(size) == 1, line


def _at_boot(host: Host, path: str) -> list[str]:
    """The values that tmpfiles.d writes to ``path``, in order, of equal paths only the first."""
    found: dict[str, str] = {}
    for line in host.check_output("systemd-tmpfiles --cat-config").splitlines():
        fields = line.split(None, 6)
        if len(fields) == 7 and fields[0].startswith("w") and fnmatch(path, fields[1]):
            found.setdefault(fields[1], fields[6].strip())
    return list(found.values())


@for_each(_thp)
def test_thp(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    name, wanted = case
    assert _at_boot(host, f"{THP}/{name}")[-1:] == [wanted]
    if owns_kernel:
        shown = host.file(f"{THP}/{name}")
        assert not shown.exists or f"[{wanted}]" in shown.content_string


@for_each(_governors)
def test_governor(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    _, wanted = case
    found = host.run(f"cat {GOVERNOR.replace('cpu0', 'cpu[0-9]*')}").stdout.split()
    if not owns_kernel or not found:
        # The firmware, or the container's host, sets frequencies: nothing may pretend to.
        assert _at_boot(host, GOVERNOR) == []
        return
    assert set(found) == {wanted}
    assert _at_boot(host, GOVERNOR)[-1:] == [wanted]
