"""Builds by dkms as settings of a component, and what makes those that are due."""

from collections.abc import Iterable, Iterator

from railwright.actions import RunScript
from railwright.drivers import dkms_order
from railwright.drivers.dkms_order import Build
from railwright.settings import NOTHING, Setting, Standing, State
from railwright.templates import render

_INSTALLED = "installed"


def build_setting(component: str, build: Build) -> Setting:
    """A module of dkms for one kernel; what a run does is to build and install it."""
    standing = {
        "installed": Standing.RIGHT, "absent": Standing.ABSENT, "stale": Standing.STALE,
    }[build.built]  # fmt: skip
    value = {"installed": _INSTALLED, "absent": None, "stale": "of another build"}[build.built]
    return Setting(
        component=component,
        key=build.key,
        desired=_INSTALLED,
        persisted=State(
            standing=standing,
            value=value,
            decider=f"dkms {build.module}/{build.version}",
            detail=build.why,
        ),
        running=NOTHING,
    )


def build_actions(
    builds: Iterable[Build], kernels: tuple[str, ...], *, linked: bool
) -> Iterator[RunScript]:
    """Builds what is due, kernel by kernel; ``linked``: the link itself is put right as well."""
    found = tuple(builds)
    ofed = any(build.module in dkms_order.ORDER[0] for build in found)
    scripts = {
        kernel: list(_steps([b for b in dkms_order.due(found) if b.kernel == kernel], ofed=ofed))
        for kernel in kernels
    }
    last = kernels[-1] if kernels else None
    # A build for another kernel takes the link along.
    if last is not None and ofed and not scripts[last] and (linked or any(scripts.values())):
        scripts[last] = ["headers"]
    for kernel, steps in scripts.items():
        if steps:
            yield RunScript(
                name="railwright-dkms",
                script=render("ofed/railwright-dkms.sh.j2"),
                arguments=(kernel, *steps),
            )


def _steps(due: list[Build], *, ofed: bool) -> Iterator[str]:
    """OFED, then the link to its sources, then what is built upon it."""
    own = [build for build in due if build.module in dkms_order.ORDER[0]]
    rest = [build for build in due if build not in own]
    yield from (f"{build.module}/{build.version}" for build in own)
    if ofed and due:
        yield "headers"
    yield from (f"{build.module}/{build.version}" for build in rest)
