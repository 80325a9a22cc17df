"""cufile.json, what overrides it and what it has to fit, as the probe brings them."""

import subprocess
from pathlib import Path

import pytest

from facts.gds_config import (
    CUFILE,
    ENVIRONMENT,
    FILE,
    SECTIONS,
    VARIABLE,
    CufileSeen,
    GdsConfigFact,
    read_cufile,
    read_gds_config,
    read_overrides,
    read_platform,
)
from facts.probe import Focus, script
from facts.probe import Section as ProbeSection
from railwright.snapshot import Section, Snapshot, SnapshotError, parse_probe
from tests.unit.gds_host import LINK, STOCK, encoded, platform, snapshot


def test_the_bytes_of_the_file_come_back_as_they_are() -> None:
    text = '{ // \u00e4\r\n\t"a": "\u20ac" }'
    seen = read_cufile(snapshot(cufile=encoded(text.encode())))
    assert seen.text == text
    assert seen.error is None
    assert seen.digest is not None
    assert len(seen.digest) == 64


def test_a_file_that_is_not_there_is_told_apart_from_one_that_cannot_be_read() -> None:
    assert read_cufile(snapshot(None)).record is None
    assert read_cufile(snapshot(None)).error is None
    linked = read_cufile(snapshot(cufile=encoded(STOCK.encode(), link=LINK)))
    assert linked.record is not None
    assert (linked.record.kind, linked.record.target) == ("link", LINK)
    broken = read_cufile(snapshot(cufile=encoded(b"{\n\xfc}")))
    assert (broken.text, broken.error) == (None, "line 2: expected UTF-8")


def test_a_probe_that_failed_is_no_file_that_is_not_there() -> None:
    seen = snapshot()
    failed = seen.sections | {"gds_cufile": Section(stdout="", stderr="base64: not found", rc=127)}
    with pytest.raises(ValueError, match="base64: not found"):
        read_cufile(Snapshot(host="n1", marker=seen.marker, sections=failed))
    capped = seen.sections | {"gds_cufile": Section(stdout="", rc=None, ended="capped")}
    with pytest.raises(SnapshotError):
        read_cufile(Snapshot(host="n1", marker=seen.marker, sections=capped))
    with pytest.raises(ValueError, match="expected base64 of the probe"):
        read_cufile(snapshot(cufile=encoded(b"{}") + "!"))


@pytest.mark.parametrize(
    "line",
    [
        "/etc/environment:1:CUFILE_ENV_PATH_JSON=/opt/x.json",
        '/etc/environment:1:CUFILE_ENV_PATH_JSON="/opt/x.json"',
        "/etc/profile.d/gds.sh:1:export CUFILE_ENV_PATH_JSON='/opt/x.json'; umask 022",
        "/etc/security/pam_env.conf:1:CUFILE_ENV_PATH_JSON DEFAULT=/opt/x.json",
        '/etc/systemd/system.conf:1:DefaultEnvironment="A=1" "CUFILE_ENV_PATH_JSON=/opt/x.json"',
    ],
)
def test_lines_that_lead_to_another_file_are_found(line: str) -> None:
    (found,) = read_overrides(snapshot(environment=f"{line}\nthere /opt/x.json\n"))
    assert found.decider == line.partition(":1:")[0] + ":1"
    assert (found.path, found.is_there) == ("/opt/x.json", True)


@pytest.mark.parametrize(
    "line",
    [
        "/etc/environment:1:#CUFILE_ENV_PATH_JSON=/opt/x.json",
        f"/etc/environment:1:CUFILE_ENV_PATH_JSON={CUFILE}",
        "/etc/profile:9:unset CUFILE_ENV_PATH_JSON",
        "/etc/environment:1:CUFILE_ENV_PATH_JSON=",
    ],
)
def test_lines_that_lead_nowhere_else_are_passed_over(line: str) -> None:
    assert read_overrides(snapshot(environment=f"{line}\n")) == ()


def test_what_decides_the_mode_is_read() -> None:
    told = platform(
        "nvme nvme0 pcie",
        "nvme nvme4 rdma",
        "iommu DMA-FQ",
        "iommu identity",
        "md0 : active raid0 nvme1n1[1] nvme0n1[0]",
        "md1 : active raid0 sdb[1] sda[0]",
        "libcufile libcufile.so.1.9.1",
        "libcufile libcufile.so.1.14.1",
        multipath="Y",
        virtual="kvm",
        p2pdma="no",
    )
    found, storage = read_platform(snapshot(told=told))
    assert (found.machine, found.kernel, found.libcufile) == ("x86_64", (6, 8), (1, 14))
    assert (found.distribution, found.release) == ("ubuntu", "24.04")
    assert (found.kernel_has_p2pdma, found.virtual) == (False, "kvm")
    assert found.driver is not None
    assert (found.driver.version, found.driver.flavour) == ("580.95.05", "open")
    assert found.gpus == ("NVIDIA H100 80GB HBM3",)
    assert (storage.fabrics, storage.raid0) == (("nvme4",), ("md0",))
    assert (storage.nvme_multipath, storage.iommu) == (True, "translated")


@pytest.mark.parametrize(
    ("lines", "iommu"),
    [
        (("iommu identity",), "passthrough"),
        (("iommu DMA",), "translated"),
        (("iommu blocked",), None),
        (("nvme nvme0 pcie",), "off"),
    ],
)
def test_the_iommu_is_told_by_the_domains_of_its_groups(
    lines: tuple[str, ...], iommu: str | None
) -> None:
    assert read_platform(snapshot(told=platform(*lines)))[1].iommu == iommu


def test_without_a_driver_nothing_is_known() -> None:
    found, storage = read_platform(snapshot(told=""))
    assert (found.driver, found.machine, found.virtual, found.libcufile) == (None,) * 4
    assert (storage.nvme_multipath, storage.iommu) == (None, None)


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_the_sections_run_here(shell: str) -> None:
    ran = subprocess.run(
        [shell, "-c", script(SECTIONS, Focus(drivers=True))],
        capture_output=True,
        check=True,
        timeout=60,
    )
    seen = parse_probe(ran.stdout.decode("ascii"), host="here")
    assert all(section.rc == 0 for section in seen.sections.values())
    config = read_gds_config(seen)
    assert config == GdsConfigFact().process(ran.stdout.decode("ascii").split("\n"))
    assert config.cufile.error is None


def _in(folder: Path, section: ProbeSection) -> Snapshot:
    """What the section says where ``folder`` stands for /etc."""
    moved = section.model_copy(update={"script": section.script.replace("/etc/", f"{folder}/")})
    ran = subprocess.run(
        ["sh", "-c", script((moved,), Focus(drivers=True))],
        capture_output=True,
        check=True,
        timeout=60,
    )
    return parse_probe(ran.stdout.decode("ascii"), host="here")


def test_any_byte_of_the_file_comes_through_the_probe(tmp_path: Path) -> None:
    text = '{\r\n// \u00e4 \u20ac\t\n"a": 1}' + "// no line end" * 50
    (tmp_path / "cuda.json").write_bytes(text.encode())
    (tmp_path / "cufile.json").symlink_to(tmp_path / "cuda.json")
    seen = read_cufile(_in(tmp_path, FILE))
    assert seen.text == text
    assert seen.record is not None
    assert (seen.record.kind, seen.record.target) == ("link", str(tmp_path / "cuda.json"))
    (tmp_path / "cuda.json").unlink()
    assert "got a link to" in (read_cufile(_in(tmp_path, FILE)).error or "")
    (tmp_path / "cufile.json").unlink()
    assert read_cufile(_in(tmp_path, FILE)) == CufileSeen(record=None)


def test_lines_of_real_files_are_found(tmp_path: Path) -> None:
    there = tmp_path / "there.json"
    there.touch()
    (tmp_path / "environment").write_text(f'A=1\n{VARIABLE}="{there}"\n', encoding="utf-8")
    (tmp_path / "profile.d").mkdir()
    (tmp_path / "profile.d" / "x.sh").write_text(
        f"# {VARIABLE}=/a\nexport {VARIABLE}=/none.json\n", encoding="utf-8"
    )
    found = read_overrides(_in(tmp_path, ENVIRONMENT))
    assert [(one.decider, one.path, one.is_there) for one in found] == [
        (f"{tmp_path}/environment:2", str(there), True),
        (f"{tmp_path}/profile.d/x.sh:2", "/none.json", False),
    ]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_sections_are_what_shellcheck_accepts(section: object) -> None:
    assert section in SECTIONS
    body = next(one.script for one in SECTIONS if one == section)
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034,SC2154,SC2317", "-"],
        input=f"probe() {{\n{body}\n}}\nprobe\n",
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""
