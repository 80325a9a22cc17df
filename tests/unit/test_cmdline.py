"""The kernel's command line as the kernel reads it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.cmdline import found_in, page_size, parse_cmdline, parse_hugepages, split_arguments


def test_values() -> None:
    found = parse_cmdline(
        'BOOT_IMAGE=/v quiet console=tty0 console=ttyS0,115200 dyndbg="file a.c +p" '
        '"name=a b" empty= intel-iommu=on intel_iommu=off rdinit=/x -- -s iommu=off\n'
    )
    assert found.values == {
        "BOOT_IMAGE": "/v",
        "quiet": True,
        "console": "ttyS0,115200",
        "dyndbg": "file a.c +p",
        "name": "a b",
        "empty": "",
        "intel-iommu": "off",
        "rdinit": "/x",
    }
    assert found.init_arguments == ("-s", "iommu=off")


@pytest.mark.parametrize("text", ["", "\n", "one\ntwo\n"])
def test_rubbish(text: str) -> None:
    with pytest.raises(ValueError, match="expected one line of kernel arguments"):
        parse_cmdline(text)


@pytest.mark.parametrize(
    ("text", "pairs", "lonely", "valid"),
    [
        ("quiet", [], [], True),
        ("hugepages=64", [("2M", 64)], [], True),
        ("default_hugepagesz=1G hugepages=4", [("1G", 4)], [], True),
        ("hugepages=4 default_hugepagesz=1G", [("1G", 4)], [], True),
        ("hugepagesz=2M hugepages=0:32,1:64", [("2M", "0:32,1:64")], [], True),
        (
            "default_hugepagesz=1G hugepagesz=1G hugepages=16 hugepagesz=2M hugepages=1024",
            [("1G", 16), ("2M", 1024)],
            [],
            True,
        ),
        ("hugepagesz=1G quiet hugepages=4", [("1G", 4)], [], True),
        ("hugepagesz=2048K hugepages=4", [("2M", 4)], [], True),
        ("hugepagesz=1G", [], ["1G"], False),
        ("hugepagesz=2M hugepages=1 hugepagesz=2M hugepages=2", [("2M", 1), ("2M", 2)], [], False),
        ("hugepages=256 hugepagesz=2M hugepages=512", [("2M", 256), ("2M", 512)], [], False),
        ("hugepagesz=2M hugepages=many", [("2M", "many")], [], False),
        (
            "hugepagesz=1G hugepagesz=2M hugepages=32 hugepages=1024",
            [("2M", 32), ("2M", 1024)],
            ["1G"],
            False,
        ),
    ],
)
def test_hugepages(text: str, pairs: list[object], lonely: list[str], valid: bool) -> None:
    found = parse_hugepages(split_arguments(text))
    assert (list(found.pairs), list(found.sizes_without_count), found.valid) == (
        pairs,
        lonely,
        valid,
    )


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("a=1 a=2", "a", "a=2"),
        ("a-b=1", "a_b", "a-b=1"),
        ("nowatchdog", "nowatchdog", "nowatchdog"),
        ("quiet", "iommu", None),
        ("iommu=off iommu=pt", "iommu", "iommu=off iommu=pt"),
        ("iommu=pt quiet iommu=pt", "iommu", "iommu=pt"),
        ("quiet", "hugepages", None),
        ("hugepagesz=2M hugepages=1:64,0:32", "hugepages", "hugepagesz=2M hugepages=0:32,1:64"),
        ("hugepagesz=2M quiet hugepages=x", "hugepages", "hugepagesz=2M hugepages=x"),
    ],
)
def test_found_in(text: str, key: str, expected: str | None) -> None:
    assert found_in(split_arguments(text), key) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2M", "2M"),
        ("2048K", "2M"),
        ("1048576k", "1G"),
        ("2097152", "2M"),
        ("16GB", "16G"),
        ("x", "x"),
    ],
)
def test_page_size(text: str, expected: str) -> None:
    assert page_size(text) == expected


ARGUMENT = st.text(alphabet="ab=_-.,:/0'\\", min_size=1)
QUOTED = st.text(alphabet="ab =", max_size=8).map(lambda text: f'k="{text}"')


@given(st.lists(st.one_of(ARGUMENT, QUOTED)), st.sampled_from([" ", "  ", "\t"]))
def test_splitting_undoes_joining(arguments: list[str], blank: str) -> None:
    assert split_arguments(blank.join(arguments)) == arguments


@given(st.text())
def test_any_line_is_read_or_refused(text: str) -> None:
    try:
        found = parse_cmdline(text)
    except ValueError:
        return
    assert json.dumps(found.to_json())


@given(st.dictionaries(st.sampled_from(["1G", "2M", "16G"]), st.integers(0, 9), min_size=1))
def test_the_order_of_pairs_does_not_matter(pools: dict[str, int]) -> None:
    pairs = [f"hugepagesz={size} hugepages={count}" for size, count in pools.items()]
    forth = found_in(split_arguments(" ".join(pairs)), "hugepages")
    back = found_in(split_arguments(" x ".join(reversed(pairs))), "hugepages")
    assert forth == back
    assert forth is not None
