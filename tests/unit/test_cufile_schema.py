"""What the inventory may say of cufile.json."""

from typing import Any

import pytest
from pydantic import ValidationError

from railwright.schema import Node
from railwright.schema.cufile import CufileSpec, known_keys
from railwright.schema.gds import GdsSpec


def test_each_known_key_has_a_description_a_default_and_a_source() -> None:
    keys = {key.path: key for key in known_keys()}
    assert len(keys) == len(known_keys()) > 50
    assert all(key.description and key.source and key.default is not None for key in keys.values())
    assert all(key.unit for path, key in keys.items() if path.endswith("_kb"))
    assert keys["properties.max_direct_io_size_kb"].default == 16384
    assert keys["fs.lustre.mount_table.*.rdma_dev_addr_list"].default == []


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("properties", "max_direct_io_size_kb", 100),
        ("properties", "max_direct_io_size_kb", "16384"),
        ("properties", "allow_compat_mode", "false"),
        ("properties", "allow_compat_mode", 0),
        ("properties", "io_batchsize", 257),
        ("properties", "per_buffer_cache_size_kb", 32768),
        ("properties", "rdma_dev_addr_list", ["eth0"]),
        ("properties", "rdma_dev_addr_list", ["fe80::1"]),
        ("properties", "io_priority", "urgent"),
        ("properties", "unknown", 1),
        ("profile", "cufile_stats", 4),
        ("logging", "level", "LOUD"),
        ("other", "properties.io_batchsize", 1),
        ("other", "io_batchsize", 1),
    ],
)
def test_what_libcufile_does_not_take_is_refused(section: str, key: str, value: object) -> None:
    with pytest.raises(ValidationError):
        CufileSpec.model_validate({section: {key: value}})


def test_a_key_that_is_not_known_here_can_be_given_all_the_same() -> None:
    given: dict[str, Any] = {"other": {"properties.rdma_multipath_enabled": True}}
    assert CufileSpec.model_validate(given).other == given["other"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"properties": {"max_device_cache_size_kb": 4096, "per_buffer_cache_size_kb": 1024}},
            None,
        ),
        (
            {
                "properties": {
                    "max_device_cache_size_kb": 4096,
                    "per_buffer_cache_size_kb": 1024,
                    "io_batchsize": 8,
                }
            },
            "at most 4",
        ),
        (
            {
                "properties": {
                    "max_direct_io_size_kb": 1024,
                    "gpu_bounce_buffer_slab_config": {"slab_count": [1]},
                }
            },
            "left out beside gpu_bounce_buffer_slab_config",
        ),
        (
            {"fs": {"nfs": {"rdma_dev_addr_list": ["10.0.0.1"], "mount_table": {"/a": {}}}}},
            "left out beside rdma_dev_addr_list",
        ),
    ],
)
def test_keys_that_do_not_go_together_are_refused(given: dict[str, Any], said: str | None) -> None:
    if said is None:
        assert CufileSpec.model_validate(given).properties.per_buffer_cache_size_kb == 1024
        return
    with pytest.raises(ValidationError, match=said):
        CufileSpec.model_validate(given)


def test_a_node_has_none_of_it_where_nothing_is_said() -> None:
    assert Node(name="n1").gds == GdsSpec()
