"""Kernel parameters, read under /proc/sys and from what systemd-sysctl itself would read."""

import re
import shlex
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each

SYSTEMD_SYSCTL = "/lib/systemd/systemd-sysctl"
# Keys that come with a module, which a node may not have loaded.
LATE = (
    "dev.raid.",
    "fs.nfs.",
    "net.bridge.bridge-nf-",
    "net.ipv4.vs.",
    "net.iw_cm.",
    "net.netfilter.nf_conntrack_",
    "net.nf_conntrack_max",
    "net.rdma_ucm.",
    "net.rds.",
    "net.sctp.",
    "net.smc.",
    "sunrpc.",
)


def _wanted(node: Node) -> dict[str, list[str]]:
    found = {}
    for key, value in node.sysctl.values.items():
        if value is not None:
            many = value if isinstance(value, tuple) else str(value).split()
            found[key] = [str(one) for one in many]
    if node.kernel.numa_balancing is not None:
        found["kernel.numa_balancing"] = ["1" if node.kernel.numa_balancing else "0"]
    return found


def _each_key(node: Node) -> Iterator[tuple[str, list[str]]]:
    yield from _wanted(node).items()


def _each_node(node: Node) -> Iterator[tuple[str]]:
    if _wanted(node):
        yield ("lines",)


def _path(key: str) -> str:
    return "/proc/sys/" + "/".join(part.replace("/", ".") for part in key.split("."))


def _lines(host: Host) -> list[str]:
    """Every line that counts, last file last, as systemd-sysctl prints them."""
    lines = host.check_output(f"{SYSTEMD_SYSCTL} --cat-config").splitlines()
    return [line.strip() for line in lines if line.strip() and line.strip()[0] not in "#;"]


def _persisted(host: Host, key: str) -> list[str] | None:
    found = None
    for line in _lines(host):
        left, sets, value = line.partition("=")
        name = left.strip().removeprefix("-").strip()
        # With a slash before any dot, slashes part the key and dots stand for themselves.
        as_path = name if re.match(r"[^./]*/", name) else _path(name).removeprefix("/proc/sys/")
        if f"/proc/sys/{as_path}" == _path(key):
            found = value.split() if sets else None
    return found


def _running(host: Host, node: Node) -> dict[str, list[str]]:
    """What the kernel says of the keys that it has, by path."""
    paths = shlex.join(map(_path, sorted(_wanted(node))))
    lines = host.run(f"grep -sH '' {paths} /dev/null").stdout.splitlines()
    return {path: value.split() for path, _, value in (line.partition(":") for line in lines)}


def _is_right(key: str, found: list[str] | None, wanted: list[str]) -> bool:
    if key == "kernel.numa_balancing" and wanted == ["1"]:
        return found is not None and found != ["0"]
    return found == wanted


@for_each(_each_key)
def test_sysctl(host: Host, node: Node, case: tuple[str, list[str]], owns_kernel: bool) -> None:
    key, wanted = case
    running = _running(host, node).get(_path(key))
    if owns_kernel and running is None and not key.startswith(LATE):
        # Not a key of this kernel: to write it would do nothing but fill the journal.
        assert _persisted(host, key) is None
        return
    assert _is_right(key, _persisted(host, key), wanted), _persisted(host, key)
    if key.startswith(LATE):
        rules = host.check_output("cat /etc/udev/rules.d/*.rules")
        prefix = re.escape(_path(key).removeprefix("/proc/sys"))
        assert re.search(rf'SUBSYSTEM=="module".*systemd-sysctl .*--prefix={prefix}[ "]', rules)
    if owns_kernel and running is not None:
        assert _is_right(key, running, wanted), running
        # A reload by hand reads this file last.
        conf = host.run("cat /etc/sysctl.conf").stdout.splitlines()
        others = [line for line in conf if re.match(rf"\s*-?{re.escape(key)}\s*=", line)]
        assert all(_is_right(key, x.split("=", 1)[1].split(), wanted) for x in others), others


@for_each(_each_node)
def test_sysctl_lines_are_assignments(host: Host, node: Node, case: tuple[str]) -> None:
    # A prefix that no key has: every line is read, none is applied.
    parsed = host.run(f"{SYSTEMD_SYSCTL} --prefix=/railwright-none")
    assert parsed.rc == 0, parsed.stderr
    keys = [line.split("=", 1)[0].strip() for line in _lines(host)]
    assert not [key for key in keys if key.startswith("//") or not key.strip("-/.") or " " in key]
