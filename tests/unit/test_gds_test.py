"""What a test of the direct path proves, from all that it left on a node."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.cufile_log import parse_cufile_log
from facts.gdscheck import parse_gdscheck
from facts.nvidia_fs import NvidiaFsStats, parse_stats
from railwright.gds.document import gds_report
from railwright.gds.gdsio import Evidence
from railwright.gds.judge import Trial, judge, not_tested
from railwright.gds.mounts import Mount
from railwright.gds.proof import GdsioRun, parse_gpu_stats
from tests.unit.gds_io_host import (
    COMPAT,
    QUIET,
    STOCK,
    counters,
    gpu_line,
    look,
)

MIB = 1 << 20
STRICT = '{"properties": {"allow_compat_mode": false}}'
P2PDMA = '{"properties": {"allow_compat_mode": true, "use_pci_p2pdma": true}}'
STRICT_P2PDMA = '{"properties": {"allow_compat_mode": false, "use_pci_p2pdma": true}}'
ABSENT = parse_stats("cat: /proc/driver/nvidia-fs/stats: No such file or directory", rc=1)
CORPUS = Path(__file__).parents[1] / "corpus/gdscheck"


def fs(read: int = 0, written: int = 0, processes: int = 0, on: bool = True) -> NvidiaFsStats:
    return parse_stats(counters(read, written, processes, on))


def runs(mib: int = 1024) -> tuple[GdsioRun, ...]:
    return tuple(
        GdsioRun(direction=way, asked="GPUD", moved_kib=mib << 10, gib_per_s=5.0)
        for way in ("write", "read")
    )


def seen(**told: Any) -> Evidence:
    """A test that moved 1 GiB each way, all of it by nvidia-fs, but for what is given."""
    fields: dict[str, Any] = {"before": fs(10, 10), "after": fs(1034, 1034), "runs": runs()}
    return Evidence(**(fields | told))


def counted(**ways: int) -> Any:
    """libcufile's counters of both steps, with 1024 IO each."""
    lines = "".join(gpu_line(step, 1024, **ways) for step in ("write", "read"))
    return parse_gpu_stats(lines)


NOTHING: dict[str, Any] = {"after": fs(10, 10)}
LOADED_NOT: dict[str, Any] = {"before": ABSENT, "after": ABSENT}
OFF: dict[str, Any] = {"before": fs(on=False), "after": fs(on=False)}


@pytest.mark.parametrize(
    ("text", "told", "outcome", "way"),
    [
        # nvidia-fs counted all of it, whatever else there is.
        (STOCK, {}, "direct", "nvidia-fs"),
        (STOCK, {"stats": counted(nvfs=1024)}, "direct", "nvidia-fs"),
        # It counted nothing, or part of it.
        (STOCK, NOTHING, "host", "host"),
        (STOCK, {"after": fs(1034, 10)}, "host", "both"),
        (STOCK, NOTHING | {"stats": counted(posix=1024)}, "host", "host"),
        (STOCK, {"stats": counted(posix=1, nvfs=1023)}, "host", "both"),
        # The same counters do not speak against P2PDMA, which nvidia-fs never sees.
        (P2PDMA, NOTHING | {"stats": counted(p2pdma=1024)}, "direct", "p2pdma"),
        (P2PDMA, LOADED_NOT | {"stats": counted(p2pdma=1024)}, "direct", "p2pdma"),
        (P2PDMA, LOADED_NOT | {"stats": counted(posix=1024)}, "host", "host"),
        (P2PDMA, LOADED_NOT | {"stats": counted(posix=24, p2pdma=1000)}, "host", "both"),
        (P2PDMA, LOADED_NOT, "not_proven", "unknown"),
        (P2PDMA, NOTHING, "not_proven", "unknown"),
        # Where nobody counted: lines of compatibility mode, or no other way at all.
        (P2PDMA, LOADED_NOT | {"log": parse_cufile_log(COMPAT)}, "host", "host"),
        (P2PDMA, LOADED_NOT | {"log": parse_cufile_log(QUIET)}, "not_proven", "unknown"),
        (STRICT_P2PDMA, LOADED_NOT, "direct", "p2pdma"),
        (STRICT, OFF, "direct", "direct"),
        (STOCK, OFF, "not_proven", "unknown"),
        (STOCK, OFF | {"stats": counted(nvfs=1024)}, "direct", "nvidia-fs"),
        # What contradicts is not known, nor is what cannot be read.
        (STRICT, NOTHING, "host", "host"),
        (STOCK, NOTHING | {"stats": counted(nvfs=1024)}, "not_proven", "unknown"),
        (STOCK, {"before": None}, "not_proven", "unknown"),
        ("{ not json", OFF, "not_proven", "unknown"),
        (STOCK, {"runs": ()}, "not_proven", "unknown"),
        (STOCK, {"runs": runs()[:1]}, "not_proven", "unknown"),
        (STOCK, {"runs": runs(0)}, "not_proven", "unknown"),
        # IO that fails takes no way.
        (STRICT, {"runs": (), "failure": "write: file register error"}, "failed", "unknown"),
    ],
)
def test_which_way_io_took(text: str, told: dict[str, Any], outcome: str, way: str) -> None:
    found = judge("gpu001", look(text=text), seen(**told))
    assert (found.outcome, found.way) == (outcome, way), found.shows


def test_bug_44_bytes_that_nvidia_fs_did_not_see_are_counted() -> None:
    found = judge("gpu001", look(), seen(after=fs(10, 522)))
    assert (found.outcome, found.unseen_bytes) == ("host", (1024 + 512) * MIB)
    assert found.shows == "nvidia-fs moved 0 of 1024 MiB read, 512 of 1024 MiB written"
    healthy = judge("gpu001", look(), seen())
    assert (healthy.outcome, healthy.unseen_bytes) == ("direct", 0)


def test_bytes_are_not_known_where_nobody_counts_them() -> None:
    assert judge("n", look(), seen(**OFF)).unseen_bytes is None
    p2pdma = judge("n", look(text=P2PDMA), seen(**LOADED_NOT, stats=counted(p2pdma=9)))
    assert p2pdma.unseen_bytes is None


@pytest.mark.parametrize(
    "told",
    [
        {"before": fs(10, 10, processes=2)},
        {"after": fs(1034, 1034, processes=1)},
        {"after": fs(9000, 1034)},
    ],
)
def test_counters_of_others_too_are_no_proof(told: dict[str, Any]) -> None:
    found = judge("gpu001", look(), seen(**told))
    assert found.outcome == "not_proven"
    assert "other process" in found.shows or "another process" in found.shows
    # libcufile's are of the test alone.
    assert judge("gpu001", look(), seen(**told, stats=counted(nvfs=1024))).outcome == "direct"
    # Others can only have added to what is too little.
    short = judge("gpu001", look(), seen(before=fs(10, 10, processes=2), after=fs(11, 10)))
    assert short.outcome == "host"


def test_a_variable_that_overrides_the_file_leaves_it_no_proof() -> None:
    found = judge("n", look(text=STRICT, variables=("CUFILE_ALLOW_COMPAT_MODE",)), seen(**OFF))
    assert found.outcome == "not_proven"
    assert "CUFILE_ALLOW_COMPAT_MODE may decide" in found.shows


@given(st.integers(0, 4000), st.integers(0, 4000), st.booleans(), st.sampled_from([STOCK, P2PDMA]))
def test_direct_is_only_what_somebody_counted(read: int, written: int, on: bool, text: str) -> None:
    after = fs(10 + read, 10 + written, on=on)
    found = judge("n", look(text=text), seen(before=fs(10, 10, on=on), after=after))
    whole = on and read + 1 >= 1024 and written + 1 >= 1024 and read + written <= 2048 + 64
    assert (found.outcome == "direct") == whole


def causes(**given: Any) -> str:
    evidence = given.pop("seen", seen(**NOTHING))
    return "\n".join(one.text for one in judge("n", look(**given), evidence).causes)


def test_causes_are_told_of_the_mount_the_log_and_the_node() -> None:
    mapper = Mount(
        target="/data", fstype="ext4", source="/dev/mapper/vg", device="dm-0", options=("rw",)
    )
    assert "/dev/mapper/vg is of the device mapper" in causes(mount=mapper)
    log = parse_cufile_log(
        COMPAT + " 29-04-2026 11:38:58:215 [pid=1 tid=1] ERROR  cufio-fs:268 Unsupported block "
        "device: /dev/dm-0\n"
    )
    told = causes(seen=seen(**NOTHING, log=log))
    assert "libcufile cannot use the block device /dev/dm-0" in told
    assert "tmpfs is none that libcufile knows" in causes(file_system="tmpfs")
    assert "the IOMMU translates DMA" in causes(storage={"iommu": "translated"})
    nobody = {"nvidia_fs_is_loaded": True, "nvidia_fs_users": []}
    assert "no storage driver has registered with nvidia-fs" in causes(platform=nobody)
    assert judge("n", look(mount=mapper), seen()).causes == ()


def test_of_gdscheck_the_lines_of_this_storage_are_told() -> None:
    check = parse_gdscheck((CORPUS / "07-v1.18-vm-compat-only.txt").read_text())
    told = causes(check=check, platform={"virtual": "kvm"})
    assert "gdscheck: NVMe : compat: a guest of kvm has no PCIe peer-to-peer" in told
    assert "BeeGFS" not in told
    assert "NVMeOF" not in told
    fabrics = causes(check=check, storage={"fabrics": ["nvme1"]})
    assert "gdscheck: NVMeOF : compat" in fabrics
    assert "gdscheck: BeeGFS : compat" in causes(check=check, file_system="beegfs")


def trial(host: str = "gpu001", **given: Any) -> Trial:
    return judge(host, look(), seen()).model_copy(update=given)


@pytest.mark.parametrize(
    ("trials", "unread", "code"),
    [
        ([trial()], {}, 0),
        ([trial(outcome="host")], {}, 2),
        ([trial(outcome="failed")], {}, 2),
        ([trial(outcome="host"), not_tested("gpu002", "gdsio is not installed")], {}, 1),
        ([trial(outcome="host")], {"gpu002": "no route to host"}, 1),
        ([trial(left=("/mnt/x",))], {}, 1),
        ([], {}, 1),
    ],
)
def test_exit_codes(trials: list[Trial], unread: dict[str, str], code: int) -> None:
    hosts = [*(one.host for one in trials), *unread]
    assert gds_report(hosts, unread, trials).exit_code == code


def test_a_host_that_was_not_come_to_is_an_error() -> None:
    report = gds_report(["gpu001", "gpu002"], {}, [trial()])
    assert (report.exit_code, report.not_run) == (1, ("gpu002",))
