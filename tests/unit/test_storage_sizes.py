"""How much is written on a mount, and how; and what came of it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.fio import FioIo, FioRun
from facts.mounts import MountEntry
from railwright.gds.judge import Trial
from railwright.storage.document import GpuTrial, storage_report
from railwright.storage.fio import Evidence, Look, Place
from railwright.storage.judge import Result, judge, not_measured, obstacle
from railwright.storage.sizes import LEAST_MIB, PROFILES, SHARE, Kind, Wanted, load
from tests.unit.storage_host import small, target

KINDS = st.sampled_from(sorted(PROFILES))
GIB = 1024


@given(KINDS, st.integers(0, 10**9), st.integers(1, 200), st.integers(1, 1000))
def test_a_file_system_is_never_filled(kind: Kind, free: int, at_once: int, most: int) -> None:
    nodes = at_once if PROFILES[kind].shared else 1
    try:
        found = load(target(kind), Wanted(most_gib=most), free, 1000, at_once)
    except ValueError:
        assert free < LEAST_MIB * SHARE * nodes
        return
    assert found.size_mib * nodes * SHARE <= free
    assert found.size_mib <= most * GIB
    assert found.file_mib >= found.block_mib * found.depth
    assert found.file_mib % found.block_mib == 0
    assert (found.direct, found.seconds) == (True, 10)


@given(KINDS, st.integers(0, 10**8), st.integers(1, 4_000_000))
def test_a_page_cache_is_outdone_or_left_alone(kind: Kind, free: int, memory: int) -> None:
    wanted = Wanted(buffered=True, most_gib=10_000)
    if 2 * memory > min(free // SHARE, wanted.most_gib * GIB):
        with pytest.raises(ValueError, match="through the page cache it takes"):
            load(target(kind), wanted, free, memory, 1)
        return
    found = load(target(kind), wanted, free, memory, 1)
    assert found.size_mib >= 2 * memory
    assert found.size_mib <= 2 * memory + 512
    assert (found.direct, found.seconds, found.engine, found.depth) == (False, None, "psync", 1)


def test_what_stands_in_the_way_of_a_size_is_told() -> None:
    with pytest.raises(ValueError, match="expected 640 MiB free at least, got 639 MiB"):
        load(target("nvmeof"), Wanted(), 639, 1000, 4)
    with pytest.raises(ValueError, match="expected 2560 MiB free at least for 4 hosts at once"):
        load(target("nfs"), Wanted(), 2559, 1000, 4)
    with pytest.raises(ValueError, match="200000 MiB, 2 times the memory: --max-gib 196 allows it"):
        load(target(), Wanted(buffered=True), 10**7, 100_000, 1)
    assert load(target("nfs"), Wanted(), 2560, 1000, 4).size_mib == 64


def test_each_kind_has_its_load_and_a_source() -> None:
    shown = {kind: str(load(target(kind), Wanted(), 10**7, 1000, 1)) for kind in sorted(PROFILES)}
    drives = "8 streams of 1 MiB blocks, 8 on their way each, direct"
    assert shown == {
        "beegfs": "16 streams of 4 MiB blocks, direct",
        "lustre": "16 streams of 16 MiB blocks, direct",
        "nfs": "16 streams of 1 MiB blocks, direct",
        "nvmeof": drives,
        "scratch": drives,
    }
    assert all(len(profile.why) > 40 for profile in PROFILES.values())
    # Where there is little room there are fewer streams of whole blocks.
    few = load(target("lustre"), Wanted(), 1000, 1000, 1)
    assert (few.jobs, few.file_mib) == (6, 16)


def look(fstype: str = "xfs", options: str = "rw,noatime", **given: Any) -> Look:
    entry = MountEntry(
        source="/dev/md0", target="/data", fstype=fstype, options=tuple(options.split(","))
    )
    fields: dict[str, Any] = {
        "fio": "fio-3.33",
        "memory_mib": 1000,
        "gpu": False,
        "places": {"/data": Place(free_mib=10_000)},
        "mounted": (entry,),
        "gds": {},
    }
    return Look.model_validate(fields | given)


@pytest.mark.parametrize(
    ("kind", "found", "reason"),
    [
        ("scratch", look(), None),
        ("nvmeof", look("ext4"), None),
        ("nfs", look("nfs4"), None),
        ("scratch", look(mounted=()), "not mounted"),
        ("lustre", look("ext4"), "expected lustre, got ext4 (/dev/md0)"),
        ("nfs", look("ext4"), "expected nfs or nfs4, got ext4 (/dev/md0)"),
        ("scratch", look(options="ro,noatime"), "mounted read-only"),
        ("scratch", look(places={}), "does not answer (df)"),
        ("scratch", look(places={"/data": Place(error="df: Stale file handle")}), "df: Stale"),
        ("scratch", look(fio=None), "fio is not installed (package fio)"),
    ],
)
def test_what_keeps_a_mount_from_being_tested(kind: Kind, found: Look, reason: str | None) -> None:
    told = obstacle(target(kind), found)
    assert told is None if reason is None else (told or "").startswith(reason)


def test_of_several_mounts_in_one_place_the_last_counts() -> None:
    under = look("ext4").mounted
    assert obstacle(target("nfs"), look(mounted=(*under, *look("nfs").mounted))) is None
    assert obstacle(target("nfs"), look(mounted=(*look("nfs").mounted, *under))) is not None


def run(way: str, gb_s: float) -> FioRun:
    idle = FioIo(io_bytes=0, bw_bytes=0, runtime_ms=0)
    done = FioIo(io_bytes=1 << 30, bw_bytes=int(gb_s * 1e9), runtime_ms=10_000)
    return FioRun.model_validate(
        {"version": "x", "error": 0, "read": idle, "write": idle, way: done}
    )


def seen(write: float = 2.0, read: float = 4.0, **given: Any) -> Evidence:
    fields: dict[str, Any] = {"write": run("write", write), "read": run("read", read)}
    return Evidence.model_validate(fields | given)


def judged(seen: Evidence, kind: Kind = "scratch", at_once: int = 1, **expected: float) -> Result:
    return judge("gpu001", target(kind, **expected), small(), at_once, seen)


@pytest.mark.parametrize(
    ("expected", "outcome"),
    [
        ({"write_gb_s": 2.0, "read_gb_s": 4.0}, "ok"),
        ({"write_gb_s": 2.001, "read_gb_s": 4.0}, "below"),
        ({"write_gb_s": 2.0, "read_gb_s": 4.001}, "below"),
        ({"read_gb_s": 4.0}, "ok"),
        ({"write_gb_s": 3.0}, "below"),
        ({}, "not_judged"),
    ],
)
def test_figures_are_held_against_what_is_expected(
    expected: dict[str, float], outcome: str
) -> None:
    found = judged(seen(), **expected)
    assert found.outcome == outcome
    assert found.write is not None
    assert found.write.gb_s == 2.0
    told = "nothing is expected" in " ".join(found.notes)
    assert told == (len(expected) < 2)


def test_what_was_not_measured_is_never_ok() -> None:
    half = seen(read=0, failure="read: fio was killed").model_copy(update={"read": None})
    found = judged(half, write_gb_s=1.0, read_gb_s=1.0)
    assert (found.outcome, found.reason) == ("not_measured", "read: fio was killed")
    assert found.write is not None
    assert found.write.outcome == "ok"
    assert judged(Evidence(failure="write: x")).outcome == "not_measured"


def test_direct_io_that_is_refused_is_not_measured_by_the_cache() -> None:
    found = judged(Evidence(failure="write: x", refuses_direct=True), read_gb_s=1.0)
    assert found.outcome == "not_measured"
    assert (found.reason or "").startswith("direct IO is refused (EINVAL)")
    assert "--buffered writes twice the memory" in (found.reason or "")


@pytest.mark.parametrize(
    ("kind", "at_once", "noted"), [("nfs", 3, True), ("nfs", 1, False), ("scratch", 3, False)]
)
def test_servers_that_nodes_share_are_told_of(kind: Kind, at_once: int, noted: bool) -> None:
    found = judged(seen(), kind, at_once, write_gb_s=9.0, read_gb_s=9.0)
    assert found.at_once == at_once
    assert ("--serial" in " ".join(found.notes)) == noted


def gpu(outcome: str, counts: bool, *left: str) -> GpuTrial:
    trial = Trial.model_validate(
        {"host": "gpu001", "outcome": outcome, "way": "unknown", "shows": "x", "left": left}
    )
    return GpuTrial(mount="/data", counts=counts, trial=trial)


OK = judged(seen(), write_gb_s=1.0, read_gb_s=1.0)
BELOW = judged(seen(), write_gb_s=9.0, read_gb_s=1.0)
OPEN = judged(seen())
LOST = not_measured("gpu001", target(), "not mounted")


@pytest.mark.parametrize(
    ("results", "from_gpu", "unread", "code"),
    [
        ([OK], [], {}, 0),
        ([OPEN], [], {}, 0),
        ([OK, BELOW], [], {}, 2),
        ([BELOW, LOST], [], {}, 1),
        ([BELOW], [], {"gpu002": "no route"}, 1),
        ([OK.model_copy(update={"left": ("/data/x",)})], [], {}, 1),
        ([], [], {}, 1),
        ([OK], [gpu("direct", True)], {}, 0),
        ([OK], [gpu("host", True)], {}, 2),
        ([OK], [gpu("host", False), gpu("not_proven", False)], {}, 0),
        ([OK], [gpu("not_proven", True)], {}, 1),
        ([OK], [gpu("direct", False, "/data/x")], {}, 1),
    ],
)
def test_exit_codes(
    results: list[Result], from_gpu: list[GpuTrial], unread: dict[str, str], code: int
) -> None:
    asked = [*((one.host, one.mount) for one in results), *((host, "/data") for host in unread)]
    assert storage_report(asked, unread, results, from_gpu).exit_code == code


def test_a_test_that_was_not_come_to_is_an_error() -> None:
    report = storage_report([("gpu001", "/data"), ("gpu001", "/b")], {}, [OK], [])
    assert report.exit_code == 1
    assert [(one.host, one.mount) for one in report.not_run] == [("gpu001", "/b")]
