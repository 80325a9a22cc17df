"""The GPU driver, read with modprobe and modinfo, from /proc and systemd, and with nvidia-smi."""

import re
import shlex
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from tests.verify.cases import for_each
from tests.verify.units import assert_unit

UNIT = "railwright-gpu.service"
SWITCHES = {"True": "1", "False": "0", "Y": "1", "N": "0"}


def _each(node: Node) -> Iterator[tuple[str]]:
    if node.gpu_driver.version is not None:
        yield ("driver",)


def _each_option(node: Node) -> Iterator[tuple[str, str]]:
    driver = node.gpu_driver
    if driver.version is None:
        return
    for name, value in driver.options.items():
        yield name, SWITCHES.get(str(value), str(value))


def _each_key(node: Node) -> Iterator[tuple[str, int]]:
    if node.gpu_driver.version is not None:
        yield from node.gpu_driver.registry_dwords.items()


def _each_fabric_manager(node: Node) -> Iterator[tuple[str]]:
    if node.gpu_driver.fabric_manager:
        yield ("nvidia-fabricmanager.service",)


def _each_persistence(node: Node) -> Iterator[tuple[str]]:
    if node.gpu_driver.persistence:
        yield ("nvidia-persistenced.service",)


def _plan(node: Node) -> list[str]:
    """What the unit has to bring about at boot."""
    driver = node.gpu_driver
    lines = ["peermem"] if driver.peer_memory == "nvidia_peermem" else []
    if node.gds.mode == "nvidia-fs":
        lines.append("nvidia-fs")
    if driver.mig is not None:
        lines.append(" ".join(["mig", driver.mig, *sorted(driver.mig_profiles)]))
    if driver.power_limit_w is not None:
        lines.append(f"power {driver.power_limit_w}")
    if driver.graphics_clock_mhz is not None:
        low, high = driver.graphics_clock_mhz
        lines.append(f"clocks {low} {high}")
    return lines if driver.version else []


def _each_unit(node: Node) -> Iterator[tuple[str]]:
    if _plan(node):
        yield (UNIT,)


def _configured(host: Host, *words: str) -> list[str]:
    """The rest of the lines of modprobe's configuration that begin with ``words``, in order."""
    start = " ".join(words) + " "
    lines = host.check_output("modprobe --showconfig").splitlines()
    return [f"{line} "[len(start) :].strip() for line in lines if f"{line} ".startswith(start)]


def _option(host: Host, name: str) -> str:
    """What modprobe gives the module nvidia for ``name``: of several the last."""
    words = [word for line in _configured(host, "options", "nvidia") for word in shlex.split(line)]
    given = [word.partition("=")[2] for word in words if word.partition("=")[0] == name]
    assert given, words
    return given[-1]


def _live(host: Host, name: str) -> str:
    """The driver's own list has the names without their prefix."""
    text = host.file("/proc/driver/nvidia/params").content_string
    found = re.search(rf"^{name.removeprefix('NVreg_')}: (.*)$", text, re.M)
    assert found is not None, text
    return found[1].strip('"')


def _loaded(host: Host, name: str) -> bool:
    lines = host.file("/proc/modules").content_string.splitlines()
    return name in [line.split()[0] for line in lines]


def _smi(host: Host, field: str) -> list[str]:
    asked = f"nvidia-smi --query-gpu={field} --format=csv,noheader,nounits"
    return [line.strip() for line in host.check_output(asked).splitlines()]


@for_each(_each)
def test_driver_is_of_one_version(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    if not owns_kernel:
        return
    version = node.gpu_driver.version
    assert host.check_output("modinfo -F version nvidia") == version
    licence = host.check_output("modinfo -F license nvidia")
    assert (licence == "Dual MIT/GPL") == (node.gpu_driver.modules == "open")
    banner = host.file("/proc/driver/nvidia/version").content_string.splitlines()[0]
    assert f" {version} " in banner
    assert ("Open Kernel Module" in banner) == (node.gpu_driver.modules == "open")
    assert set(_smi(host, "driver_version")) == {version}


@for_each(_each)
def test_nouveau_is_kept_out(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    assert "nouveau" in _configured(host, "blacklist")
    assert _configured(host, "install", "nouveau")[:1] in (["/bin/false"], ["/bin/true"])
    assert not (owns_kernel and _loaded(host, "nouveau"))


@for_each(_each_option)
def test_driver_option(host: Host, node: Node, case: tuple[str, str], owns_kernel: bool) -> None:
    name, value = case
    given = _option(host, name)
    assert SWITCHES.get(given, given) == value
    # The kernel shows one parameter under another name (NVreg_RestrictProfilingToAdminUsers).
    if owns_kernel and name != "NVreg_RestrictProfilingToAdminUsers":
        assert _live(host, name) == value


@for_each(_each_key)
def test_registry_key(host: Host, node: Node, case: tuple[str, int], owns_kernel: bool) -> None:
    key, value = case
    assert f"{key}={value}" in _option(host, "NVreg_RegistryDwords").split(";")
    if owns_kernel:
        assert f"{key}={value}" in _live(host, "NVreg_RegistryDwords").split(";")


@for_each(_each_fabric_manager)
def test_fabric_manager(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    (unit,) = case
    assert host.run(f"systemctl is-enabled {unit}").stdout.strip() == "enabled"
    if owns_kernel:
        assert host.run(f"systemctl is-active {unit}").stdout.strip() == "active"
        said = host.check_output("nv-fabricmanager --version")
        assert str(node.gpu_driver.version) in said


@for_each(_each_persistence)
def test_persistence(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    (unit,) = case
    assert host.run(f"systemctl is-enabled {unit}").stdout.strip() in ("enabled", "static")
    started = re.findall(r"^ExecStart=(.*)$", host.run(f"systemctl cat {unit}").stdout, re.M)
    assert "--no-persistence-mode" not in started[-1].split()
    if owns_kernel:
        assert set(_smi(host, "persistence_mode")) == {"Enabled"}


@for_each(_each_unit)
def test_gpu_unit(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    (unit,) = case
    assert_unit(host, unit, owns_kernel)
    text = host.run(f"systemctl cat {unit}").stdout
    assert re.search(r"^After=.*\bopenibd\.service\b", text, re.M)
    started = re.search(r"^ExecStart=\S+ (\S+)", text, re.M)
    assert started is not None
    lines = host.file(started[1]).content_string.splitlines()
    assert [line for line in lines if line and line[0] != "#"] == _plan(node)


@for_each(_each_unit)
def test_what_the_unit_sets_is_in_force(
    host: Host, node: Node, case: tuple[str], owns_kernel: bool
) -> None:
    driver = node.gpu_driver
    if not owns_kernel:
        return
    if driver.peer_memory == "nvidia_peermem":
        assert _loaded(host, "nvidia_peermem")
    if node.gds.mode == "nvidia-fs":
        assert _loaded(host, "nvidia_fs")
    if driver.power_limit_w is not None:
        assert {float(watts) for watts in _smi(host, "power.limit")} == {driver.power_limit_w}
    if driver.mig == "on":
        assert set(_smi(host, "mig.mode.current")) == {"Enabled"}
        made = re.findall(r"^ +MIG (\S+) ", host.check_output("nvidia-smi -L"), re.M)
        gpus = len(_smi(host, "mig.mode.current"))
        assert sorted(made) == sorted(driver.mig_profiles * gpus)
    if driver.mig == "off":
        assert "Enabled" not in _smi(host, "mig.mode.current")
    if driver.graphics_clock_mhz is not None:
        assert all(int(mhz) <= driver.graphics_clock_mhz[1] for mhz in _smi(host, "clocks.sm"))


@for_each(_each)
def test_every_gpu_is_listed(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    if not owns_kernel:
        return
    devices = host.check_output("grep -l 0x10de /sys/bus/pci/devices/*/vendor").split()
    folders = [path.rpartition("/")[0] for path in devices]
    classes = [host.file(f"{folder}/class").content_string for folder in folders]
    assert len([c for c in classes if c.startswith(("0x0300", "0x0302"))]) == len(
        _smi(host, "uuid")
    )
