"""A module that was built before what it goes over: it names no versions of that one's symbols."""

from facts.driver_kernels import parse_symbols
from facts.modinfo import ModuleFile
from railwright.drivers.symbols import OnDisk, symbol_findings

KERNEL = "6.1.0-57-amd64"
OFED = "0xcc\tib_register_peer_memory_client\n"


def file(name: str, place: str = "updates/dkms") -> ModuleFile:
    return ModuleFile(name=name, filename=f"/lib/modules/{KERNEL}/{place}/{name}.ko")


def disk(*inbox: str) -> OnDisk:
    files = {
        name: file(name, "kernel/drivers" if name in inbox else "updates/dkms")
        for name in ("ib_core", "mlx_compat", "nvidia", "nvidia_fs", "nvidia_peermem")
    }
    return OnDisk(files=files)


def section(needs_of_fs: str = "") -> str:
    """What the probe says of a kernel on which nvidia-fs goes over nvidia."""
    return (
        f"kernel {KERNEL}\n"
        "below nvidia-peermem updates/dkms/nvidia.ko updates/dkms/ib_core.ko "
        "updates/dkms/mlx_compat.ko\n"
        "below ib_core updates/dkms/mlx_compat.ko\n"
        "below nvidia-fs updates/dkms/nvidia.ko\n"
        f"needs nvidia-fs\n0x1\tmodule_layout\n{needs_of_fs}"
        f"needs nvidia-peermem\n0x1\tmodule_layout\n0xaa\tnvidia_p2p_put_pages\n{OFED}"
        "exporters\nalias symbol:nvidia_p2p_put_pages nvidia\n"
        "table kernel\n0x1\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t\n"
        "exports ib_core\n0xcc\tib_register_peer_memory_client\n"
        "exports nvidia\n0xaa\tnvidia_p2p_put_pages\n"
    )


def found(text: str, module: str, on: OnDisk) -> list[str]:
    symbols = parse_symbols(text)[KERNEL]
    return [finding.found for finding in symbol_findings(module, KERNEL, symbols, on)]


def test_a_module_that_was_built_before_what_it_goes_over_is_told() -> None:
    said = "has no version of the symbols that it takes from nvidia (updates/dkms/nvidia.ko)"
    assert said in found(section(), "nvidia_fs", disk())


def test_one_that_was_built_after_it_is_fine() -> None:
    needs = "0xaa\tnvidia_p2p_put_pages\n"
    assert not [s for s in found(section(needs), "nvidia_fs", disk()) if "no version" in s]


def test_what_a_module_goes_over_by_way_of_another_is_not_asked_for() -> None:
    # mlx_compat is below ib_core, and no business of nvidia-peermem's.
    assert not [s for s in found(section(), "nvidia_peermem", disk()) if "no version" in s]


def test_modules_of_one_source_are_built_together() -> None:
    # As Lustre's are: what lies between two of them may be one that nobody has asked for.
    text = (
        f"kernel {KERNEL}\n"
        "below lustre updates/dkms/obdclass.ko updates/dkms/lnet.ko\n"
        "needs lustre\n0x1\tmodule_layout\n0xaa\tclass_register_type\n"
        "exporters\nalias symbol:class_register_type obdclass\n"
        "table kernel\n0x1\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t\n"
    )
    files = {name: file(name) for name in ("lnet", "lustre")}
    built = dict.fromkeys(("lnet", "lustre", "obdclass"), "lustre-client-modules")
    assert found(text, "lustre", OnDisk(files=files, sources=built)) == []
    apart = {**built, "lustre": "another"}
    assert len(found(text, "lustre", OnDisk(files=files, sources=apart))) == 2


def test_what_comes_with_the_kernel_is_built_with_it() -> None:
    on = disk("nvidia")
    assert not [s for s in found(section(), "nvidia_fs", on) if "no version" in s]


def test_a_kernel_that_lets_it_load_is_no_reason_to_build_anew() -> None:
    ubuntu = "6.8.0-60-generic"
    symbols = parse_symbols(section().replace(KERNEL, ubuntu))[ubuntu]
    said = [finding.found for finding in symbol_findings("nvidia_fs", ubuntu, symbols, disk())]
    assert not [s for s in said if "no version" in s]
