"""A node with stubs of the drivers' tools, kernels on disk and files of the kernel, probed."""

import subprocess
from pathlib import Path

from facts.drivers import SECTIONS
from facts.probe import Focus, script
from railwright.snapshot import Snapshot, parse_probe

RUNNING, COMING = "6.8.0-60-generic", "6.8.0-62-generic"
MODINFO = """\
#!/bin/sh
# modinfo -F vermagic PATH, or -k KERNEL NAME...: what is said of each is in a file of its own.
if [ "$1" = -F ]; then
    kernel=${3#ROOT/modules/}
    [ -e "$3" ] && echo "${kernel%%/*} SMP mod_unload modversions "
    exit
fi
shift
kernel=$1
shift
rc=0
for name in "$@"; do
    if [ -e "ROOT/told/$kernel/$name" ]; then cat "ROOT/told/$kernel/$name"
    else
        echo "modinfo: ERROR: Module $name not found." >&2
        rc=1
    fi
done
exit $rc
"""
MODPROBE = """\
#!/bin/sh
case $1 in
    --dump-modversions) cat "$2.needs" ;;
    --show-exports) cat "$2.exports" ;;
esac
"""
VMLINUX = "0x00000001\tmodule_layout\tvmlinux\tEXPORT_SYMBOL\t\n0x000000aa\tprintk\tvmlinux\tE\t\n"
IB_CORE = "0x000000bb\tib_register_client\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL\t\n"
OFED_TABLE = "0x000000cc\tib_register_client\t/tmp/ofa/drivers/infiniband/core/ib_core\tE\t\n"


def told(kernel: str, path: str, version: str = "") -> str:
    name = path.rpartition("/")[2].partition(".ko")[0]
    said = f"version:        {version}\n" if version else ""
    return (
        f"filename:       /lib/modules/{kernel}/{path}\n{said}license:        GPL\n"
        f"alias:          pci:*\nsrcversion:     {name.upper()}1\ndepends:        \n"
        f"name:           {name}\nvermagic:       {kernel} SMP mod_unload modversions\n"
        "parm:           x:y (int)\n"
    )


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def node(root: Path) -> None:
    """A node with OFED and the GPU driver, whose coming kernel lacks the latter."""
    bin_ = root / "bin"
    write(bin_ / "modinfo", MODINFO.replace("ROOT", str(root)), 0o755)
    write(bin_ / "modprobe", MODPROBE, 0o755)
    write(bin_ / "ofed_info", "#!/bin/sh\necho OFED-internal-25.10-1.2.8:\n", 0o755)
    write(
        bin_ / "dkms",
        f"#!/bin/sh\necho 'nvidia/580.95.05, {RUNNING}, x86_64: installed'\n"
        "echo 'Error! lustre/2.16.1: Missing the module source directory' >&2\n",
        0o755,
    )
    write(
        bin_ / "nv-fabricmanager",
        "#!/bin/sh\necho 'Fabric Manager version is : 580.95.05'\n",
        0o755,
    )
    row = "0, GPU-1, NVIDIA H100, 00000000:18:00.0, 580.95.05, Enabled, Default, Disabled, "
    row += "Disabled, Enabled, Enabled, 700.00, 700.00, 200.00, 700.00, 1980"
    write(bin_ / "nvidia-smi", f"#!/bin/sh\necho '{row}'\n", 0o755)
    for kernel, paths in {
        RUNNING: ("updates/dkms/ib_core.ko", "updates/dkms/nvidia.ko", "kernel/nvme.ko"),
        COMING: ("updates/dkms/ib_core.ko", "kernel/nvme.ko"),
    }.items():
        folder = root / "modules" / kernel
        write(
            folder / "modules.dep", "".join(f"{path}: a.ko\n" for path in (*paths, "kernel/x.ko"))
        )
        write(folder / "build" / "Module.symvers", VMLINUX + IB_CORE)
        write(folder / "modules.symbols", "alias symbol:ib_register_client ib_core\n")
        for path in paths:
            name = path.rpartition("/")[2].partition(".")[0]
            write(folder / path, "")
            write(
                root / "told" / kernel / name,
                told(kernel, path, "25.10" if name == "ib_core" else ""),
            )
            more = "0x000000cc\tib_register_client\n" if name == "nvidia" else ""
            write(
                folder / f"{path}.needs", f"0x00000001\tmodule_layout\n0x000000aa\tprintk\n{more}"
            )
            exported = "0x000000cc\tib_register_client\n0x000000dd\tib_other\n"
            write(folder / f"{path}.exports", exported if name == "ib_core" else "")
    write(root / "ofa" / "x86_64" / RUNNING / "Module.symvers", OFED_TABLE)
    (root / "ofa" / "default").symlink_to(root / "ofa" / "x86_64" / RUNNING)
    write(root / "dkms" / "nvidia/580.95.05" / RUNNING / "x86_64/module/nvidia.ko", "")
    for name, holder in (
        ("nvidia", "nvidia_uvm"),
        ("nvidia_uvm", "out_of_list"),
        ("out_of_list", ""),
    ):
        module = root / "sys" / name
        for file, value in (("initstate", "live"), ("refcnt", "3"), ("srcversion", f"{name}S")):
            write(module / file, f"{value}\n")
        (module / "holders").mkdir()
        if holder:
            (module / "holders" / holder).symlink_to(root / "sys" / holder)
    (root / "sys" / "nvme").mkdir()
    write(
        root / "nvidia" / "version",
        "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  R\n",
    )
    write(root / "nvidia-fs" / "version", "version: 2.27\n")
    write(root / "nvidia-fs" / "modules", "nvme: 1\n")
    write(root / "lib" / "x" / "libnvidia-ml.so.580.95.05", "")


def probe(root: Path, shell: str = "sh") -> Snapshot:
    text = script(SECTIONS, Focus(drivers=True))
    for old, new in (
        ("PATH=/usr/sbin:", f"PATH={root}/bin:/usr/sbin:"),
        ("/lib/modules/", f"{root}/modules/"),
        ("/sys/module", f"{root}/sys"),
        ("/proc/driver/nvidia/", f"{root}/nvidia/"),
        ("/proc/driver/nvidia-fs/", f"{root}/nvidia-fs/"),
        ("/usr/src/ofa_kernel/", f"{root}/ofa/"),
        ("/var/lib/dkms/", f"{root}/dkms/"),
        ("/usr/lib/*/libnvidia", f"{root}/lib/*/libnvidia"),
        ("timeout -k 2 25", "timeout -k 2 1"),
    ):
        assert old in text
        text = text.replace(old, new)
    done = subprocess.run([shell, "-c", text], capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    output = done.stdout
    for path in ("nvidia/version", "nvidia-fs/version", "nvidia-fs/modules"):
        output = output.replace(f"{root}/{path}", f"/proc/driver/{path}")
    return parse_probe(output, host="here")
