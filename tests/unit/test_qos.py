"""What the QoS component decides of the ports, and does to them."""

from collections.abc import Mapping
from typing import Any

import pytest

from deploys.qos import settings
from facts.qos import (
    RULES_PATH,
    SCRIPT_PATH,
    UNIT_PATH,
    WATCH,
    WATCH_SCRIPT_PATH,
)
from railwright.actions import InstallFile, render
from railwright.converge import unmet
from railwright.schema import InfinibandFabric, Node, RoceFabric, RoceQos
from railwright.settings import Effect, Standing, Verdict, changes, verdict
from railwright.snapshot import Section, Snapshot
from tests.unit.qos_cases import (
    FILES,
    UNITS,
    bare,
    commands,
    converged,
    done,
    found,
    installed,
    verdicts,
    wrong,
)
from tests.unit.qos_host import (
    LIVE,
    PCI,
    PCIS,
    UNITS_UP,
    WITH_LINK,
    cc_files,
    cm_files,
    data_path,
    ecn_files,
    node,
    right_port,
)


@pytest.mark.parametrize(
    "asked",
    [
        Node(name="gpu001"),
        Node(name="gpu001", fabric=RoceFabric()),
        node(fabric=InfinibandFabric(), rails=1),
    ],
    ids=["no fabric", "no rails", "InfiniBand"],
)
def test_nothing_asked_for_and_nothing_of_ours_is_no_setting(asked: Node) -> None:
    assert settings(asked, bare()) == []
    assert done(asked, bare()) == []


@pytest.mark.parametrize("allow", [LIVE, WITH_LINK], ids=["live", "link"])
def test_a_converged_host_is_ok_and_left_alone(allow: frozenset[Effect]) -> None:
    asked = node(allow=allow)
    assert wrong(asked, converged(asked)) == {}
    assert done(asked, converged(asked)) == []


def test_what_is_announced_of_a_bare_host_is_what_the_run_makes_of_it() -> None:
    asked = node(allow=WITH_LINK)
    before, after = found(asked, bare()), found(asked, converged(asked))
    for key, setting in before.items():
        expected = changes(setting, WITH_LINK)
        assert unmet(after.values(), key, expected) == []
        for change in expected:
            assert getattr(after[key], change.state).value == change.after
    told = {
        change.key.removeprefix("rail0 ")
        for s in before.values()
        for change in changes(s, WITH_LINK)
    }
    assert {"dscp map", "trust", "ets", "pfc", "pause", "rdma_cm tos", "cnp dscp"} <= told


def test_a_bare_host_gets_its_files_and_its_units_are_started() -> None:
    asked = node(allow=WITH_LINK)
    assert [a.path for a in done(asked, bare()) if isinstance(a, InstallFile)] == [
        *(data_path(pci) for pci in PCIS),
        SCRIPT_PATH,
        WATCH_SCRIPT_PATH,
        UNIT_PATH,
        WATCH.path,
        RULES_PATH,
    ]
    assert commands(asked, bare()) == [
        ("systemctl", "daemon-reload"),
        ("systemctl", "enable", WATCH.name),
        ("systemctl", "restart", WATCH.name),
        ("systemctl", "start", *UNITS),
    ]
    assert "systemctl start" in render(done(asked, bare()))


def test_where_the_link_may_not_drop_pfc_is_pending_and_the_rest_is_put_in_force() -> None:
    asked = node()
    ours = installed(asked)
    snapshot = bare(ours=ours, units=UNITS_UP)
    assert verdicts(asked, snapshot)["rail0 pfc"] is Verdict.PENDING
    assert commands(asked, snapshot) == [(SCRIPT_PATH, "--live", pci) for pci in PCIS]
    # Nothing but PFC is left: a run with no more allowed does nothing.
    lossy = {f"rail{n}": right_port(n, **{"prio-pfc": [False] * 8}) for n in range(2)}
    assert wrong(asked, converged(asked, ports=lossy)) == {
        "rail0 pfc": Verdict.PENDING,
        "rail1 pfc": Verdict.PENDING,
    }
    assert commands(asked, converged(asked, ports=lossy)) == []


def test_where_pfc_is_right_the_unit_itself_is_started() -> None:
    asked = node()
    ports = {"rail0": right_port(0, pause=[True, True]), "rail1": right_port(1)}
    assert commands(asked, converged(asked, ports=ports)) == [("systemctl", "start", UNITS[0])]


@pytest.mark.parametrize(
    ("key", "drift", "value"),
    [
        ("dcbx", {"dcbx": ["cee", "ieee"]}, "firmware"),
        ("dcbx", {"dcbx": ["lld-managed", "ieee"]}, "agent"),
        ("dcbx", {"willing": True}, "host, willing"),
        ("pause", {"pause": [True, True]}, "on"),
        ("pause", {"pause": [True, False]}, "rx on tx off"),
        ("pfc", {"prio-pfc": [False] * 8}, "none"),
        ("pfc", {"prio-pfc": [True] * 8}, "0 1 2 3 4 5 6 7"),
        ("dscp map", {"app": [[26, 3]]}, "26:3"),
        (
            "ets",
            {"prio-tc": list(range(8))},
            "0:0 1:1 2:2 3:3 4:4 5:5 6:6 7:7 / 0:50% 1-2:strict 3:50% 4-7:strict",
        ),
        (
            "ets",
            {"tc-tsa": ["vendor"] * 8},
            "0-2:0 3:3 4-5:0 6:6 7:0 / 0-7:vendor",
        ),
    ],
)
def test_what_drifted_is_not_running_and_told(key: str, drift: dict[str, Any], value: str) -> None:
    asked = node(allow=WITH_LINK)
    snapshot = converged(asked, ports={"rail0": right_port(0, **drift), "rail1": right_port(1)})
    assert wrong(asked, snapshot) == {f"rail0 {key}": Verdict.NOT_RUNNING}
    assert found(asked, snapshot)[f"rail0 {key}"].running.value == value
    assert commands(asked, snapshot) == [("systemctl", "start", UNITS[0])]


def test_a_port_that_trusts_pcp_has_neither_trust_nor_map() -> None:
    asked = node()
    snapshot = converged(asked, ports={"rail0": right_port(0, app=[]), "rail1": right_port(1)})
    assert wrong(asked, snapshot).keys() == {"rail0 trust", "rail0 dscp map"}


def test_strict_classes_show_any_share() -> None:
    asked = node()
    zero = right_port(0, **{"tc-bw": [50, 0, 0, 50, 0, 0, 0, 0]})
    assert wrong(asked, converged(asked, ports={"rail0": zero, "rail1": right_port(1)})) == {}


def nvidia(**more: Any) -> RoceQos:
    return RoceQos.model_validate({"backend": "nvidia", **more})


def with_ofed(np: set[int], rp: set[int], tclass: str = "Global tclass=106") -> dict[str, str]:
    return {
        **cm_files("mlx5_0"),
        **ecn_files("rail0", np, rp),
        "/sys/class/infiniband/mlx5_0/tc/1/traffic_class": tclass,
    }


def one_rail(asked: Node, files: Mapping[str, str], **more: Any) -> Snapshot:
    return converged(asked, ports={"rail0": right_port(0)}, files=files, **more)


def test_with_nvidias_driver_ecn_cnp_and_traffic_class_are_its_trees() -> None:
    asked = node(nvidia(), rails=1)
    every = set(range(8))
    assert wrong(asked, one_rail(asked, with_ofed(every, every))) == {}
    none = one_rail(asked, with_ofed(set(), set(), ""))
    assert wrong(asked, none) == {
        "rail0 ecn": Verdict.NOT_RUNNING,
        "rail0 traffic class": Verdict.NOT_RUNNING,
    }
    assert found(asked, none)["rail0 traffic class"].running.value == "not set"


def test_with_the_kernels_driver_it_is_said_who_decides_in_its_place() -> None:
    asked = node()
    told = found(asked, converged(asked))
    assert told["rail0 ecn"].running.standing is Standing.NOT_APPLICABLE
    assert "ROCE_CC_PRIO_MASK" in (told["rail0 ecn"].running.detail or "")
    detail = told["rail0 traffic class"].running.detail or ""
    assert "NCCL_IB_TC=106" in detail
    assert "UCX_IB_TRAFFIC_CLASS=106" in detail
    left_out = node(RoceQos(ecn_in_firmware=False))
    assert "rail0 ecn" not in found(left_out, converged(left_out))


def test_a_driver_without_parameters_of_congestion_control_has_no_cnp_to_set() -> None:
    asked = node()
    snapshot = converged(asked, files=cm_files("mlx5_0", "mlx5_1"), driver="railsim")
    assert wrong(asked, snapshot) == {}
    mlx5 = converged(asked, files=cm_files("mlx5_0", "mlx5_1"))
    assert wrong(asked, mlx5)["rail0 cnp dscp"] is Verdict.UNREADABLE


def test_nvidias_backend_without_its_driver_is_not_running() -> None:
    asked = node(nvidia(), rails=1)
    snapshot = one_rail(asked, cm_files("mlx5_0"))
    assert wrong(asked, snapshot).keys() == {
        "rail0 ecn",
        "rail0 cnp dscp",
        "rail0 cnp priority",
        "rail0 traffic class",
    }


def test_rdma_cm_without_our_directory_tells_nothing_and_is_never_ok() -> None:
    asked = node(rails=1)
    loaded = one_rail(asked, {"/sys/kernel/config/rdma_cm/x": "", **cc_files(PCI)})
    assert wrong(asked, loaded) == {
        "rail0 rdma_cm tos": Verdict.NOT_RUNNING,
        "rail0 rdma_cm mode": Verdict.NOT_RUNNING,
    }
    unloaded = one_rail(asked, cc_files(PCI))
    assert "rdma_cm is not loaded" in str(
        found(asked, unloaded)["rail0 rdma_cm tos"].running.detail
    )


def test_without_an_rdma_device_what_is_its_own_comes_later() -> None:
    asked = node(rails=1)
    snapshot = one_rail(asked, {}, rdma=False)
    assert wrong(asked, snapshot) == {
        f"rail0 {name}": Verdict.PENDING
        for name in ("cnp dscp", "cnp priority", "rdma_cm tos", "rdma_cm mode")
    }
    assert done(asked, snapshot) == []


def test_a_file_that_is_refused_is_unreadable() -> None:
    asked = node(rails=1)
    folder = f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
    refused = f"refused {folder}/np_cnp_dscp head: cannot open: Operation not permitted"
    lines = f"folder {folder}\n{refused}\n"
    snapshot = one_rail(asked, {}, qos_kernel=Section(stdout=lines, rc=0))
    state = found(asked, snapshot)["rail0 cnp dscp"].running
    assert state.standing is Standing.UNREADABLE
    assert state.detail == f"{folder}/np_cnp_dscp: Operation not permitted"


def test_a_port_whose_driver_has_no_dcb_is_unreadable() -> None:
    asked = node(rails=1)
    snapshot = converged(asked, ports={"rail0": right_port(0, dcb=False)}, files=FILES)
    for name in ("dcbx", "trust", "dscp map", "pfc", "ets"):
        setting = found(asked, snapshot)[f"rail0 {name}"]
        assert verdict(setting, LIVE) is Verdict.UNREADABLE
        assert setting.running.detail == "Attribute read: Operation not supported"


def test_without_any_tool_it_says_which_package_has_it() -> None:
    asked = node(rails=1)
    lines = "".join(
        f"\nm-0 port rail0 {what}\nsh: 1: {tool}: not found\n\nm-0 exit 127\n"
        for what, tool in (("pfc", "dcb"), ("pause", "ethtool"))
    )
    snapshot = converged(
        asked, ports={"rail0": right_port()}, qos_ports=Section(stdout=lines, rc=0)
    )
    told = found(asked, snapshot)
    assert told["rail0 pfc"].running.detail == "there is no dcb (package iproute2)"
    assert told["rail0 pause"].running.standing is Standing.UNREADABLE
    assert told["rail0 dcbx"].running.standing is Standing.UNREADABLE


def test_mlnx_qos_tells_the_same_where_there_is_no_dcb() -> None:
    asked = node()
    assert wrong(asked, converged(asked, with_dcb=False)) == {}
    lossy = {"rail0": right_port(0, **{"prio-pfc": [False] * 8}), "rail1": right_port(1)}
    assert wrong(asked, converged(asked, ports=lossy, with_dcb=False)).keys() == {"rail0 pfc"}


def test_buffers_and_cable_are_looked_at_where_they_are_asked_for() -> None:
    asked = node(
        RoceQos(buffer_bytes={0: 20016, 1: 156200}, priority_to_buffer={3: 1}, cable_length_m=30),
        rails=1,
    )
    right = {"prio-buffer": [0, 0, 0, 1, 0, 0, 0, 0], "delay": 30}
    # 156096 is 156200 in whole cells of 144 bytes.
    ports = {"rail0": right_port(0, **right)}
    assert wrong(asked, converged(asked, ports=ports)) == {}
    short = {"rail0": right_port(0, **{**right, "buffer-size": [20016, 131072, *[0] * 6]})}
    assert wrong(asked, converged(asked, ports=short)).keys() == {"rail0 buffer"}
    assert "rail0 buffer" not in found(node(rails=1), converged(node(rails=1)))
