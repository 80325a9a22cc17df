"""How a site becomes nodes: merging, origins, YAML and Python alike, and how nodes are reached."""

import json
import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.recommended import SYSCTLS, reason
from railwright.schema import Effect, Node, Overlay, SysctlSpec
from railwright.site import Site, SiteError, host_data, load_inventory, site_schema
from railwright.site.connection import prompt_transport
from railwright.site.merge import Layer, merge

ROOT = Path(__file__).parents[2]


def site(tmp_path: Path, groups: str, hosts: str = "None", **files: str) -> Site:
    (tmp_path / "group_data").mkdir(exist_ok=True)
    for name, body in files.items():
        text = f"from railwright.schema import *\n\n{body}\n"
        (tmp_path / "group_data" / f"{name}.py").write_text(text)
    inventory = tmp_path / "site.py"
    inventory.write_text(
        "from railwright.site import inventory\n\n"
        f"globals().update(inventory(__file__, {groups}, {hosts}))\n"
    )
    return load_inventory(inventory)


def test_layers_merge_field_by_field_and_key_by_key(tmp_path: Path) -> None:
    nodes = site(
        tmp_path,
        '{"roce": "gpu[1-2]", "storage": "gpu[2-3]"}',
        '{"gpu2": {"sysctl": {"values": {"vm.swappiness": 3}}}}',
        all='sysctl = SysctlSpec(values={"vm.swappiness": 1, "vm.max_map_count": 70000})',
        roce='limits = LimitsSpec(memlock="unlimited")\nmodules = ModulesSpec(load={"a"})',
        storage='limits = LimitsSpec(nofile=1024)\nmodules = ModulesSpec(load={"b"})',
    ).nodes
    assert nodes["gpu2"].sysctl.values == {"vm.swappiness": 3, "vm.max_map_count": 70000}
    assert nodes["gpu3"].sysctl.values["vm.swappiness"] == 1
    assert (nodes["gpu2"].limits.memlock, nodes["gpu2"].limits.nofile) == ("unlimited", 1024)
    assert nodes["gpu2"].modules.load == {"a", "b"}
    assert nodes["gpu1"].modules.load == {"a"}
    assert nodes["gpu2"].groups == ("roce", "storage", "site")


def test_all_yields_to_a_group_and_a_group_to_the_host(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        '{"roce": "gpu[1-2]"}',
        '{"gpu2": {"limits": {"nofile": 3}}}',
        all="limits = LimitsSpec(nofile=1)",
        roce="limits = LimitsSpec(nofile=2)",
    )
    assert [found.nodes[name].limits.nofile for name in ("gpu1", "gpu2")] == [2, 3]


def test_the_group_that_overrides_wins_whichever_comes_first(tmp_path: Path) -> None:
    for groups in ('{"a": "gpu1", "b": "gpu1"}', '{"b": "gpu1", "a": "gpu1"}'):
        found = site(
            tmp_path,
            groups,
            a='OVERRIDES = ("b",)\nlimits = LimitsSpec(nofile=1)',
            b="limits = LimitsSpec(nofile=2)",
        )
        assert found.nodes["gpu1"].limits.nofile == 1


def test_every_field_knows_who_set_it(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        '{"roce": "gpu1"}',
        roce='fabric = "roce"\nsysctl = SysctlSpec(values={"vm.swappiness": 10})',
    )
    origins = found.origins["gpu1"].origins
    assert origins["sysctl", "values", "vm.swappiness"].owner == "group roce"
    assert origins["sysctl", "values", "vm.max_map_count"].owner == "recommended defaults"


def test_a_recommended_value_is_the_lowest_layer_and_null_leaves_it_alone(tmp_path: Path) -> None:
    node = site(
        tmp_path,
        '{"roce": "gpu1"}',
        roce='fabric = "roce"\n'
        'sysctl = SysctlSpec(values={"vm.swappiness": 10, "net.core.rmem_max": None})',
    ).nodes["gpu1"]
    assert node.sysctl.values["vm.swappiness"] == 10
    assert node.sysctl.values["net.core.rmem_max"] is None
    assert node.sysctl.values["net.ipv4.conf.all.arp_ignore"] == 1
    assert node.limits.memlock == "unlimited"


@pytest.mark.parametrize("fabric", ["roce", "infiniband"])
def test_every_recommendation_says_why_and_where_from(fabric: str) -> None:
    for entry in SYSCTLS[fabric]:  # type: ignore[index]
        assert len(entry.why) > 10
        assert entry.source
        assert reason(fabric, entry.key, entry.value)  # type: ignore[arg-type]
        assert reason(fabric, entry.key, "something else") is None  # type: ignore[arg-type]


def test_yaml_and_python_describe_the_same_site(tmp_path: Path) -> None:
    python = site(
        tmp_path,
        '{"roce": "gpu[1-3]"}',
        '{"gpu3": {"effects": {"allow": ["live", "reboot"]}}}',
        all='kernel = KernelSpec(arguments={"iommu": "pt", "nowatchdog": True})',
        roce='fabric = "roce"\nlimits = LimitsSpec(nofile=4096)',
    )
    text = """
all:
  kernel: {arguments: {iommu: pt, nowatchdog: true}}
groups:
  roce:
    hosts: gpu[1-3]
    fabric: roce
    limits: {nofile: 4096}
hosts:
  gpu3: {effects: {allow: [live, reboot]}}
"""
    (tmp_path / "other.yaml").write_text(text)
    yaml = load_inventory(tmp_path / "other.yaml")
    strip = {"groups": ()}
    assert {name: node.model_copy(update=strip) for name, node in yaml.nodes.items()} == {
        name: node.model_copy(update=strip) for name, node in python.nodes.items()
    }
    assert Effect.REBOOT in yaml.nodes["gpu3"].effects.allow


def test_a_yaml_site_drives_pyinfra(tmp_path: Path) -> None:
    (tmp_path / "fleet.yaml").write_text("groups: {roce: {hosts: '@fake/gpu1', fabric: roce}}\n")
    (tmp_path / "inventory.py").write_text(
        "from railwright.site import yaml_inventory\n\n"
        "globals().update(yaml_inventory('fleet.yaml'))\n"
    )
    done = pyinfra(tmp_path, "inventory.py", "debug-inventory", "--json")
    assert done.returncode == 0, done.stderr
    assert '"kind": "roce"' in done.stdout


def pyinfra(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [Path(sys.executable).parent / "pyinfra", *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        env={**os.environ, "PYINFRA_PROGRESS": "off", "PYINFRA_FAKE_DELAY": "0"},
    )


def test_the_schema_describes_every_field() -> None:
    schema = site_schema()
    assert json.loads(json.dumps(schema)) == schema
    undescribed = [
        f"{name}.{field}"
        for name, model in schema["$defs"].items()
        for field, about in model.get("properties", {}).items()
        if "description" not in about
    ]
    assert undescribed == []


@pytest.mark.parametrize("name", ["prod", "lab", "container"])
def test_our_own_inventories_validate(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert load_inventory(Path("inventories") / f"{name}.py").nodes


def test_a_missing_inventory_is_a_problem_not_a_traceback(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match=r"the file is missing: expected an inventory"):
        load_inventory(tmp_path / "none.py")


def test_ssh_is_strict_and_prompt() -> None:
    data = host_data(
        Node.model_validate({"name": "gpu1", "ssh": {"port": 2222, "sudo": True, "user": "ops"}})
    )
    assert data["ssh_strict_host_key_checking"] == "yes"
    assert (data["ssh_hostname"], data["ssh_port"], data["ssh_user"]) == ("gpu1", 2222, "ops")
    assert data["_sudo"] is True
    assert data["ssh_paramiko_connect_kwargs"]["transport_factory"] is prompt_transport


def test_a_container_is_not_reached_by_ssh() -> None:
    assert set(host_data(Node(name="@podman/x"))) == {"node"}


def test_nagle_is_off_and_a_host_that_went_away_is_noticed_within_two_minutes() -> None:
    server = socket.create_server(("127.0.0.1", 0))
    with server, socket.create_connection(server.getsockname()) as client:
        transport = prompt_transport(client)
        asked = partial(client.getsockopt, socket.IPPROTO_TCP)
        assert asked(socket.TCP_NODELAY)
        assert client.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        silence = asked(socket.TCP_KEEPIDLE) + asked(socket.TCP_KEEPINTVL) * asked(
            socket.TCP_KEEPCNT
        )
        assert silence <= 120
        # What was sent and is not acknowledged keeps keepalive from asking.
        assert 0 < asked(socket.TCP_USER_TIMEOUT) <= 120_000
        transport.close()


VALUES = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 3), max_size=4)


@given(st.lists(VALUES, min_size=1, max_size=4))
def test_of_ranked_layers_the_highest_that_speaks_wins(layers: list[dict[str, int]]) -> None:
    merged = merge(
        [
            Layer(
                owner=str(rank),
                file="f",
                rank=rank,
                says=Overlay(sysctl=SysctlSpec(values={f"vm.{key}": v for key, v in says.items()})),
            )
            for rank, says in enumerate(layers)
        ]
    )
    expected: dict[str, int] = {}
    for says in layers:
        expected |= {f"vm.{key}": value for key, value in says.items()}
    assert merged.values["sysctl"]["values"] == expected
    assert merged.problems == []
    for key in expected:
        owner = max(rank for rank, says in enumerate(layers) if key.removeprefix("vm.") in says)
        assert merged.origins["sysctl", "values", key].owner == str(owner)


@given(VALUES, VALUES)
def test_peers_that_contradict_each_other_are_told_once_per_key(
    one: dict[str, int], other: dict[str, int]
) -> None:
    def layer(name: str, says: dict[str, int]) -> Layer:
        values = {f"vm.{key}": value for key, value in says.items()}
        return Layer(name, "f", 2, Overlay(sysctl=SysctlSpec(values=values)), name)

    merged = merge([layer("a", one), layer("b", other)])
    told = {problem.field for problem in merged.problems}
    assert told == {
        f"sysctl.values.vm.{key}" for key in one.keys() & other.keys() if one[key] != other[key]
    }
