"""OpenSM on a node: package, service, options by a drop-in of ours."""

from collections.abc import Mapping

import pytest

from deploys.ports import actions, settings
from facts.opensm import DEBIAN_DROP_IN, RHEL_DROP_IN
from railwright.actions import Action, InstallFile, RemoveFile, Run
from railwright.schema import InfinibandFabric, Node, Opensm
from railwright.settings import Effect, Setting, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.ports_host import LIVE, by_key, files, host, node

ASKED = InfinibandFabric(opensm=Opensm(priority=13, routing_engine="updn"))
SERVICE = LIVE | {Effect.SERVICE}
DEBIAN = "installed=yes\ninstaller=apt-get\nlayout=debian\n"
RHEL = "installed=yes\ninstaller=dnf\n"
OURS = "process=/usr/sbin/opensm --guid 0x1 --priority 13 --routing_engine updn \n"
STOCK = "process=/usr/sbin/opensm --guid 0x1 --log_file /var/log/opensm.0x1.log \n"
KEYS = ("opensm package", "opensm service", "opensm options")


def unit(active: str = "active", state: str = "enabled", load: str = "loaded") -> Section:
    text = f"Id=opensm.service\nLoadState={load}\nActiveState={active}\nUnitFileState={state}\n"
    return Section(stdout=text, rc=0)


def sm_host(
    state: str = DEBIAN,
    ours: Mapping[str, str] | None = None,
    service: Section | None = None,
    container: bool = False,
) -> Snapshot:
    sections = {"opensm": Section(stdout=state, rc=0), "opensm_files": files(ours or {})}
    if service is not None:
        sections["opensm_units"] = service
    return host(infiniband=True, container=container, sections=sections)


def asking(allow: frozenset[Effect] = LIVE, fabric: InfinibandFabric = ASKED) -> Node:
    return node(fabric, allow=allow)


def found(asked: Node, seen: Snapshot) -> dict[str, Setting]:
    return {k: s for k, s in by_key(settings(asked, seen)).items() if "opensm" in k}


def done(asked: Node, seen: Snapshot) -> list[Action]:
    return list(actions(asked, seen, settings(asked, seen)))


def commands(asked: Node, seen: Snapshot) -> list[tuple[str, ...]]:
    return [action.command for action in done(asked, seen) if isinstance(action, Run)]


def installed(asked: Node, seen: Snapshot) -> dict[str, str]:
    return {a.path: a.content for a in done(asked, seen) if isinstance(a, InstallFile)}


def test_a_bare_node_gets_the_drop_in_and_waits_with_the_package_that_starts_it() -> None:
    bare = sm_host("installer=apt-get\n")
    states = found(asking(), bare)
    assert changes(states["opensm package"], LIVE) == []
    assert "allow the effect service" in (states["opensm package"].remedy or "")
    assert changes(states["opensm service"], LIVE) == []
    assert commands(asking(), bare) == [("systemctl", "daemon-reload")]
    assert "--priority 13 --routing_engine updn" in installed(asking(), bare)[DEBIAN_DROP_IN]


def test_with_the_effect_allowed_it_is_installed_enabled_and_started_in_that_order() -> None:
    bare = sm_host("installer=apt-get\n")
    reload, install, enable, restart = commands(asking(SERVICE), bare)
    assert reload == ("systemctl", "daemon-reload")
    assert install[-1] == "opensm"
    assert enable == ("systemctl", "enable", "opensm.service")
    assert restart == ("systemctl", "restart", "opensm.service")


@pytest.mark.parametrize(("state", "path"), [(DEBIAN, DEBIAN_DROP_IN), (RHEL, RHEL_DROP_IN)])
def test_a_converged_node_is_ok_and_left_alone(state: str, path: str) -> None:
    asked = asking(SERVICE)
    ours = installed(asked, sm_host(state))
    assert list(ours) == [path]
    seen = sm_host(state + OURS, ours, unit())
    assert {verdict(s, SERVICE) for s in found(asked, seen).values()} == {Verdict.OK}
    assert done(asked, seen) == []


def test_the_drop_in_takes_the_place_of_the_command_of_the_unit() -> None:
    lines = installed(asking(), sm_host())[DEBIAN_DROP_IN].splitlines()
    assert lines[-3:-1] == ["[Service]", "ExecStart="]
    assert lines[-1].startswith("ExecStart=/usr/sbin/opensm --guid %I ")
    rhel = installed(asking(), sm_host(RHEL))[RHEL_DROP_IN].splitlines()
    assert "Type=simple" in rhel
    assert "ExecStart=/usr/sbin/opensm --priority 13 --routing_engine updn" in rhel


def test_one_that_runs_with_other_options_waits_for_a_restart() -> None:
    ours = installed(asking(), sm_host())
    seen = sm_host(DEBIAN + STOCK, ours, unit())
    options = found(asking(), seen)["opensm options"]
    assert verdict(options, LIVE) is Verdict.PENDING
    assert options.effect is Effect.SERVICE
    assert done(asking(), seen) == []
    assert commands(asking(SERVICE), seen) == [("systemctl", "restart", "opensm.service")]


def test_every_process_must_have_the_options() -> None:
    ours = installed(asking(), sm_host())
    seen = sm_host(DEBIAN + OURS + STOCK, ours, unit())
    assert found(asking(), seen)["opensm options"].running.standing is Standing.WRONG


def test_an_edited_drop_in_is_put_back() -> None:
    ours = installed(asking(), sm_host())
    edited = {DEBIAN_DROP_IN: ours[DEBIAN_DROP_IN].replace("13", "0")}
    seen = sm_host(DEBIAN + OURS, edited, unit())
    assert found(asking(), seen)["opensm options"].persisted.standing is Standing.WRONG
    assert installed(asking(), seen) == ours


def test_a_later_drop_in_that_wins_is_named() -> None:
    later = "/etc/systemd/system/opensm@.service.d/zzz-site.conf"
    ours = installed(asking(), sm_host())
    seen = sm_host(DEBIAN + STOCK, ours | {later: "[Service]\nExecStart=x\n"}, unit())
    options = found(asking(), seen)["opensm options"]
    assert verdict(options, LIVE) is Verdict.OVERRIDDEN
    assert options.persisted.decider == later
    harmless = ours | {later: "[Service]\nNice=0\n"}
    fine = sm_host(DEBIAN + OURS, harmless, unit())
    assert verdict(found(asking(), fine)["opensm options"], LIVE) is Verdict.OK


def test_a_masked_unit_is_left_masked() -> None:
    seen = sm_host(DEBIAN, None, unit("inactive", "masked", "masked"))
    service = found(asking(SERVICE), seen)["opensm service"]
    assert verdict(service, SERVICE) is Verdict.OVERRIDDEN
    assert service.remedy == "systemctl unmask opensm.service"
    assert changes(service, SERVICE) == []


def test_a_disabled_unit_is_enabled() -> None:
    ours = installed(asking(), sm_host())
    seen = sm_host(DEBIAN + OURS, ours, unit(state="disabled"))
    assert commands(asking(), seen) == [("systemctl", "enable", "opensm.service")]


def test_a_launcher_that_starts_several_is_left_to_the_site() -> None:
    seen = sm_host(RHEL + "guids=yes\n", None, unit())
    options = found(asking(SERVICE), seen)["opensm options"]
    assert not options.acts
    assert "GUIDS" in (options.remedy or "")
    assert installed(asking(SERVICE), seen) == {}


def test_a_subnet_manager_that_nobody_asked_for_is_told_and_left_running() -> None:
    plain = asking(SERVICE, InfinibandFabric())
    seen = sm_host(DEBIAN + STOCK, None, unit())
    (rival,) = found(plain, seen).values()
    assert (rival.key, rival.desired) == ("opensm service", "off")
    assert verdict(rival, SERVICE) is Verdict.NOT_RUNNING
    assert done(plain, seen) == []
    assert found(plain, sm_host(DEBIAN)) == {}


def test_our_drop_in_goes_when_it_is_not_asked_for() -> None:
    ours = installed(asking(), sm_host())
    seen = sm_host(DEBIAN, ours, unit())
    assert done(asking(fabric=InfinibandFabric()), seen) == [
        RemoveFile(path=DEBIAN_DROP_IN),
        Run(command=("systemctl", "daemon-reload")),
    ]
    assert RemoveFile(path=DEBIAN_DROP_IN) in done(Node(name="n1"), seen)


def test_in_a_container_it_is_installed_and_not_started() -> None:
    bare = sm_host("installer=apt-get\n", container=True)
    assert [c[:2] for c in commands(asking(), bare)] == [
        ("systemctl", "daemon-reload"),
        ("env", "DEBIAN_FRONTEND=noninteractive"),
        ("systemctl", "enable"),
    ]
    ours = installed(asking(), bare)
    seen = sm_host(DEBIAN, ours, unit("inactive"), container=True)
    assert {verdict(s, LIVE) for s in found(asking(), seen).values()} == {Verdict.OK}
    assert done(asking(), seen) == []


def test_a_systemd_that_does_not_answer_is_an_error() -> None:
    seen = sm_host(DEBIAN, None, Section(stdout="", stderr="Failed to connect to bus", rc=1))
    with pytest.raises(ValueError, match="Failed to connect to bus"):
        settings(asking(), seen)
