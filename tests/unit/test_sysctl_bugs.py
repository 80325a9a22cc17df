"""Known bugs of other tools, by their row in the list of bugs, each with a healthy twin."""

import pytest

from facts.sysctl import DROP_IN, RULES
from railwright.actions import InstallFile, WriteValue
from railwright.owned import HEADER
from railwright.settings import Standing, Verdict, verdict
from railwright.snapshot import Section
from tests.unit.sysctl_host import LIVE, done, node, of, ours, snapshot, verdicts
from tests.unit.units import unit


@pytest.mark.parametrize("mask", ["1", "2", "3"])
def test_row_27_any_bit_of_numa_balancing_is_on(mask: str) -> None:
    key = "kernel.numa_balancing"
    files = ours("kernel.numa_balancing = 0")
    on = snapshot(files, {key: mask})
    assert verdicts(node(numa=False), on)[key] is Verdict.NOT_RUNNING
    assert [a.path for a in done(node(numa=False), on) if isinstance(a, WriteValue)] == [
        "/proc/sys/kernel/numa_balancing"
    ]
    assert verdicts(node(numa=False), snapshot(files))[key] is Verdict.OK
    wants_on = ours("kernel.numa_balancing = 1")
    assert verdicts(node(numa=True), snapshot(wants_on, {key: mask}))[key] is Verdict.OK
    assert verdicts(node(numa=True), snapshot(wants_on))[key] is Verdict.NOT_RUNNING


def test_row_33_names_sort_over_all_directories() -> None:
    asked = node(fs__protected_regular=0)
    key = "fs.protected_regular"
    vendor = {"/usr/lib/sysctl.d/protect-links.conf": "fs.protected_regular = 2\n"}
    early = {"/etc/sysctl.d/allow.conf": "fs.protected_regular=0\n"}
    found = of(key, asked, snapshot({**early, **vendor}, {key: "2"}))
    assert found.persisted.value == "2"
    assert found.persisted.decider == "/usr/lib/sysctl.d/protect-links.conf:1"
    assert verdict(found, LIVE) is not Verdict.OK
    masked = {**early, "/etc/sysctl.d/protect-links.conf": "-> /dev/null\n", **vendor}
    found = of(key, asked, snapshot(masked, {key: "0"}))
    assert verdict(found, LIVE) is Verdict.OK
    assert found.persisted.decider == "/etc/sysctl.d/allow.conf:1"
    late = {"/etc/sysctl.d/zz-allow.conf": "fs.protected_regular=0\n", **vendor}
    assert verdict(of(key, asked, snapshot(late, {key: "0"})), LIVE) is Verdict.OK


ROW_34 = """\
please keep this
net.ipv4.conf.all.accept_redirects = 1
    net.ipv4.conf.all.accept_redirects = 0
vm.mmap_rnd_bits=1024
"""


def test_row_34_bad_lines_are_reported_and_foreign_files_left() -> None:
    key = "net.ipv4.conf.all.accept_redirects"
    asked = node(net__ipv4__conf__all__accept_redirects=0)
    conf = {
        "/etc/sysctl.d/99-sysctl.conf": f"-> /etc/sysctl.conf\n{ROW_34}",
        "/etc/sysctl.conf": ROW_34,
    }
    refused = Section(
        stdout="Couldn't write '1024' to 'vm/mmap_rnd_bits': Invalid argument\n", rc=0
    )
    failed = Section(stdout=unit("systemd-sysctl.service", active="failed"), rc=0)
    seen = snapshot(
        {**ours(f"{key} = 0"), **conf},
        {key: "0"},
        sysctl_refusals=refused,
        sysctl_units=failed,
    )
    found = of("/etc/sysctl.conf", asked, seen)
    assert verdict(found, LIVE) is Verdict.WRONG
    assert found.persisted.decider == "/etc/sysctl.conf:1"
    assert found.persisted.detail == (
        "line 1: 'please keep this' is not an assignment; "
        "line 4: 'vm.mmap_rnd_bits = 1024' was refused at boot (Invalid argument); "
        "systemd-sysctl.service has failed"
    )
    assert "line 1, 4" in (found.remedy or "")
    # Of duplicate lines the last counts, and both are left where they are.
    assert of(key, asked, seen).persisted.standing is Standing.RIGHT
    assert done(asked, seen) == []


def test_row_34_healthy_twin_and_a_line_that_was_mended_since_the_boot() -> None:
    asked = node(vm__swappiness=60)
    refused = Section(
        stdout="Couldn't write '1024' to 'vm/mmap_rnd_bits': Invalid argument\n", rc=0
    )
    files = {
        **ours("vm.swappiness = 60"),
        "/etc/sysctl.d/x.conf": "# please keep this\nvm.mmap_rnd_bits=28\n",
    }
    assert set(verdicts(asked, snapshot(files, sysctl_refusals=refused))) == {
        "vm.swappiness",
        DROP_IN,
    }


def test_row_34_our_own_file_is_repaired() -> None:
    asked = node(vm__swappiness=60)
    seen = snapshot({DROP_IN: "// ==== RDMA ====\nvm.swappiness = 60\n"})
    assert verdicts(asked, seen)[DROP_IN] is Verdict.WRONG
    assert done(asked, seen) == [
        InstallFile(path=DROP_IN, content=ours("vm.swappiness = 60")[DROP_IN])
    ]


def test_row_35_an_exit_code_of_1_and_negative_numbers() -> None:
    asked = node(net__ipv4__tcp_adv_win_scale=-2)
    key = "net.ipv4.tcp_adv_win_scale"
    errors = 'sysctl: reading key "net.ipv6.conf.all.stable_secret"'
    section = Section(stdout=f"{key} = -2\n", stderr=errors, rc=1)
    seen = snapshot(ours(f"{key} = -2"), sysctl_values=section)
    assert verdicts(asked, seen)[key] is Verdict.OK
    other = section.model_copy(update={"stdout": f"{key} = 1\n"})
    seen = snapshot(ours(f"{key} = -2"), sysctl_values=other)
    assert verdicts(asked, seen)[key] is Verdict.NOT_RUNNING
    # The key that sysctl complains of is neither missing nor right.
    secret = node(net__ipv6__conf__all__stable_secret="::1")
    found = of("net.ipv6.conf.all.stable_secret", secret, seen)
    assert found.running.standing is Standing.UNREADABLE
    assert found.running.detail == errors


CONNTRACK = "net.netfilter.nf_conntrack_max"
RULE = (
    'ACTION=="add", SUBSYSTEM=="module", KERNEL=="nf_conntrack", '
    'RUN+="/lib/systemd/systemd-sysctl --prefix=/net/netfilter/nf_conntrack_max"\n'
)


def test_row_37_a_key_whose_module_is_not_loaded_is_pending() -> None:
    asked = node(net__netfilter__nf_conntrack_max=1048576)
    files = {**ours(f"{CONNTRACK} = 1048576"), RULES: HEADER + RULE}
    seen = snapshot(files)
    found = of(CONNTRACK, asked, seen)
    assert verdict(found, LIVE) is Verdict.PENDING
    assert found.running.standing is Standing.LATE
    assert "nf_conntrack" in (found.running.detail or "")
    assert done(asked, seen) == []
    bare = done(asked, snapshot())
    assert [action.action for action in bare] == ["install", "install"]
    assert bare[1] == InstallFile(path=RULES, content=HEADER + RULE)


def test_row_37_a_module_that_the_same_run_loads_brings_its_key_into_force() -> None:
    asked = node(net__netfilter__nf_conntrack_max=1048576, load=frozenset({"nf-conntrack"}))
    files = {**ours(f"{CONNTRACK} = 1048576"), RULES: HEADER + RULE}
    assert verdicts(asked, snapshot(files))[CONNTRACK] is Verdict.NOT_RUNNING
    assert done(asked, snapshot(files)) == [
        WriteValue(
            path="/proc/sys/net/netfilter/nf_conntrack_max",
            value="1048576",
            line=f"{CONNTRACK} = 1048576",
        )
    ]


def test_row_37_healthy_twin_and_a_module_that_has_no_such_key() -> None:
    asked = node(net__netfilter__nf_conntrack_max=1048576)
    files = {**ours(f"{CONNTRACK} = 1048576"), RULES: HEADER + RULE}
    seen = snapshot(files, {CONNTRACK: "1048576"}, modules="nf_conntrack\next4\n")
    assert set(verdicts(asked, seen).values()) == {Verdict.OK}
    loaded = snapshot(files, modules="nf_conntrack\n")
    assert verdicts(asked, loaded)[CONNTRACK] is Verdict.NOT_APPLICABLE
