"""Driver modules in initramfs images, and GSP firmware, by sections run over a tree."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.block_path import SECTIONS as BLOCK_PATH
from facts.initramfs import IMAGES, parse_images
from facts.nvidia_firmware import FIRMWARE, parse_firmware
from facts.probe import Focus, Section, script
from railwright.snapshot import Snapshot, parse_probe

PROBE_SH = Path(__file__).parents[2] / "facts" / "probe.sh"
DEBIAN, RHEL = "6.1.0-57-amd64", "5.14.0-503.el9.x86_64"

LSINITRAMFS = f"""#!/bin/sh
cat <<'END'
kernel/x86/microcode/GenuineIntel.bin
usr/lib/modules/{DEBIAN}
usr/lib/modules/{DEBIAN}/kernel/drivers/nvme/host/nvme-core.ko
usr/lib/modules/{DEBIAN}/updates/dkms/mlx5_core.ko.xz
usr/lib/modules/{DEBIAN}/kernel/fs/ext4/ext4.ko
END
"""
LSINITRD = f"""#!/bin/sh
cat <<'END'
Image: /boot/x: 40M
drwxr-xr-x   2 root root 0 Jan  1 2025 usr/lib/modules/{RHEL}/extra/mlnx-ofa_kernel
-rw-r--r--   1 root root 9 Jan  1 2025 usr/lib/modules/{RHEL}/extra/mlnx-ofa_kernel/mlx5_core.ko
lrwxrwxrwx   1 root root 9 Jan  1 2025 usr/lib/modules/{RHEL}/modules.dep -> x
END
"""


def run(section: Section, root: Path) -> Snapshot:
    text = script([section], Focus(drivers=True))
    for folder in ("/boot/", "/lib/firmware/"):
        text = text.replace(f" {folder}", f" {root}{folder}")
    text = text.replace("PATH=/usr/sbin", f"PATH={root}/bin:/usr/sbin", 1)
    done = subprocess.run(["sh", "-c", text], capture_output=True, timeout=60)
    return parse_probe(done.stdout.decode("ascii"), host="here")


def tool(root: Path, name: str, text: str) -> None:
    (root / "bin").mkdir(exist_ok=True)
    (root / "bin" / name).write_text(text)
    (root / "bin" / name).chmod(0o755)


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


def test_images_of_both_makers_are_listed(tmp_path: Path) -> None:
    debian = put(tmp_path / f"boot/initrd.img-{DEBIAN}")
    rhel = put(tmp_path / f"boot/initramfs-{RHEL}.img")
    put(tmp_path / f"boot/initramfs-{RHEL}kdump.img")
    put(tmp_path / "boot/initramfs-0-rescue-1.img")
    tool(tmp_path, "lsinitramfs", LSINITRAMFS)
    tool(tmp_path, "lsinitrd", LSINITRD)
    images = parse_images(run(IMAGES, tmp_path).text(IMAGES.name))
    assert {kernel: image.path for kernel, image in images.items()} == {
        DEBIAN: str(debian),
        RHEL: str(rhel),
    }
    assert images[DEBIAN].mtime == int(debian.stat().st_mtime)
    assert images[DEBIAN].modules == {
        "nvme_core": "kernel/drivers/nvme/host/nvme-core.ko",
        "mlx5_core": "updates/dkms/mlx5_core.ko.xz",
    }
    assert images[RHEL].modules == {"mlx5_core": "extra/mlnx-ofa_kernel/mlx5_core.ko"}


def test_an_image_that_cannot_be_listed_is_told_from_an_empty_one(tmp_path: Path) -> None:
    put(tmp_path / f"boot/initrd.img-{DEBIAN}")
    tool(tmp_path, "lsinitramfs", "#!/bin/sh\nexit 1\n")
    assert parse_images(run(IMAGES, tmp_path).text(IMAGES.name))[DEBIAN].modules is None
    tool(tmp_path, "lsinitramfs", "#!/bin/sh\necho main\n")
    assert parse_images(run(IMAGES, tmp_path).text(IMAGES.name))[DEBIAN].modules == {}


@pytest.mark.parametrize("text", ["inside x.ko", "listed", "image 6.1 now /boot/x", "what"])
def test_lines_of_another_kind_are_no_images(text: str) -> None:
    with pytest.raises(ValueError, match="expected an initramfs image"):
        parse_images(text)


def test_firmware_of_the_driver_and_not_that_of_nouveau(tmp_path: Path) -> None:
    put(tmp_path / "lib/firmware/nvidia/580.95.05/gsp_ga10x.bin")
    put(tmp_path / "lib/firmware/nvidia/580.95.05/gsp_tu10x.bin")
    put(tmp_path / "lib/firmware/nvidia/580.65.06/gsp_ga10x.bin.zst")
    put(tmp_path / "lib/firmware/nvidia/tu102/gsp/gsp-535.113.01.bin")
    text = run(FIRMWARE, tmp_path).text(FIRMWARE.name)
    assert parse_firmware(text) == {"580.95.05", "580.65.06"}


@pytest.mark.parametrize("section", [*BLOCK_PATH, IMAGES, FIRMWARE], ids=lambda s: s.name)
def test_the_sections_are_what_shellcheck_accepts(section: Section) -> None:
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-"],
        input=f"{PROBE_SH.read_text()}\nx() {{\n{section.script.strip()}\n}}\nx\n",
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "")


@given(st.text(alphabet="0123456789.\nag", max_size=30))
def test_only_versions_are_firmware(text: str) -> None:
    words = text.split()
    if all(w.replace(".", "0").isdigit() and ".." not in f".{w}." and "." in w for w in words):
        assert parse_firmware(text) == frozenset(words)
    else:
        with pytest.raises(ValueError, match="expected a version of GSP firmware"):
            parse_firmware(text)
