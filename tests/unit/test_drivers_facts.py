"""The probe's sections on drivers, run by real shells over stubs of the tools, and read back."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.driver_kernels import parse_disk, parse_symbols, sources_kernel
from facts.drivers import (
    DKMS,
    SECTIONS,
    Drivers,
    parse_loaded,
    read_dkms,
    read_drivers,
    read_gpus,
)
from facts.probe import Focus, script
from railwright.snapshot import Section, SnapshotError, parse_probe
from tests.unit.drivers_host import COMING, RUNNING, node, probe, write


def drivers(root: Path) -> Drivers:
    return read_drivers(probe(root))


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_loaded_modules_with_all_that_hold_them(shell: str, tmp_path: Path) -> None:
    node(tmp_path)
    found = read_drivers(probe(tmp_path, shell))
    assert {name: module.holders for name, module in found.loaded.items()} == {
        "nvidia": ("nvidia_uvm",),
        "nvidia_uvm": ("out_of_list",),
        "out_of_list": (),
    }
    nvidia = found.loaded["nvidia"]
    assert (nvidia.srcversion, nvidia.version, nvidia.refcnt) == ("nvidiaS", None, 3)
    assert nvidia.initstate == "live"


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_modules_on_disk_by_kernel(shell: str, tmp_path: Path) -> None:
    node(tmp_path)
    found = read_drivers(probe(tmp_path, shell)).kernels
    assert set(found) == {RUNNING, COMING}
    assert set(found[RUNNING].disk.files) == {"ib_core", "nvidia", "nvme"}
    assert set(found[COMING].disk.files) == {"ib_core", "nvme"}
    core = found[COMING].disk.files["ib_core"]
    assert (core.version, core.srcversion, core.is_inbox) == ("25.10", "IB_CORE1", False)
    assert set(found[RUNNING].disk.written) == {"ib_core", "nvidia", "nvme"}
    assert found[RUNNING].disk.sources == {"nvidia": "nvidia"}
    assert found[COMING].vermagic == f"{COMING} SMP mod_unload modversions"


@pytest.mark.parametrize("shell", ["dash", "bash"])
def test_symbols_that_the_kernel_itself_answers_for_do_not_come_back(
    shell: str, tmp_path: Path
) -> None:
    node(tmp_path)
    symbols = read_drivers(probe(tmp_path, shell)).kernels[RUNNING].symbols
    assert symbols is not None
    assert symbols.needed == {
        "ib_core": {"module_layout": 1},
        "nvidia": {"module_layout": 1, "ib_register_client": 0xCC},
        "nvme": {"module_layout": 1},
    }
    told = {name: {s: e.crc for s, e in table.items()} for name, table in symbols.tables.items()}
    assert told == {
        "kernel": {"module_layout": 1, "ib_register_client": 0xBB},
        "ofed": {"ib_register_client": 0xCC},
        "own": {"ib_register_client": 0xCC},
    }
    assert symbols.exporters == {"ib_register_client": "ib_core"}


def test_without_the_headers_all_that_is_needed_comes_back(tmp_path: Path) -> None:
    node(tmp_path)
    (tmp_path / "modules" / RUNNING / "build" / "Module.symvers").unlink()
    symbols = drivers(tmp_path).kernels[RUNNING].symbols
    assert symbols is not None
    assert symbols.needed["nvme"] == {"module_layout": 1, "printk": 0xAA}
    assert "kernel" not in symbols.tables


def test_a_table_of_symbols_may_be_compressed(tmp_path: Path) -> None:
    node(tmp_path)
    folder = tmp_path / "modules" / RUNNING
    shutil.move(folder / "build" / "Module.symvers", folder / "symvers")
    subprocess.run(["gzip", str(folder / "symvers")], check=True)
    symbols = drivers(tmp_path).kernels[RUNNING].symbols
    assert symbols is not None
    assert symbols.tables["kernel"]["ib_register_client"].crc == 0xBB


def test_tools_and_files(tmp_path: Path) -> None:
    node(tmp_path)
    found = drivers(tmp_path)
    assert (found.ofed.kind, found.ofed.version) == ("doca_ofed", "25.10-1.2.8")
    assert [(m.module, m.state) for m in found.dkms.modules] == [
        ("nvidia", "installed"),
        ("lustre", "broken"),
    ]
    assert found.nvidia is not None
    assert (found.nvidia.version, found.nvidia.flavour) == ("580.95.05", "open")
    assert found.libraries == ("580.95.05",)
    assert (found.nvidia_fs, found.nvidia_fs_modules) == ("2.27", {"nvme": "1"})
    assert found.gpus is not None
    (gpu,) = found.gpus.gpus
    assert (gpu.pci, gpu.persistence, gpu.mig, gpu.power_limit_w) == (
        "0000:18:00.0",
        True,
        False,
        700,
    )


def test_a_version_may_have_blanks(tmp_path: Path) -> None:
    node(tmp_path)
    write(tmp_path / "sys" / "nvidia_uvm" / "version", "1.0 of this year\n")
    assert drivers(tmp_path).loaded["nvidia_uvm"].version == "1.0 of this year"


def test_bug_6_the_kernel_that_ofeds_sources_are_for(tmp_path: Path) -> None:
    node(tmp_path)
    assert drivers(tmp_path).ofa_sources == RUNNING
    assert sources_kernel("sources /usr/src/ofa_kernel/4.4.0-97-generic\n") == "4.4.0-97-generic"
    assert sources_kernel("sources /usr/src/ofa_kernel/default\n") == ""


def test_bug_38_a_fabric_manager_of_another_patch_level_is_told(tmp_path: Path) -> None:
    node(tmp_path)
    found = drivers(tmp_path)
    assert found.nvidia is not None
    assert found.fabric_manager == found.nvidia.version
    write(
        tmp_path / "bin" / "nv-fabricmanager",
        "#!/bin/sh\necho 'Fabric Manager version is : 530.30.02'\n",
        0o755,
    )
    assert drivers(tmp_path).fabric_manager == "530.30.02"


def test_bug_4_peer_memory_that_is_not_loaded_is_not_among_the_loaded(tmp_path: Path) -> None:
    node(tmp_path)
    assert "nvidia_peermem" not in drivers(tmp_path).loaded
    shutil.copytree(tmp_path / "sys" / "out_of_list", tmp_path / "sys" / "nvidia_peermem")
    assert "nvidia_peermem" in drivers(tmp_path).loaded


def test_a_gpu_that_hangs_is_a_problem_and_keeps_nothing_else_from_being_read(
    tmp_path: Path,
) -> None:
    node(tmp_path)
    write(tmp_path / "bin" / "nvidia-smi", "#!/bin/sh\nsleep 20\n", 0o755)
    found = drivers(tmp_path)
    assert found.gpus is not None
    assert found.gpus.problem is not None
    assert found.gpus.problem.error == "no_answer"
    assert found.nvidia is not None


def test_a_call_that_cannot_be_killed_is_no_answer_either(tmp_path: Path) -> None:
    node(tmp_path)
    snapshot = probe(tmp_path)
    hung = {"drivers_smi": Section(stdout="", rc=None, ended="deadline")}
    found = read_gpus(snapshot.model_copy(update={"sections": {**snapshot.sections, **hung}}))
    assert found.problem is not None
    assert found.problem.error == "no_answer"


def test_without_the_module_nvidia_smi_is_not_asked_as_it_would_load_it(tmp_path: Path) -> None:
    node(tmp_path)
    (tmp_path / "nvidia" / "version").unlink()
    write(tmp_path / "bin" / "nvidia-smi", f"#!/bin/sh\ntouch {tmp_path}/asked\n", 0o755)
    found = drivers(tmp_path)
    assert (found.nvidia, found.gpus) == (None, None)
    assert not (tmp_path / "asked").exists()


def test_a_bare_node_has_no_drivers_and_no_tools(tmp_path: Path) -> None:
    (tmp_path / "sys").mkdir()
    found = drivers(tmp_path)
    assert (found.loaded, found.kernels, found.ofa_sources) == ({}, {}, "")
    assert (found.ofed.kind, found.dkms.installed) == ("inbox", False)
    assert (found.fabric_manager, found.gpus, found.running, found.coming) == (None,) * 4


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("ofed_info", "expected ofed_info"),
        ("dkms", "dkms status exited 3"),
        ("nv-fabricmanager", "expected Fabric Manager"),
        ("nvidia-smi", "nvidia-smi exited 3"),
    ],
)
def test_a_tool_that_fails_is_not_one_that_is_missing(
    tool: str, words: str, tmp_path: Path
) -> None:
    node(tmp_path)
    write(tmp_path / "bin" / tool, "#!/bin/sh\nexit 3\n", 0o755)
    with pytest.raises(ValueError, match=words):
        drivers(tmp_path)


def test_a_section_that_was_cut_is_unreadable(tmp_path: Path) -> None:
    node(tmp_path)
    snapshot = probe(tmp_path)
    for name in ("drivers_loaded", "drivers_disk", "drivers_symbols", "drivers_dkms"):
        cut = {name: Section(stdout="", rc=None, ended="capped")}
        broken = snapshot.model_copy(update={"sections": {**snapshot.sections, **cut}})
        with pytest.raises(SnapshotError, match=name):
            read_drivers(broken)
    failed = {"drivers_loaded": Section(stdout="", rc=1)}
    broken = snapshot.model_copy(update={"sections": {**snapshot.sections, **failed}})
    with pytest.raises(ValueError, match="/sys/module"):
        read_drivers(broken)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_sections_are_what_shellcheck_accepts(section: object) -> None:
    body = getattr(section, "script")  # noqa: B009
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034,SC2154,SC2317,SC2329", "-"],
        input=f"f() {{\n{body}\n}}\n",
        capture_output=True,
        text=True,
    )
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_loaded, "loaded nvidia\n"),
        (parse_loaded, "loaded\tnvidia\t-\t-\tmany\tlive\t-\n"),
        (parse_loaded, "library\t/x/libcuda.so.1\n"),
        (parse_disk, "modinfo filename: x\n"),
        (parse_disk, "kernel 6\nwritten soon x.ko\n"),
        (parse_symbols, "needs nvme\n"),
        (parse_symbols, "kernel 6\n0x1\tx\n"),
        (parse_symbols, "kernel 6\ntable third\n"),
        (parse_symbols, "kernel 6\nexporters\nx y\n"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match="expected"):
        parse(text)


LINES = [
    "loaded\tnvidia\t-\t-\t3\tlive\t,nvidia_uvm",
    "library\t/usr/lib/x/libnvidia-ml.so.580.95.05",
    "kernel 6.8.0",
    "modinfo filename:       /lib/modules/6.8.0/kernel/nvme.ko",
    "written 1700000000 kernel/nvme.ko",
    "built nvidia/580/6.8.0/x86_64/module/nvidia.ko",
    "sources /usr/src/ofa_kernel/x86_64/6.8.0",
    "needs nvme",
    "exports nvidia",
    "table kernel",
    "exporters",
    "0x000000cc\tib_register_client",
    "0x000000cc\tib_register_client\tvmlinux\tEXPORT_SYMBOL",
    "alias symbol:ib_register_client ib_core",
]


@given(st.lists(st.sampled_from(LINES) | st.text()))
def test_nothing_but_a_value_error_is_raised(lines: list[str]) -> None:
    text = "\n".join(lines)
    for parse in (parse_loaded, parse_disk, parse_symbols, sources_kernel):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert found is not None


def test_sources_that_a_power_cut_took_from_dkms_are_added(tmp_path: Path) -> None:
    sources = (("nvidia-fs", "2.26.6"), ("nvidia", "580.95.05"), ("mlnx-nvme", "25.10"))
    for name, version in sources:
        folder = tmp_path / "src" / f"{name}-{version}"
        folder.mkdir(parents=True)
        (folder / "dkms.conf").write_text(f'PACKAGE_NAME="{name}"\nPACKAGE_VERSION={version}\n')
    (tmp_path / "src" / "broken").mkdir()
    (tmp_path / "src" / "broken" / "dkms.conf").write_text('PACKAGE_NAME="$(reboot)"\n')
    known = tmp_path / "tree" / "nvidia" / "580.95.05"
    known.mkdir(parents=True)
    (known / "source").symlink_to(tmp_path / "src" / "nvidia-580.95.05")
    halved = tmp_path / "tree" / "mlnx-nvme" / "25.10"
    halved.mkdir(parents=True)
    (halved / "source").symlink_to(tmp_path / "nowhere")
    stub = tmp_path / "dkms"
    rows = "mlnx-nvme/25.10: broken\nnvidia/580.95.05, 6.1.0-57-amd64, x86_64: installed"
    stub.write_text(f"#!/bin/sh\necho '{rows}'\n")
    stub.chmod(0o755)
    text = script([DKMS], Focus(drivers=True)).replace(
        "PATH=/usr/sbin:", f"PATH={tmp_path}:/usr/sbin:"
    )
    text = text.replace("/usr/src/", f"{tmp_path}/src/").replace(
        "/var/lib/dkms/", f"{tmp_path}/tree/"
    )
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, timeout=60)
    found = read_dkms(parse_probe(done.stdout, host="a")).modules
    assert {(one.module, one.version, one.state) for one in found} == {
        ("mlnx-nvme", "25.10", "added"),
        ("nvidia", "580.95.05", "installed"),
        ("nvidia-fs", "2.26.6", "added"),
    }
