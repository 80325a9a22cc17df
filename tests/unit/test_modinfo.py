"""Modules as modinfo tells them, and the symbol versions that they need."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.modinfo import ModuleFile, parse_modinfo, parse_modinfos
from facts.symvers import Export, parse_modversions, parse_symvers

MLX5 = """\
filename:       /lib/modules/6.8.0-60-generic/updates/dkms/mlx5_core.ko.zst
version:        25.10-1.2.8
license:        Dual BSD/GPL
alias:          auxiliary:mlx5_core.eth
srcversion:     0123456789ABCDEF0123456
depends:        mlx_compat,mlxfw,psample,pci-hyperv-intf
retpoline:      Y
name:           mlx5_core
vermagic:       6.8.0-60-generic SMP preempt mod_unload modversions 
sig_id:         PKCS#7
signer:         host Secure Boot Module Signature key
sig_key:        00:11:22
signature:      30:82:01:
\t\tAB:CD:EF
parm:           debug_mask:debug mask: 1 = dump cmd data, 2 = both
\t\t\tDefault=0 (uint)
parm:           prof_sel:profile selector (uint)
"""  # noqa: W291
NVME = """\
filename:       /usr/lib/modules/6.8.0-60-generic/kernel/drivers/nvme/host/nvme.ko
license:        GPL
srcversion:     89ABCDEF0123456789ABCDE
softdep:        pre: nvme-auth
depends:        nvme-core
intree:         Y
name:           nvme
vermagic:       6.8.0-60-generic SMP preempt mod_unload modversions
"""
BUILTIN = "name:           loop\nfilename:       (builtin)\nlicense:        GPL\n"
LINES = [*MLX5.splitlines(), *NVME.splitlines(), *BUILTIN.splitlines()]


def test_a_module_of_ofed() -> None:
    found = parse_modinfo(MLX5)
    assert found is not None
    assert (found.name, found.version) == ("mlx5_core", "25.10-1.2.8")
    assert found.srcversion == "0123456789ABCDEF0123456"
    assert found.depends == ("mlx_compat", "mlxfw", "psample", "pci_hyperv_intf")
    assert found.signer == "host Secure Boot Module Signature key"
    assert set(found.parm) == {"debug_mask", "prof_sel"}
    assert found.parm["debug_mask"].startswith("debug mask: 1")
    assert (found.path, found.is_inbox) == ("updates/dkms/mlx5_core.ko.zst", False)
    assert found.kernel == "6.8.0-60-generic"


def test_a_module_of_the_kernel_has_no_version() -> None:
    found = parse_modinfo(NVME)
    assert found is not None
    assert (found.version, found.is_inbox, found.softdep) == (None, True, ("pre: nvme-auth",))
    assert found.path == "kernel/drivers/nvme/host/nvme.ko"


def test_many_modules_at_once_one_of_them_built_in() -> None:
    for text in (MLX5 + BUILTIN + NVME, BUILTIN + MLX5 + NVME):
        found = parse_modinfos(text)
        assert set(found) == {"mlx5_core", "loop", "nvme"}
        assert found["loop"].is_builtin
        assert found["loop"].is_inbox
        assert found["nvme"].depends == ("nvme_core",)


@pytest.mark.parametrize(
    ("path", "inbox"),
    [
        ("/lib/modules/1/extra/mlnx-ofa_kernel/drivers/net/mlx5_core.ko", False),
        ("/lib/modules/1/weak-updates/nvidia-fs.ko", False),
        ("/lib/modules/1/kernel/net/x.ko", True),
        ("/tmp/x.ko", False),
    ],
)
def test_what_came_with_the_kernel(path: str, inbox: bool) -> None:
    assert ModuleFile(name="x", filename=path).is_inbox is inbox


def test_a_module_that_is_not_there_is_no_error() -> None:
    assert parse_modinfo("modinfo: ERROR: Module nvidia not found.\n", 1) is None
    assert parse_modinfos("") == {}


@pytest.mark.parametrize(
    ("text", "rc"), [("", 0), ("", 1), (MLX5 + NVME, 0), ("version: 1\n", 0), ("rubbish\n", 0)]
)
def test_what_is_no_module_is_a_value_error(text: str, rc: int) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_modinfo(text, rc)


def test_symbol_versions() -> None:
    needed = parse_modversions("0xb0e602eb\tmemmove\n0x092997ed\tib_register_client\n")
    assert needed == {"memmove": 0xB0E602EB, "ib_register_client": 0x092997ED}
    exported = parse_symvers(
        "0xb0e602eb\tmemmove\tvmlinux\tEXPORT_SYMBOL\t\n"
        "0x11111111\tib_register_client\tdrivers/infiniband/core/ib_core\tEXPORT_SYMBOL\n"
    )
    assert exported["memmove"] == Export(crc=0xB0E602EB, module="vmlinux")
    assert exported["ib_register_client"].module == "drivers/infiniband/core/ib_core"
    assert parse_modversions("") == parse_symvers("") == {}


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_modversions, "memmove\n"),
        (parse_modversions, "0x1\ta\n0x2\ta\n"),
        (parse_symvers, "0xb0e602eb\tmemmove\n"),
        (parse_symvers, "b0e602eb\tmemmove\tvmlinux\tEXPORT_SYMBOL\n"),
    ],
)
def test_symbols_of_another_kind_are_refused(parse: object, text: str) -> None:
    assert callable(parse)
    with pytest.raises(ValueError, match="expected"):
        parse(text)


SYMBOL = st.from_regex(r"[a-z_][a-z0-9_]{0,9}", fullmatch=True)
CRC = st.integers(0, 0xFFFFFFFF)


@given(st.dictionaries(SYMBOL, CRC))
def test_versions_are_read_back(needed: dict[str, int]) -> None:
    lines = [f"0x{crc:08x}\t{symbol}" for symbol, crc in needed.items()]
    assert parse_modversions("\n".join(lines)) == needed
    table = parse_symvers("\n".join(f"{line}\tvmlinux\tEXPORT_SYMBOL" for line in lines))
    assert {symbol: export.crc for symbol, export in table.items()} == needed


@given(st.lists(st.sampled_from(LINES) | st.text()))
def test_nothing_but_a_value_error_is_raised(lines: list[str]) -> None:
    text = "\n".join(lines)
    for parse in (parse_modinfos, parse_modversions, parse_symvers):
        try:
            found = parse(text)
        except ValueError:
            continue
        assert isinstance(found, dict)
