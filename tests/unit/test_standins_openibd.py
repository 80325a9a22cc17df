"""The stand-in of OFED's openibd: unloads, loads and refuses as the real one does."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

from tests.standins import releases
from tests.standins.marks import copy

MODPROBE = """#!/bin/sh
# modprobe [-r] MODULE, on lines of $STANDIN_PROC/modules: what is held stays.
list=$STANDIN_PROC/modules
if [ "$1" != -r ]; then
    grep -q "^$1 " "$list" || echo "$1 0" >>"$list"
elif [ -n "$(ls "$STANDIN_SYS/module/$2/holders" 2>/dev/null)" ]; then
    exit 1
else
    sed -i "/^$2 /d" "$list"
    rm -f "$STANDIN_SYS"/module/*/holders/"$2"
fi
"""
RMMOD = """#!/bin/sh
echo "rmmod: ERROR: Module $1 is in use by: $(ls "$STANDIN_SYS/module/$1/holders")" >&2
exit 1
"""


class Openibd:
    """openibd on a machine whose modules are ``holders``, each with those that hold it."""

    def __init__(self, folder: Path, holders: Mapping[str, tuple[str, ...]]) -> None:
        copy("ofed_utils", folder, releases.OFED[0].marks)
        self.folder, self.modules = folder, folder / "proc/modules"
        for name in ("proc", "bin"):
            (folder / name).mkdir()
        self.modules.write_text("".join(f"{name} 0\n" for name in holders))
        for module, by in holders.items():
            (folder / "sys/module" / module / "holders").mkdir(parents=True)
            for name in by:
                (folder / "sys/module" / module / "holders" / name).touch()
        tools = {"modprobe": MODPROBE, "rmmod": RMMOD, "modinfo": "#!/bin/sh\n"}
        for name, text in tools.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(self.folder / "etc/init.d/openibd"), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={
                "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
                "STANDIN_PROC": str(self.folder / "proc"),
                "STANDIN_SYS": str(self.folder / "sys"),
                "OPENIBD_CONFIG": str(self.folder / "etc/infiniband/openib.conf"),
                "OPENIBD_BOOTID": str(self.folder / "bootid"),
            },
        )

    @property
    def loaded(self) -> set[str]:
        return {line.split()[0] for line in self.modules.read_text().splitlines()}


STACK = {
    "mlx_compat": ("ib_core", "mlx5_core", "mlx5_ib"),
    "ib_core": ("mlx5_ib",),
    "mlx5_core": ("mlx5_ib",),
    "mlx5_ib": (),
}


def test_openibd_unloads_the_stack_and_loads_it(tmp_path: Path) -> None:
    service = Openibd(tmp_path, {**STACK, "ext4": ()})
    assert service.run("stop").returncode == 0
    assert service.loaded == {"ext4"}
    assert service.run("start").returncode == 0
    assert {"mlx5_core", "mlx5_ib", "ib_umad", "ib_uverbs", "ib_ipoib", "rdma_ucm"} < service.loaded


def test_openibd_fails_on_what_holds_the_stack(tmp_path: Path) -> None:
    held = {**STACK, "ib_core": ("mlx5_ib", "nvidia_peermem"), "nvidia_peermem": ()}
    service = Openibd(tmp_path, held)
    done = service.run("restart")
    assert done.returncode == 1
    assert "Module ib_core is in use by: nvidia_peermem" in done.stdout
    assert {"ib_core", "nvidia_peermem"} <= service.loaded
    assert service.run("force-stop").returncode == 0
    assert service.loaded == set()


def test_openibd_takes_all_along_at_boot(tmp_path: Path) -> None:
    held = {**STACK, "ib_core": ("mlx5_ib", "rpcrdma"), "rpcrdma": ()}
    service = Openibd(tmp_path, held)
    done = service.run("stop")
    assert done.returncode == 1
    assert "module 'rpcrdma' is not in use" in done.stdout
    assert service.run("stop", "bootid=1").returncode == 0
    assert service.loaded == set()
    assert service.run("stop", "bootid=1").returncode == 0
