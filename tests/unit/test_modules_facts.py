"""The probe's sections on kernel modules, read from text and run on this machine."""

import subprocess
from pathlib import Path

import pytest

from facts.modules import SECTIONS, Loaded, images_of, parse_kernel, parse_parameters, read_kernel
from facts.probe import script
from railwright.files import FileRecord
from railwright.focus import focus_of
from railwright.schema import ModulesSpec, Node
from railwright.snapshot import Section, Snapshot, parse_probe

KERNEL = """\
loaded virtio_net 73728 0 - Live 0xffffffffc06c4000
loaded virtio_ring 49152 5 virtio_rng,virtio_net,virtio_blk, Live 0xffffffffc0525000
loaded nvidia 56000000 12 nvidia_uvm,nvidia_peermem, Live 0xffffffffc1000000 (POE)
loaded odd 16384 - - Unloading 0x0
cmdline BOOT_IMAGE=/vmlinuz ro quiet nvme_core.multipath=N
drives enp0s2 virtio_net
drives enp0s3 virtio_net
dep 6.1.0 kernel/drivers/nvme/host/nvme-core.ko
dep 6.1.0 updates/dkms/nvidia.ko.zst
dep 6.2.0 kernel/drivers/nvme/host/nvme-core.ko.xz
builtin 6.1.0 kernel/fs/ext4/ext4.ko
"""


def test_the_kernel_section() -> None:
    found = parse_kernel(KERNEL)
    assert found.loaded["virtio_ring"] == Loaded(
        references=5, users=("virtio_rng", "virtio_net", "virtio_blk"), state="Live"
    )
    assert found.loaded["virtio_net"].users == ()
    assert found.loaded["odd"] == Loaded(references=0, users=(), state="Unloading")
    assert found.cmdline == "BOOT_IMAGE=/vmlinuz ro quiet nvme_core.multipath=N"
    assert found.interfaces == {"virtio_net": ("enp0s2", "enp0s3")}
    assert found.files["6.1.0"] == {
        "nvme_core": "kernel/drivers/nvme/host/nvme-core.ko",
        "nvidia": "updates/dkms/nvidia.ko.zst",
    }
    assert set(found.files["6.2.0"]) == {"nvme_core"}
    assert found.builtin == {"6.1.0": frozenset({"ext4"})}


@pytest.mark.parametrize("line", ["what is this", "loaded x"])
def test_a_line_that_makes_no_sense_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=line.split()[-1]):
        parse_kernel(line)


def test_the_parameters_section() -> None:
    found = parse_parameters(
        "/sys/module/nf_conntrack/parameters/hashsize:65536\n"
        "/sys/module/loop/parameters/odd:\n"
        "declared nf_conntrack\n"
        "declared nf_conntrack acct\n"
        "declared ext4\n"
        "nvidia EnableStreamMemOPs: 0\n"
        'nvidia RegistryDwords: "a=1;b=2"\n'
        "nvidia RmProfilingAdminOnly: 1\n"
    )
    assert found.values["nf_conntrack"] == {"hashsize": "65536"}
    assert found.values["loop"] == {"odd": ""}
    assert found.declared == {"nf_conntrack": frozenset({"acct"}), "ext4": frozenset()}
    assert found.values["nvidia"] == {
        "NVreg_EnableStreamMemOPs": "0",
        "NVreg_RegistryDwords": "a=1;b=2",
        "NVreg_RestrictProfilingToAdminUsers": "1",
    }


def test_images_by_kernel() -> None:
    paths = [
        "/boot/initrd.img-6.1.0-57-amd64",
        "/boot/initramfs-5.14.0-1.el9.x86_64.img",
        "/boot/vmlinuz-6.1.0",
    ]
    found = images_of([FileRecord(path=path, kind="file", mtime=7) for path in paths])
    assert set(found) == {"6.1.0-57-amd64", "5.14.0-1.el9.x86_64"}


def probe(shell: str, proc_modules: Path) -> Snapshot:
    node = Node(name="a", modules=ModulesSpec(load=frozenset({"no-such-module"})))
    text = script(SECTIONS, focus_of(node)).replace("/proc/modules", str(proc_modules))
    done = subprocess.run([shell, "-c", text], capture_output=True, text=True, timeout=60)
    return parse_probe(done.stdout, host="here")


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_sections_run_here(shell: str, tmp_path: Path) -> None:
    # The kernel of a build machine may have no modules.
    listing = tmp_path / "modules"
    listing.write_text("loop 32768 0 - Live 0xffffffffc06b4000\n")
    snapshot = probe(shell, listing)
    for section in SECTIONS:
        assert snapshot.section(section.name).stderr == ""
        assert snapshot.section(section.name).rc == 0
    found = read_kernel(snapshot)
    assert set(found.loaded) == {"loop"}
    assert found.cmdline == Path("/proc/cmdline").read_text().rstrip("\n")


def test_proc_modules_that_cannot_be_read_is_not_no_module(tmp_path: Path) -> None:
    snapshot = probe("sh", tmp_path / "missing")
    sections = {**snapshot.sections, "identity": Section(stdout="kernel=6.1\n", rc=0)}
    with pytest.raises(ValueError, match=r"cannot be read: .*missing"):
        read_kernel(snapshot.model_copy(update={"sections": sections}))
    contained = Section(stdout="container=podman\n", rc=0)
    found = read_kernel(
        snapshot.model_copy(update={"sections": {**sections, "identity": contained}})
    )
    assert found.loaded == {}


def test_every_module_that_the_description_names_is_looked_at() -> None:
    spec = ModulesSpec(
        load=frozenset({"nvme-rdma"}),
        options={"nvme-core": {"multipath": False}},
        blacklist=frozenset({"nouveau"}),
    )
    assert focus_of(Node(name="a", modules=spec)).modules == ("nouveau", "nvme_core", "nvme_rdma")
