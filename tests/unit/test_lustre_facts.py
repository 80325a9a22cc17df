"""What the sections of Lustre bring back, and what is made of it."""

import subprocess
from pathlib import Path

import pytest

from facts.lustre import (
    LNET,
    NO_ANSWER,
    PARAMETERS,
    TARGETS,
    LoadedModules,
    parse_kernel,
    read_lnet,
    read_targets,
    read_units,
)
from facts.probe import Focus, script
from facts.probe import Section as Asked
from railwright.snapshot import Section, Snapshot, parse_probe
from tests.unit.lustre_host import BOTH, DF, WHERE, df, host
from tests.unit.units import unit

SAID = "said [   52.1] ko2iblnd: disagrees about version of symbol ib_alloc_pd\n"


def test_modules_are_told_with_their_version_and_what_the_kernel_said() -> None:
    assert parse_kernel(f"loaded lnet 2.16.1\nloaded lustre -\n{SAID}{SAID}") == LoadedModules(
        versions={"lnet": "2.16.1", "lustre": None},
        refused={"ko2iblnd": ("disagrees about version of symbol ib_alloc_pd",)},
    )
    assert parse_kernel("") == LoadedModules()


def test_another_line_is_told() -> None:
    with pytest.raises(ValueError, match="expected a module of Lustre's"):
        parse_kernel("Segmentation fault\n")


def test_without_its_module_there_is_no_lnet_to_ask() -> None:
    assert read_lnet(host()) is None
    assert read_lnet(host(lnet=BOTH)) is not None


def test_a_unit_that_was_passed_over_is_told_from_one_that_nobody_started() -> None:
    text = unit("lnet.service", "inactive")
    skipped = host(units=text, condition="ConditionResult=no\nConditionTimestamp=Mon 2026")
    assert read_units(skipped).skipped
    waiting = host(units=text, condition="ConditionResult=no\nConditionTimestamp=")
    assert not read_units(waiting).skipped


def test_what_was_said_before_a_mount_hung_stands() -> None:
    broken = df(where="/mnt/a") + f"\nm-0 port {WHERE} df\n{DF[:40]}"
    seen = host(targets=Section(stdout=broken, rc=None, ended="deadline"))
    found = read_targets(seen)
    assert list(found) == ["/mnt/a"]
    assert read_targets(host(targets=Section(stdout=df("", 137), rc=0))) == {WHERE: NO_ANSWER}


STUBS = {
    "lctl": "#!/bin/sh\necho \"$2\" | sed 's/\\*/x/;s/$/=8/'\n",
    "lfs": '#!/bin/sh\ncase $2 in *hangs) sleep 60 ;; *) echo "df of $2" ;; esac\n',
    "lnetctl": '#!/bin/sh\necho "show:" >&2\nexit 3\n',
}


def probed(
    root: Path, *sections: Asked, mounts: str = "", lustre: tuple[str, ...] = ()
) -> Snapshot:
    """The sections on a host with stubs of Lustre's tools."""
    for name, text in STUBS.items():
        path = root / name
        path.write_text(text)
        path.chmod(0o755)
    (root / "mounts").write_text(mounts)
    text = script(sections, Focus(storage=True, mounts=("/mnt/a", "/mnt/hangs"), lustre=lustre))
    text = text.replace("PATH=/usr/sbin:", f"PATH={root}:/usr/sbin:")
    text = text.replace("/proc/self/mounts", str(root / "mounts"))
    text = text.replace("/sys/module/obdclass", str(root)).replace("/sys/module/lnet", str(root))
    text = text.replace("timeout -s KILL 3", "timeout -s KILL 0.3")
    done = subprocess.run(["sh", "-c", text], capture_output=True, text=True, timeout=60)
    return parse_probe(done.stdout, host="n1")


def test_each_mount_is_asked_and_one_that_hangs_holds_up_no_other(tmp_path: Path) -> None:
    mounts = "x /mnt/hangs lustre rw 0 0\nx /mnt/a lustre rw 0 0\nx /mnt/b lustre rw 0 0\n"
    mounts += "x /mnt/a ext4 rw 0 0\n"
    found = read_targets(probed(tmp_path, TARGETS, mounts=mounts))
    assert found == {"/mnt/hangs": NO_ANSWER, "/mnt/a": "lfs df: df of /mnt/a"}


def test_asterisks_of_parameters_are_lctls_own(tmp_path: Path) -> None:
    seen = probed(tmp_path, PARAMETERS, lustre=("osc.*.checksums", "at_max"))
    assert seen.text("lustre_parameters") == "osc.x.checksums=8\nat_max=8\n"


def test_an_error_of_lnetctl_is_read_from_its_other_stream(tmp_path: Path) -> None:
    seen = probed(tmp_path, LNET)
    assert (seen.section("lustre_lnet").rc, seen.section("lustre_lnet").stderr) == (3, "show:")
