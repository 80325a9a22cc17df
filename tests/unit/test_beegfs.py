"""BeeGFS's client from what a node shows to what is done."""

import subprocess
from dataclasses import replace

import pytest

from deploys.beegfs import COMPONENT, settings
from facts.beegfs import CLIENT, HELPERD
from railwright.actions import render
from railwright.component import settings_of, unread
from railwright.resolve.beegfs_wanted import secret_files
from railwright.schema.beegfs import STOCK_CONFIG
from railwright.settings import Standing, Verdict, changes, is_drift
from tests.unit.beegfs_host import (
    HELPERD_CONF,
    KERNEL,
    LIVE,
    MOUNTS,
    REMOUNT,
    STOCK,
    WHERE,
    World,
    applied,
    commands,
    converged,
    done,
    found,
    node,
    snapshot,
    stock,
    value,
    verdicts,
    written,
)

RDMA = {"rdma": True, "rails": "all", "tcp_fallback": False}
SECRET = {"auth": {"file": "/srv/secrets/conn.auth"}}
OUR_RDMA = "/etc/railwright/beegfs/beegfs-client.rdma-interfaces"
OUR_LIST = "/etc/railwright/beegfs/beegfs-client.interfaces"
ALL = (
    (8, "dkms"),
    (8, "autobuild"),
    (7, "dkms"),
    (7, "autobuild"),
)


def test_where_nothing_is_asked_for_there_is_nothing() -> None:
    asked = node(mounts={})
    bare = snapshot(World()).model_copy(update={"sections": {}})
    assert settings(asked, bare) == []
    assert list(COMPONENT.actions(asked, bare, [])) == []


@pytest.mark.parametrize(("major", "build"), ALL)
def test_a_node_with_the_packages_alone_is_converged_in_one_run(major: int, build: str) -> None:
    asked = node({WHERE: RDMA | SECRET}, major=major, build=build)
    before = replace(stock(major, build), secrets={"/etc/beegfs/conn.auth": "absent"})
    after = replace(converged(asked, before), interfaces=(("rail0", "rail1"), ("rail0", "rail1")))
    assert after.mounted == {WHERE: STOCK_CONFIG}
    drift = {key: found for key, found in verdicts(asked, after).items() if is_drift(found)}
    assert drift == {}
    assert done(asked, after) == []


@pytest.mark.parametrize(("major", "build"), ALL)
def test_the_dry_run_announces_what_a_run_then_changes(major: int, build: str) -> None:
    asked = node({WHERE: RDMA}, major=major, build=build)
    before = stock(major, build)
    told = {
        (setting.key, change.state): change.after
        for setting in found(asked, before).values()
        for change in changes(setting, LIVE)
    }
    after = found(asked, converged(asked, before))
    for (key, state), promised in told.items():
        if promised == "absent":
            assert key not in after
            continue
        now = after[key].persisted if state == "persisted" else after[key].running
        assert (key, state, now.value) == (key, state, promised)


def test_foreign_lines_order_and_comments_stay() -> None:
    world = replace(stock(), files={STOCK_CONFIG: STOCK[8] + "quotaEnabled = true # mine\n"})
    text = written(node({WHERE: RDMA}), world)
    assert text.startswith("# settings of a client\n\nsysMgmtdHost                  = 10.20.0.21\n")
    assert "connMaxInternodeNum           = 12\n" in text
    assert "# [connUseRDMA]\n# what it does\nquotaEnabled = true # mine\n" in text
    assert "connTCPFallbackEnabled        = false\n" in text


def test_a_last_line_that_does_not_end_is_lost_on_the_client_and_is_mended() -> None:
    conf = STOCK[8].replace("tuneFileCacheType             = buffered\n", "")
    conf = conf.rstrip("\n") + "\ntuneFileCacheType = none"
    asked = node({WHERE: {"file_cache_type": "none"}})
    world = replace(stock(), files={STOCK_CONFIG: conf})
    key = "beegfs-client.conf tuneFileCacheType"
    assert found(asked, world)[key].persisted.standing is Standing.ABSENT
    assert written(asked, world).endswith("\ntuneFileCacheType = none\n")


@pytest.mark.parametrize(
    ("major", "given", "gone"),
    [
        (8, "connMgmtdPort", ("connMgmtdPortUDP", "connMgmtdPortTCP", "connClientPortUDP")),
        (7, "connMgmtdPortUDP", ("connMgmtdPort", "connClientPort")),
    ],
)
def test_names_of_the_other_major_with_which_it_is_not_mounted_go(
    major: int, given: str, gone: tuple[str, ...]
) -> None:
    world = stock(major)
    other = "".join(f"{name} = 8008\n" for name in gone)
    world = replace(world, files={**world.files, STOCK_CONFIG: STOCK[major] + other})
    text = written(node({WHERE: {"management_port": 9008}}, major=major), world)
    assert value(text, given) == "9008"
    assert [name for name in gone if value(text, name) is not None] == []
    assert ("logType" in text) == (major == 7)


def test_authentication_is_a_secret_of_root_or_disabled_in_so_many_words() -> None:
    asked = node({WHERE: SECRET | {"tls_certificate": {"env": "CERT"}}})
    auth, certificate = secret_files(asked)
    assert (auth.path, auth.mode) == ("/etc/beegfs/conn.auth", "400")
    assert (certificate.path, certificate.mode) == ("/etc/beegfs/cert.pem", "600")
    text = written(asked, stock(7))
    assert value(text, "connAuthFile") == "/etc/beegfs/conn.auth"
    # An empty value is true to the client.
    conf = STOCK[8].replace("connDisableAuthentication     = false", "connDisableAuthentication =")
    world = replace(stock(), files={STOCK_CONFIG: conf})
    assert value(written(asked, world), "connDisableAuthentication") == "false"
    assert secret_files(node()) == []
    assert value(written(node(), stock()), "connDisableAuthentication") == "true"


# 7 takes the file that is named, whatever connDisableAuthentication says.
@pytest.mark.parametrize("major", [7, 8])
def test_where_authentication_is_disabled_no_file_is_named(major: int) -> None:
    before = converged(node({WHERE: SECRET}, major=major), stock(major))
    assert value(before.files[STOCK_CONFIG], "connAuthFile") == "/etc/beegfs/conn.auth"
    after = converged(node(major=major), before)
    assert value(after.files[STOCK_CONFIG], "connAuthFile") == ""


def test_interfaces_come_from_the_rails_and_more_after_them() -> None:
    asked = node({WHERE: {**RDMA, "rails": (1,), "interfaces": ("eno1",)}})
    after = converged(asked, stock())
    assert after.ours[OUR_RDMA].splitlines()[1:] == ["rail1"]
    assert after.ours[OUR_LIST].splitlines()[1:] == ["rail1", "eno1"]
    assert value(after.files[STOCK_CONFIG], "connRDMAInterfacesFile") == OUR_RDMA
    assert value(after.files[STOCK_CONFIG], "connInterfacesFile") == OUR_LIST


def test_a_list_that_is_not_asked_for_any_more_goes_and_nothing_leads_to_it() -> None:
    before = converged(node({WHERE: RDMA}), stock())
    asked = node({WHERE: {}}, allow=REMOUNT)
    after = converged(asked, before)
    assert after.ours == {}
    assert value(after.files[STOCK_CONFIG], "connRDMAInterfacesFile") == ""
    assert done(asked, after) == []


def test_a_rail_without_a_name_of_its_own_and_without_a_nic_keeps_the_mount_waiting() -> None:
    asked = node(
        {WHERE: RDMA}, data={"rails": {"name": None, "nics": {0: {"pci": "0000:10:00.0"}}}}
    )
    mount = found(asked, stock())[f"mount {WHERE}"]
    assert mount.running.standing is Standing.LATE
    assert "there is no NIC at 0000:10:00.0" in (mount.running.detail or "")
    assert ("systemctl", "start", "mnt-beegfs.mount") not in commands(done(asked, stock()))


def test_a_key_that_differs_is_in_force_once_it_is_mounted_anew_and_that_is_allowed() -> None:
    old = converged(node({WHERE: {"tcp_fallback": True, "rdma": True, "rails": "all"}}), stock())
    key = "beegfs-client.conf connTCPFallbackEnabled"
    asked = node({WHERE: RDMA})
    setting = found(asked, old)[key]
    assert (setting.persisted.value, setting.running.value) == ("true", "1")
    kept = converged(asked, old)
    assert verdicts(asked, kept)[key] is Verdict.PENDING
    assert commands(done(asked, old)) == []
    allowed = node({WHERE: RDMA}, allow=REMOUNT)
    assert commands(done(allowed, old)) == [("systemctl", "restart", "mnt-beegfs.mount")]
    assert verdicts(allowed, converged(allowed, old))[key] is Verdict.OK


@pytest.mark.parametrize(("major", "build"), ALL)
def test_a_container_has_what_is_persisted_alone(major: int, build: str) -> None:
    asked = node({WHERE: RDMA}, major=major, build=build)
    before = replace(stock(major, build), container=True)
    todo = done(asked, before)
    assert {verb for _, verb, *_ in commands(todo)} <= {"enable", "daemon-reload"}
    after = applied(before, todo)
    assert after.mounted == {}
    assert {v for v in verdicts(asked, after).values() if is_drift(v)} == set()
    assert done(asked, after) == []


@pytest.mark.parametrize(("major", "build"), ALL)
def test_what_packages_of_the_same_run_bring_is_announced(
    major: int, build: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"dkms": "beegfs-client-dkms", "autobuild": "beegfs-client"}
    packages = {
        names[build]: f"20:{major}.3",
        **({"beegfs-helperd": "20:7.4"} if major == 7 else {}),
    }
    asked = node({WHERE: RDMA}, major=major, build=build, packages=packages)
    monkeypatch.setattr("deploys.beegfs.arriving", lambda *_: frozenset(packages))
    bare = World(dkms=None)
    told = {
        (setting.key, change.state)
        for setting in found(asked, bare).values()
        for change in changes(setting, LIVE)
    }
    assert {(f"mount {WHERE}", "running"), (f"module for {KERNEL}", "persisted")} <= told
    units = {
        f"unit {name}" for name, of in ((HELPERD, major == 7), (CLIENT, build != "dkms")) if of
    }
    assert {key for key, state in told if key in units and state == "running"} == units
    assert ("beegfs-client.conf sysMgmtdHost", "persisted") in told


def test_a_file_that_cannot_be_read_is_told_and_never_touched() -> None:
    asked, seen = node(), snapshot(stock())
    text = seen.sections["beegfs_files"].stdout
    broken = text.replace("file file 644", "file unreadable -").partition("m-0 base64")[0]
    sections = {
        **seen.sections,
        "beegfs_files": seen.sections["beegfs_files"].model_copy(update={"stdout": broken}),
    }
    there = settings(asked, seen.model_copy(update={"sections": sections}))
    keys = [s for s in there if s.key.startswith("beegfs-client.conf ")]
    assert {s.persisted.standing for s in keys} == {Standing.UNREADABLE}
    assert not any(s.acts for s in keys)
    mount = next(s for s in there if s.key == f"mount {WHERE}")
    assert mount.running.standing is Standing.LATE


def test_bytes_that_are_no_utf8_stay_as_they_are() -> None:
    conf = f"# caf\udce9\n{STOCK[8]}"
    assert written(node(), replace(stock(), files={STOCK_CONFIG: conf})).startswith("# caf\udce9\n")


def test_a_section_that_was_not_taken_is_one_unreadable_setting() -> None:
    seen = snapshot(stock())
    sections = {n: s for n, s in seen.sections.items() if n != "beegfs_state"}
    assert unread(settings_of(COMPONENT, node(), seen.model_copy(update={"sections": sections})))


def test_the_client_of_7_has_its_helper_which_is_told_the_secret_too() -> None:
    asked = node({WHERE: SECRET}, major=7)
    world = replace(stock(7), secrets={"/etc/beegfs/conn.auth": "equal root 400"})
    todo = done(asked, world)
    assert ("systemctl", "enable", HELPERD) in commands(todo)
    assert ("systemctl", "start", HELPERD) in commands(todo)
    text = written(asked, world, HELPERD_CONF)
    assert value(text, "connAuthFile") == "/etc/beegfs/conn.auth"
    assert "logNumLines = 50000\n" in text
    running = replace(world, active=frozenset({HELPERD}), enabled=frozenset({HELPERD}))
    assert ("systemctl", "restart", HELPERD) in commands(done(asked, running))
    of_8 = replace(stock(), secrets=world.secrets)
    assert f"unit {HELPERD}" not in found(node({WHERE: SECRET}), of_8)


def test_a_helper_that_is_not_installed_is_told() -> None:
    world = replace(stock(7), installed=frozenset())
    setting = found(node(major=7), world)[f"unit {HELPERD}"]
    assert (setting.acts, setting.remedy) == (False, "install beegfs-helperd")


def test_the_service_builds_and_our_unit_mounts_after_it() -> None:
    asked = node(build="autobuild")
    world = converged(asked, stock(build="autobuild"))
    unit = world.units["/etc/systemd/system/mnt-beegfs.mount"]
    assert f"After={CLIENT}\n" in unit
    assert "Requires=" not in unit
    assert "nofail" in unit
    assert world.files[MOUNTS] == ""
    order = commands(done(asked, stock(build="autobuild")))
    assert order.index(("systemctl", "start", CLIENT)) < order.index(
        ("systemctl", "start", "mnt-beegfs.mount")
    )


def test_other_lines_of_beegfs_mounts_conf_are_left_alone() -> None:
    foreign = "# mine\n/other /etc/beegfs/other.conf\n"
    files = {**stock(build="autobuild").files, MOUNTS: f"{foreign}/mnt/beegfs/ {STOCK_CONFIG}\n"}
    world = replace(stock(build="autobuild"), files=files)
    assert written(node(build="autobuild"), world, MOUNTS) == foreign


def test_several_mounts_have_configurations_secrets_and_ports_of_their_own() -> None:
    mounts = {
        WHERE: RDMA | SECRET,
        "/mnt/scratch": {
            **SECRET,
            "config": "/etc/beegfs/scratch.conf",
            "client_port": 8014,
            "management": "10.20.0.31",
        },
    }
    asked = node(mounts)
    world = replace(
        stock(),
        secrets={"/etc/beegfs/conn.auth": "absent", "/etc/beegfs/scratch.auth": "absent"},
    )
    after = replace(converged(asked, world), interfaces=(("rail0", "rail1"), ("rail0", "rail1")))
    assert after.mounted == {WHERE: STOCK_CONFIG, "/mnt/scratch": "/etc/beegfs/scratch.conf"}
    new = after.files["/etc/beegfs/scratch.conf"]
    assert value(new, "connAuthFile") == "/etc/beegfs/scratch.auth"
    assert value(new, "connClientPort") == "8014"
    assert value(new, "connRDMAInterfacesFile") is None
    assert {v for v in verdicts(asked, after).values() if is_drift(v)} == set()
    assert done(asked, after) == []


def test_a_client_that_does_not_answer_is_degraded_and_fails_nothing() -> None:
    asked = node({WHERE: RDMA})
    world = replace(converged(asked, stock()), stuck=True)
    there = verdicts(asked, world)
    assert there[f"transport {WHERE}"] is Verdict.DEGRADED
    assert there["beegfs-client.conf connUseRDMA"] is Verdict.DEGRADED
    assert done(asked, world) == []


def test_a_key_that_no_release_has_is_told_and_left() -> None:
    conf = STOCK[8] + "connRDMAEnabled = true\n"
    asked = node()
    world = replace(stock(), files={**stock().files, STOCK_CONFIG: conf})
    setting = found(asked, world)["beegfs-client.conf connRDMAEnabled"]
    assert (setting.acts, setting.remedy) == (False, "take it out; connUseRDMA is what is meant")
    assert "connRDMAEnabled = true\n" in written(asked, world)


def test_what_is_left_of_mounts_is_removed() -> None:
    before = converged(node({WHERE: RDMA}), stock())
    asked = node(mounts={}, allow=REMOUNT)
    todo = done(asked, before)
    assert ("systemctl", "disable", "--now", "mnt-beegfs.mount") in commands(todo)
    assert applied(before, todo).ours == {}
    still = node(mounts={})
    assert not any(verb == "disable" for _, verb, *_ in commands(done(still, before)))


def test_what_is_done_is_a_script_that_sh_reads() -> None:
    todo = done(node({WHERE: RDMA}, ofed_headers=True), stock())
    assert len(todo) > 5
    checked = subprocess.run(["sh", "-n"], input=render(todo), text=True, check=False)
    assert checked.returncode == 0
