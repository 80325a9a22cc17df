"""How the limits of a node stand, and what is done about them."""

import pytest

from deploys.limits import COMPONENT, actions, settings
from railwright.actions import InstallFile, RemoveFile, Run
from railwright.component import settings_of
from railwright.settings import Effect, Setting, Standing, Verdict, changes
from railwright.snapshot import Section
from tests.unit.limits_host import PAM, SYSTEM, USER, Host, acts, found, judged, node, unit

OURS = {
    PAM: (
        "# Managed by railwright: whatever is changed here is put back by the next run.\n"
        "* soft memlock unlimited\n* hard memlock unlimited\n"
        "root soft memlock unlimited\nroot hard memlock unlimited\n"
    ),
    SYSTEM: (
        "# Managed by railwright: whatever is changed here is put back by the next run.\n"
        "[Manager]\nDefaultLimitMEMLOCK=infinity\n"
    ),
}
OURS[USER] = OURS[SYSTEM]
INFINITY = {"MEMLOCK": ("infinity", "infinity")}


def healthy(**more: object) -> Host:
    host = Host({**OURS}, login="unlimited", manager=INFINITY)
    for name, value in more.items():
        setattr(host, name, value)
    return host


def standings(setting: Setting) -> tuple[Standing, Standing]:
    return setting.persisted.standing, setting.running.standing


# bugs.md row 10: ibv_reg_mr fails though limits.conf says unlimited: the login is 8192 KiB.
def test_bug_10_memlock_of_the_login_is_what_counts() -> None:
    host = healthy(login="8388608")
    said = found(node(memlock="unlimited"), host)
    for bound in ("soft", "hard"):
        setting = said[f"pam root {bound} memlock"]
        assert setting.running.value == "8192KiB"
        assert judged(node(memlock="unlimited"), host)[setting.key] is Verdict.NOT_RUNNING
        assert "pam_limits.so" in (setting.remedy or "")


def test_bug_10_healthy_twin() -> None:
    host = healthy()
    assert set(judged(node(memlock="unlimited"), host).values()) == {Verdict.OK}
    assert acts(node(memlock="unlimited"), host) == []


def test_bug_10_login_older_than_the_change() -> None:
    """limits.conf counts for the next login: the one that wrote it shows nothing."""
    host = healthy(login="8388608")
    host.mtime = host.since
    setting = found(node(memlock="unlimited"), host)["pam root hard memlock"]
    assert standings(setting) == (Standing.RIGHT, Standing.RIGHT)
    assert "the next login has it; this one, with 8192KiB" in (setting.running.detail or "")


def test_bare_host_is_brought_in_and_stays() -> None:
    desired = node(memlock="unlimited", nofile=1048576, nproc="unlimited", stack="64MiB")
    host = Host()
    before = found(desired, host)
    for bound in ("soft", "hard"):
        root = before[f"pam root {bound} memlock"]
        assert standings(root) == (Standing.ABSENT, Standing.WRONG)
        assert [str(c) for c in changes(root, desired.effects.allow)] == [
            f"limits pam root {bound} memlock: persisted absent → unlimited",
            f"limits pam root {bound} memlock: running 8192KiB → unlimited",
        ]
    default = before["systemd default nofile"]
    assert default.desired == "1024:1048576"
    assert default.running.value == "1024:524288"
    done = acts(desired, host)
    assert [type(action) for action in done] == [InstallFile] * 3 + [Run]
    assert done[-1] == Run(command=("systemctl", "daemon-reexec"))
    for action in done:
        host.do(action)
    assert "* hard nproc unlimited\n" in host.files[PAM]
    assert "root soft stack 65536\n" in host.files[PAM]
    assert "DefaultLimitNOFILE=1024:1048576\nDefaultLimitNPROC=infinity\n" in host.files[SYSTEM]
    assert host.files[USER] == host.files[SYSTEM]
    host.manager |= {
        "MEMLOCK": ("infinity", "infinity"),
        "NPROC": ("infinity", "infinity"),
        "NOFILE": ("1024", "1048576"),
        "STACK": ("67108864", "67108864"),
    }
    assert set(judged(desired, host).values()) == {Verdict.OK}
    assert acts(desired, host) == []


def test_nothing_asked_for_nothing_there() -> None:
    assert settings(node(), Host().snapshot()) == []
    assert acts(node(), Host()) == []
    assert settings(node(services={"slurmd.service"}), Host().snapshot()) == []


def test_what_is_no_longer_asked_for_goes() -> None:
    host = healthy()
    done = acts(node(), host)
    assert done[:-1] == [RemoveFile(path=path) for path in (PAM, SYSTEM, USER)]
    assert done[-1] == Run(command=("systemctl", "daemon-reexec"))
    for action in done:
        host.do(action)
    assert settings(node(), host.snapshot()) == []


def test_an_effect_that_is_not_allowed_is_left_out() -> None:
    done = acts(node(Effect.LIVE, memlock="unlimited"), Host())
    assert all(isinstance(action, InstallFile) for action in done)
    host = healthy(manager=Host().manager)
    assert judged(node(Effect.LIVE, memlock="unlimited"), host)["systemd default memlock"] is (
        Verdict.PENDING
    )
    assert acts(node(Effect.LIVE, memlock="unlimited"), host) == []


def test_services_get_less_although_logins_do_not() -> None:
    """memlock unlimited in limits.conf while services get 8 MiB."""
    host = healthy(manager=Host().manager)
    for path in (SYSTEM, USER):
        del host.files[path]
    said = found(node(memlock="unlimited"), host)
    assert standings(said["systemd default memlock"]) == (Standing.ABSENT, Standing.WRONG)
    assert standings(said["pam root hard memlock"]) == (Standing.RIGHT, Standing.RIGHT)
    assert [getattr(action, "path", None) for action in acts(node(memlock="unlimited"), host)] == [
        SYSTEM,
        USER,
        None,
    ]


def test_running_services_with_less_are_named() -> None:
    units = {f"s{n}.service": "8388608" for n in range(7)}
    host = healthy(services={**units, "new.service": "unlimited"})
    setting = found(node(memlock="unlimited"), host)["systemd default memlock"]
    assert standings(setting) == (Standing.RIGHT, Standing.RIGHT)
    assert setting.running.detail == (
        "still with less until restarted: s0.service, s1.service, s2.service, s3.service, "
        "s4.service and 2 more"
    )


@pytest.mark.parametrize(
    ("path", "text", "key", "value"),
    [
        ("/etc/security/limits.d/zz.conf", "* hard memlock 64", "pam * hard memlock", "64KiB"),
        # The hard limit cuts the soft one.
        ("/etc/security/limits.d/zz.conf", "* hard memlock 64", "pam * soft memlock", "64KiB"),
        ("/etc/security/limits.d/zz.conf", "root - memlock 64", "pam root soft memlock", "64KiB"),
        ("/etc/security/limits.d/10.conf", "1000: - memlock 64", "pam * hard memlock", "64KiB"),
        ("/etc/security/limits.conf", "@students - memlock 64", "pam * hard memlock", "unlimited"),
        ("/etc/security/limits.conf", "root -", "pam root hard memlock", None),
        (
            "/usr/lib/systemd/system.conf.d/zz.conf",
            "[Manager]\nDefaultLimitMEMLOCK=64K",
            "systemd default memlock",
            "64KiB",
        ),
    ],
)
@pytest.mark.parametrize("ours", [OURS, {}], ids=["with-ours", "before"])
def test_overridden_names_the_line(
    path: str, text: str, key: str, value: str | None, ours: dict[str, str]
) -> None:
    desired = node(memlock="unlimited")
    host = Host({**ours, path: f"{text}\n"}, login="unlimited", manager=INFINITY)
    setting = found(desired, host)[key]
    if "@students" in text and not ours:
        # What all get is not written yet; that some do not get it shows when it is.
        assert setting.persisted.standing is Standing.ABSENT
        return
    assert judged(desired, host)[key] is Verdict.OVERRIDDEN
    assert setting.persisted.value == value
    place = f"{path}:{text.count(chr(10)) + 1}"
    assert setting.persisted.decider == place
    assert place in (setting.remedy or "")
    assert changes(setting, desired.effects.allow) == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/security/limits.d/20.conf", "* hard memlock 64"),
        ("/etc/security/limits.conf", "root - memlock 64"),
        ("/etc/security/limits.conf", "@realtime - memlock unlimited"),
        ("/etc/security/limits.d/zz.conf", "* hard memlock lots"),
        ("/etc/systemd/system.conf", "[Manager]\nDefaultLimitMEMLOCK=64K"),
    ],
)
def test_lines_that_lose_or_do_no_harm(path: str, text: str) -> None:
    host = healthy()
    host.files[path] = f"{text}\n"
    assert set(judged(node(memlock="unlimited"), host).values()) == {Verdict.OK}


def test_root_gets_the_wildcard_only_where_it_is_not_debian() -> None:
    host = Host({"/etc/security/limits.conf": "* hard memlock 64\n"})
    key = "pam root hard memlock"
    assert found(node(memlock="unlimited"), host)[key].persisted.standing is Standing.ABSENT
    del host.files["/etc/debian_version"]
    state = found(node(memlock="unlimited"), host)[key].persisted
    assert (state.standing, state.value) == (Standing.WRONG, "64KiB")


def test_container_has_persisted_state_only() -> None:
    host = Host()
    host.identity = "uid=0\nos=debian\ncontainer=podman\n"
    desired = node(Effect.SERVICE, Effect.NEW_PROCESSES, memlock="unlimited")
    host.units = unit()
    for setting in found(desired, host).values():
        assert setting.running.standing is Standing.NOT_APPLICABLE
    done = acts(desired, host)
    assert {type(action) for action in done} == {InstallFile}
    for action in done:
        host.do(action)
    assert set(judged(desired, host).values()) == {Verdict.OK}


@pytest.mark.parametrize(("uid", "opener"), [("1000", "sshd"), ("0", "")])
def test_no_login_of_root_tells_nothing_of_one(uid: str, opener: str) -> None:
    host = healthy(login="8388608", opener=opener, identity=f"uid={uid}\n")
    setting = found(node(memlock="unlimited"), host)["pam root hard memlock"]
    assert setting.running.standing is Standing.NOT_APPLICABLE
    assert setting.running.detail


def test_open_files_above_nr_open_would_deny_every_login() -> None:
    host = Host()
    desired = node(memlock="unlimited", nofile=2**20 + 1)
    setting = found(desired, host)["pam root hard nofile"]
    assert judged(desired, host)[setting.key] is Verdict.WRONG
    assert "fs.nr_open" in (setting.remedy or "")
    assert changes(setting, desired.effects.allow) == []
    first = acts(desired, host)[0]
    assert isinstance(first, InstallFile)
    assert "nofile" not in first.content
    assert "memlock" in first.content


def test_a_service_keeps_its_limit_until_it_is_restarted() -> None:
    host = healthy(units=unit())
    desired = node(memlock="unlimited", services={"slurmd.service"})
    key = "service slurmd.service memlock"
    setting = found(desired, host)[key]
    assert standings(setting) == (Standing.RIGHT, Standing.WRONG)
    assert setting.running.value == "8192KiB"
    assert judged(desired, host)[key] is Verdict.PENDING
    assert acts(desired, host) == []
    allowing = node(Effect.SERVICE, memlock="unlimited", services={"slurmd.service"})
    assert acts(allowing, host) == [Run(command=("systemctl", "restart", "slurmd.service"))]
    host.units = unit(memlock="unlimited")
    assert judged(allowing, host)[key] is Verdict.OK
    assert acts(allowing, host) == []


def test_a_service_is_restarted_after_the_manager_has_the_new_default() -> None:
    host = Host(units=unit())
    desired = node(
        Effect.SERVICE, Effect.NEW_PROCESSES, memlock="1GiB", services={"slurmd.service"}
    )
    ran = [action.command[1] for action in acts(desired, host) if isinstance(action, Run)]
    assert ran == ["daemon-reexec", "restart"]


def test_a_service_is_not_restarted_while_the_manager_has_the_old_default() -> None:
    host = Host(units=unit())
    desired = node(Effect.SERVICE, memlock="1GiB", services={"slurmd.service"})
    assert [action for action in acts(desired, host) if isinstance(action, Run)] == []


def test_a_drop_in_of_a_unit_overrides() -> None:
    host = healthy(units=unit(own="LimitMEMLOCK=64M"))
    desired = node(Effect.SERVICE, memlock="unlimited", services={"slurmd.service"})
    setting = found(desired, host)["service slurmd.service memlock"]
    assert setting.persisted.standing is Standing.OVERRIDDEN
    assert setting.persisted.value == "65536KiB"
    assert setting.persisted.decider == "/etc/systemd/system/slurmd.service.d/50-site.conf:2"
    # A restart would bring nothing.
    assert acts(desired, host) == []


def test_a_unit_may_have_more_than_is_asked_for() -> None:
    host = Host(units=unit(memlock="unlimited", own="LimitMEMLOCK=infinity"))
    desired = node(memlock="64MiB", services={"slurmd.service"})
    said = found(desired, host)["service slurmd.service memlock"]
    assert standings(said) == (Standing.RIGHT, Standing.RIGHT)
    less = node(nofile=200000, services={"slurmd.service"})
    assert judged(less, host)["service slurmd.service nofile"] is Verdict.OVERRIDDEN


@pytest.mark.parametrize(
    ("units", "expected"),
    [
        (unit(pid=0), (Standing.RIGHT, Standing.NOT_APPLICABLE)),
        (
            "Id=slurmd.service\nLoadState=not-found\nMainPID=0\n",
            (Standing.NOT_APPLICABLE, Standing.NOT_APPLICABLE),
        ),
        (
            "Id=slurmd.service\nLoadState=bad-setting\nMainPID=0\n",
            (Standing.UNREADABLE, Standing.UNREADABLE),
        ),
        ("Id=other.service\nLoadState=loaded\n", (Standing.UNREADABLE, Standing.UNREADABLE)),
        (unit().replace("Max", "?"), (Standing.RIGHT, Standing.UNREADABLE)),
        (
            unit("other.service").replace("alias-of-other.service", "slurmd.service"),
            (Standing.RIGHT, Standing.WRONG),
        ),
    ],
)
def test_units_that_do_not_run_or_cannot_be_read(
    units: str, expected: tuple[Standing, Standing]
) -> None:
    desired = node(memlock="unlimited", services={"slurmd.service"})
    setting = found(desired, healthy(units=units))["service slurmd.service memlock"]
    assert standings(setting) == expected
    assert setting.running.standing is Standing.WRONG or setting.running.detail


@pytest.mark.parametrize("section", ["limits_running", "limits_units"])
def test_silence_of_systemd_leaves_the_rest_readable(section: str) -> None:
    host = healthy(units=unit())
    host.more[section] = Section(stdout="", stderr="no bus", rc=1)
    desired = node(memlock="unlimited", services={"slurmd.service"})
    said = judged(desired, host)
    unreadable = {key for key, verdict in said.items() if verdict is Verdict.UNREADABLE}
    lost = "systemd default" if section == "limits_running" else "service slurmd.service"
    assert unreadable == {f"{lost} memlock"}
    assert acts(desired, host) == []


def test_a_file_that_cannot_be_read_is_never_right() -> None:
    host = healthy()
    snapshot = host.snapshot()
    hidden = "\nm-0 file unreadable 600 root 1 9 /etc/security/limits.d/zz.conf\n"
    hidden += "\nm-0 file unreadable 600 root 1 9 /etc/systemd/system.conf.d/a.conf\n"
    sections = dict(snapshot.sections)
    for name in ("limits_pam", "limits_manager"):
        section = sections[name]
        sections[name] = section.model_copy(update={"stdout": section.stdout + hidden})
    seen = snapshot.model_copy(update={"sections": sections})
    said = {s.key: s.persisted for s in settings(node(memlock="unlimited"), seen)}
    for key in ("pam * soft memlock", "pam root hard memlock", "systemd default memlock"):
        assert said[key].standing is Standing.UNREADABLE
        assert "cannot be read" in (said[key].detail or "")


def test_a_section_that_was_cut_off_makes_the_component_unreadable() -> None:
    host = healthy()
    host.more["limits_pam"] = Section(stdout="", rc=None, ended="deadline")
    (setting,) = settings_of(COMPONENT, node(memlock="unlimited"), host.snapshot())
    assert setting.persisted.standing is Standing.UNREADABLE


@pytest.mark.parametrize("path", [PAM, SYSTEM, USER])
def test_our_file_is_put_back(path: str) -> None:
    desired = node(memlock="unlimited")
    host = healthy()
    host.files[path] += "# changed by hand\n"
    done = acts(desired, host)
    assert isinstance(done[0], InstallFile)
    assert (done[0].path, done[0].content) == (path, OURS[path])
    for action in done:
        host.do(action)
    assert acts(desired, host) == []


def test_actions_are_what_the_settings_say() -> None:
    desired = node(memlock="unlimited")
    snapshot = Host().snapshot()
    right = settings(desired, healthy().snapshot())
    assert list(actions(desired, snapshot, right)) == []
