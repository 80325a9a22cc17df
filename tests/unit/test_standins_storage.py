"""Stand-ins of Lustre's and BeeGFS's tools, run without a kernel, and read by our facts."""

import os
import subprocess
from pathlib import Path

import pytest

from facts.beegfs_nodes import parse_node_list
from facts.lctl import parse_devices, parse_parameters
from facts.lfs import parse_df
from facts.lnetctl import Lnet, parse_net_show
from facts.lustre import LNET, LNET_CONF, LNET_SCRIPT
from railwright.beegfs_conf import Conf
from railwright.schema.beegfs_keys import KEYS, Major
from tests.standins import debs_beegfs, debs_lustre
from tests.standins.debs_beegfs import RELEASES
from tests.standins.marks import PAYLOAD, Marks, copy
from tests.unit import lustre_host

IP = """#!/bin/sh
# ip -4 -o addr show [dev NAME] up [scope global], of the files in $STANDIN_UP.
[ "$5" = dev ] && set -- "$6" || set -- '*'
for file in "$STANDIN_UP"/$1; do
    [ ! -e "$file" ] || echo "2: ${file##*/}    inet $(cat "$file")/24 scope global ${file##*/}"
done
"""
MODPROBE = """#!/bin/sh
case " $STANDIN_LACKS " in *" $1 "*) exit 1 ;; esac
mkdir -p "$STANDIN_SYS/module/lnet" "$STANDIN_SYS/module/$1"
"""
MOUNT = """#!/bin/sh
# mount -i -t TYPE [-o OPTIONS] SOURCE DIRECTORY
while [ $# -gt 2 ]; do shift; done
echo "36 35 0:55 / $2 rw,relatime shared:1 - lustre $1 rw,flock" >>"$STANDIN_PROC/self/mountinfo"
"""
DEVICE = "10.77.3.1@o2ib:10.77.3.2@o2ib:/scr"
CONF = """\
net:
    - net type: o2ib
      local NI(s):
        - interfaces:
              0: rail0
          tunables:
              peer_credits: 32
          lnd tunables:
              peercredits_hiw: 16
              concurrent_sends: 64
        - interfaces:
              0: rail1
    - net type: tcp
      local NI(s):
        - interfaces:
              0: eth0
"""


class Client:
    """A machine with Lustre's tools, and the interfaces that are up on it."""

    def __init__(self, folder: Path) -> None:
        copy("lustre_utils", folder, Marks("2.16.1", "2.16"))
        self.folder = folder
        for name in ("bin", "up", "proc/self", "sys/module", "run/railwright-lab", "dir"):
            (folder / name).mkdir(parents=True)
        (folder / "proc/self/mountinfo").touch()
        for name, text in {"ip": IP, "modprobe": MODPROBE, "mount": MOUNT}.items():
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        for number, name in enumerate(("eth0", "rail0", "rail1")):
            (folder / "up" / name).write_text(f"10.64.{number}.2")
        (folder / "bin/lnetctl").symlink_to(folder / "usr/sbin/lnetctl")
        (folder / "conf").write_text(CONF)

    def run(
        self, tool: str, *arguments: str, lacks: str = "", timeout: float = 20
    ) -> subprocess.CompletedProcess[str]:
        places = {"PROC": "proc", "SYS": "sys", "RUN": "run", "ETC": "etc", "UP": "up"}
        environment = {f"STANDIN_{name}": str(self.folder / at) for name, at in places.items()}
        found = next(path for path in self.folder.rglob(tool) if path.is_file())
        return subprocess.run(
            ["sh", str(found), *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={
                **environment,
                "STANDIN_LACKS": lacks,
                "STANDIN_LIB": str(self.folder / "usr/share/lustre-standin"),
                "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            },
        )

    def lnet(self) -> Lnet:
        done = self.run("lnetctl", "net", "show", "-v")
        return parse_net_show(done.stdout or done.stderr, done.returncode if done.stdout else 0)

    def up(self) -> None:
        assert self.run("lnetctl", "lnet", "configure").returncode == 0
        done = self.run("lnetctl", "import", str(self.folder / "conf"))
        assert (done.returncode, done.stderr) == (0, "")

    def mount(self) -> subprocess.CompletedProcess[str]:
        return self.run("mount.lustre", DEVICE, str(self.folder / "dir"), "-o", "flock")


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


def test_lnet_that_is_down_is_told_with_its_errno(client: Client) -> None:
    done = client.run("lnetctl", "net", "show")
    assert (done.returncode, done.stdout) == (156, "")
    assert "errno: -100" in done.stderr
    assert client.lnet().error == "lnet_down"


def test_lnet_has_what_its_file_says(client: Client) -> None:
    client.up()
    nets = client.lnet().nets
    assert {net: [ni.iface for ni in nis] for net, nis in nets.items()} == {
        "o2ib": ["rail0", "rail1"],
        "tcp": ["eth0"],
    }
    first, second = nets["o2ib"]
    assert first.nid == "10.64.1.2@o2ib"
    assert (first.peer_credits, first.peer_credits_hiw, first.concurrent_sends) == (32, 16, 64)
    assert (second.peer_credits, second.peer_credits_hiw, second.concurrent_sends) == (8, 4, 8)
    assert nets["tcp"][0].concurrent_sends is None
    assert client.run("lctl", "list_nids").stdout.split() == [
        "10.64.1.2@o2ib",
        "10.64.2.2@o2ib",
        "10.64.0.2@tcp",
    ]


def test_a_network_with_a_missing_interface_is_not_taken_at_all(client: Client) -> None:
    (client.folder / "up/rail1").unlink()
    client.run("lnetctl", "lnet", "configure")
    done = client.run("lnetctl", "import", str(client.folder / "conf"))
    assert done.returncode == 256 - 19
    assert "couldn't query intf rail1" in done.stderr
    assert set(client.lnet().nets) == {"tcp"}


def test_an_lnd_that_the_kernel_refuses_leaves_its_network_out(client: Client) -> None:
    client.run("lnetctl", "lnet", "configure")
    done = client.run("lnetctl", "import", str(client.folder / "conf"), lacks="ko2iblnd")
    assert done.returncode != 0
    assert set(client.lnet().nets) == {"tcp"}


def test_a_port_that_goes_down_is_told(client: Client) -> None:
    client.up()
    (client.folder / "up/rail0").unlink()
    assert client.lnet().down == ["10.64.1.2@o2ib"]


def test_the_probe_asks_for_the_health_of_interfaces(client: Client) -> None:
    client.up()
    (client.folder / "up/rail0").unlink()
    asked = next(line for line in LNET.script.splitlines() if line.startswith("lnetctl "))
    nis = parse_net_show(client.run(*asked.split()).stdout).nets["o2ib"]
    assert [(ni.fatal, ni.health) for ni in nis] == [(1, 0), (0, 1000)]


def test_what_lnet_has_goes_with_its_module(client: Client) -> None:
    client.up()
    module = client.folder / "sys/module/lnet"
    module.rename(module.parent / "was")
    module.mkdir()
    assert client.lnet().error == "lnet_down"


def test_the_first_mount_brings_lnet_up_on_whatever_interface_is_first(client: Client) -> None:
    done = client.mount()
    assert done.returncode == 5
    assert "Is the MGS running?" in done.stderr
    assert list(client.lnet().nets) == ["tcp"]


def test_a_mount_has_devices_targets_and_parameters(client: Client) -> None:
    client.up()
    assert client.mount().returncode == 0
    devices = parse_devices(client.run("lctl", "dl").stdout)
    assert (devices.fsname, devices.mdt, devices.ost) == ("scr", 1, 2)
    assert devices.mgs_nid == "10.77.3.1@o2ib"
    found = parse_df(client.run("lfs", "df", str(client.folder / "dir")).stdout)
    assert (found.fsname, set(found.osts), found.silent) == ("scr", {"0", "1"}, {})
    name = "osc.*.max_rpcs_in_flight"
    assert set(parse_parameters(client.run("lctl", "get_param", name).stdout).values.values()) == {
        "8"
    }
    assert client.run("lctl", "set_param", f"{name}=32").returncode == 0
    assert client.run("lctl", "get_param", "-n", name).stdout.split() == ["32", "32"]
    other = parse_parameters(client.run("lctl", "get_param", "mdc.*.max_rpcs_in_flight").stdout)
    assert set(other.values.values()) == {"8"}


def test_what_is_mounted_anew_has_the_defaults(client: Client) -> None:
    client.up()
    client.mount()
    client.run("lctl", "set_param", "osc.*.max_rpcs_in_flight=32")
    (client.folder / "proc/self/mountinfo").write_text("")
    client.mount()
    shown = client.run("lctl", "get_param", "-n", "osc.*.max_rpcs_in_flight").stdout
    assert shown.split() == ["8", "8"]


def test_a_parameter_of_another_name_is_an_error(client: Client) -> None:
    client.up()
    client.mount()
    done = client.run("lctl", "get_param", "osc.*.no_such")
    assert done.returncode == 2
    assert parse_parameters(done.stderr).errors == {"osc/*/no_such": "No such file or directory"}


def test_our_script_brings_lnet_up_by_it_as_asked(client: Client) -> None:
    asked = lustre_host.node()
    files = lustre_host.written(asked, lustre_host.host())
    (client.folder / "conf").write_text(files[LNET_CONF])
    script = client.folder / "our-script"
    script.write_text(files[LNET_SCRIPT].replace(LNET_CONF, str(client.folder / "conf")))
    (client.folder / "up/rail1").rename(client.folder / "rail1")
    assert client.run("our-script").returncode == 0
    assert [ni.iface for ni in client.lnet().nets["o2ib"]] == ["rail0"]
    (client.folder / "rail1").rename(client.folder / "up/rail1")
    assert client.run("our-script").returncode == 0
    (o2ib,) = client.lnet().nets.values()
    assert [ni.iface for ni in o2ib] == ["rail0", "rail1"]
    given = asked.lustre.networks["o2ib"].tunables.given
    assert [{name: getattr(ni, name) for name in given} for ni in o2ib] == [given, given]


@pytest.mark.parametrize("place", ["run/railwright-lab", "etc/railwright-lab"])
def test_a_mount_waits_while_its_server_is_away(client: Client, place: str) -> None:
    client.up()
    (client.folder / place).mkdir(exist_ok=True)
    (client.folder / place / "server-away").touch()
    with pytest.raises(subprocess.TimeoutExpired):
        client.run("mount.lustre", DEVICE, str(client.folder / "dir"), timeout=1.5)
    (client.folder / place / "server-away").unlink()
    assert client.mount().returncode == 0


@pytest.mark.parametrize("major", [7, 8])
def test_keys_of_beegfs_client_conf_are_those_of_its_major(major: Major) -> None:
    text = (PAYLOAD / f"beegfs_conf_{major}/etc/beegfs/beegfs-client.conf").read_text()
    lines = (line.partition("=")[0].strip() for line in text.splitlines() if line[:1] not in "# ")
    names = [name for name in lines if name]
    # What a tool of user space alone reads of it.
    assert set(names) - KEYS[major].keys() <= {"connMgmtdGrpcPort"}
    assert len(names) == len(set(names)) > 30
    management = Conf(text).find("sysMgmtdHost")
    assert management is not None
    assert management.value == ""


def test_servers_of_beegfs_are_read(tmp_path: Path) -> None:
    tool = PAYLOAD / "beegfs_tools/usr/bin/beegfs"
    done = subprocess.run(["sh", str(tool), "node", "list"], capture_output=True, text=True)
    offers = parse_node_list(done.stdout, done.returncode)
    assert [offer.kind for offer in offers] == ["management", "meta", "storage"]


def test_each_client_comes_with_what_its_major_needs() -> None:
    names = {(deb.name, deb.version) for deb in debs_beegfs.packages()}
    assert names == {
        *((f"beegfs-client{way}", f"20:{version}") for way in ("", "-dkms")
          for version in RELEASES.values()),
        ("beegfs-helperd", "20:7.4.6"),
        ("beegfs-tools", "20:8.3.1"),
    }  # fmt: skip
    ways = [deb for deb in debs_beegfs.packages() if deb.name.startswith("beegfs-client")]
    assert all("Conflicts" in deb.relations for deb in ways)
    assert {deb.version for deb in debs_lustre.packages()} == {"2.16.1-1"}
