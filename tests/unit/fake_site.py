"""A stand-in site for the tests of the command line: made-up components over made-up snapshots.

A fake snapshot's section ``fake`` has lines ``key persisted running`` (standings), which the
component ``sysctl`` turns into settings; a line ``broken`` cannot be read.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from facts.probe import Section as ProbeSection
from railwright.actions import Action
from railwright.component import Component
from railwright.reading import Reading, save
from railwright.schema import Node
from railwright.settings import Effect, Setting, Standing, State
from railwright.snapshot import Section, Snapshot

FAKE = ProbeSection(name="fake", script="echo vm.a right right; echo vm.d wrong wrong")


def settings(node: Node, snapshot: Snapshot) -> list[Setting]:
    lines = snapshot.text("fake").splitlines()
    if "broken" in lines:
        raise ValueError("cannot make sense of 'broken'")
    return [_setting(*line.split()) for line in lines]


def _setting(key: str, persisted: str, running: str, effect: str = "live") -> Setting:
    stands = {"persisted": Standing(persisted), "running": Standing(running)}
    values = {Standing.RIGHT: "10", Standing.WRONG: "60", Standing.OVERRIDDEN: "60"}
    return Setting(
        component="sysctl",
        key=key,
        desired="10",
        persisted=State(
            standing=stands["persisted"],
            value=values.get(stands["persisted"]),
            decider="/etc/sysctl.d/99-site.conf:3" if persisted != "absent" else None,
        ),
        running=State(standing=stands["running"], value=values.get(stands["running"])),
        effect=Effect(effect),
        remedy="remove the line, or ask for its value" if persisted == "overridden" else None,
    )


def nothing(node: Node, snapshot: Snapshot) -> list[Setting]:
    return []


def no_actions(node: Node, snapshot: Snapshot, found: list[Setting]) -> Iterator[Action]:
    yield from ()


COMPONENTS = (
    Component(name="sysctl", sections=(FAKE,), settings=settings, actions=no_actions),
    Component(name="limits", sections=(), settings=nothing, actions=no_actions),
)


def snapshot(host: str, *lines: str) -> Snapshot:
    sections = {"fake": Section(stdout="\n".join(lines), rc=0)}
    return Snapshot(host=host, marker="m", sections=sections)


def probe_output(*lines: str) -> str:
    """What the probe prints on a node whose section ``fake`` has these lines."""
    body = "\n".join(lines)
    return f"railwright-probe 1 m\n\nm begin fake\n{body}\n\nm rc 0\n\nm end fake 0\n\nm done\n"


def yaml_site(directory: Path, hosts: str = "gpu[001-003]") -> Path:
    """A site of one group ``rack`` and one host ``login1``, and its file."""
    path = directory / "site.yaml"
    path.write_text(f'groups:\n  rack:\n    hosts: "{hosts}"\n  front:\n    hosts: login1\n')
    return path


def saved(directory: Path, readings: Mapping[str, tuple[str, ...]]) -> Path:
    """A directory of snapshots, one per host, of these lines."""
    return saved_readings(directory, [snapshot(host, *lines) for host, lines in readings.items()])


def saved_readings(directory: Path, readings: list[Reading]) -> Path:
    folder = directory / "snapshots"
    folder.mkdir()
    for reading in readings:
        save(reading, folder)
    return folder
