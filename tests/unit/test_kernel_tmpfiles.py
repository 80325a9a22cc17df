"""The tmpfiles.d resolver against systemd-tmpfiles itself."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from railwright.files import FileRecord
from railwright.resolve.tmpfiles import decider, writes

TARGETS = ("/sys/k/enabled", "/sys/k/defrag", "/sys/cpu0/g")
PATTERNS = (*TARGETS, "/sys/k/*", "/sys/k/enable?", "/sys//k/defrag", "/sys/*/g", "/sys/cpu[0-9]/g")
DIRECTORIES = ("etc/tmpfiles.d", "usr/lib/tmpfiles.d")

LINES = st.one_of(
    st.builds(
        "{} {} - - - - {}".format,
        st.sampled_from(["w", "w", "w!", "w-", "w"]),
        st.sampled_from(PATTERNS),
        st.sampled_from(["always", "madvise", "never", '"a b"', "50%%"]),
    ),
    st.builds("w~ {} - - - - {}".format, st.sampled_from(PATTERNS), st.just("bmV2ZXI=")),
    st.builds('w "{}" - - - - quoted'.format, st.sampled_from(PATTERNS)),
    st.sampled_from(
        ["# w /sys/k/enabled - - - - x", "", "w /sys/k/enabled", "garbage", "d /tmp/x"]
    ),
)
FILES = st.dictionaries(
    st.tuples(st.sampled_from(DIRECTORIES), st.sampled_from(["00-a", "50-b", "99-c"])),
    st.one_of(st.lists(LINES, min_size=1, max_size=3).map("\n".join), st.just("")),
    max_size=5,
)


def by_systemd(root: Path, files: dict[tuple[str, str], str]) -> dict[str, str]:
    """What systemd-tmpfiles leaves in the targets, each empty before."""
    for target in TARGETS:
        path = root / target[1:]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    for directory in DIRECTORIES:
        (root / directory).mkdir(parents=True, exist_ok=True)
        for old in (root / directory).iterdir():
            old.unlink()
    for (directory, name), content in files.items():
        (root / directory / f"{name}.conf").write_text(content)
    subprocess.run(
        ["systemd-tmpfiles", f"--root={root}", "--create", "--boot", "--prefix=/sys"],
        capture_output=True,
        check=False,
    )
    return {target: (root / target[1:]).read_text().strip() for target in TARGETS}


def records(files: dict[tuple[str, str], str]) -> list[FileRecord]:
    return [
        FileRecord(
            path=f"/{directory}/{name}.conf", kind="file", content=content, size=len(content)
        )
        for (directory, name), content in files.items()
    ]


@given(FILES)
@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_the_decider_is_the_line_that_systemd_lets_win(
    tmp_path: Path, files: dict[tuple[str, str], str]
) -> None:
    found = by_systemd(tmp_path, files)
    known = writes(records(files))
    for target in TARGETS:
        line = decider(known, target)
        # A longer text stays behind a shorter one here; the kernel takes each write whole.
        written = line.value or "" if line else ""
        assert found[target].startswith(written)
        assert bool(found[target]) == bool(written)


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        ("w /sys/k/enabled - - - - ours", "w /sys/k/enabled - - - - theirs", "ours"),
        ("w /sys/k/enabled - - - - ours", "w! /sys/k/enabled - - - - theirs", "ours"),
        ("w /sys/k/enabled - - - - ours", "w+ /sys/k/enabled - - - - theirs", "ours"),
        ("w /sys/k/enabled - - - - ours", "w /sys/k/en* - - - - theirs", "theirs"),
        ("f+ /sys/k/enabled - - - - theirs", "w /sys/k/* - - - - ours", "ours"),
        ("w /sys/k/* - - - - ours", "f+ /sys/k/enabled - - - - theirs", "ours"),
        ("f /sys/k/enabled - - - - theirs", "d /sys/k 0755 root root -", ""),
    ],
)
def test_two_lines_for_one_file(tmp_path: Path, first: str, second: str, winner: str) -> None:
    files = {(DIRECTORIES[0], "00-a"): first, (DIRECTORIES[1], "50-b"): second}
    line = decider(writes(records(files)), "/sys/k/enabled")
    assert (line.value if line else "") == winner
    assert by_systemd(tmp_path, files)["/sys/k/enabled"].startswith(winner)


def test_a_mask_takes_the_file_of_its_name_out() -> None:
    masked = [
        FileRecord(path="/etc/tmpfiles.d/thp.conf", kind="link", target="/dev/null", content=""),
        *records({("usr/lib/tmpfiles.d", "thp"): "w /sys/k/enabled - - - - never"}),
    ]
    assert decider(writes(masked), "/sys/k/enabled") is None


def test_a_credential_is_not_known() -> None:
    (line,) = writes(records({(DIRECTORIES[0], "a"): "w^ /sys/k/enabled - - - - thp.credential"}))
    assert line.value is None
    assert line.origin == "/etc/tmpfiles.d/a.conf:1"
