"""lscpu's output in the layouts of its versions."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.cpu import parse_lscpu

INDENTED = """\
Architecture:             x86_64
  CPU op-mode(s):         32-bit, 64-bit
CPU(s):                   2
  On-line CPU(s) list:    0,1
Vendor ID:                GenuineIntel
  Model name:             Intel(R) Xeon(R) Platinum 8480C
    Thread(s) per core:   1
    Core(s) per socket:   2
    Socket(s):            1
    CPU(s) scaling MHz:   40%
    CPU max MHz:          3800.0000
    CPU min MHz:          800.0000
    Flags:                fpu pdpe1gb
Virtualization features:
  Hypervisor vendor:      KVM
  Virtualization type:    full
Caches (sum of all):
  L3:                     32 MiB (1 instance)
NUMA:
  NUMA node(s):           1
  NUMA node0 CPU(s):      0,1
Vulnerabilities:
  Spectre v2:             Mitigation; Enhanced IBRS
"""


def test_indented_groups_of_util_linux_2_38() -> None:
    found = parse_lscpu(INDENTED)
    assert (found.cpus, found.online, found.offline) == (2, "0,1", None)
    assert (found.model, found.smt, found.sockets) == ("Intel(R) Xeon(R) Platinum 8480C", False, 1)
    assert (found.max_mhz, found.min_mhz, found.scaling_percent) == (3800.0, 800.0, 40.0)
    assert found.node_cpus == {0: "0,1"}
    assert found.caches == {"L3": "32 MiB (1 instance)"}
    assert found.vulnerabilities == {"Spectre v2": "Mitigation; Enhanced IBRS"}
    assert found.hypervisor == "KVM"
    assert "pdpe1gb" in found.flags


def test_json_says_the_same() -> None:
    # Nested as lscpu -J of 2.38 has it.
    document = {
        "lscpu": [
            {"field": "Architecture:", "data": "x86_64",
             "children": [{"field": "CPU op-mode(s):", "data": "32-bit, 64-bit"}]},
            {"field": "CPU(s):", "data": "2",
             "children": [{"field": "On-line CPU(s) list:", "data": "0,1"}]},
            {"field": "Vulnerabilities:", "data": None,
             "children": [{"field": "Spectre v2:", "data": "Vulnerable"}]},
        ]
    }  # fmt: skip
    found = parse_lscpu(json.dumps(document))
    assert (found.architecture, found.cpus, found.online) == ("x86_64", 2, "0,1")
    assert found.vulnerabilities == {"Spectre v2": "Vulnerable"}


def test_a_dash_is_not_known() -> None:
    found = parse_lscpu(
        "CPU(s): 128\nVendor ID: ARM\nModel name: Neoverse-N1\nThread(s) per core: 1\n"
        "Core(s) per cluster: 128\nSocket(s): -\nCluster(s): 1\nNUMA node(s): 1\n"
    )
    assert (found.sockets, found.clusters, found.cores_per_socket) == (None, 1, 128)


def test_s390_has_books() -> None:
    found = parse_lscpu(
        "Architecture: s390x\nCPU(s): 4\nThread(s) per core: 1\nCore(s) per socket: 1\n"
        "Socket(s) per book: 1\nBook(s) per drawer: 1\nDrawer(s): 4\n"
    )
    assert (found.sockets, found.drawers) == (None, 4)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Processeur(s) : 4\n",
        "lscpu: command not found",
        '{"lscpu": 3}',
        '{"x": [',
        "CPU(s): many",
    ],
)
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_lscpu(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = parse_lscpu(f"CPU(s): 2\n{text}")
    except ValueError:
        return
    assert found.cpus == 2
