"""What the unit of the GPU driver's component is to do, as its plan has it, and whether it will."""

from collections.abc import Iterable

from facts.gpu_driver import PLAN_PATH, SCRIPT_PATH, UNIT
from railwright.files import FileRecord
from railwright.model import Model
from railwright.owned import HEADER, OwnedFile, first_wrong
from railwright.schema.drivers import DriverSet
from railwright.templates import render

_PATHS = (PLAN_PATH, SCRIPT_PATH, UNIT.path)


class Plan(Model):
    """What the unit does at boot: modules that go over OFED's, and modes of the GPUs.

    ``mig`` is the words after it: ``on 1g.10gb 1g.10gb``, ``off``. ``power`` is in W, ``clocks``
    the least and highest graphics clock in MHz; None leaves a thing alone.
    """

    peermem: bool = False
    nvidia_fs: bool = False
    mig: str | None = None
    power: int | None = None
    clocks: tuple[int, int] | None = None

    @property
    def is_empty(self) -> bool:
        return self == Plan()

    def content(self) -> str:
        lines = ["peermem\n"] if self.peermem else []
        lines += ["nvidia-fs\n"] if self.nvidia_fs else []
        lines += [f"mig {self.mig}\n"] if self.mig else []
        lines += [f"power {self.power}\n"] if self.power else []
        lines += [f"clocks {self.clocks[0]} {self.clocks[1]}\n"] if self.clocks else []
        return HEADER + "".join(lines)


def plan_of(drivers: DriverSet) -> Plan:
    """The plan that is asked for; an empty one where there is nothing to do at boot."""
    driver = drivers.gpu_driver
    if driver.version is None:
        return Plan()
    return Plan(
        peermem=driver.peer_memory == "nvidia_peermem",
        nvidia_fs=drivers.gds.mode == "nvidia-fs",
        mig=None if driver.mig is None else " ".join((driver.mig, *sorted(driver.mig_profiles))),
        power=driver.power_limit_w,
        clocks=driver.graphics_clock_mhz,
    )


def parse_plan(text: str) -> Plan:
    """Read the plan's file. Raises ValueError where it is not one."""
    found: dict[str, object] = {}
    for line in text.splitlines():
        match line.split():
            case []:
                continue
            case ["peermem"]:
                found["peermem"] = True
            case ["nvidia-fs"]:
                found["nvidia_fs"] = True
            case ["mig", mode, *profiles] if mode in ("on", "off"):
                found["mig"] = " ".join((mode, *profiles))
            case ["power", watts] if watts.isdigit():
                found["power"] = int(watts)
            case ["clocks", low, high] if low.isdigit() and high.isdigit():
                found["clocks"] = (int(low), int(high))
            case [word, *_] if not word.startswith("#"):
                expected = "peermem, nvidia-fs, mig, power or clocks"
                raise ValueError(f"{PLAN_PATH}: expected {expected}, got {line[:60]!r}")
    return Plan.model_validate(found)


def plan_on_node(files: Iterable[FileRecord]) -> Plan:
    """The plan as it is on a node; an empty one where there is none that can be read."""
    content = next((file.content for file in files if file.path == PLAN_PATH), None)
    try:
        return parse_plan(content or "")
    except ValueError:
        return Plan()


def owned_files(plan: Plan) -> tuple[OwnedFile, ...]:
    """Our files; with an empty plan there must be none of them."""
    if plan.is_empty:
        return tuple(OwnedFile(path=path, content=None) for path in _PATHS)
    unit = render(f"gpu_driver/{UNIT.name}.j2", header=HEADER, script=SCRIPT_PATH, plan=PLAN_PATH)
    return (
        OwnedFile(path=PLAN_PATH, content=plan.content()),
        OwnedFile(path=SCRIPT_PATH, content=script(), mode="755"),
        OwnedFile(path=UNIT.path, content=unit),
    )


def script() -> str:
    """The script that the unit runs."""
    return render("gpu_driver/railwright-gpu.sh.j2", header=HEADER)


def lacking(plan: Plan, files: list[FileRecord]) -> str | None:
    """What keeps the unit from doing at boot what the plan's file says; None where nothing does."""
    wrong = first_wrong((one for one in owned_files(plan) if one.path != PLAN_PATH), files)
    if wrong is not None:
        return f"{wrong} is not as it must be"
    return None if UNIT.is_enabled(files) else f"{UNIT.name} is not enabled"
