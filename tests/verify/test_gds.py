"""GPUDirect Storage: cufile.json as a reader of JSON sees it once its comments are out."""

import json
import re
from collections.abc import Iterator
from typing import Any

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each
from tests.verify.test_rails import _address

CUFILE = "/etc/cufile.json"
_STRING_OR = r'("(?:[^"\\]|\\.)*")|'


def _flat(
    told: dict[str, Any], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, value in told.items():
        if isinstance(value, dict):
            yield from _flat(value, (*above, key))
        else:
            yield (*above, key), value


def _addresses(node: Node, asked: Any) -> list[str]:
    """Rails by their addresses, as the plan's own test works them out."""
    nics = node.rails.nics
    if asked == "rails":
        asked = [f"rail{rail}" for rail, nic in sorted(nics.items()) if nic.gpu is not None]
    found: list[str] = []
    for one in asked:
        if one.startswith("rail"):
            number = int(one.removeprefix("rail"))
            address = _address(node, number, nics[number])
            assert address is not None
            one = str(address.ip)
        found += [] if one in found else [one]
    return found


def _each_key(node: Node) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    told = node.gds.cufile.model_dump(mode="json", exclude_none=True)
    other = told.pop("other")
    keys = [*_flat(told), *((tuple(key.split(".")), value) for key, value in other.items())]
    for path, value in keys:
        wanted = _addresses(node, value) if path[-1] == "rdma_dev_addr_list" else value
        yield ".".join(path), path, wanted


def _each_node(node: Node) -> Iterator[tuple[str]]:
    if any(_each_key(node)):
        yield ("file",)


def _each_mode(node: Node) -> Iterator[tuple[str, str]]:
    if node.gds.mode is not None:
        yield "mode", node.gds.mode


def _read(host: Host) -> dict[str, Any]:
    text = host.check_output(f"cat {CUFILE}")
    bare = re.sub(rf"{_STRING_OR}//[^\n]*|/\*.*?\*/", lambda m: m[1] or " ", text, flags=re.DOTALL)
    found = json.loads(re.sub(rf"{_STRING_OR},(?=\s*[}}\]])", lambda m: m[1] or "", bare))
    assert isinstance(found, dict)
    return found


def _at(found: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        assert isinstance(found, dict), f"no section above {key}"
        assert key in found, f"no {'.'.join(path)}"
        found = found[key]
    return found


@for_each(_each_key)
def test_key(host: Host, node: Node, case: tuple[str, tuple[str, ...], Any]) -> None:
    _, path, wanted = case
    found = _at(_read(host), path)
    assert found == wanted
    # JSON's true and 1 are one to Python.
    assert isinstance(found, bool) == isinstance(wanted, bool)


@for_each(_each_node)
def test_file(host: Host, node: Node, case: tuple[str]) -> None:
    """It is a file that users' processes read, and nothing leads them to another one."""
    assert host.run(f"su -s /bin/cat nobody -- {CUFILE}").rc == 0
    lines = host.run(
        "grep -rhsE '^[^#]*CUFILE_ENV_PATH_JSON *(=|DEFAULT=)' /etc/environment /etc/profile "
        "/etc/profile.d /etc/environment.d /etc/security/pam_env.conf"
    ).stdout.splitlines()
    assert [line for line in lines if CUFILE not in line] == []


@for_each(_each_mode)
def test_mode(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    mode = case[1]
    if mode != "auto":
        exists = host.file(CUFILE).exists
        properties = _read(host).get("properties", {}) if exists or mode == "p2pdma" else {}
        assert properties.get("use_pci_p2pdma", False) is (mode == "p2pdma")
    if not owns_kernel:
        return
    classic = host.file("/proc/driver/nvidia-fs/version").exists
    open_driver = "Open Kernel Module" in host.run("cat /proc/driver/nvidia/version").stdout
    multipath = host.run("cat /sys/module/nvme_core/parameters/multipath").stdout.strip()
    in_kernel = host.run("grep -q ' p2pdma_pgmap_ops' /proc/kallsyms").rc == 0
    p2pdma = open_driver and in_kernel and multipath != "Y"
    ways = {"nvidia-fs": classic, "p2pdma": p2pdma, "auto": classic or p2pdma}
    assert ways[mode]
