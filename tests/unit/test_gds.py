"""GPUDirect Storage from what a node shows to what is done."""

import pytest

from deploys.gds import settings
from railwright.actions import RunScript
from railwright.settings import Standing, Verdict, changes
from tests.unit.gds_host import (
    CLOSED,
    LINK,
    LIVE,
    PATH,
    STOCK,
    done,
    encoded,
    node,
    of,
    platform,
    snapshot,
    verdicts,
    written,
)

STRICT = node(properties={"allow_compat_mode": False})
COMPAT = "cufile properties.allow_compat_mode"


def test_where_nothing_is_asked_for_there_is_nothing() -> None:
    assert settings(node(), snapshot("junk")) == []
    assert done(node(), snapshot("junk")) == []


def test_a_key_that_differs_is_changed_and_nothing_else() -> None:
    setting = of(COMPAT, STRICT, snapshot())
    assert [str(change) for change in changes(setting, LIVE)] == [
        f"gds {COMPAT}: persisted true → false"
    ]
    assert setting.persisted.decider == f"{PATH}:5"
    assert written(STRICT, snapshot()) == STOCK.replace(
        '"allow_compat_mode": true', '"allow_compat_mode": false'
    )


def test_a_converged_node_is_left_alone() -> None:
    text = written(STRICT, snapshot())
    assert text is not None
    assert verdicts(STRICT, snapshot(text)) == {COMPAT: Verdict.OK}
    assert done(STRICT, snapshot(text)) == []


def test_a_file_that_is_not_there_is_made() -> None:
    asked = node(properties={"allow_compat_mode": False}, logging={"level": "WARN"})
    assert set(verdicts(asked, snapshot(None)).values()) == {Verdict.WRONG}
    text = written(asked, snapshot(None))
    assert text == (
        '{\n    "logging": {\n        "level": "WARN"\n    },\n'
        '    "properties": {\n        "allow_compat_mode": false\n    }\n}\n'
    )
    (action,) = done(asked, snapshot(None))
    assert isinstance(action, RunScript)
    assert action.arguments == (PATH, "absent")


def test_foreign_edits_stay() -> None:
    text = STOCK.replace('"own": [ 1, 2 ]', '"own": [ 1, 2 ], "mine": "x" /* keep */').replace(
        '"own"', '"\u00e4\u00f6"'
    )
    changed = written(STRICT, snapshot(text))
    assert changed == text.replace('"allow_compat_mode": true', '"allow_compat_mode": false')


@pytest.mark.parametrize(
    ("cufile", "said"),
    [
        (encoded(b'{\n  "properties": {'), "line 2, column 18: expected a key in quotes"),
        (encoded(b""), "line 1, column 1: expected an object"),
        (encoded(b'{\n// \xff\n"a": 1}'), "line 2: expected UTF-8"),
        (f"\nm-0 file directory 755 root 1700000000 64 {PATH}\n", "got directory"),
        (f"\nm-0 file unreadable 600 root 1700000000 64 {PATH}\n", "got unreadable"),
        (
            f"\nm-0 file link - - - - {PATH}\nm-0 target \n",
            "expected a file that can be read, got a link to nothing",
        ),
        (encoded(b'{"properties": 3}'), "expected a section at properties.allow_compat_mode"),
        (encoded(b'{"properties": {"allow_compat_mode": {}}}'), "expected no section at"),
    ],
)
def test_a_file_that_cannot_be_read_is_told_and_never_touched(cufile: str, said: str) -> None:
    seen = snapshot(cufile=cufile)
    setting = of(COMPAT, STRICT, seen)
    assert verdicts(STRICT, seen)[COMPAT] is Verdict.UNREADABLE
    assert setting.persisted.detail is not None
    assert said in setting.persisted.detail
    assert done(STRICT, seen) == []


def test_one_value_that_cannot_be_placed_does_not_keep_the_others_out() -> None:
    asked = node(properties={"allow_compat_mode": False}, logging={"level": "WARN"})
    seen = snapshot('{"logging": 3, "properties": {}}')
    assert verdicts(asked, seen)["cufile logging.level"] is Verdict.UNREADABLE
    assert (
        written(asked, seen) == '{"logging": 3, "properties": {\n    "allow_compat_mode": false\n}}'
    )


def test_a_link_of_update_alternatives_is_told_and_becomes_a_file_of_its_own() -> None:
    seen = snapshot(cufile=encoded(STOCK.encode(), link=LINK))
    setting = of(COMPAT, STRICT, seen)
    assert setting.persisted.detail == f"a link to {LINK}"
    assert written(STRICT, seen) == written(STRICT, snapshot())


def test_a_container_has_the_file_and_no_mode() -> None:
    asked = node(mode="p2pdma", properties={"allow_compat_mode": False})
    seen = snapshot(identity="container=podman\n", told="")
    assert verdicts(asked, seen) == {
        COMPAT: Verdict.WRONG,
        "cufile properties.use_pci_p2pdma": Verdict.WRONG,
        "mode": Verdict.NOT_APPLICABLE,
    }
    text = written(asked, seen)
    assert text is not None
    assert '"use_pci_p2pdma": true' in text


def test_a_mode_that_can_be_taken_is_right_and_sets_its_key() -> None:
    seen = snapshot()
    assert verdicts(node(mode="p2pdma"), seen) == {
        "cufile properties.use_pci_p2pdma": Verdict.WRONG,
        "mode": Verdict.OK,
    }
    nvidia_fs = node(mode="nvidia-fs")
    assert set(verdicts(nvidia_fs, seen).values()) == {Verdict.OK}
    assert verdicts(nvidia_fs, snapshot("{}")) == {"mode": Verdict.OK}


def test_a_key_that_is_given_counts_before_the_mode() -> None:
    asked = node(mode="auto", properties={"use_pci_p2pdma": False})
    assert verdicts(asked, snapshot())["cufile properties.use_pci_p2pdma"] is Verdict.OK
    assert done(asked, snapshot()) == []


def test_a_newer_file_has_the_key_for_nvme_too() -> None:
    text = '{\n "block": {\n  "nvme": {\n   "use_pci_p2pdma": false\n  }\n }\n}\n'
    changed = written(node(mode="p2pdma"), snapshot(text))
    assert changed is not None
    assert changed.count('"use_pci_p2pdma": true') == 2
    back = written(node(mode="nvidia-fs"), snapshot(changed))
    assert back is not None
    assert back.count('"use_pci_p2pdma": false') == 2


def test_a_mode_that_cannot_be_taken_is_told_with_reason_and_remedy() -> None:
    seen = snapshot(told=platform("md0 : active raid0 nvme1n1[1] nvme0n1[0]", multipath="Y"))
    setting = of("mode", node(mode="p2pdma"), seen)
    assert setting.running.standing is Standing.DEGRADED
    assert setting.running.detail is not None
    assert "RAID0 over NVMe drives: md0" in setting.running.detail
    assert "nvme_core.multipath=Y" in setting.running.detail
    assert setting.remedy is not None
    assert "modules.options nvme_core: multipath=N" in setting.remedy
    assert of("mode", node(mode="nvidia-fs"), seen).running.standing is Standing.RIGHT


def test_auto_takes_what_the_node_allows() -> None:
    auto = node(mode="auto")
    assert of("mode", auto, snapshot()).desired == "p2pdma"
    raid = snapshot(told=platform("md0 : active raid0 nvme1n1[1] nvme0n1[0]"))
    assert of("mode", auto, raid).desired == "nvidia-fs"
    closed = snapshot(told=platform(driver=CLOSED))
    setting = of("mode", auto, closed)
    assert (setting.desired, setting.running.standing) == ("auto", Standing.DEGRADED)
    assert written(auto, closed) is None


def test_nvidia_fs_has_to_be_loaded() -> None:
    seen = snapshot(told=platform(nvidia_fs="no"))
    setting = of("mode", node(mode="nvidia-fs"), seen)
    assert (setting.running.standing, setting.running.detail) == (
        Standing.LATE,
        "nvidia-fs is not loaded",
    )
    assert of("mode", node(mode="p2pdma"), seen).running.standing is Standing.RIGHT


def test_auto_waits_for_the_gpu_driver() -> None:
    seen = snapshot(told="")
    setting = of("mode", node(mode="auto"), seen)
    assert setting.running.standing is Standing.LATE
    assert verdicts(node(mode="auto"), seen) == {"mode": Verdict.PENDING}
    assert done(node(mode="auto"), seen) == []


def test_addresses_come_from_the_rails_that_serve_a_gpu() -> None:
    asked = node(rails=True, properties={"rdma_dev_addr_list": "rails"})
    setting = of("cufile properties.rdma_dev_addr_list", asked, snapshot())
    assert setting.desired == '["10.64.0.2", "10.64.1.2"]'
    assert written(asked, snapshot()) == STOCK.replace("[ ]", setting.desired)


def test_a_mount_has_the_rails_that_it_is_given() -> None:
    mounts = {"/mnt/a.b": {"rdma_dev_addr_list": ["rail2", "192.168.0.1"]}}
    asked = node(rails=True, fs={"lustre": {"mount_table": mounts}})
    text = written(asked, snapshot("{}"))
    assert text is not None
    assert '"/mnt/a.b": {' in text
    assert '"rdma_dev_addr_list": ["10.64.2.2", "192.168.0.1"]' in text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (node(properties={"rdma_dev_addr_list": "rails"}), "a rail that serves a GPU"),
        (node(properties={"rdma_dev_addr_list": ["rail0"]}), "a rail of rails.nics, got rail0"),
    ],
)
def test_addresses_that_the_plan_does_not_have_are_told(asked: object, said: str) -> None:
    setting = of("cufile properties.rdma_dev_addr_list", asked, snapshot())  # type: ignore[arg-type]
    assert setting.persisted.detail is not None
    assert said in setting.persisted.detail
    assert done(asked, snapshot()) == []  # type: ignore[arg-type]


def test_keys_that_libcufile_refuses_beside_what_is_asked_for_are_taken_out() -> None:
    text = (
        '{\n  "properties": {\n    // sizes\n    "gpu_bounce_buffer_slab_config": {\n'
        '      "slab_count": [1]\n    },\n    "io_batchsize": 128\n  }\n}\n'
    )
    asked = node(properties={"max_device_cache_size_kb": 131072})
    seen = snapshot(text)
    slabs = of("cufile properties.gpu_bounce_buffer_slab_config", asked, seen)
    assert [str(change) for change in changes(slabs, LIVE)] == [
        f"gds {slabs.key}: persisted {slabs.persisted.value} → absent"
    ]
    left = written(asked, seen)
    assert left == (
        '{\n  "properties": {\n    // sizes\n    "io_batchsize": 128,\n'
        '    "max_device_cache_size_kb": 131072\n  }\n}\n'
    )
    assert set(verdicts(asked, snapshot(left)).values()) == {Verdict.OK}


def test_addresses_of_mounts_take_the_place_of_those_of_their_file_system() -> None:
    text = '{\n  "fs": {\n    "nfs": {\n      "rdma_dev_addr_list": ["10.0.0.1"]\n    }\n  }\n}\n'
    mounts = {"/data": {"rdma_dev_addr_list": ["10.0.0.2"]}}
    asked = node(fs={"nfs": {"mount_table": mounts}})
    left = written(asked, snapshot(text))
    assert left is not None
    assert "10.0.0.1" not in left
    assert verdicts(asked, snapshot(left)) == {
        "cufile fs.nfs.mount_table./data.rdma_dev_addr_list": Verdict.OK
    }
    empty = text.replace('["10.0.0.1"]', "[]")
    assert '"rdma_dev_addr_list": []' in (written(asked, snapshot(empty)) or "")


def test_bug_46_comments_and_a_trailing_comma_are_read_and_another_file_is_told() -> None:
    line = '/etc/environment:3:CUFILE_ENV_PATH_JSON="/opt/none.json"\n'
    seen = snapshot(environment=line)
    setting = of("environment /etc/environment:3", STRICT, seen)
    assert verdicts(STRICT, seen)[setting.key] is Verdict.OVERRIDDEN
    assert (setting.persisted.value, setting.persisted.detail) == (
        "/opt/none.json",
        "there is no such file",
    )
    assert setting.remedy == "take CUFILE_ENV_PATH_JSON out of /etc/environment"
    there = snapshot(environment=f"{line}there /opt/none.json\n")
    assert of(setting.key, STRICT, there).persisted.detail == "new processes read that file"
    healthy = snapshot(environment=line.replace("/opt/none.json", PATH))
    assert verdicts(STRICT, healthy).keys() == {COMPAT}
    assert verdicts(STRICT, seen)[COMPAT] is Verdict.WRONG


def test_bug_44_a_profile_that_forbids_compat_mode_is_held() -> None:
    assert verdicts(STRICT, snapshot())[COMPAT] is Verdict.WRONG
    healthy = snapshot(STOCK.replace('"allow_compat_mode": true', '"allow_compat_mode": false'))
    assert verdicts(STRICT, healthy)[COMPAT] is Verdict.OK
    assert "gds-nvidia-fs#62" in (of(COMPAT, STRICT, snapshot()).why or "")


def test_bug_55_a_virtual_machine_is_promised_no_p2pdma() -> None:
    virtual = snapshot(told=platform(virtual="kvm"))
    setting = of("mode", node(mode="p2pdma"), virtual)
    assert setting.running.standing is Standing.DEGRADED
    assert "a virtual machine (kvm)" in (setting.running.detail or "")
    assert of("mode", node(mode="p2pdma"), snapshot()).running.standing is Standing.RIGHT
    doubt = of("mode", node(mode="nvidia-fs"), virtual).running.detail
    assert "whether kvm lets devices reach each other" in (doubt or "")


def test_a_file_that_only_root_reads_is_told() -> None:
    seen = snapshot(cufile=encoded(STOCK.encode(), mode="600"))
    assert verdicts(STRICT, seen)[PATH] is Verdict.DEGRADED
    assert PATH not in verdicts(STRICT, snapshot())
