"""A root folder with a kernel that connects: /dev/nvme-fabrics is played by a dd of our own."""

import subprocess
from pathlib import Path

from facts.nvme import FOLDER
from railwright.resolve.nvmeof_files import format_script, script
from tests.unit.nvme_host import AUTH, DEVICE, HOST_ID, HOST_NQN, NAME, NQN, UUID

# What is written becomes a controller, unless the file "refuses" says why not; with the file
# "offers" the namespace comes with it, as udev links it. What is read is read, unless the file
# "unreadable" has a part of the command.
_DD = """#!/bin/sh
case "$*" in
    if=*) printf '%s' "$*" | grep -qs -f {root}/unreadable && exit 1; exec /bin/dd "$@" ;;
esac
request=$(cat)
printf '%s\\n' "$request" >>{root}/requests
printf '%s\\n' "$*" >>{root}/arguments
address=$(printf '%s' "$request" | sed 's/.*,traddr=\\([^,]*\\),.*/\\1/')
if grep -qs "^$address " {root}/refuses; then
    echo "dd: error writing '/dev/nvme-fabrics': $(sed -n "s/^$address //p" {root}/refuses)" >&2
    exit 1
fi
{root}/add "$address"
"""
_ADD = """#!/bin/sh
n=$(ls {root}/sys/class/nvme | wc -l)
dir={root}/sys/class/nvme/nvme$n
mkdir -p "$dir"
echo {nqn} >"$dir/subsysnqn"
echo rdma >"$dir/transport"
echo live >"$dir/state"
echo "traddr=$1,trsvcid=4420,host_traddr=10.64.0.2,src_addr=10.64.0.2" >"$dir/address"
: >"$dir/delete_controller"
umask 022
: >"$dir/dhchap_secret"
: >"$dir/dhchap_ctrl_secret"
[ ! -e {root}/offers ] || {{ mkdir -p {root}/dev/railwright; : >{root}/dev/railwright/{name}; }}
"""
_TOOL = """#!/bin/sh
printf '%s\\n' "${{0##*/}} $*" >>{root}/calls
{does}
"""

CONF = f"""# ours
nqn {NQN}
transport rdma
options nr_io_queues=4,ctrl_loss_tmo=1800
portal 10.64.0.9 4420 10.64.0.2
portal 10.64.1.9 4420 -
namespace uuid {UUID}
link /dev/railwright/{NAME}
mount mnt-vol\\x2da.mount
"""


Result = subprocess.CompletedProcess[str]


class Kernel:
    """``tools`` is what stubs do beside noting that they were called, in sh."""

    def __init__(self, root: Path, **tools: str) -> None:
        self.root = root
        for folder in ("bin", "dev", "proc", "sys/class/nvme", "sys/class/block", "etc/nvme"):
            (root / folder).mkdir(parents=True)
        self.put(f"{FOLDER}/{NAME}.conf", CONF)
        self.put("/etc/nvme/hostnqn", f"{HOST_NQN}\n")
        self.put("/etc/nvme/hostid", f"{HOST_ID}\n")
        self.put("/dev/nvme-fabrics", f"{AUTH}\n")
        self.put("/proc/self/mountinfo", "27 1 259:2 / / rw - ext4 /dev/nvme0n1p2 rw\n")
        self.put("/proc/swaps", "Filename Type Size Used Priority\n")
        self._executable("bin/dd", _DD.format(root=root))
        self._executable("add", _ADD.format(root=root, nqn=NQN, name=NAME))
        given = {"modprobe": "", "systemctl": "", "sleep": "", "udevadm": "", **tools}
        for name, does in given.items():
            self._executable(f"bin/{name}", _TOOL.format(root=root, does=does))

    def _executable(self, name: str, text: str) -> None:
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o755)

    def put(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def text(self, path: str) -> str:
        file = self.root / path.lstrip("/")
        return file.read_text() if file.exists() else ""

    def connect(self, address: str) -> None:
        subprocess.run([self.root / "add", address], check=True, timeout=30)

    def block(self, name: str = DEVICE, nqn: str = NQN, **files: str) -> None:
        """A namespace, as /sys/class/block has it."""
        given = {"dev": "259:7", "size": "2048", "ro": "0", "device/subsysnqn": nqn, **files}
        for file, text in given.items():
            self.put(f"/sys/class/block/{name}/{file.replace('__', '/')}", f"{text}\n")
        (self.root / f"sys/class/block/{name}/holders").mkdir(exist_ok=True)

    def run(self, *arguments: str, turns: int = 1, shell: str = "sh") -> Result:
        return self._sh(shell, script(), arguments, turns)

    def format(self, *arguments: str, shell: str = "sh") -> Result:
        return self._sh(shell, format_script(), arguments, 1)

    def _sh(self, shell: str, text: str, arguments: tuple[str, ...], turns: int) -> Result:
        environment = {
            "RAILWRIGHT_PATH": f"{self.root}/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "RAILWRIGHT_NVMEOF_ROOT": str(self.root),
            "RAILWRIGHT_NVMEOF_WAIT_S": "2",
            "RAILWRIGHT_NVMEOF_TURNS": str(turns),
        }
        return subprocess.run(
            [shell, "-s", "--", *arguments],
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        )
