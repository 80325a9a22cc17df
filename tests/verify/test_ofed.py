"""The RDMA stack, read with modinfo, from /sys/module, with dkms, and from systemd."""

import re
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each

MODULES = ("ib_core", "mlx5_core")
BUILT = re.compile(
    r"(mlnx-ofed-kernel|mlnx-ofa_kernel|nvidia[a-z-]*|nvidia-fs|lustre[a-z-]*|beegfs)[/,]"
)


def _has_ofed(node: Node) -> bool:
    return node.ofed.kind in ("doca_ofed", "mlnx_ofed")


def _each_module(node: Node) -> Iterator[tuple[str]]:
    if node.ofed.kind is not None:
        yield from ((name,) for name in MODULES)


def _each_ofed(node: Node) -> Iterator[tuple[str]]:
    if _has_ofed(node):
        yield ("as a whole",)


def _kernels(host: Host) -> list[str]:
    """Kernels that could boot: those with an image and modules."""
    listed = host.run("ls /boot").stdout.split()
    images = [
        name.partition("-")[2] for name in listed if name.startswith(("vmlinuz-", "vmlinux-"))
    ]
    return [k for k in images if host.file(f"/lib/modules/{k}/modules.dep").exists]


def _modinfo(host: Host, field: str, name: str, kernel: str) -> str:
    return str(host.run(f"modinfo -k {kernel} -F {field} {name}").stdout.strip())


@for_each(_each_module)
def test_module_is_of_the_stack_for_every_kernel(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    (name,) = case
    # A container has no kernels of its own.
    for kernel in _kernels(host) if owns_kernel else []:
        path = _modinfo(host, "filename", name, kernel)
        assert path, kernel
        of_the_kernel = path == "(builtin)" or f"/{kernel}/kernel/" in path
        assert of_the_kernel != _has_ofed(node), path


@for_each(_each_module)
def test_module_that_is_loaded_is_the_one_on_disk(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    (name,) = case
    loaded = host.file(f"/sys/module/{name}/initstate")
    if not owns_kernel:
        return
    if not loaded.exists:
        # A module of the kernel's own is loaded by the devices that need it.
        assert not _has_ofed(node)
        return
    kernel = host.check_output("uname -r")
    for field in ("srcversion", "version"):
        shown = host.file(f"/sys/module/{name}/{field}")
        live = shown.content_string.strip() if shown.exists else ""
        assert live == _modinfo(host, field, name, kernel), field


@for_each(_each_ofed)
def test_openibd_starts_at_boot(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    state = host.run("systemctl is-enabled openibd.service").stdout.strip()
    assert state in ("enabled", "generated")
    if owns_kernel:
        assert host.run("systemctl is-active openibd.service").stdout.strip() == "active"


@for_each(_each_ofed)
def test_ofed_says_which_it_is(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    said = host.run("ofed_info -s").stdout.strip()
    if node.ofed.kind == "mlnx_ofed":
        assert said == f"MLNX_OFED_LINUX-{node.ofed.version}:"
    else:
        assert re.match(r"(OFED-internal|DOCA)", said), said


@for_each(_each_ofed)
def test_what_dkms_builds_is_in_place_for_every_kernel(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    if not owns_kernel or not host.exists("dkms"):
        return
    lines = [x for x in host.run("dkms status").stdout.splitlines() if BUILT.match(x)]
    modules = {re.split("[/,]", line)[0] for line in lines}
    for kernel in _kernels(host):
        there = {re.split("[/,]", x)[0] for x in lines if kernel in x and ": installed" in x}
        assert there == modules, kernel
    assert not [line for line in lines if "WARNING" in line or "Differ" in line]


@for_each(_each_ofed)
def test_sources_of_ofed_are_those_of_a_kernel_that_boots(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    link = "/usr/src/ofa_kernel/default"
    if not owns_kernel or not host.file(link).exists:
        return
    kernel = host.check_output(f"readlink -f {link}").rpartition("/")[2]
    assert kernel in _kernels(host)
    assert host.file(f"{link}/Module.symvers").exists
