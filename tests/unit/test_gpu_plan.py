"""What the GPU driver asks of the module nvidia, and what the plan of its unit says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploys import modules
from facts.gpu_driver import (
    parse_state,
    read_bus,
)
from railwright.actions import InstallFile
from railwright.drivers.options import modules_of
from railwright.resolve.gpu_unit import Plan, parse_plan, plan_of
from railwright.settings import Standing
from tests.unit import modules_host
from tests.unit.gpu_host import (
    GPU,
    host,
    node,
    with_section,
)

PLANS = st.builds(
    Plan,
    peermem=st.booleans(),
    nvidia_fs=st.booleans(),
    mig=st.sampled_from([None, "off", "on 1g.10gb 3g.40gb"]),
    power=st.none() | st.integers(50, 2000),
    clocks=st.none() | st.tuples(st.integers(100, 5000), st.integers(100, 5000)),
)


@given(PLANS)
def test_a_plan_is_read_back_as_it_was_written(plan: Plan) -> None:
    assert parse_plan(plan.content()) == plan


def test_the_unit_loads_nvidia_fs_where_io_is_asked_to_go_by_it() -> None:
    driver = {**GPU, "peer_memory": "nvidia_peermem", "power_limit_w": 500}

    def lines(**gds: str) -> list[str]:
        content = plan_of(node(gpu_driver=driver, gds=gds).drivers).content()
        return [line for line in content.splitlines() if not line.startswith("#")]

    assert lines(mode="nvidia-fs", version="2.26.6") == ["peermem", "nvidia-fs", "power 500"]
    assert lines(mode="p2pdma") == ["peermem", "power 500"]
    assert lines() == ["peermem", "power 500"]


def test_a_plan_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="expected peermem"):
        parse_plan("fan 100\n")


@given(st.text(alphabet="clockrowsit GPU MIG0:.,()-\n", max_size=200))
def test_any_text_is_a_state_or_refused(text: str) -> None:
    try:
        parse_state(text)
    except ValueError:
        return


def test_nouveau_and_the_options_go_into_the_one_file_of_modules() -> None:
    driver = {
        **GPU,
        "options": {"NVreg_EnableStreamMemOPs": True},
        "registry_dwords": {"RMForceStaticBar1": 1, "PeerMappingOverride": 1},
    }
    merged = modules_of(node(gpu_driver=driver))
    asked_ = modules_host.node().model_copy(update={"modules": merged})
    content = next(
        action.content
        for action in modules_host.done(asked_, modules_host.host())
        if isinstance(action, InstallFile)
    )
    assert "blacklist nouveau\ninstall nouveau /bin/false\n" in content
    assert (
        "options nvidia NVreg_EnableStreamMemOPs=1 "
        "NVreg_RegistryDwords=PeerMappingOverride=1;RMForceStaticBar1=1\n" in content
    )
    assert modules_of(node()) == modules_host.node().modules


def test_registry_dwords_are_read_back_from_the_driver() -> None:
    driver = {**GPU, "registry_dwords": {"RMForceStaticBar1": 1}}
    asked_ = modules_host.node().model_copy(update={"modules": modules_of(node(gpu_driver=driver))})
    key = "option nvidia.NVreg_RegistryDwords"
    shown = modules_host.host({}, {"nvidia": "0 -"})
    section = shown.sections["modules_parameters"]
    text = f'{section.stdout}declared nvidia NVreg_RegistryDwords\nnvidia RegistryDwords: "{{}}"\n'

    def live(value: str) -> Standing:
        told = with_section(shown, "modules_parameters", stdout=text.format(value))
        return modules_host.found(asked_, told)[key].running.standing

    assert live("RMForceStaticBar1=1") is Standing.RIGHT
    assert live("") is Standing.WRONG
    assert modules.COMPONENT.name == "modules"


def test_p2pdma_brings_the_registry_keys_that_it_needs() -> None:
    asked_ = node(gpu_driver=GPU, gds={"mode": "p2pdma"})
    options = modules_of(asked_).options["nvidia"]
    assert options == {"NVreg_RegistryDwords": "RMForceStaticBar1=1;RmForceDisableIomapWC=1"}


def test_tables_that_nvidia_smi_does_not_have_are_told() -> None:
    odd = parse_state("rows Remapped rows are not supported\n")
    assert odd.problems
    with pytest.raises(ValueError, match="expected a GPU's address"):
        read_bus(with_section(host(), "gpu_bus", stdout="0000:18 nvidia\n"))
