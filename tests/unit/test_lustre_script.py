"""The scripts that bring LNet up and set parameters, run against stubs of the tools."""

import os
import subprocess
from pathlib import Path

import pytest

from facts.lnetctl import parse_net_show
from facts.lustre import LNET_CONF, LNET_SCRIPT, PARAMETERS_SCRIPT, SECTIONS
from railwright.actions import RunScript
from tests.unit.lustre_host import (
    MOUNT_UNIT,
    REMOUNT,
    converged,
    done,
    host,
    net_show,
    ni,
    node,
    written,
)

ASKED = node(
    networks={
        "o2ib": {"rails": "all", "tunables": {"peer_credits": 32}},
        "tcp": {"interfaces": ["eth0"]},
    },
    lustre={"parameters": {"osc.*.max_rpcs_in_flight": 32}},
)
# What it knows are the interfaces in the folder up; what LNet has is a file for each.
LNETCTL = r"""#!/bin/sh
echo "lnetctl $*" >>calls
case "$1 $2" in
    "lnet configure") [ ! -e broken ] ;;
    "net show")
        echo 'net:'
        printf '    - net type: lo\n      local NI(s):\n        - nid: 0@lo\n          status: up\n'
        for file in has/*; do
            [ -e "$file" ] || continue
            name=${file#has/}
            printf '    - net type: %s\n      local NI(s):\n        - nid: 192.0.2.1@%s\n' \
                "${name%%.*}" "${name%%.*}"
            printf '          status: up\n          interfaces:\n              0: %s\n' "${name#*.}"
        done ;;
    import*)
        cp "$2" imported
        net=
        while read -r first second third fourth; do
            case "$first $second" in
                "- net") net=$fourth ;;
                "0: "*)
                    # As lnetctl does: one that cannot be queried, and none of it is taken.
                    [ -e "up/$second" ] || { echo "couldn't query intf $second" >&2; exit 255; }
                    : >"has/$net.$second" ;;
            esac
        done <"$2" ;;
esac
"""
IP = '#!/bin/sh\n[ -e "up/$6" ] && echo "2: $6    inet 192.0.2.1/24 scope global $6"\n'


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for folder in ("bin", "up", "has"):
        (tmp_path / folder).mkdir()
    stub(tmp_path, "lnetctl", LNETCTL)
    stub(tmp_path, "ip", IP)
    stub(tmp_path, "modprobe", '#!/bin/sh\necho "modprobe $*" >>calls\n[ ! -e broken ]\n')
    stub(tmp_path, "sleep", "#!/bin/sh\necho sleep >>calls\n")
    (tmp_path / "lnet.conf").write_text(written(ASKED, host())[LNET_CONF])
    return tmp_path


def stub(root: Path, name: str, text: str) -> None:
    path = root / "bin" / name
    path.write_text(text)
    path.chmod(0o755)


def up(root: Path, *interfaces: str) -> None:
    for name in interfaces:
        (root / "up" / name).touch()


def run(
    root: Path, script: str, *arguments: str, shell: str = "sh"
) -> subprocess.CompletedProcess[str]:
    text = script.replace("/etc/lnet.conf", str(root / "lnet.conf"))
    text = text.replace("/sys/module/lnet", str(root / "lnet_is_loaded"))
    return subprocess.run(
        [shell, "-s", "--", *arguments],
        input=text,
        cwd=root,
        env={"PATH": f"{root}/bin:{os.environ['PATH']}", "TMPDIR": str(root)},
        capture_output=True,
        text=True,
        timeout=60,
    )


def lnet(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run(root, written(ASKED, host())[LNET_SCRIPT], *arguments)


def has(root: Path) -> set[str]:
    return {file.name for file in (root / "has").iterdir()}


def calls(root: Path) -> list[str]:
    file = root / "calls"
    return file.read_text().splitlines() if file.exists() else []


def test_lnet_comes_up_with_all_its_interfaces(root: Path) -> None:
    up(root, "rail0", "rail1", "eth0")
    found = lnet(root)
    assert (found.returncode, found.stderr) == (0, "")
    assert has(root) == {"o2ib.rail0", "o2ib.rail1", "tcp.eth0"}
    assert calls(root)[:2] == ["modprobe lnet", "lnetctl lnet configure"]
    # What is imported is the file, but for its comment.
    assert (root / "imported").read_text() == (root / "lnet.conf").read_text()
    assert list(root.glob("tmp.*")) == []


def test_a_second_run_imports_nothing(root: Path) -> None:
    up(root, "rail0", "rail1", "eth0")
    lnet(root)
    (root / "calls").unlink()
    assert lnet(root).returncode == 0
    assert not any(call.startswith("lnetctl import") for call in calls(root))


def test_one_port_that_is_down_does_not_take_storage_with_it(root: Path) -> None:
    up(root, "rail1", "eth0")
    found = lnet(root, "3")
    assert found.returncode == 0
    assert found.stderr == "left out, its interface has no address: o2ib rail0\n"
    assert has(root) == {"o2ib.rail1", "tcp.eth0"}
    assert calls(root).count("sleep") == 3
    imported = (root / "imported").read_text()
    assert "rail0" not in imported
    assert imported.count("net type: o2ib") == 1
    assert "peer_credits: 32" in imported


def test_the_port_that_comes_back_is_added(root: Path) -> None:
    up(root, "rail1", "eth0")
    lnet(root)
    up(root, "rail0")
    assert lnet(root).returncode == 0
    assert has(root) == {"o2ib.rail0", "o2ib.rail1", "tcp.eth0"}
    assert "rail1" not in (root / "imported").read_text()


def test_it_waits_for_an_interface_that_is_late(root: Path) -> None:
    up(root, "rail0", "eth0")
    stub(root, "sleep", "#!/bin/sh\n: >up/rail1\n")
    found = lnet(root, "60")
    assert (found.returncode, found.stderr) == (0, "")
    assert "o2ib.rail1" in has(root)


def test_a_network_without_an_interface_is_a_failure(root: Path) -> None:
    up(root, "eth0")
    found = lnet(root)
    assert found.returncode == 1
    assert "o2ib has no interface\n" in found.stderr
    assert has(root) == {"tcp.eth0"}


def test_without_its_module_there_is_no_lnet(root: Path) -> None:
    up(root, "rail0", "rail1", "eth0")
    (root / "broken").touch()
    assert lnet(root).returncode == 1
    assert has(root) == set()


def test_the_script_and_python_agree_on_what_lnet_has(root: Path) -> None:
    up(root, "rail0", "rail1", "eth0")
    lnet(root)
    shown = subprocess.run(
        [root / "bin" / "lnetctl", "net", "show"], cwd=root, capture_output=True, text=True
    ).stdout
    found = parse_net_show(shown).nets
    assert {f"{net}.{one.iface}" for net, nis in found.items() for one in nis} == has(root)


SYSTEMCTL = r"""#!/bin/sh
echo "systemctl $*" >>calls
case $1 in
    is-active) [ -e "active/$3" ] ;;
    stop) [ ! -e "busy/$2" ] && rm -f "active/$2" ;;
    start) : >"active/$2" ;;
esac
"""


@pytest.fixture
def again(root: Path) -> RunScript:
    for folder in ("active", "busy"):
        (root / folder).mkdir()
    stub(root, "systemctl", SYSTEMCTL)
    stub(root, "lustre_rmmod", "#!/bin/sh\necho lustre_rmmod >>calls\n[ ! -e held ]\n")
    (root / "lnet_is_loaded").mkdir()
    for unit in (MOUNT_UNIT, "lnet.service"):
        (root / "active" / unit).touch()
    tuned = node(REMOUNT)
    lower = net_show(o2ib=ni("10.64.0.2@o2ib", "rail0", peer_credits=8))
    (script,) = [a for a in done(tuned, converged(tuned, lnet=lower)) if isinstance(a, RunScript)]
    return script


def test_lnet_comes_up_anew_between_unmount_and_mount(root: Path, again: RunScript) -> None:
    assert run(root, again.script, *again.arguments).returncode == 0
    assert [call for call in calls(root) if "is-active" not in call] == [
        f"systemctl stop {MOUNT_UNIT}",
        "systemctl stop lnet.service",
        "lustre_rmmod",
        "systemctl start lnet.service",
        f"systemctl start {MOUNT_UNIT}",
    ]


def test_what_is_in_use_keeps_lnet_as_it_is(root: Path, again: RunScript) -> None:
    (root / "active" / "mnt-a.mount").touch()
    (root / "busy" / MOUNT_UNIT).touch()
    found = run(root, again.script, "mnt-a.mount", MOUNT_UNIT)
    assert found.returncode == 1
    assert found.stderr == f"{MOUNT_UNIT} is in use, so that LNet stays as it is\n"
    assert (root / "active" / "mnt-a.mount").exists()
    assert "lustre_rmmod" not in calls(root)


def test_what_is_not_mounted_is_not_mounted_after(root: Path, again: RunScript) -> None:
    (root / "active" / MOUNT_UNIT).unlink()
    assert run(root, again.script, *again.arguments).returncode == 0
    assert f"systemctl start {MOUNT_UNIT}" not in calls(root)


def test_parameters_are_set_one_by_one(root: Path) -> None:
    script = written(ASKED, host())[PARAMETERS_SCRIPT]
    stub(root, "lctl", '#!/bin/sh\necho "lctl $*" >>calls\ncase $2 in bad*) exit 2 ;; esac\n')
    file = root / "parameters"
    file.write_text("# ours\n\nosc.*.max_rpcs_in_flight=32\nbad.x=1\nat_max=600\n")
    found = run(root, script, str(file))
    assert found.returncode == 1
    assert calls(root) == [
        "lctl set_param osc.*.max_rpcs_in_flight=32",
        "lctl set_param bad.x=1",
        "lctl set_param at_max=600",
    ]
    file.write_text("at_max=600")
    assert run(root, script, str(file)).returncode == 0


def test_the_scripts_are_what_shellcheck_accepts(again: RunScript) -> None:
    files = written(ASKED, host())
    for text in (files[LNET_SCRIPT], files[PARAMETERS_SCRIPT], again.script):
        checked = subprocess.run(
            ["shellcheck", "-s", "sh", "-"], input=text, text=True, capture_output=True
        )
        assert checked.stdout == ""


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.name)
def test_the_sections_are_what_shellcheck_accepts(section: object) -> None:
    body = next(one.script for one in SECTIONS if one == section)
    checked = subprocess.run(
        ["shellcheck", "-s", "sh", "-e", "SC2034,SC2154,SC2317", "-"],
        input=f"probe() {{\n{body}\n}}\nprobe\n",
        capture_output=True,
        text=True,
    )
    assert checked.stdout == ""
