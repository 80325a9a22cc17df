"""What the unit of the PCIe component is to do, as its file has it, and whether it will."""

from collections.abc import Iterable
from typing import Literal

from facts.pcie import PLAN_PATH, READER, RULE_PATH, SCRIPT_PATH, UNIT
from railwright.files import FileRecord
from railwright.model import Model
from railwright.owned import HEADER, OwnedFile, first_wrong
from railwright.resolve.pcie import REDIRECT_MASK
from railwright.templates import render

AcsPlan = Literal["clear", "clear-in-vm"]

_PATHS = (PLAN_PATH, RULE_PATH, SCRIPT_PATH, UNIT.path)


class Plan(Model):
    """What the unit does: to ACS, and to the NICs by address (None leaves MaxReadReq alone).

    It knows the NICs by their addresses, and finds the bridges itself at each run.
    """

    acs: AcsPlan | None
    nics: dict[str, int | None]

    @property
    def is_empty(self) -> bool:
        return self.acs is None and not any(self.nics.values())

    def content(self) -> str:
        lines = [] if self.acs is None else [f"acs {self.acs}\n"]
        lines += [
            f"nic {address} {size or 'keep'}\n" for address, size in sorted(self.nics.items())
        ]
        return HEADER + "".join(lines)


def parse_plan(text: str) -> Plan:
    """Read the plan's file. Raises ValueError where it is not one."""
    acs, nics = None, {}
    for line in text.splitlines():
        match line.split():
            case []:
                continue
            case ["acs", word]:
                acs = word
            case ["nic", address, size] if size == "keep" or size.isdigit():
                nics[address] = None if size == "keep" else int(size)
            case [word, *_] if not word.startswith("#"):
                raise ValueError(f"{PLAN_PATH}: expected acs or nic, got {line[:60]!r}")
    return Plan.model_validate({"acs": acs, "nics": nics})


def plan_on_node(files: Iterable[FileRecord]) -> Plan:
    """The plan as it is on a node; an empty one where there is none that can be read."""
    content = next((file.content for file in files if file.path == PLAN_PATH), None)
    try:
        return parse_plan(content or "")
    except ValueError:
        return Plan(acs=None, nics={})


def owned_files(plan: Plan | None) -> tuple[OwnedFile, ...]:
    """Our files; with no plan there must be none of them."""
    if plan is None:
        return tuple(OwnedFile(path=path, content=None) for path in _PATHS)
    rule = render(
        "pcie/railwright-pcie.rules.j2",
        header=HEADER,
        addresses=sorted(plan.nics),
        systemctl="/usr/bin/systemctl",
        unit=UNIT.name,
    )
    unit = render(
        "pcie/railwright-pcie.service.j2", header=HEADER, script=SCRIPT_PATH, plan=PLAN_PATH
    )
    return (
        OwnedFile(path=PLAN_PATH, content=plan.content()),
        OwnedFile(path=RULE_PATH, content=rule),
        OwnedFile(path=SCRIPT_PATH, content=script(), mode="755"),
        OwnedFile(path=UNIT.path, content=unit),
    )


def script() -> str:
    """The script that the unit runs."""
    return render(
        "pcie/railwright-pcie.sh.j2", header=HEADER, reader=READER, redirect_mask=REDIRECT_MASK
    )


def lacking(plan: Plan, files: list[FileRecord]) -> str | None:
    """What keeps the unit from doing at boot what the plan's file says; None where nothing does."""
    wrong = first_wrong((one for one in owned_files(plan) if one.path != PLAN_PATH), files)
    if wrong is not None:
        return f"{wrong} is not as it must be"
    return None if UNIT.is_enabled(files) else f"{UNIT.name} is not enabled"
