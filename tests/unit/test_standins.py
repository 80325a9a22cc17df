"""Stand-ins for the vendors' packages: whole, told for what they are, and read by our facts."""

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from facts.drivers import QUERY
from facts.gdscheck import parse_gdscheck
from facts.nvidia_fs import parse_stats
from facts.nvidia_proc import parse_nvidia_version
from facts.nvidia_smi import SmiReport, parse_query
from facts.ofed import parse_ofed_info
from railwright.gds.jsonc import parse
from tests.standins import (
    debs_beegfs,
    debs_cuda,
    debs_doca,
    debs_lab,
    debs_lustre,
    keys,
    releases,
)
from tests.standins.build import apt
from tests.standins.debs import NOTE, Deb
from tests.standins.keys import Key
from tests.standins.marks import PAYLOAD, Marks, copy
from tests.unit.apt_root import AptRoot

DOCA, CUDA = list(debs_doca.packages()), list(debs_cuda.packages())
STORAGE = [*debs_lustre.packages(), *debs_beegfs.packages()]
ALL = [*DOCA, *CUDA, *STORAGE, *debs_lab.packages()]
OLD, NEW = releases.DRIVERS
BANNER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build  (x@y)  \n"
HEAD = re.compile(r"(?m)^(?:#|/\*| \*|    //)? ?.*[Ss]tand-in of railwright's tests")


@pytest.mark.parametrize("deb", ALL, ids=lambda deb: f"{deb.name}-{deb.version}")
def test_control_data_is_whole(deb: Deb) -> None:
    fields = dict(re.findall(r"(?m)^(\S+): (.+)$", deb.control))
    assert {"Package", "Version", "Architecture", "Maintainer", "Description"} <= fields.keys()
    assert fields["Description"].startswith(NOTE)
    assert all((PAYLOAD / part).is_dir() for part in deb.parts)


@pytest.mark.parametrize("debs", [DOCA, CUDA], ids=["doca", "cuda"])
def test_what_depends_on_a_stand_in_can_have_it_in_that_version(debs: list[Deb]) -> None:
    offered = {(deb.name, deb.version) for deb in debs}
    exact = [
        (name, version)
        for deb in debs
        for name, version in re.findall(r"(\S+) \(= (\S+)\)", deb.relations.get("Depends", ""))
    ]
    assert len(exact) > 3
    assert set(exact) <= offered


def test_two_releases_are_offered_of_what_is_upgraded() -> None:
    versions: dict[str, set[str]] = {}
    for deb in [*DOCA, *CUDA]:
        versions.setdefault(deb.name, set()).add(deb.version)
    assert versions["mlnx-ofed-kernel-dkms"] == {
        "25.10.OFED.25.10.1.2.8.1-1",
        "25.10.OFED.25.10.1.7.1.1-1",
    }
    for name in ("nvidia-kernel-open-dkms", "libnvidia-ml1", "nvidia-fabricmanager"):
        assert versions[name] == {f"{OLD}-1", f"{NEW}-1"}
    assert versions["nvidia-fs-dkms"] == {"2.26.6-1", "2.27.3-1"}


@pytest.mark.parametrize(
    "path",
    [path for path in PAYLOAD.rglob("*") if path.is_file() and path.suffix != ".force"],
    ids=lambda path: str(path.relative_to(PAYLOAD)),
)
def test_each_file_says_that_it_is_a_stand_in(path: Path) -> None:
    assert HEAD.search(path.read_text()[:500])


def test_scripts_of_packages_and_payload_are_clean(tmp_path: Path) -> None:
    scripts = [p for p in PAYLOAD.rglob("*") if p.is_file() and p.read_text()[:9] == "#!/bin/sh"]
    for deb in ALL:
        for name, body in deb.scripts.items():
            scripts.append(tmp_path / f"{deb.name}.{name}")
            scripts[-1].write_text(f"#!/bin/sh\nset -e\n{body}")
    done = subprocess.run(
        ["shellcheck", *map(str, scripts)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


class Vendor:
    """DOCA's repository, and the same packages signed by another key."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.keys: Mapping[str, Key] = keys.make(folder / "keys", folder / "secret")
        for name, signer in (("doca", "doca"), ("doca-other-key", "other")):
            apt(folder / name, DOCA, self.keys[signer], "NVIDIA", "DOCA-HOST")

    def source(self, root: AptRoot, name: str) -> None:
        lines = {
            "Types": "deb",
            "URIs": f"file://{self.folder / name}",
            "Suites": "./",
            "Signed-By": str(self.keys["doca"].public),
        }
        text = "".join(f"{key}: {value}\n" for key, value in lines.items())
        (root.root / "etc/apt/sources.list.d/doca.sources").write_text(text)


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Vendor]:
    made = Vendor(tmp_path_factory.mktemp("v"))
    yield made
    for key in made.keys.values():
        keys.stop_agent(key)


def update(root: AptRoot) -> subprocess.CompletedProcess[str]:
    return root.run("apt-get", "update", "-qq", "-o", "APT::Update::Error-Mode=any")


def test_apt_takes_the_repository_and_installs_a_named_version(
    vendor: Vendor, tmp_path: Path
) -> None:
    root = AptRoot(tmp_path / "root")
    vendor.source(root, "doca")
    done = update(root)
    assert done.returncode == 0, done.stderr
    old = "25.10.OFED.25.10.1.2.8-1"
    done = root.run("apt-get", "install", "-y", f"ofed-scripts={old}")
    assert done.returncode == 0, done.stderr
    assert root.installed()["ofed-scripts"] == f"{old} install installed"
    told = root.run("sh", str(root.root / "usr/bin/ofed_info"), "-s").stdout
    assert parse_ofed_info(told).version == "25.10-1.2.8"
    label = root.run("apt-cache", "policy").stdout
    assert "l=DOCA-HOST" in label


def test_apt_refuses_what_another_key_has_signed(vendor: Vendor, tmp_path: Path) -> None:
    root = AptRoot(tmp_path / "root")
    vendor.source(root, "doca-other-key")
    done = update(root)
    assert done.returncode != 0
    assert "NO_PUBKEY" in done.stderr


def test_keys_are_made_once(vendor: Vendor) -> None:
    again = keys.make(vendor.folder / "keys", vendor.folder / "secret")
    assert {n: k.fingerprint for n, k in again.items()} == {
        n: k.fingerprint for n, k in vendor.keys.items()
    }


class Gpus:
    """nvidia-smi of driver ``version`` on a machine with ``loaded`` and so many GPUs."""

    def __init__(self, folder: Path, gpus: str, loaded: str | None = OLD) -> None:
        copy("nvidia_smi", folder, Marks(OLD, "580"))
        copy("nvidia_fabricmanager", folder, Marks(OLD, "580"))
        self.folder = folder
        (folder / "etc").mkdir()
        (folder / "etc/gpus").write_text(f"{gpus}\n")
        if loaded:
            (folder / "proc/driver/nvidia").mkdir(parents=True)
            (folder / "proc/driver/nvidia/version").write_text(BANNER.format(loaded))

    def run(self, tool: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        places = {"PROC": "proc", "SYS": "sys", "RUN": "run", "ETC": "etc"}
        environment = {f"STANDIN_{name}": str(self.folder / at) for name, at in places.items()}
        command = ["sh", str(self.folder / "usr/bin" / tool), *arguments]
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            env={**environment, "PATH": "/usr/bin:/bin"},
        )

    def smi(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.run("nvidia-smi", *arguments)

    def query(self, fields: tuple[str, ...] = QUERY) -> SmiReport:
        done = self.smi(f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits")
        return parse_query(done.stdout, fields, done.returncode)


def test_gpus_answer_all_that_the_probe_asks(tmp_path: Path) -> None:
    report = Gpus(tmp_path, "2 0000:1b:00.0 0000:2a:00.0").query()
    assert [gpu.pci for gpu in report.gpus] == ["0000:1b:00.0", "0000:2a:00.0"]
    assert not any(gpu.absent for gpu in report.gpus)
    assert {gpu.driver_version for gpu in report.gpus} == {OLD}


def test_gpus_are_those_on_the_bus_where_nothing_else_is_said(tmp_path: Path) -> None:
    gpus = Gpus(tmp_path, "0")
    (tmp_path / "etc/gpus").unlink()
    for address, vendor, kind in (
        ("0000:00:01.0", "0x8086", "0x020000"),
        ("001f:00:00.0", "0x10de", "0x030200"),
        ("001f:00:01.0", "0x10de", "0x068000"),
    ):
        device = tmp_path / "sys/bus/pci/devices" / address
        device.mkdir(parents=True)
        (device / "vendor").write_text(f"{vendor}\n")
        (device / "class").write_text(f"{kind}\n")
    assert [gpu.pci for gpu in gpus.query().gpus] == ["001f:00:00.0"]


def test_what_is_set_of_a_gpu_stays_until_the_module_is_loaded_anew(tmp_path: Path) -> None:
    gpus = Gpus(tmp_path, "2 0000:1b:00.0 0000:2a:00.0")
    assert gpus.smi("-i", "00000000:2A:00.0", "-pl", "400").returncode == 0
    assert gpus.smi("-i", "1", "-mig", "1").returncode == 0
    assert gpus.smi("mig", "-i", "1", "-cgi", "1g.10gb,1g.10gb", "-C").returncode == 0
    first, second = gpus.query().gpus
    assert (first.power_limit_w, second.power_limit_w) == (700, 400)
    assert (first.mig, second.mig) == (False, True)
    assert len(re.findall(r"^  MIG 1g\.10gb ", gpus.smi("-L").stdout, re.M)) == 2
    (tmp_path / "sys/module/nvidia").mkdir(parents=True)
    assert [gpu.power_limit_w for gpu in gpus.query().gpus] == [700, 700]


def test_a_gpu_refuses_a_limit_out_of_its_range(tmp_path: Path) -> None:
    gpus = Gpus(tmp_path, "1")
    assert gpus.smi("-i", "0", "-pl", "900").returncode == 2
    assert gpus.query().gpus[0].power_limit_w == 700


@pytest.mark.parametrize(
    ("gpus", "loaded", "rc", "error"),
    [
        ("0", OLD, 6, "no_devices"),
        ("1", NEW, 18, "driver_library_mismatch"),
        ("1", None, 9, "driver_not_loaded"),
    ],
)
def test_nvidia_smi_fails_as_nvidias(
    tmp_path: Path, gpus: str, loaded: str | None, rc: int, error: str
) -> None:
    machine = Gpus(tmp_path, gpus, loaded)
    assert machine.smi("-L").returncode == rc
    problem = machine.query().problem
    assert problem is not None
    assert problem.error == error


def test_nvidia_smi_knows_no_other_fields(tmp_path: Path) -> None:
    problem = Gpus(tmp_path, "1").query(("index", "no.such")).problem
    assert problem is not None
    assert (problem.error, problem.field) == ("invalid_field", "no.such")


def test_fabric_manager_starts_on_no_other_driver(tmp_path: Path) -> None:
    machine = Gpus(tmp_path, "1", NEW)
    config = str(tmp_path / "usr/share/nvidia/nvswitch/fabricmanager.cfg")
    done = machine.run("nv-fabricmanager", "-c", config)
    assert done.returncode == 1
    assert f"interface version {OLD} don't match with driver version {NEW}" in done.stderr
    assert machine.run("nv-fabricmanager", "--version").stdout.endswith(f": {OLD}\n")


def test_texts_of_the_modules_are_read(tmp_path: Path) -> None:
    """What the C sources print, as far as it is there to be read without a kernel."""
    copy("nvidia_dkms", tmp_path, releases.driver_marks(NEW))
    copy("nvidia_fs_dkms", tmp_path, releases.fs_marks("2.27.3"))
    banner = "".join(re.findall(r'"([^"]*)"', text_of(tmp_path / "nvidia.c", "show_version")))
    driver = parse_nvidia_version(banner.replace("\\n", "\n"))
    assert (driver.version, driver.flavour) == (NEW, "open")
    stats = "".join(re.findall(r'"([^"]*)"', text_of(tmp_path / "nvidia-fs.c", "show_stats")))
    stats = stats.replace("\\n", "\n").replace("\\t", "\t").replace("%s", "Disabled")
    assert parse_stats(stats).driver == "2.27.3"


def text_of(source: Path, function: str) -> str:
    found = re.search(rf"static int {function}\(.*?\n}}\n", source.read_text(), re.DOTALL)
    assert found is not None
    return found[0]


def test_gdscheck_tells_what_is_loaded(tmp_path: Path) -> None:
    copy("gds_tools", tmp_path, releases.CUFILE_MARKS)
    copy("libcufile", tmp_path, releases.CUFILE_MARKS)
    (tmp_path / "etc").mkdir()
    delivered = tmp_path / "usr/local/cuda-13.0/gds/cufile.json"
    (tmp_path / "etc/cufile.json").symlink_to(delivered)
    fs = tmp_path / "proc/driver/nvidia-fs"
    fs.mkdir(parents=True)
    (fs / "version").write_text("version: 2.26\n")
    (fs / "modules").write_text("nvme: 6.1\n")
    done = subprocess.run(
        ["sh", str(tmp_path / "usr/local/cuda-13.0/gds/tools/gdscheck"), "-p"],
        capture_output=True,
        text=True,
        check=True,
        env={
            "PATH": "/usr/bin:/bin",
            "STANDIN_PROC": str(tmp_path / "proc"),
            "STANDIN_ETC": str(tmp_path / "etc"),
        },
    )
    report = parse_gdscheck(done.stdout)
    assert (report.gds, report.nvidia_fs) == ("1.15.1.6", "2.26")
    assert report.direct("NVMe")
    assert not report.direct("NFS")
    assert report.compat_allowed
    assert report.gpus == {}


def test_delivered_cufile_json_is_read_with_its_comments() -> None:
    text = next(PAYLOAD.rglob("cufile.json")).read_text()
    assert parse(text)
    assert "//" in text
