"""The script of railwright-gpu.service over stubs of nvidia-smi and modprobe."""

from pathlib import Path

from railwright.resolve.gpu_unit import Plan
from tests.unit import gpu_host

SMI = """\
#!/bin/sh
echo "$*" >>"$LOG"
case "$*" in
    *query-gpu=pci.bus_id*) echo "00000000:18:00.0, ${MODE:-Disabled}, 700.00" ;;
    *query-gpu=mig.mode.current*) cat "$STATE" 2>/dev/null || echo "${MODE:-Disabled}" ;;
    *query-gpu=uuid*) echo GPU-0 ;;
    -L) printf '%s\\n' 'GPU 0: NVIDIA H100 (UUID: GPU-0)' "$INSTANCES" 'GPU 1: x (UUID: GPU-1)' ;;
    *-mig*1) [ -n "$BUSY" ] || echo Enabled >"$STATE" ;;
    *-pl*) [ -z "$REFUSES" ] || { echo 'Provided power limit is not valid'; exit 1; } ;;
esac
"""
MODPROBE = '#!/bin/sh\necho "modprobe $*" >>"$LOG"\n'


def ran(tmp_path: Path, plan: Plan, *only: str, **environment: str) -> tuple[int, list[str]]:
    """The unit's script over stubs; its exit code and the changes that it made."""
    (tmp_path / "proc").mkdir(exist_ok=True)
    loaded_ = environment.pop("LOADED", "")
    (tmp_path / "proc" / "modules").write_text(loaded_)
    (tmp_path / "plan").write_text(plan.content())
    code, lines = gpu_host.run_script(
        tmp_path,
        "gpu_driver/railwright-gpu.sh.j2",
        (f"{tmp_path}/plan", *only),
        {"nvidia-smi": SMI, "modprobe": MODPROBE},
        STATE=f"{tmp_path}/state",
        **environment,
    )
    return code, [line for line in lines if "query" not in line and line != "-L"]


GPU0 = "-i 00000000:18:00.0"


def test_the_script_does_nothing_where_all_is_right(tmp_path: Path) -> None:
    plan = Plan(peermem=True, mig="off", power=700)
    assert ran(tmp_path, plan, LOADED="nvidia_peermem 1 0 - Live 0x0\n") == (0, [])


def test_the_script_sets_what_the_plan_says(tmp_path: Path) -> None:
    plan = Plan(peermem=True, mig="off", power=500, clocks=(1200, 1980))
    assert ran(tmp_path, plan) == (
        0,
        ["modprobe nvidia-peermem", f"{GPU0} -pl 500", f"{GPU0} -lgc 1200,1980"],
    )


def test_the_script_makes_mig_instances(tmp_path: Path) -> None:
    plan = Plan(mig="on 1g.10gb 3g.40gb")
    assert ran(tmp_path, plan) == (
        0,
        [f"{GPU0} -mig 1", f"mig {GPU0} -cgi 1g.10gb,3g.40gb -C"],
    )
    there = "  MIG 3g.40gb     Device  0: (UUID: MIG-1)\n  MIG 1g.10gb     Device  1: (UUID: MIG-2)"
    assert ran(tmp_path, plan, MODE="Enabled", INSTANCES=there) == (0, [])
    other = "  MIG 7g.80gb     Device  0: (UUID: MIG-1)"
    assert ran(tmp_path, plan, MODE="Enabled", INSTANCES=other) == (
        0,
        [f"mig {GPU0} -dci", f"mig {GPU0} -dgi", f"mig {GPU0} -cgi 1g.10gb,3g.40gb -C"],
    )


def test_the_script_fails_where_a_gpu_does_not_take_it(tmp_path: Path) -> None:
    assert ran(tmp_path, Plan(mig="on 1g.10gb"), BUSY="1") == (1, [f"{GPU0} -mig 1"])
    assert ran(tmp_path, Plan(power=900), REFUSES="1")[0] == 1
    assert ran(tmp_path, Plan(mig="on 1g.10gb"), MODE="[N/A]") == (1, [])
    assert ran(tmp_path, Plan(mig="off"), MODE="[N/A]") == (0, [])


def test_the_script_loads_nvidia_fs_where_it_is_not_loaded(tmp_path: Path) -> None:
    plan = Plan(peermem=True, nvidia_fs=True)
    assert ran(tmp_path, plan) == (0, ["modprobe nvidia-peermem", "modprobe nvidia-fs"])
    loaded = "nvidia_peermem 1 0 - Live 0x0\nnvidia_fs 1 0 - Live 0x0\n"
    assert ran(tmp_path, plan, LOADED=loaded) == (0, [])


def test_the_script_looks_only_at_what_it_is_told(tmp_path: Path) -> None:
    plan = Plan(peermem=True, power=500, clocks=(1200, 1980))
    assert ran(tmp_path, plan, "power") == (0, [f"{GPU0} -pl 500"])


def test_the_script_refuses_a_plan_of_another_kind(tmp_path: Path) -> None:
    (tmp_path / "plan").write_text("fan 100\n")
    code, _ = gpu_host.run_script(
        tmp_path, "gpu_driver/railwright-gpu.sh.j2", (f"{tmp_path}/plan",), {}
    )
    assert code == 2
