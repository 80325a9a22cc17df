"""The script that builds by dkms and leads the link to OFED's sources, run by a real shell."""

from pathlib import Path

import pytest

from tests.unit.gpu_host import NEW, run_script

DKMS = """\
#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in *"$BROKEN"*) exit 10 ;; esac
"""


def dkms(tmp_path: Path, *steps: str, broken: str = "none") -> tuple[int, list[str]]:
    """The script that builds, over stubs; its exit code and what it ran."""
    return run_script(
        tmp_path, "ofed/railwright-dkms.sh.j2", (NEW, *steps), {"dkms": DKMS}, BROKEN=broken
    )


def test_it_builds_anew_and_installs(tmp_path: Path) -> None:
    assert dkms(tmp_path, "nvidia/580.95.05") == (
        0,
        [
            f"build --force -m nvidia -v 580.95.05 -k {NEW}",
            f"install --force -m nvidia -v 580.95.05 -k {NEW}",
        ],
    )


def test_it_has_dkms_add_anew_the_link_to_sources_that_is_gone(tmp_path: Path) -> None:
    whole, halved, led_astray = (tmp_path / "dkms" / name / "1" for name in ("a", "b", "c"))
    for folder in (whole, halved, led_astray):
        folder.mkdir(parents=True)
    (whole / "source").symlink_to(tmp_path)
    (led_astray / "source").symlink_to(tmp_path / "nowhere")
    code, ran = dkms(tmp_path, "a/1", "b/1", "c/1", "d/1")
    assert code == 0
    assert [line for line in ran if line.startswith("add")] == ["add -m b -v 1", "add -m c -v 1"]
    assert not (led_astray / "source").is_symlink()
    at = ran.index("add -m b -v 1")
    assert ran[at + 1].startswith("build --force -m b ")


def test_it_ends_at_the_first_failure(tmp_path: Path) -> None:
    code, ran = dkms(tmp_path, "mlnx-ofed-kernel/1", "nvidia/2", broken="mlnx-ofed-kernel")
    assert code == 1
    assert len(ran) == 1


@pytest.mark.parametrize("folder", [f"x86_64/{NEW}", NEW])
def test_it_leads_the_link_to_the_kernel(folder: str, tmp_path: Path) -> None:
    sources = tmp_path / "ofa"
    (sources / folder).mkdir(parents=True)
    (sources / folder / "Module.symvers").write_text("")
    code, _ = dkms(tmp_path, "headers")
    assert code == 0
    assert (sources / "default").resolve() == (sources / folder).resolve()
    assert dkms(tmp_path, "headers")[0] == 0


def test_it_says_where_there_are_no_sources(tmp_path: Path) -> None:
    assert dkms(tmp_path, "headers")[0] == 1
