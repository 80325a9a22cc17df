"""The host of volumes over a fabric: its keys, its identity, images of it, and what leaves."""

import pytest

from railwright.actions import InstallFile, InstallSecret
from railwright.settings import Standing, Verdict, changes
from tests.unit.nvme_host import (
    AUTH,
    CONNECT_UNIT,
    HOST_ID,
    HOST_NQN,
    IDENTITY,
    LIVE,
    MOUNT_UNIT,
    NAME,
    NQN,
    REMOUNT,
    TARGETS,
    WHERE,
    actions,
    converged,
    done,
    found,
    host,
    leftover,
    node,
    ours,
    verdicts,
    with_mounts,
)
from tests.unit.records import record

ASKED = node()
SCRIPT = "/usr/local/sbin/railwright-nvmeof"
RULES = "/etc/udev/rules.d/90-railwright-nvmeof.rules"
CONF = f"/etc/railwright/nvmeof/{NAME}.conf"
KEYS = f"/etc/railwright/nvmeof/{NAME}.keys"
FORMAT = f"railwright-nvmeof-format /dev/railwright/{NAME} {NQN} ext4"
ONCE, DOWN = f"{SCRIPT} once {NAME}", f"{SCRIPT} down {NAME}"
PATHS = [f"path {address}:4420 of {WHERE}" for address in TARGETS]


KEYED = node(host_key={"env": "HOST_KEY"}, controller_key={"file": "/keys/array"})


def test_keys_reach_the_node_in_a_file_of_their_own() -> None:
    snapshot = host(options=AUTH, secrets=f"{KEYS} absent\n")
    (secret,) = (a for a in actions(KEYED, snapshot) if isinstance(a, InstallSecret))
    assert (secret.file.path, secret.file.mode) == (KEYS, "600")
    assert [str(part) for part in secret.file.content] == [
        "dhchap_secret=",
        "variable HOST_KEY",
        "\n",
        "dhchap_ctrl_secret=",
        "file /keys/array",
        "\n",
    ]
    (conf,) = (
        a.content for a in actions(KEYED, snapshot) if isinstance(a, InstallFile) and a.path == CONF
    )
    assert conf.endswith(f"keys {KEYS}\n")


def test_a_changed_key_is_read_by_the_unit_that_starts_anew() -> None:
    snapshot = converged(KEYED, options=AUTH, secrets=f"{KEYS} differs root 600\n")
    assert done(KEYED, snapshot) == [f"secret {KEYS}", f"systemctl restart {CONNECT_UNIT}"]
    right = converged(KEYED, options=AUTH, secrets=f"{KEYS} equal root 600\n")
    assert done(KEYED, right) == []


def test_a_kernel_without_dh_hmac_chap_is_given_no_key() -> None:
    snapshot = host(secrets=f"{KEYS} absent\n")
    setting = found(KEYED, snapshot)[PATHS[0]]
    assert not setting.acts
    assert setting.running.detail == "this kernel has no DH-HMAC-CHAP (CONFIG_NVME_HOST_AUTH)"
    assert ONCE not in done(KEYED, snapshot)


def test_keys_that_nothing_asks_for_are_taken_away() -> None:
    snapshot = converged(ASKED, files=IDENTITY + ours(ASKED) + leftover(KEYS))
    assert done(ASKED, snapshot) == [f"remove {KEYS}"]


def test_an_identity_that_is_there_is_kept_and_one_that_is_asked_for_is_written() -> None:
    assert found(ASKED, host())["/etc/nvme/hostnqn"].persisted.value == HOST_NQN
    other = HOST_NQN.replace("1111", "2222")
    asked = node(host={"host_nqn": other})
    setting = found(asked, host())["/etc/nvme/hostnqn"]
    assert [str(c) for c in changes(setting, LIVE)] == [
        f"nvmeof /etc/nvme/hostnqn: persisted {HOST_NQN} → {other}"
    ]
    (file,) = (
        a
        for a in actions(asked, host())
        if isinstance(a, InstallFile) and a.path.startswith("/etc/nvme")
    )
    assert (file.path, file.content) == ("/etc/nvme/hostnqn", f"{other}\n")


@pytest.mark.parametrize("text", ["not an nqn\n", "nqn.2014-08.org.example:a b\n"])
def test_an_identity_that_makes_no_sense_is_left_to_a_person(text: str) -> None:
    files = record("/etc/nvme/hostnqn", text) + record("/etc/nvme/hostid", f"{HOST_ID}\n")
    setting = found(ASKED, host(files=files))["/etc/nvme/hostnqn"]
    assert (setting.persisted.standing, setting.acts) == (Standing.WRONG, False)
    assert "mend /etc/nvme/hostnqn" in (setting.remedy or "")
    assert "railwright-nvmeof-identity" not in done(ASKED, host(files=files))


def test_an_image_gets_no_identity_and_nothing_is_connected_in_it() -> None:
    snapshot = host(files="", container=True)
    got = found(ASKED, snapshot)
    assert got["/etc/nvme/hostnqn"].persisted.standing is Standing.NOT_APPLICABLE
    words = done(ASKED, snapshot)
    assert not {ONCE, FORMAT, "railwright-nvmeof-identity"} & set(words)
    assert f"systemctl enable {CONNECT_UNIT}" in words
    assert f"systemctl enable {MOUNT_UNIT}" in words
    assert not any(word.startswith("systemctl st") for word in words)
    whole = converged(ASKED, container=True, sysfs="", mounts="")
    assert done(ASKED, whole) == []
    assert set(verdicts(ASKED, whole).values()) == {Verdict.OK, Verdict.NOT_APPLICABLE}


def test_what_nvme_cli_connects_by_itself_is_told() -> None:
    foreign = f"version nvme version 2.3 (git 2.3)\nfile /etc/nvme/config.json\n7 {NQN}\n"
    foreign += "file /etc/nvme/discovery.conf\n3 10.64.0.9\n"
    setting = found(ASKED, converged(ASKED, foreign=foreign))[f"autoconnect of {WHERE}"]
    assert setting.persisted.standing is Standing.OVERRIDDEN
    assert (setting.persisted.detail or "").startswith("nvme-cli 2.3 connects it too")
    assert setting.remedy == (
        "take it out of /etc/nvme/config.json:7, /etc/nvme/discovery.conf:3, or disable that unit"
    )
    off = converged(ASKED, foreign=foreign, autoconnect="disabled")
    assert f"autoconnect of {WHERE}" not in found(ASKED, off)
    others = converged(ASKED, foreign="file /etc/nvme/config.json\n7 nqn.2020-01.org:other\n")
    assert f"autoconnect of {WHERE}" not in found(ASKED, others)


def test_a_volume_that_is_not_asked_for_goes_with_its_connection() -> None:
    nothing = with_mounts({}, allow=REMOUNT)
    assert done(nothing, converged(ASKED)) == [
        f"systemctl disable --now {MOUNT_UNIT}",
        f"remove /etc/systemd/system/remote-fs.target.wants/{MOUNT_UNIT}",
        f"remove /etc/systemd/system/{MOUNT_UNIT}",
        "systemctl daemon-reload",
        f"systemctl disable --now {CONNECT_UNIT}",
        f"remove /etc/systemd/system/multi-user.target.wants/{CONNECT_UNIT}",
        f"remove /etc/systemd/system/{CONNECT_UNIT}",
        "systemctl daemon-reload",
        DOWN,
        f"remove {CONF}",
        f"remove {SCRIPT}",
        f"remove {RULES}",
    ]


def test_a_volume_that_is_mounted_is_taken_from_nobody() -> None:
    nothing = with_mounts({})
    words = done(nothing, converged(ASKED))
    assert DOWN not in words
    assert not any(MOUNT_UNIT in word or CONNECT_UNIT in word for word in words)
    setting = found(nothing, converged(ASKED))[CONF]
    assert setting.remedy == f"it is mounted: allow remount, or systemctl stop {MOUNT_UNIT}"
