"""Is the kernel that boots next complete?"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.dkms import Dkms, DkmsModule
from facts.driver_kernels import DriversOnDisk
from facts.drivers import Drivers
from facts.next_boot import NextKernel
from facts.ofed import INBOX
from facts.symvers import Export
from railwright.drivers.next_kernel import (
    KernelCheck,
    NeededModule,
    check_kernel,
    kernel_on_disk,
    kernels_to_prove,
    reboot_refusal,
)
from railwright.drivers.symbols import KernelSymbols, OnDisk
from tests.unit.driver_kernel import (
    EXPORTERS,
    FLAGS,
    IMAGE,
    IMPORTS,
    NEEDED,
    NEXT,
    RUNNING,
    TABLES,
    check,
    dkms,
    image,
    kernel,
    module,
    on_disk,
    symbols,
    told,
)

UPCOMING = NextKernel(version=NEXT, running=RUNNING, images=(RUNNING, NEXT))


def test_a_kernel_with_all_that_is_needed_is_complete() -> None:
    found = check()
    assert found.complete
    assert [m.name for m in found.modules] == [
        "mlx5_core", "mlx5_ib", "nvidia", "nvidia_peermem", "nvidia_fs", "ko2iblnd", "beegfs",
    ]  # fmt: skip
    assert reboot_refusal(UPCOMING, [found]) is None


@pytest.mark.parametrize("name", [needed.name for needed in NEEDED])
def test_each_module_that_is_missing_is_named_with_kernel_and_remedy(name: str) -> None:
    found = check(disk=on_disk(name), symbols=symbols(), image=None)
    (absent,) = [f for f in found.findings if f.kind == "absent"]
    assert absent.words.startswith(f"{name} for kernel {NEXT}: is not there; install the headers")
    assert f"-k {NEXT}" in absent.remedy
    refusal = reboot_refusal(UPCOMING, [found])
    assert refusal is not None
    assert name in refusal


def test_peers_5_5_lustre_is_not_built_for_the_next_kernel() -> None:
    built = Dkms(
        modules=(
            *(m for m in dkms().modules if m.module != "lustre-client-modules"),
            DkmsModule(
                module="lustre-client-modules", version="2.16.1", state="installed", kernel=RUNNING
            ),
        )
    )
    found = check(disk=on_disk("lustre", "ko2iblnd"), dkms=built)
    (finding,) = found.findings
    assert (finding.subject, finding.kind) == ("ko2iblnd", "absent")
    assert f"has not built lustre-client-modules for it (but for {RUNNING})" in finding.found
    assert f"dkms install --force -m lustre-client-modules -v 2.16.1 -k {NEXT}" in finding.remedy


def test_peers_5_7_the_kernel_was_moved_and_nothing_is_built_for_it() -> None:
    found = check(
        disk=OnDisk(files={"nvme": module("nvme", "kernel/drivers/nvme/host/nvme.ko")}),
        dkms=dkms(kernel=RUNNING),
        image=None,
        ofa_sources=RUNNING,
    )
    assert [f.subject for f in found.findings if f.kind == "absent"] == [
        "mlx5_core", "mlx5_ib", "nvidia", "nvidia_peermem", "nvidia_fs", "ko2iblnd", "beegfs",
    ]  # fmt: skip
    # The running kernel, which has it all, may be booted.
    assert check().complete


def test_bug_6_a_client_built_against_the_ofed_of_the_old_kernel() -> None:
    peermem = {**IMPORTS["nvidia_peermem"], "ib_register_peer_memory_client": 999}
    found = check(symbols=symbols(nvidia_peermem=peermem), ofa_sources=RUNNING)
    assert told(found) == [
        ("/usr/src/ofa_kernel/default", "headers"),
        ("nvidia_peermem", "symbols"),
    ]
    headers, differs = found.findings
    assert headers.found == (
        f"leads to {RUNNING}, for which nvidia_peermem, nvidia_fs, ko2iblnd, beegfs would be built"
    )
    assert headers.remedy.startswith(f"build OFED for kernel {NEXT} first, then nvidia_peermem")
    assert "version of ib_register_peer_memory_client with ib_core (updates/dkms/" in differs.found
    # The link leads to the kernel that boots, and the client was built after that.
    assert check(ofa_sources=NEXT).complete


def test_peers_5_4_beegfs_built_against_the_kernel_s_own_ib_core() -> None:
    found = check(symbols=symbols(beegfs={"module_layout": 1, "rdma_create_id": 133}))
    assert told(found) == [("beegfs", "symbols")]
    assert "about the version of rdma_create_id with ib_core (updates/" in found.findings[0].found
    assert check().complete


def test_peers_5_12_peermem_of_another_build_than_nvidia() -> None:
    older = OnDisk.model_validate(
        on_disk(written={"nvidia_peermem": 50}).model_dump()
        | {"sources": {"nvidia": "nvidia", "nvidia_peermem": "nvidia-peer-memory"}}
    )
    found = check(disk=older)
    assert ("nvidia_peermem", "symbols") in told(found)
    said = next(f.found for f in found.findings if f.subject == "nvidia_peermem")
    assert "not known to be built after nvidia" in said
    # Of one source, they were built together, whatever the clock says.
    assert check(disk=on_disk(written={"nvidia_peermem": 50})).complete


def test_what_an_exporter_itself_says_stands_over_the_order_of_builds() -> None:
    own = {"nvidia_p2p_get_pages": Export(crc=41, module="nvidia")}
    tables = {**TABLES, "own": own}
    found = check(symbols=KernelSymbols(needed=IMPORTS, tables=tables, exporters=EXPORTERS))
    assert told(found) == [("nvidia_peermem", "symbols"), ("nvidia_fs", "symbols")]
    own["nvidia_p2p_get_pages"] = Export(crc=40, module="nvidia")
    late = on_disk(written={"nvidia_fs": 1})
    same = KernelSymbols(needed=IMPORTS, tables={**TABLES, "own": own}, exporters=EXPORTERS)
    assert check(symbols=same, disk=late).complete


def test_peers_5_3_symbols_that_nothing_exports_are_named() -> None:
    found = check(symbols=symbols(nvidia_fs={"vmap": 2, "nvidia_p2p_dma_map_pages": 7}))
    (finding,) = found.findings
    assert finding.words == (
        f"nvidia_fs for kernel {NEXT}: needs nvidia_p2p_dma_map_pages, which nothing on disk for "
        f"this kernel exports; install what exports it for {NEXT}, then build nvidia_fs anew"
    )
    assert check().complete


def test_peers_5_1_nvidia_fs_looks_for_a_hook_that_nvme_does_not_export() -> None:
    exporters = {**EXPORTERS, "nvme_v2_register_nvfs_dma_ops": "nvme"}
    del exporters["nvme_v1_register_nvfs_dma_ops"]
    found = check(symbols=KernelSymbols(needed=IMPORTS, tables=TABLES, exporters=exporters))
    assert told(found) == [("nvidia_fs", "symbols")]
    assert "looks for nvme_v1_register_nvfs_dma_ops, which nvme (kernel/" in found.findings[0].found
    assert check().complete


def test_bug_48_lustre_built_against_in_tree_headers_and_ofed_is_there() -> None:
    found = check(symbols=symbols(ko2iblnd={"rdma_create_id": 133, "module_layout": 1}))
    assert told(found) == [("ko2iblnd", "symbols")]
    # Without OFED the same module fits.
    inbox = {
        "ib_core": "kernel/drivers/infiniband/core/ib_core.ko",
        "mlx5_core": "kernel/drivers/net/mlx5_core.ko",
        "mlx5_ib": "kernel/drivers/infiniband/hw/mlx5/mlx5_ib.ko",
    }
    plain = kernel(
        disk=on_disk("mlx_compat", **inbox),
        symbols=symbols(ko2iblnd={"rdma_create_id": 133, "module_layout": 1}),
    )
    ko2iblnd = [needed for needed in NEEDED if needed.name == "ko2iblnd"]
    assert check_kernel(ko2iblnd, plain).complete


def test_one_module_of_the_kernel_s_own_among_ofed_s_is_named() -> None:
    inbox = "kernel/drivers/infiniband/core/ib_core.ko.zst"
    found = check(disk=on_disk(ib_core=inbox))
    mixed = [f for f in found.findings if f.kind == "mixed"]
    assert [f.subject for f in mixed] == ["ib_core"]
    assert inbox in mixed[0].found
    # Built against OFED's ib_core, they would not load over the kernel's.
    assert ("mlx5_ib", "symbols") in told(found)


def test_the_kernel_s_own_stack_where_ofed_is_wanted() -> None:
    inbox = {name: f"kernel/x/{name}.ko" for name in ("ib_core", "mlx5_core", "mlx5_ib")}
    found = check(disk=on_disk("mlx_compat", **inbox))
    assert [f.subject for f in found.findings if f.kind == "mixed"] == [
        "ib_core", "mlx5_core", "mlx5_ib",
    ]  # fmt: skip
    assert "where OFED's is wanted" in found.whole[0].found


def test_bug_51_rpcrdma_of_the_kernel_over_ofed_s_ib_core() -> None:
    wanted = NeededModule(name="rpcrdma", package="nfs-common")
    disk = on_disk()
    files = {**disk.files, "rpcrdma": module("rpcrdma", "kernel/net/sunrpc/xprtrdma/rpcrdma.ko")}
    imports = symbols(rpcrdma={"module_layout": 1})
    found = check_kernel([wanted], kernel(disk=OnDisk(files=files), symbols=imports))
    assert told(found) == [("rpcrdma", "mixed")]
    assert "install mlnx-nfsrdma-dkms" in found.findings[0].remedy
    files["rpcrdma"] = module("rpcrdma")
    assert check_kernel([wanted], kernel(disk=OnDisk(files=files), symbols=imports)).complete


@pytest.mark.parametrize(
    ("vermagic", "path", "fits"),
    [
        (f"{NEXT} {FLAGS}", "", True),
        (f"{NEXT} {FLAGS} ", "", True),
        (f"{RUNNING} {FLAGS}", "", False),
        (f"{NEXT} SMP mod_unload modversions", "", False),
        (f"{RUNNING} {FLAGS}", "weak-updates/nvidia.ko", True),
        (f"{RUNNING} SMP mod_unload", "weak-updates/nvidia.ko", False),
    ],
)
def test_vermagic(vermagic: str, path: str, fits: bool) -> None:
    disk = on_disk()
    files = {**disk.files, "nvidia": module("nvidia", path, vermagic)}
    found = check(disk=OnDisk(files=files, written=disk.written, sources=disk.sources))
    assert told(found) == ([] if fits else [("nvidia", "vermagic")])
    assert fits or vermagic.strip() in found.findings[0].found


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"state": "built"}, "dkms has nvidia/580.95.05 built and not installed"),
        ({"state": "installed", "differs": True}, "in place differs from what it built"),
        ({"state": "installed", "missing": True}, "in place is missing"),
    ],
)
def test_the_state_of_dkms(entry: dict[str, object], said: str) -> None:
    nvidia = DkmsModule.model_validate(
        {"module": "nvidia", "version": "580.95.05", "kernel": NEXT, **entry}
    )
    others = tuple(m for m in dkms().modules if m.module != "nvidia")
    found = check(dkms=Dkms(modules=(*others, nvidia)))
    assert told(found) == [("nvidia", "dkms"), ("nvidia_peermem", "dkms")]
    assert said in found.findings[0].found


def test_an_initramfs_that_would_load_the_kernel_s_own_driver() -> None:
    found = check(image=image(mlx5_core="kernel/drivers/net/mlx5_core.ko.zst"))
    assert told(found) == [("mlx5_core", "initramfs")]
    assert "would load kernel/drivers/net/mlx5_core.ko.zst" in found.findings[0].found
    assert f"make the initramfs of kernel {NEXT} anew" in found.findings[0].remedy


def test_an_initramfs_that_is_older_than_the_driver_in_it() -> None:
    assert told(check(image=image(mtime=99))) == [("mlx5_core", "initramfs")]
    # What it does not hold is no matter of its age.
    assert check(image=image(mtime=110)).complete


def test_an_initramfs_that_lacks_what_it_must_load() -> None:
    lacking = image().model_copy(update={"modules": {}})
    assert told(check(image=lacking)) == [("mlx5_core", "initramfs")]
    assert told(check(image=None)) == [("mlx5_core", "initramfs")]
    late = [needed.model_copy(update={"early": False}) for needed in NEEDED]
    assert check_kernel(late, kernel(image=lacking)).complete


@pytest.mark.parametrize(
    ("changes", "subjects"),
    [
        ({"vermagic": None}, {needed.name for needed in NEEDED}),
        ({"symbols": None}, {needed.name for needed in NEEDED}),
        ({"dkms": None}, {needed.name for needed in NEEDED}),
        ({"image": image().model_copy(update={"modules": None})}, {"mlx5_core"}),
    ],
)
def test_what_could_not_be_read_is_never_complete(
    changes: dict[str, object], subjects: set[str]
) -> None:
    found = check(**changes)
    assert {f.subject for f in found.findings if f.kind == "unreadable"} == subjects
    assert reboot_refusal(UPCOMING, [found]) is not None


def test_without_the_kernel_s_symbol_table_a_module_is_not_proven() -> None:
    no_table = KernelSymbols(needed=IMPORTS, tables={"ofed": TABLES["ofed"]}, exporters=EXPORTERS)
    found = check(symbols=no_table)
    assert ("nvidia", "unreadable") in told(found)
    nvidia = next(f for f in found.findings if f.subject == "nvidia")
    assert nvidia.remedy == f"install the headers of kernel {NEXT}"


def test_a_module_without_symbol_versions_is_refused_by_such_a_kernel() -> None:
    assert told(check(symbols=symbols(nvidia={}))) == [("nvidia", "symbols")]
    plain = " ".join(FLAGS.split()[:-1])
    files = {name: module(name, "", f"{NEXT} {plain}") for name in ("nvidia",)}
    gpu = [needed for needed in NEEDED if needed.name == "nvidia"]
    versionless = kernel(
        vermagic=f"{NEXT} {plain}", disk=OnDisk(files=files), symbols=symbols(nvidia={})
    )
    assert check_kernel(gpu, versionless).complete


def test_a_version_of_0_fits_any() -> None:
    assert check(symbols=symbols(nvidia={"vmap": 0})).complete


def test_a_module_of_the_kernel_itself_needs_no_file() -> None:
    loop = NeededModule(name="loop", package="linux-image")
    assert check_kernel([loop], kernel(builtin=frozenset({"loop"}))).complete
    assert told(check_kernel([loop], kernel())) == [("loop", "absent")]


def test_a_kernel_without_any_modules() -> None:
    found = check_kernel([], kernel(disk=OnDisk(files={})))
    assert found.findings[0].found == f"/lib/modules/{NEXT} has none"


def test_kernels_that_a_new_boot_menu_would_bring_in_are_proven_too() -> None:
    newest = "6.8.0-90-generic"
    upcoming = UPCOMING.model_copy(update={"unlisted": (newest,)})
    assert kernels_to_prove(upcoming) == (NEXT, newest)
    refusal = reboot_refusal(upcoming, [check()])
    assert refusal == f"kernel {newest} may boot next and was not looked at"
    whole = KernelCheck(kernel=newest, modules=())
    assert reboot_refusal(upcoming, [check(), whole]) is None


def test_an_unknown_next_kernel_refuses_the_reboot() -> None:
    unknown = NextKernel(version=None, problem="grub.cfg cannot be read")
    refusal = reboot_refusal(unknown, [check()])
    assert refusal == "it is not known which kernel boots next: grub.cfg cannot be read"


@given(st.sets(st.sampled_from([needed.name for needed in NEEDED])))
def test_every_missing_module_is_found_and_no_other(missing: set[str]) -> None:
    found = check(disk=on_disk(*missing))
    assert {f.subject for f in found.findings if f.kind == "absent"} == missing
    assert found.complete == (not missing)


def test_the_image_of_a_finding_is_named() -> None:
    assert IMAGE in check(image=image(mtime=1)).findings[0].found


def test_a_kernel_is_put_together_of_the_node_s_facts() -> None:
    whole = kernel()
    on_disk_alone = DriversOnDisk(
        kernel=NEXT, disk=whole.disk, vermagic=whole.vermagic, symbols=whole.symbols
    )
    drivers = Drivers(
        next_boot=UPCOMING,
        loaded={},
        kernels={NEXT: on_disk_alone},
        ofa_sources=NEXT,
        ofed=INBOX,
        dkms=dkms(),
    )
    assert check_kernel(NEEDED, kernel_on_disk(NEXT, drivers, {NEXT: image()})).complete
    stale = kernel_on_disk(NEXT, drivers, {NEXT: image(mtime=1)})
    assert told(check_kernel(NEEDED, stale)) == [("mlx5_core", "initramfs")]
    gone = check_kernel(NEEDED, kernel_on_disk("6.9.0", drivers, {}))
    assert gone.whole[0].found == "/lib/modules/6.9.0 has none"
