"""What a host is taken to be: given, of an inventory, measured, or as its hardware can at best."""

import json
from pathlib import Path

import pytest

from railwright.schema import GpuDriverSpec, Node, PlatformSpec, Rail, RailsSpec
from railwright.sizing.hardware import hardware
from railwright.sizing.host import Host, HostFacts, host_of
from railwright.sizing.inventory import facts_of, storage_of
from railwright.sizing.limits import changed_hosts
from railwright.sizing.measured import Measured, load_measured, rate_at
from railwright.sizing.parallel import SizingError
from railwright.sizing.units import Quantity, read, size

BUSES = ("18", "40", "4f", "5e", "9a", "c0", "ce", "dc")


def node(name: str = "gpu001", rails: int = 8, rate: int | None = 400, **more: object) -> Node:
    nics = {rail: Rail(pci=f"0000:{BUSES[rail]}:00.0", gpu=rail) for rail in range(rails)}
    spec = RailsSpec(nics=nics, rate_gbps=rate, gpus=rails)
    return Node.model_validate({"name": name, "fabric": "roce", "rails": spec, **more})


def measured(*rates: tuple[str, str, str]) -> Measured:
    rows = [{"where": where, "size": amount, "rate": rate} for where, amount, rate in rates]
    return Measured.model_validate({"bus_bandwidth": rows})


def test_every_figure_of_hardware_has_a_source_that_is_named() -> None:
    known = hardware()
    named = set()
    for part in (known.gpus, known.nics, known.pcie):
        text = json.dumps({name: one.model_dump(mode="json") for name, one in part.items()})
        named |= {text[at + 11 :].split('"')[0] for at in _places(text, '"source": "')}
    assert named
    assert named <= known.sources.keys()
    assert known.latency.ring_fabric.source in known.sources


def _places(text: str, part: str) -> list[int]:
    return [at for at in range(len(text)) if text.startswith(part, at)]


def test_peaks_are_dense_and_nvlink_is_of_one_direction() -> None:
    """Data sheets print 1979 TFLOP/s (sparse) and 900 GB/s (both directions) for H100."""
    gpu = hardware().gpus["h100"]
    assert gpu.bf16.value == read("989.4 TFLOP/s")
    assert gpu.nvlink is not None
    assert gpu.nvlink.value == read("450 GB/s")


@pytest.mark.parametrize("name", sorted(hardware().gpus))
def test_fp8_is_twice_bf16_and_tf32_half_of_it(name: str) -> None:
    gpu = hardware().gpus[name]
    assert gpu.tf32.value.value == pytest.approx(gpu.bf16.value.value / 2, rel=0.02)
    if gpu.fp8 is not None:
        assert gpu.fp8.value.value == pytest.approx(gpu.bf16.value.value * 2, rel=0.02)


def test_an_x16_slot_carries_what_its_lanes_do() -> None:
    """8, 16, 32 GT/s × 16 lanes × 128/130 / 8."""
    for generation, rate in {"3": 8, "4": 16, "5": 32}.items():
        found = hardware().pcie[generation].value.value
        assert found == pytest.approx(rate * 1e9 * 16 * 128 / 130 / 8, rel=1e-4)


def test_an_inventory_tells_gpu_gpus_rails_and_their_rate() -> None:
    one = node(gpu_driver=GpuDriverSpec(gpu="h200"), platform=PlatformSpec(nic="connectx7"))
    found = facts_of([one])
    assert found.gpu == "h200"
    assert (found.gpus, found.rails, found.nic) == (8, 8, "connectx7")
    assert found.rail_rate == read("400 Gb/s")
    host = host_of(HostFacts(), found)
    assert host.hbm == read("141 GB")
    assert host.origins["rails"] == host.origins["rail_rate"] == "inventory"
    assert "H200 SXM" in host.origins["gpu"]


def test_of_unlike_nodes_the_least_decides() -> None:
    found = facts_of([node(), node("gpu002", rails=4, rate=200)])
    assert (found.gpus, found.rails) == (4, 4)
    assert found.rail_rate == read("200 Gb/s")


def test_a_rate_that_one_node_does_not_tell_is_not_taken_from_the_others_as_zero() -> None:
    found = facts_of([node(rate=None), node("gpu002", rate=200)])
    assert found.rail_rate == read("200 Gb/s")
    assert facts_of([node(rate=None)]).rail_rate is None


def test_of_unlike_nics_the_slowest_line_rate_decides() -> None:
    fast, slow = PlatformSpec(nic="connectx7"), PlatformSpec(nic="connectx6")
    found = facts_of([node(rate=None, platform=fast), node("gpu002", rate=None, platform=slow)])
    assert found.rail_rate == read("200 Gb/s")
    told = facts_of([node(rate=400), node("gpu002", rate=None, platform=slow)])
    assert told.rail_rate == read("200 Gb/s")


def test_of_one_model_of_nic_its_line_rate_is_told_by_its_name() -> None:
    found = facts_of([node(rate=None, platform=PlatformSpec(nic="connectx6"))])
    assert (found.rail_rate, found.nic) == (None, "connectx6")
    assert host_of(HostFacts(gpu="h100"), found).rail_rate == read("200 Gb/s")


def test_nodes_with_different_gpus_are_refused() -> None:
    with pytest.raises(SizingError, match=r"different GPUs \(h100, h200\): choose some by --limit"):
        facts_of(
            [
                node(gpu_driver=GpuDriverSpec(gpu="h100")),
                node("gpu002", gpu_driver=GpuDriverSpec(gpu="h200")),
            ]
        )


def mounting(name: str = "gpu001", **mounts: tuple[float | None, float | None]) -> Node:
    """A node with Lustre's mounts by name, and what is expected of each; and local scratch."""
    storage: dict[str, object] = {
        "/scratch": {"kind": "scratch", "raid": 0, "disks": {"count": 2, "transport": "nvme"},
                     "expected": {"read_gb_s": 99, "write_gb_s": 99}},
    }  # fmt: skip
    for mount, (reads, writes) in mounts.items():
        expected = {"read_gb_s": reads, "write_gb_s": writes}
        lustre = {"kind": "lustre", "mgs": [["10.20.0.11@tcp"]], "fsname": mount}
        storage[f"/mnt/{mount}"] = {**lustre, "expected": expected}
    networks = {"networks": {"tcp": {"interfaces": ("eth0",)}}}
    return node(name, lustre=networks, storage={"mounts": storage})


def test_storage_is_what_the_least_node_is_expected_to_reach_on_the_shared_mount() -> None:
    found = storage_of([mounting(data=(20, 10)), mounting("gpu002", data=(15, 12))], None)
    assert found is not None
    assert found.mount == "/mnt/data"
    assert (found.read, found.write) == (read("15 GB/s"), read("10 GB/s"))


def test_storage_that_one_node_does_not_tell_is_not_known() -> None:
    found = storage_of([mounting(data=(20, 10)), mounting("gpu002", data=(15, None))], None)
    assert found is not None
    assert found.write is None
    assert found.read == read("15 GB/s")


def test_local_scratch_is_no_storage_that_all_share() -> None:
    assert storage_of([mounting()], None) is None


def test_of_several_mounts_one_must_be_chosen() -> None:
    nodes = [mounting(data=(20, 10), home=(2, 1))]
    with pytest.raises(SizingError, match=r"there are /mnt/data, /mnt/home: choose one by --mount"):
        storage_of(nodes, None)
    found = storage_of(nodes, "/mnt/home")
    assert found is not None
    assert found.write == read("1 GB/s")
    with pytest.raises(SizingError, match=r"/mnt/x: no shared mount .* there are /mnt/data"):
        storage_of(nodes, "/mnt/x")


def test_what_is_given_outweighs_the_inventory() -> None:
    host = host_of(HostFacts(gpu="h100", rails=2), HostFacts(gpu="h200", rails=8, gpus=8))
    assert (host.gpu, host.rails, host.gpus) == ("h100", 2, 8)
    assert host.origins["rails"] == "given"


def test_a_nic_that_is_given_stands_for_its_rate() -> None:
    found = HostFacts(gpu="h100", rail_rate=read("400 Gb/s"))
    host = host_of(HostFacts(nic="connectx6"), found)
    assert host.rail_rate == read("200 Gb/s")
    assert "line rate of connectx6" in host.origins["rail_rate"]


def test_what_nobody_says_is_said_to_be_assumed() -> None:
    host = host_of(HostFacts(gpu="h100"))
    assert host.origins["gpus"] == "assumed"
    assert host.origins["rail_rate"].startswith("assumed")


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        (HostFacts(), "which GPU is it"),
        (HostFacts(gpu="h10"), r"no GPU 'h10' \(did you mean h100\?\)"),
        (HostFacts(gpu="h100", nic="connectx9"), "no NIC 'connectx9'"),
        (HostFacts(peak=read("1 TFLOP/s"), hbm=size(1e9)), "--pcie"),
        (HostFacts(peak=read("1 TFLOP/s")), "--hbm"),
    ],
)
def test_what_is_missing_or_unknown_is_named(facts: HostFacts, reason: str) -> None:
    with pytest.raises(SizingError, match=reason):
        host_of(facts)


def test_a_gpu_that_does_not_multiply_in_a_precision_is_refused() -> None:
    with pytest.raises(SizingError, match="a100 does not multiply in fp8"):
        host_of(HostFacts(gpu="a100"), precision="fp8")


def test_another_gpu_is_taken_by_its_figures() -> None:
    host = host_of(
        HostFacts(
            gpu="x1", peak=read("500 TFLOP/s"), hbm=size(64e9), pcie=read("64 GB/s"),
            nvlink=read("300 GB/s"),
        )
    )  # fmt: skip
    assert host.gpu == "x1"
    assert host.inside_best == read("300 GB/s")


def test_a_gpu_without_nvlink_goes_through_its_slot() -> None:
    host = host_of(HostFacts(gpu="l40s"))
    assert host.nvlink is None
    assert host.inside_best == host.pcie


def test_a_gpu_has_its_share_of_the_rails_and_no_more_than_its_slot() -> None:
    assert host_of(HostFacts(gpu="h100")).fabric_best == read("50 GB/s")
    assert host_of(HostFacts(gpu="h100", rails=4)).fabric_best == read("25 GB/s")
    assert host_of(HostFacts(gpu="h100", nic="connectx8")).fabric_best == read("63.015 GB/s")


def test_measured_bus_bandwidth_of_the_fabric_is_shared_by_a_nodes_gpus() -> None:
    found = measured(("fabric", "8 GB", "370 GB/s"), ("node", "8 GB", "473 GB/s"))
    host = host_of(HostFacts(gpu="h100"), measured=found)
    assert host.fabric(size(8e9)).bandwidth.value == pytest.approx(370e9 / 8)
    assert host.inside(size(8e9)).bandwidth == read("473 GB/s")
    assert host.fabric(size(8e9)).ring_step.value == 0


def test_without_measurements_a_step_has_the_latency_of_nccls_own_model() -> None:
    link = host_of(HostFacts(gpu="h100")).fabric(size(1))
    assert link.ring_step == read("14 us")
    assert link.bandwidth == read("50 GB/s")


@pytest.mark.parametrize(
    ("amount", "rate"), [(1e3, 100), (1e6, 100), (10e6, 150), (100e6, 200), (1e12, 200)]
)
def test_between_two_sizes_the_rate_follows_the_logarithm(amount: float, rate: float) -> None:
    curve = measured(("node", "100 MB", "200 GB/s"), ("node", "1 MB", "100 GB/s")).curve("node")
    assert rate_at(curve, size(amount)).value == pytest.approx(rate * 1e9)


@pytest.mark.parametrize(
    ("fact", "measures"),
    [("rate of a rail", "fabric"), ("NVLink", "node"), ("rails of a node", "fabric")],
)
def test_a_changed_fact_scales_what_was_measured_of_it(fact: str, measures: str) -> None:
    found = measured(("fabric", "8 GB", "185 GB/s"), ("node", "8 GB", "473 GB/s"))
    host = host_of(HostFacts(gpu="h100", rails=4), measured=found)
    (after,) = [one.host for one in changed_hosts(host) if one.fact == fact]

    def rate(of: Host) -> Quantity:
        link = of.fabric if measures == "fabric" else of.inside
        return link(size(8e9)).bandwidth

    assert rate(after).value == pytest.approx(2 * rate(host).value)


MEASURED = {
    "format": 1,
    "bus_bandwidth": [{"where": "node", "size": "8 GB", "rate": "473 GB/s"}],
    "storage": {"read": "200 GB/s", "write": "90 GB/s"},
    "host_copy": "50 GB/s",
    "mfu": 0.41,
}


def test_a_file_of_measurements_is_read_as_documented(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps(MEASURED))
    found = load_measured(path)
    assert found.storage.write == read("90 GB/s")
    assert found.curve("node") == ((size(8e9), read("473 GB/s")),)
    assert found.curve("fabric") == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"mfu": 41}, "mfu: Input should be less than or equal to 1"),
        ({"storage": {"read": "200 GB"}}, "storage.read: expected an amount in B/s"),
        ({"storage": {"read": 200}}, "storage.read: expected an amount with its unit"),
        ({"bus_bandwidth": [{"where": "node", "size": "0 B", "rate": "1 GB/s"}]}, "more than 0 B"),
        ({"bus_bandwidth": [{"where": "node", "size": "1 B", "rate": "0 B/s"}]}, "than 0 B/s"),
        ({"bandwidth": 1}, "bandwidth: Extra inputs are not permitted"),
        ({"format": 2}, "format"),
        (
            {"bus_bandwidth": [{"where": "node", "size": "1 GB", "rate": "1 GB/s"}] * 2},
            "bus_bandwidth: expected one rate for 1 GB (node), got 2",
        ),
        ({"bus_bandwidth": [{"where": "rack", "size": "1 GB", "rate": "1 GB/s"}]}, "where"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_with_the_place(
    change: dict[str, object], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "measured.json"
    path.write_text(json.dumps({**MEASURED, **change}))
    with pytest.raises(ValueError, match=r"measured\.json: ") as error:
        load_measured(path)
    assert reason in str(error.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"none\.json: .*No such file"):
        load_measured(tmp_path / "none.json")
