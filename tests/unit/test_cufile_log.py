"""cufile.log: a process whose IO goes through the host says so once, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.cufile_log import parse_cufile_log
from railwright.gds.proof import by_log, parse_gpu_stats

NOTICE = (
    "NOTICE  cufio:294 cuFileHandleRegister GDS not supported or disabled by config, using cuFile "
    "posix read/write with compat mode enabled"
)
DIRECT = "TRACE  cufio-fs:755 block device supported by cufile, bdev : /dev/nvme0n1p4 module nvme"
STAMP = " 29-04-2026 11:39:01:100 [pid=1 tid=1] "
COUNTERS = (
    "INFO  0:42 GPU 0(UUID: 7d1a) Read: bw=1 util(%)=7 n=8 pcie p2pdma=0 nvfs=8 posix=0 unalign=0 "
    "err=0 MiB=8 Write: bw=0 util(%)=0 n=0 pcie p2pdma=0 nvfs=0 posix=0 unalign=0 err=0 MiB=0"
)


@pytest.mark.parametrize("stamp", ["", STAMP])
@pytest.mark.parametrize(
    ("line", "place"),
    [(NOTICE, "cufio:294"), ("INFO cufio-drv:705 running in compatible mode", "cufio-drv:705")],
)
def test_bug_44_a_line_of_compat_mode_is_found(stamp: str, line: str, place: str) -> None:
    log = parse_cufile_log(f"{stamp}{DIRECT}\n{stamp}{line}\n")
    (found,) = log.compat
    assert (found.place, found.pid) == (place, 1 if stamp else None)
    assert by_log(log, None).way == "host"
    assert by_log(log, None).shows == f"lines of compatibility mode: 1 ({place})"


def test_bug_44_twin_a_log_without_such_a_line_proves_nothing_by_itself() -> None:
    log = parse_cufile_log(f"{STAMP}{DIRECT}\n")
    assert (log.lines, log.compat, log.errors) == (1, (), ())
    assert by_log(log, None).way == "unknown"
    assert "profile.cufile_stats has to be 3" in by_log(log, None).shows


def test_bug_44_a_device_that_libcufile_cannot_use_is_named() -> None:
    line = f"{STAMP}ERROR  cufio-fs:268 Unsupported block device: /dev/dm-0"
    log = parse_cufile_log(f"{line}\n{line}\n{STAMP}{NOTICE}\n")
    assert log.unsupported == ("/dev/dm-0",)
    assert parse_cufile_log(f"{STAMP}{DIRECT}\n").unsupported == ()


def test_counters_in_the_log_say_more_than_its_lines() -> None:
    text = f"{STAMP}{NOTICE}\n{STAMP}{COUNTERS}\n"
    log = parse_cufile_log(text)
    assert by_log(log, parse_gpu_stats(text)).way == "nvidia-fs"
    through = text.replace("nvfs=8 posix=0", "nvfs=0 posix=8")
    assert by_log(log, parse_gpu_stats(through)).way == "host"


def test_a_file_that_is_turned_down_is_no_compat_mode() -> None:
    refused = "ERROR  cufio:311 cuFileHandleRegister error, compat mode disabled"
    log = parse_cufile_log(f"{refused}\n")
    assert log.compat == ()
    assert [line.place for line in log.errors] == ["cufio:311"]


@given(st.lists(st.sampled_from([NOTICE, f"{STAMP}{DIRECT}", COUNTERS, ""]) | st.text()))
def test_any_text_is_a_log_or_refused_in_words(lines: list[str]) -> None:
    text, told = "\n".join(lines), ""
    try:
        log = parse_cufile_log(text)
        assert text.count(NOTICE) <= len(log.compat) <= log.lines <= len(text.splitlines())
    except ValueError as error:
        told = str(error)
    begins = any(line.strip().startswith(("NOTICE  cufio", "INFO  0:42", "29-")) for line in lines)
    assert not begins or told == ""
