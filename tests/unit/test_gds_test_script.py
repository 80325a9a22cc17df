"""The test of the direct path as a node runs it: real shells, a stand-in for gdsio."""

import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from facts.cufile_log import CufileLog
from railwright.gds import gdsio
from railwright.gds.cufile import Cufile
from railwright.gds.gdsio import (
    Evidence,
    Where,
    counting,
    look_sections,
    read_evidence,
    read_look,
    run_section,
    size_mib,
)
from railwright.gds.proof import IoDone, done_by
from tests.unit.gds_io_host import (
    COMPAT,
    STOCK,
    Host,
    answer,
    gpu_line,
    look,
    make_host,
)

SHELLS = ["dash", "bash"]


def is_clean(host: Host, was: str = "0") -> bool:
    """Whether the test left nothing: neither its file, nor the switch, nor a place in /tmp."""
    return host.switch == was and list(host.storage.iterdir()) == []


@pytest.mark.parametrize("shell", SHELLS)
def test_it_writes_reads_and_puts_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    host = make_host(tmp_path, monkeypatch, direct=1, counts="nvfs")
    seen = read_evidence(host.run(shell=shell))
    assert seen.failure is None
    assert done_by(seen.runs) == IoDone(written=400 << 20, read=1200 << 20)
    assert seen.before is not None
    assert seen.after is not None
    assert (seen.before.processes, seen.after.processes) == (0, 0)
    assert seen.before.writes is not None
    assert seen.after.writes is not None
    assert (seen.before.writes.mib, seen.after.writes.mib) == (0, 400)
    assert seen.stats is not None
    assert sum(one.nvfs or 0 for one in seen.stats) == 1600
    assert (seen.left, seen.faults) == ((), ())
    assert is_clean(host)


def test_gdsio_is_told_what_to_do_and_counts_while_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch, direct=1)
    host.run()
    write, read = host.calls
    shown = re.sub(r"\S+/storage/railwright-gds\.\w{10}", "FILE", " ".join(write["arguments"]))
    assert shown == "-f FILE -d 3 -w 1 -s 400M -i 1M -x 0 -I 1"
    assert read["arguments"][:2] == write["arguments"][:2]
    assert read["arguments"][-4:] == ["-I", "0", "-T", "2"]
    assert (write["switch"], read["switch"]) == ("1", "1")


def test_the_nodes_own_configuration_is_used_and_only_counting_is_added(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch)
    host.run()
    config = host.calls[0]["config"]
    assert Cufile(config).value(("profile", "cufile_stats")) == 3
    assert Cufile(config).remove(("profile", "cufile_stats")).value(("profile",)) == {}
    assert Cufile(config).value(("properties", "allow_compat_mode")) is True
    assert "// fall back" in config


@pytest.mark.parametrize(
    ("text", "error", "sent"),
    [
        ('{"profile": {"cufile_stats": 3}}', None, None),
        ('{"profile": {"cufile_stats": 1}}', None, '{"profile": {"cufile_stats": 3}}'),
        ("{ not json", None, None),
        (None, "Permission denied", None),
        ('{"profile": 3}', None, None),
    ],
)
def test_a_file_that_counts_or_that_nobody_can_read_is_left_to_libcufile(
    text: str | None, error: str | None, sent: str | None
) -> None:
    assert counting(look(text=text, config_error=error)) == sent


def test_where_there_is_no_file_there_is_one_that_counts() -> None:
    sent = counting(look(text=None))
    assert sent is not None
    assert Cufile(sent).root.value == {"profile": {"cufile_stats": 3}}


def test_a_switch_that_was_on_stays_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host(tmp_path, monkeypatch)
    (tmp_path / "switch").write_text("1\n")
    host.run()
    assert is_clean(host, was="1")


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("step", ["write", "read"])
def test_it_puts_back_where_gdsio_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, shell: str
) -> None:
    host = make_host(tmp_path, monkeypatch, fails=[step])
    seen = read_evidence(host.run(shell=shell))
    assert seen.failure == (
        f"{step}: file register error: GPUDirect Storage not supported on current file"
    )
    assert [call["step"] for call in host.calls][-1] == step
    assert is_clean(host)


@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_and_puts_back_where_gdsio_takes_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    monkeypatch.setattr(gdsio, "WRITE_S", 1)
    host = make_host(tmp_path, monkeypatch, sleep=30)
    seen = read_evidence(host.run(shell=shell))
    assert seen.failure == "write: gdsio came to no end in time"
    assert is_clean(host)


CONNECTION = "import subprocess, sys; subprocess.run([sys.argv[1], '-c', sys.argv[2]])"


@pytest.mark.parametrize("shell", SHELLS)
def test_it_ends_and_puts_back_when_the_one_who_asked_has_hung_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shell: str
) -> None:
    host = make_host(tmp_path, monkeypatch, sleep=60)
    # What stands for sshd: it starts the probe and is gone without a word to it.
    asker = subprocess.Popen(
        [sys.executable, "-c", CONNECTION, shell, host.section()], stdout=subprocess.DEVNULL
    )
    try:
        host.wait_for_call()
        assert host.switch == "1"
        assert len(list(host.storage.iterdir())) == 1
    finally:
        asker.kill()
        asker.wait()
    end = time.monotonic() + 15
    while not is_clean(host):
        assert time.monotonic() < end, "the test left something behind"
        time.sleep(0.1)


def test_what_cannot_be_put_back_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host = make_host(tmp_path, monkeypatch, breaks_switch=True)
    seen = read_evidence(host.run())
    assert seen.left == (f"{tmp_path}/switch is , it was 0",)


def test_a_file_that_is_there_is_nobodys_to_overwrite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch)
    mine = host.storage / "mine"
    mine.write_text("precious")
    where = Where(directory=str(host.storage), file=str(mine))
    with pytest.raises(ValueError, match="is there already"):
        read_evidence(host.run(where))
    assert mine.read_text() == "precious"
    assert host.calls == []
    assert host.switch == "0"
    other = Where(directory=str(host.storage), file=str(host.storage / "new"))
    assert read_evidence(host.run(other)).failure is None
    assert [path.name for path in host.storage.iterdir()] == ["mine"]


@pytest.mark.parametrize("name", ["-f", 'a b it\'s $(touch x) "y" `id`; ä *'])
def test_a_directory_of_any_name_is_one_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    host = make_host(tmp_path, monkeypatch, direct=1)
    inner = host.storage / name
    inner.mkdir()
    seen = read_evidence(host.run(Where(directory=str(inner))))
    assert seen.failure is None
    assert Path(host.calls[0]["arguments"][1]).parent == inner
    assert list(inner.iterdir()) == []
    assert list(host.storage.iterdir()) == [inner]


def test_a_directory_that_cannot_be_written_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch)
    with pytest.raises(ValueError, match="No such file or directory"):
        read_evidence(host.run(Where(directory=str(tmp_path / "nowhere"))))


def test_a_node_without_nvidia_fs_is_tested_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch, counts="p2pdma")
    (tmp_path / "stats").unlink()
    (tmp_path / "switch").unlink()
    seen = read_evidence(host.run())
    assert seen.before is not None
    assert not seen.before.loaded
    assert seen.stats is not None
    assert {one.p2pdma for one in seen.stats} == {400, 1200}
    assert not (tmp_path / "switch").exists()


def test_readings_of_gds_stats_stand_in_for_counters_that_the_log_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch, sleep=2)
    line = gpu_line("write", 5, p2pdma=5)
    host.tool("gds_stats", f'#!/bin/sh\n[ -n "$2" ] && kill -0 "$2" && echo \'{line.strip()}\'\n')
    seen = read_evidence(host.run())
    assert seen.stats is not None
    assert [one.p2pdma for one in seen.stats] == [5, 5]


def test_lines_of_compatibility_mode_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch, log=COMPAT)
    seen = read_evidence(host.run())
    assert isinstance(seen.log, CufileLog)
    assert len(seen.log.compat) == 2
    assert seen.stats is None


@pytest.mark.parametrize("free", [0, 159])
def test_without_room_nothing_is_written(free: int) -> None:
    with pytest.raises(ValueError, match="expected 160 MiB free at least"):
        size_mib(look(free_mib=free))


@pytest.mark.parametrize(("free", "size"), [(160, 16), (4000, 400), (1 << 30, 1024)])
def test_the_file_takes_a_tenth_of_what_is_free_or_a_gib(free: int, size: int) -> None:
    assert size_mib(look(free_mib=free)) == size


def test_a_look_tells_of_tools_storage_and_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch)
    report = Path(__file__).parents[1] / "corpus/gdscheck/01-v1.0-nvme-supported.txt"
    host.tool("gdscheck.py", f'#!/bin/sh\n[ "$1" = -p ] && cat {report}\n')
    own = tmp_path / "own.json"
    own.write_text(STOCK)
    from facts.probe import Focus, script

    command = script(look_sections(Where(directory=str(host.storage))), Focus())
    exported = f"export CUFILE_ENV_PATH_JSON={own} CUFILE_FORCE_COMPAT_MODE=true\n{command}"
    found = read_look(answer(exported))
    assert found.tools == str(host.tools)
    assert found.file_system
    assert found.free_mib > 0
    assert (found.config, found.text) == (str(own), STOCK)
    assert found.variables == ("CUFILE_FORCE_COMPAT_MODE",)
    assert found.check is not None
    assert found.check.direct("NVMe")
    bare = read_look(answer(command))
    assert (bare.config, bare.variables) == ("/etc/cufile.json", ())


def test_a_look_at_a_node_without_gdsio_or_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host = make_host(tmp_path, monkeypatch)
    (host.tools / "gdsio").unlink()
    from facts.probe import Focus, script

    found = read_look(answer(script(look_sections(Where(directory=str(host.storage))), Focus())))
    assert found.tools is None
    assert found.check is not None
    assert found.check.error == "not_installed"
    with pytest.raises(ValueError, match="gdsio is not installed"):
        run_section(Where(directory="/x"), found, gpu=0, seconds=1)
    gone = answer(script(look_sections(Where(directory=str(tmp_path / "gone"))), Focus()))
    with pytest.raises(ValueError, match="gone is no directory"):
        read_look(gone)


@pytest.mark.parametrize("place", ["test", *range(3)])
def test_the_sections_are_what_shellcheck_accepts(place: str | int) -> None:
    where = Where(directory="/mnt/it's")
    section = (
        run_section(where, look(), gpu=0, seconds=10)
        if isinstance(place, str)
        else look_sections(where)[place]
    )
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034,SC2154,SC2317,SC2329", "-"],
        input=f"s_x() {{\n{section.script}\n}}\ns_x\n",
        text=True,
        capture_output=True,
    )
    assert checked.stdout == ""


def test_an_answer_that_breaks_off_is_no_evidence() -> None:
    from railwright.snapshot import Section, Snapshot

    def told(**said: object) -> Evidence:
        part = Section.model_validate({"stdout": "", "rc": 0} | said)
        return read_evidence(Snapshot(host="n1", marker="m", sections={"gds_test": part}))

    for said, words in (
        ({"rc": None, "ended": "deadline"}, "hangs"),
        ({"rc": 143}, "was terminated"),
        ({"rc": 73, "stderr": "No space left on device"}, "No space left"),
        ({"rc": 73}, "exit 73"),
        ({"stdout": "m port gds before\nx"}, "breaks off"),
    ):
        with pytest.raises(ValueError, match=words):
            told(**said)
    assert told().failure == "write: gdsio was not run"
