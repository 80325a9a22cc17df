"""Modules that dkms builds: ``dkms status`` of dkms 2 (``name, version``) and 3 (``name/version``).

Format: ``do_status``, ``do_status_weak`` and ``module_status_built_extra`` of dkms. dkms 2 says
``WARNING! Diff between built and installed module!`` once for each module of a package.
"""

import re
from typing import Literal

from pydantic import Field

from railwright.model import Model

State = Literal["added", "built", "installed", "installed-weak", "broken"]


class DkmsModule(Model):
    """One version of a package, for one kernel; ``kernel`` and ``arch`` are None where it is only
    added or broken, as dkms names none then.

    ``differs``: what is in the kernel's folder is not what dkms built (signed or compressed
    anew, or overwritten). ``missing``: what dkms has built is not in that folder.
    ``original_kept``: the kernel's own module was put aside. ``weak_from`` is the kernel whose
    build is linked to (``installed-weak``).
    """

    module: str
    version: str
    state: State
    kernel: str | None = None
    arch: str | None = None
    differs: bool = False
    missing: bool = False
    original_kept: bool = False
    weak_from: str | None = None

    @property
    def in_place(self) -> bool:
        """Whether the kernel finds the very module that dkms built."""
        return self.state in ("installed", "installed-weak") and not (self.differs or self.missing)


class Dkms(Model):
    """``modules`` in the order listed, ``problems`` what dkms complained of in its own words."""

    installed: bool = True
    modules: tuple[DkmsModule, ...] = Field(default=())
    problems: tuple[str, ...] = ()

    def of(self, module: str, kernel: str) -> DkmsModule | None:
        """What is built of ``module`` for ``kernel``: an installed version before a built one."""
        found = [m for m in self.modules if m.module == module and m.kernel == kernel]
        return min(found, key=lambda m: _ORDER.index(m.state), default=None)


_ORDER: tuple[State, ...] = ("installed", "installed-weak", "built", "added", "broken")
_ROW = re.compile(
    r"(?P<module>[^\s,/:]+)(?:/|, *)(?P<version>[^\s,/]+)"
    r"(?:, *(?P<kernel>[^\s,]+), *(?P<arch>[^\s,:]+))?"
    r": *(?P<state>added|built|installed-weak|installed|broken)"
    r"(?: from (?P<weak>[^\s(]+))?(?P<notes>(?: *\([^()]*\))*)\s*"
)
_NOTES: tuple[tuple[str, str], ...] = (
    ("diff", "differs"),
    ("missing", "missing"),
    ("original", "original_kept"),
)
_BROKEN = re.compile(r"Error! ([^\s/:]+)/([^\s:]+): Missing the module source directory")
# Advice that dkms prints beside its answer, on either stream.
_REMARK = re.compile(
    r"Manual intervention is required!|Deprecated feature:|dkms\.conf: Warning|Warning: |File: "
    r"|Directory: "
)


def parse_dkms(text: str, rc: int = 0) -> Dkms:
    """Read ``dkms status``, either stream or both. Nothing printed is no module.

    Raises ValueError for a line of another kind, and where the tool failed without a complaint.
    """
    if rc == 127 or re.search(r"dkms: (?:command )?not found", text):
        return Dkms(installed=False)
    found: dict[tuple[str, str, str | None, str | None], DkmsModule] = {}
    problems = []
    for line in filter(None, map(str.strip, text.splitlines())):
        if row := _ROW.fullmatch(line):
            entry = _entry(row)
        elif broken := _BROKEN.match(line):
            entry = DkmsModule(module=broken[1], version=broken[2], state="broken")
        elif line.startswith("Error!"):
            problems.append(line.removeprefix("Error!").strip())
            continue
        elif _REMARK.match(line):
            continue
        else:
            raise ValueError(f"expected a row of dkms status, got {line[:80]!r}")
        key = (entry.module, entry.version, entry.kernel, entry.arch)
        # The probe adds a row where the sources are there of what dkms calls broken.
        if key not in found or found[key].state == "broken":
            found[key] = entry
    if rc != 0 and not found and not problems:
        raise ValueError(f"dkms status exited {rc} and said nothing")
    return Dkms(modules=tuple(found.values()), problems=tuple(problems))


def _entry(row: re.Match[str]) -> DkmsModule:
    notes = row["notes"].lower()
    values: dict[str, str | bool | None] = {
        "module": row["module"],
        "version": row["version"],
        "kernel": row["kernel"],
        "arch": row["arch"],
        "state": row["state"],
        "weak_from": row["weak"],
    }
    values |= {field: word in notes for word, field in _NOTES}
    unknown = [
        note
        for note in re.findall(r"\(([^()]*)\)", notes)
        if not any(word in note for word, _ in _NOTES)
    ]
    if unknown:
        raise ValueError(f"expected a note that dkms status makes, got ({unknown[0][:60]})")
    return DkmsModule.model_validate(values)
