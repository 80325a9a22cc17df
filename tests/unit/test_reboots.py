"""A node is not rebooted twice for what a reboot does not bring, nor where a component refuses."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from pyinfra.api.exceptions import PyinfraError
from pyinfra.api.host import Host

from deploys.components import COMPONENTS
from facts import probe
from railwright import converge
from railwright.component import Component, RebootGate, settings_of
from railwright.converge import Run, prove_reboot, reboots_for
from railwright.reboots import PATH, SECTION, note, read_reboot
from railwright.schema import Effect, EffectsSpec, Node
from railwright.settings import Setting, Standing, State, Verdict, verdict
from railwright.site import load_inventory
from railwright.snapshot import Section, Snapshot
from tests.unit.test_recorded import ROOT, fleet, snapshot

BARE = "BOOT_IMAGE=/boot/vmlinuz-6.1.0-57-amd64 root=UUID=41745f75 ro quiet\n"


def pending() -> Snapshot:
    """The recorded node that is converged, but booted without our arguments."""
    seen = snapshot("converged")
    cmdline = Section(stdout=BARE, rc=0)
    return seen.model_copy(update={"sections": {**seen.sections, "cmdline": cmdline}})


MARKER = pending().marker


def rebootable() -> Node:
    node = load_inventory(ROOT / "inventories" / "lab.py").nodes["gpu001"]
    allowed = EffectsSpec(allow=frozenset({*node.effects.allow, Effect.REBOOT}))
    return node.model_copy(update={"effects": allowed})


def run(seen: Snapshot, node: Node | None = None) -> Run:
    # No host is asked anything by what is tested here.
    return Run(host=cast("Host", None), node=node or rebootable(), components=COMPONENTS, seen=seen)


def with_ledger(content: str | None, boot_id: str | None = None) -> Snapshot:
    """The recorded node that waits for a reboot, with a ledger, in this or another boot."""
    seen = pending()
    text = ""
    if content is not None:
        head = f"\n{MARKER} file file 644 root 1 {len(content)} {PATH}\n"
        text = f"{head}{MARKER} content\n{content}\n"
    sections = {**seen.sections, SECTION: Section(stdout=text, rc=0)}
    if boot_id is not None:
        identity = seen.sections["identity"]
        old = seen.facts("identity")["boot_id"]
        sections["identity"] = identity.model_copy(
            update={"stdout": identity.stdout.replace(old, boot_id)}
        )
    return seen.model_copy(update={"sections": sections})


def noted(settings: list[Setting]) -> str:
    return note(settings, pending()).content


def test_a_node_is_rebooted_for_what_waits_for_it() -> None:
    waiting = reboots_for(run(pending()))
    assert len(waiting) == 5
    assert {setting.key.split(" ")[0] for setting in waiting} == {"argument"}
    assert reboots_for(run(with_ledger(None))) == waiting


def test_a_reboot_that_was_noted_and_not_made_is_still_made() -> None:
    waiting = reboots_for(run(pending()))
    assert reboots_for(run(with_ledger(noted(waiting)))) == waiting


def test_no_second_reboot_for_what_the_first_did_not_bring() -> None:
    waiting = reboots_for(run(pending()))
    seen = with_ledger(noted(waiting[:4]), boot_id="another-boot")
    assert reboots_for(run(seen)) == waiting[4:]
    in_vain = with_ledger(noted(waiting), boot_id="another-boot")
    assert reboots_for(run(in_vain)) == []
    (kernel,) = (component for component in COMPONENTS if component.name == "kernel")
    node = rebootable()
    told = [s for s in settings_of(kernel, node, in_vain) if s.key in {w.key for w in waiting}]
    assert {verdict(setting, node.effects.allow) for setting in told} == {Verdict.DEGRADED}
    assert all("rebooted the node for it once" in str(setting.running.detail) for setting in told)
    assert all(PATH in str(setting.remedy) for setting in told)


def test_what_is_asked_anew_is_rebooted_for() -> None:
    waiting = reboots_for(run(pending()))
    others = [one.model_copy(update={"desired": "something else"}) for one in waiting]
    seen = with_ledger(noted(others), boot_id="another-boot")
    assert reboots_for(run(seen)) == waiting


def test_a_ledger_that_cannot_be_read_keeps_the_node_up() -> None:
    seen = with_ledger("not json\n", boot_id="another-boot")
    assert reboots_for(run(seen)) == []
    with pytest.raises(ValueError, match=PATH):
        read_reboot(seen)


def test_the_ledger_says_what_it_was_told() -> None:
    waiting = reboots_for(run(pending()))
    action = note(waiting, pending())
    assert action.path == PATH
    last = read_reboot(with_ledger(action.content))
    assert last is not None
    assert last.wanted == {f"kernel {one.key}": one.desired for one in waiting}
    assert last.boot_id == pending().facts("identity")["boot_id"]


def test_what_another_file_overrides_since_is_told_as_that() -> None:
    waiting = reboots_for(run(pending()))
    keys = {setting.key for setting in waiting}
    reset = snapshot("grub_reset")
    seen = with_ledger(noted(waiting), boot_id="another-boot")
    boot = reset.sections["kernel_boot"]
    boot = boot.model_copy(update={"stdout": boot.stdout.replace(reset.marker, MARKER)})
    seen = seen.model_copy(update={"sections": {**seen.sections, "kernel_boot": boot}})
    (kernel,) = (component for component in COMPONENTS if component.name == "kernel")
    node = rebootable()
    told = [s for s in settings_of(kernel, node, seen) if s.key in keys]
    assert len(told) == len(keys)
    assert {verdict(setting, node.effects.allow) for setting in told} == {Verdict.OVERRIDDEN}
    assert reboots_for(run(seen)) == []


ONLY_BEFORE = probe.Section(name="only_before_a_reboot", script="true")


def gated(refused: str | None, *, asked: bool = True) -> Component:
    gate = RebootGate(
        asked=lambda _: asked, sections=(ONLY_BEFORE,), refusal=lambda _node, _seen: refused
    )
    return Component("gated", (), _argument, lambda _n, _s, _f: iter(()), gate)


ARGUMENT = Setting(
    component="gated",
    key="argument",
    desired="a",
    persisted=State(standing=Standing.RIGHT, value="a"),
    running=State(standing=Standing.ABSENT),
    effect=Effect.REBOOT,
)


def _argument(_: Node, seen: Snapshot) -> list[Setting]:
    """What waits for a reboot, unless the node has been converged since."""
    booted = BARE not in seen.sections["cmdline"].stdout
    right = State(standing=Standing.RIGHT, value="a")
    return [ARGUMENT.model_copy(update={"running": right}) if booted else ARGUMENT]


def proven(
    component: Component, monkeypatch: pytest.MonkeyPatch, answer: Snapshot | None = None
) -> tuple[bool, Run, list[str]]:
    """Whether the reboot may be made, the run, and what the host was asked beyond the usual."""
    asked: list[str] = []

    def look(
        host: Host, node: Node, components: Sequence[Component], more: Sequence[probe.Section]
    ) -> Snapshot:
        asked.extend(section.name for section in more)
        if answer is None:
            raise PyinfraError("gpu001: no answer")
        return answer

    monkeypatch.setattr(converge, "_probe", look)
    host = cast("Host", SimpleNamespace(print_prefix="[gpu001] "))
    found = Run(host=host, node=rebootable(), components=[component], seen=pending(), stale=True)
    return prove_reboot(found, [ARGUMENT]).function(None, host), found, asked


def test_a_reboot_that_a_component_refuses_fails_and_says_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed, found, asked = proven(gated("the next kernel has none"), monkeypatch, pending())
    assert not allowed
    assert found.failures == ["gated refuses the reboot: the next kernel has none"]
    assert asked == ["only_before_a_reboot"]


def test_a_reboot_that_no_component_refuses_is_judged_by_what_is_there_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = pending()
    allowed, found, asked = proven(gated(None), monkeypatch, now)
    assert allowed
    assert found.waits
    assert found.failures == []
    assert asked == ["only_before_a_reboot"]
    assert found.look() is now


def test_a_node_of_which_nothing_waits_any_more_is_not_rebooted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Not even asked: a refusal would be of a reboot that nobody makes.
    allowed, found, _ = proven(gated("never"), monkeypatch, snapshot("converged"))
    assert allowed
    assert not found.waits
    assert found.failures == []


def test_a_node_that_does_not_answer_is_not_rebooted(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed, found, _ = proven(gated(None), monkeypatch)
    assert not allowed
    assert found.failures == ["gpu001: no answer"]


def test_a_node_that_asks_for_nothing_a_reboot_could_take_is_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    allowed, found, asked = proven(gated("never", asked=False), monkeypatch)
    assert allowed
    assert (found.failures, asked) == ([], [])


DEPLOY = """
from dataclasses import replace

from pyinfra.context import ctx_host

from deploys.components import COMPONENTS
from deploys.node import converge
from railwright.component import RebootGate
from railwright.schema import Effect, EffectsSpec

host = ctx_host.get()
allow = frozenset({*host.data.node.effects.allow, Effect.REBOOT})
host.data.node = host.data.node.model_copy(update={"effects": EffectsSpec(allow=allow)})
gate = RebootGate(lambda node: True, (), lambda node, seen: REFUSED)
converge(host, [replace(c, reboot_gate=gate) if c.name == "ofed" else c for c in COMPONENTS])
"""


@pytest.mark.parametrize("refused", ["the next kernel has none", None])
def test_pyinfra_reboots_no_host_of_which_a_component_refuses_it(
    refused: str | None, tmp_path: Path
) -> None:
    inventory = fleet(tmp_path, {"@fake/gpu001": "pending"}, {"pending": pending()})
    log = "    open('log', 'a').write(f'{command}'[:4000] + '\\n')\n    COUNTS[self"
    inventory.write_text(inventory.read_text().replace("    COUNTS[self", log))
    deploy = tmp_path / "deploy.py"
    deploy.write_text(DEPLOY.replace("REFUSED", repr(refused)))
    done = subprocess.run(
        [str(Path(sys.executable).parent / "pyinfra"), "-y", str(inventory), str(deploy)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYINFRA_PROGRESS": "off"},
        capture_output=True,
        text=True,
    )
    commands = (tmp_path / "log").read_text()
    # The host of this test answers as before whatever is done to it, and so is failed.
    assert done.returncode == 1, done.stderr
    # pyinfra's reboot begins with it, and so does no other operation.
    assert ("/proc/uptime" in commands) is (refused is None)
    assert (f"install {PATH}" in commands) is (refused is None)
    assert (f"ofed refuses the reboot: {refused}" in done.stderr) is (refused is not None)
