"""The test of a mount as a node runs it: real shells, fio itself or a stand-in for it."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from facts.probe import Focus, script
from railwright.snapshot import Section, Snapshot, parse_probe
from railwright.storage.fio import (
    Evidence,
    look_sections,
    read_evidence,
    read_look,
    run_section,
)
from tests.unit.storage_host import Host, answer, result, small

SHELLS = ["dash", "bash"]


def is_clean(host: Host) -> bool:
    return list(host.storage.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_it_writes_reads_and_removes(tmp_path: Path, shell: str) -> None:
    host = Host(tmp_path)
    seen = read_evidence(host.run(shell=shell))
    assert (seen.failure, seen.left) == (None, ())
    assert seen.write is not None
    assert seen.read is not None
    assert (seen.write.write.bw_bytes, seen.read.read.bw_bytes) == (2_000_000_000, 4_000_000_000)
    assert is_clean(host)


def test_fio_is_told_what_to_do(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.run()
    write, read = (call.split() for call in host.calls)
    place = next(word for word in write if word.startswith("--directory="))
    assert Path(place.removeprefix("--directory=")).parent == host.storage
    assert place in read
    common = {
        "--filename_format=data.$jobnum",
        "--size=2m",
        "--bs=1m",
        "--numjobs=2",
        "--iodepth=2",
        "--ioengine=libaio",
        "--direct=1",
        "--fallocate=none",
        "--time_based=1",
        "--runtime=1",
        "--output-format=json",
    }
    assert common | {"--rw=write", "--end_fsync=1"} <= set(write)
    assert common | {"--rw=read", "--allow_file_create=0"} <= set(read)


def test_what_is_gone_through_once_has_no_end_in_time(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.run(small(seconds=None, direct=False))
    assert not any("--runtime" in call or "--time_based" in call for call in host.calls)
    assert all("--direct=0" in call for call in host.calls)


def test_only_what_was_written_is_read(tmp_path: Path) -> None:
    host = Host(tmp_path, write='truncate -s 3500K "$directory/data.1"\n')
    host.run(small(file_mib=8))
    assert "--size=3m" in host.calls[1]
    (tmp_path / "on_write").write_text('truncate -s 1000K "$directory/data.0"\n')
    seen = read_evidence(host.run(small(file_mib=8)))
    assert seen.failure == "read: not a block of each file was written"
    assert seen.write is not None
    assert len(host.calls) == 3
    assert is_clean(host)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("way", "does", "failure"),
    [
        ("write", 'echo "fio: No space left on device" >&2; exit 2', "write: fio: No space left"),
        ("write", 'echo "fio: Disk quota exceeded" >&2; exit 2', "write: fio: Disk quota exceeded"),
        ("read", "exit 1", "read: fio ended with exit 1"),
        ("read", "kill -KILL $$", "read: fio was killed"),
        ("write", "echo note; exit 0", "write: expected JSON of fio, got 'note'"),
    ],
)
def test_it_removes_all_where_fio_fails(
    tmp_path: Path, shell: str, way: str, does: str, failure: str
) -> None:
    host = Host(tmp_path, **{way: f"{does}\n"})
    seen = read_evidence(host.run(shell=shell))
    assert seen.failure is not None
    assert seen.failure.startswith(failure)
    assert (seen.write is None) == (way == "write")
    assert not seen.refuses_direct
    assert is_clean(host)


def test_what_fio_says_is_the_same_of_all_streams_and_nodes(tmp_path: Path) -> None:
    lines = [
        f"fio: io_u error on file /d/railwright-storage.{place}/data.{job}: No space left on "
        f"device: write offset={job}48576, buflen=1048576"
        for place, job in (("dfe3C11rSv", 0), ("dfe3C11rSv", 1))
    ]
    (tmp_path / "said").write_text("\n".join(lines) + "\n")
    host = Host(tmp_path, write=f"cat {tmp_path}/said >&2; exit 2\n")
    assert read_evidence(host.run()).failure == "write: fio: io_u error: No space left on device"


def test_fio_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    host = Host(tmp_path, write="sleep 50\n")
    seen = read_evidence(host.run(small(limit_s=1)))
    assert seen.failure == "write: fio came to no end in time"
    assert len(host.calls) == 1
    assert is_clean(host)


def test_an_error_in_the_document_counts(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (tmp_path / "read.json").write_text(result("read", 4.0, error=5))
    assert read_evidence(host.run()).failure == "read: fio tells of errno 5"
    (tmp_path / "read.json").write_text(result("read", 0.0))
    assert read_evidence(host.run()).failure == "read: fio moved nothing"


CONNECTION = "import subprocess, sys; subprocess.run([sys.argv[1], '-c', sys.argv[2]])"


@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_and_removes_when_the_one_who_asked_has_hung_up(tmp_path: Path, shell: str) -> None:
    host = Host(tmp_path, write="sleep 50\n")
    # What stands for sshd: it starts the probe and is gone without a word to it.
    asker = subprocess.Popen(
        [sys.executable, "-c", CONNECTION, shell, host.section()], stdout=subprocess.DEVNULL
    )
    try:
        host.wait_for_call()
        assert not is_clean(host)
    finally:
        asker.kill()
        asker.wait()
    wait_until_clean(host)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGHUP])
def test_it_ends_and_removes_on_a_signal(tmp_path: Path, shell: str, sent: signal.Signals) -> None:
    host = Host(tmp_path, write=f'echo "$$" >{tmp_path}/pid; sleep 50\n')
    asked = subprocess.Popen(
        [shell, "-c", host.section()], stdout=subprocess.PIPE, start_new_session=True
    )
    host.wait_for_call()
    os.killpg(asked.pid, sent)
    asked.communicate(timeout=30)
    wait_until_clean(host)
    pid = int((tmp_path / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


def wait_until_clean(host: Host) -> None:
    end = time.monotonic() + 15
    while not is_clean(host):
        assert time.monotonic() < end, "the test left something behind"
        time.sleep(0.1)


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.tool("rm", '#!/bin/sh\ncase $* in *railwright-storage*) exit 1 ;; esac\n/bin/rm "$@"\n')
    (left,) = read_evidence(host.run()).left
    assert Path(left).parent == host.storage
    assert Path(left).name.startswith("railwright-storage.")


def test_a_mount_that_hangs_is_not_waited_for(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.tool("mktemp", '#!/bin/sh\n[ $# -eq 1 ] || exit 124\n/bin/mktemp "$@"\n')
    with pytest.raises(ValueError, match="does not answer: making a directory took more than 30 s"):
        read_evidence(host.run())
    assert host.calls == []


def test_nothing_is_written_where_the_mount_is_gone(tmp_path: Path) -> None:
    host = Host(tmp_path)
    with pytest.raises(ValueError, match=f"is on {host.mount}, not on /mnt/data"):
        read_evidence(host.run(mount="/mnt/data"))
    assert host.calls == []
    assert is_clean(host)


def test_a_directory_that_cannot_be_written_is_told_of(tmp_path: Path) -> None:
    host = Host(tmp_path)
    with pytest.raises(ValueError, match="No such file or directory"):
        read_evidence(host.run(directory=str(tmp_path / "nowhere")))


def test_a_directory_of_any_name_is_one_word(tmp_path: Path) -> None:
    host = Host(tmp_path)
    inner = host.storage / 'a b it\'s $(touch x) "y" `id` *'
    inner.mkdir()
    assert read_evidence(host.run(directory=str(inner))).failure is None
    assert list(inner.iterdir()) == []
    assert list(host.storage.iterdir()) == [inner]


def test_fio_itself_measures_a_few_mib(tmp_path: Path) -> None:
    host = Host(tmp_path)
    seen = read_evidence(answer(host.section(real=True)))
    assert (seen.failure, seen.left) == (None, ())
    assert seen.write is not None
    assert seen.read is not None
    assert seen.write.version.startswith("fio-3")
    for moved in (seen.write.write, seen.read.read):
        assert moved.io_bytes % (1 << 20) == 0
        assert moved.bw_bytes > 0
        assert moved.runtime_ms >= 900
    assert is_clean(host)


def test_fio_itself_through_the_page_cache_writes_each_file_once(tmp_path: Path) -> None:
    host = Host(tmp_path)
    load = small(seconds=None, direct=False, engine="psync", depth=1, file_mib=3)
    seen = read_evidence(answer(host.section(load, real=True)))
    assert seen.write is not None
    assert seen.read is not None
    assert (seen.write.write.io_bytes, seen.read.read.io_bytes) == (6 << 20, 6 << 20)
    assert is_clean(host)


def test_fio_itself_is_killed(tmp_path: Path) -> None:
    host = Host(tmp_path)
    asked = subprocess.Popen(
        ["sh", "-c", host.section(small(seconds=30, limit_s=40), real=True)],
        stdout=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 20
    while not (found := fio_on(host.storage)):
        assert time.monotonic() < end
        time.sleep(0.1)
    os.kill(found, signal.SIGKILL)
    seen = read_evidence(parse_probe(asked.communicate(timeout=30)[0], host="gpu001"))
    assert seen.failure is not None
    assert seen.failure.startswith("write: fio was killed")
    assert is_clean(host)


def test_fio_itself_takes_no_directory_for_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = Host(tmp_path)
    (tmp_path / "railwright").mkdir()
    monkeypatch.chdir(tmp_path)
    assert read_evidence(answer(host.section(real=True))).failure is None
    assert is_clean(host)


def fio_on(storage: Path) -> int | None:
    """The fio that writes below ``storage``."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if words[0] == b"fio" and any(str(storage).encode() in word for word in words):
            return int(path.parent.name)
    return None


@pytest.mark.parametrize(
    "said",
    [
        "fio: looks like your file system does not support direct=1/buffered=0\n"
        "fio: destination does not support O_DIRECT\n",
        "fio: io_u error on file /d/data.0: Invalid argument: write offset=0, buflen=1048576\n",
    ],
)
def test_direct_io_that_is_refused_is_seen_as_such(tmp_path: Path, said: str) -> None:
    (tmp_path / "said").write_text(said)
    host = Host(tmp_path, write=f"cat {tmp_path}/said >&2; exit 1\n")
    seen = read_evidence(host.run())
    assert seen.refuses_direct
    assert seen.write is None


def looked(host: Host, *directories: str) -> Snapshot:
    tools, *others = look_sections(directories)
    return answer(script((host.faked(tools), *others), Focus()))


def test_a_look_tells_of_fio_memory_and_room(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.tool("fio", "#!/bin/sh\necho fio-3.33\n")
    asked = (str(host.storage), str(tmp_path / "it's gone"))
    found = read_look(looked(host, *asked), asked)
    assert found.fio == "fio-3.33"
    assert found.memory_mib > 100
    assert (found.places[asked[0]].free_mib or 0) > 0
    assert "No such file or directory" in (found.places[asked[1]].error or "")
    entry = found.on(host.mount)
    assert entry is not None
    assert entry.fstype


def test_a_look_at_a_node_without_fio(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.tool("fio", "#!/bin/sh\nexit 127\n")
    assert read_look(looked(host, "/"), ["/"]).fio is None


def test_a_place_that_has_not_answered_hangs() -> None:
    def told(places: str) -> Snapshot:
        parts = {"storage_tools": "memory=1024000\nfio=\n", "mounts": "", "gds_mounts": ""}
        sections = {name: Section(stdout=text, rc=0) for name, text in parts.items()}
        sections["storage_places"] = Section(stdout=places, rc=None, ended="deadline")
        return Snapshot(host="n1", marker="m", sections=sections)

    asked = ["/a", "/b", "/c"]
    found = read_look(told("1 0  104857600\n2 137 Killed\n"), asked)
    assert {path: place.free_mib for path, place in found.places.items()} == {"/b": 100}
    for line in ("x", "7 0 1", "0 x 1"):
        with pytest.raises(ValueError, match="NUMBER STATUS TEXT"):
            read_look(told(line), asked)


@pytest.mark.parametrize("place", ["test", *range(4)])
def test_the_sections_are_what_shellcheck_accepts(tmp_path: Path, place: str | int) -> None:
    section = (
        run_section(Host(tmp_path).target(), small())
        if isinstance(place, str)
        else look_sections(["/mnt/it's", "/b"])[place]
    )
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034,SC2154,SC2317,SC2329", "-"],
        input=f"s_x() {{\n{section.script}\n}}\ns_x\n",
        text=True,
        capture_output=True,
    )
    assert checked.stdout == ""


def test_an_answer_that_breaks_off_is_no_evidence() -> None:
    def told(**said: object) -> Evidence:
        part = Section.model_validate({"stdout": "", "rc": 0} | said)
        return read_evidence(Snapshot(host="n1", marker="m", sections={"storage_test": part}))

    for said, words in (
        ({"rc": None, "ended": "deadline"}, "hangs"),
        ({"rc": 143}, "was terminated"),
        ({"rc": 73, "stderr": "Read-only file system"}, "Read-only file system"),
        ({"stdout": "m port storage write\nx"}, "breaks off"),
    ):
        with pytest.raises(ValueError, match=words):
            told(**said)
    assert told().failure == "write: fio was not run"
