"""What is made of the output of sysctl -a and of the journal of systemd-sysctl."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from facts.sysctl import parse_refusals, parse_values

CENTOS = """\
dev.cdrom.autoclose = 1
dev.cdrom.info = CD-ROM information, Id: cdrom.c 3.20 2003/12/17
dev.cdrom.info =\x20
dev.cdrom.info = drive name:\t\tsr0
fs.dentry-state = 182164\t165608\t45\t0\t149757\t0
kernel.core_pattern = |/usr/share/apport/apport -p%p -s%s -d%d -P%P -- %E
kernel.domainname = (none)
net.ipv4.ip_local_reserved_ports =\x20
net.ipv4.tcp_adv_win_scale = -2
net.ipv4.tcp_rmem = 4096\t131072\t6291456
"""


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dev.cdrom.autoclose", 1),
        (
            "dev.cdrom.info",
            "CD-ROM information, Id: cdrom.c 3.20 2003/12/17\n\ndrive name:\t\tsr0",
        ),
        ("fs.dentry-state", (182164, 165608, 45, 0, 149757, 0)),
        ("kernel.core_pattern", "|/usr/share/apport/apport -p%p -s%s -d%d -P%P -- %E"),
        ("kernel.domainname", "(none)"),
        ("net.ipv4.ip_local_reserved_ports", ""),
        ("net.ipv4.tcp_adv_win_scale", -2),
        ("net.ipv4.tcp_rmem", (4096, 131072, 6291456)),
    ],
)
def test_values_of_centos_7(key: str, value: object) -> None:
    assert parse_values(CENTOS)[key] == value


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("security.mac.sysvsem_enforce: 1", {"security.mac.sysvsem_enforce": 1}),
        ("vm.swappiness = 60\r", {"vm.swappiness": 60}),
        ("vm.swappiness=60  ", {"vm.swappiness": 60}),
        ("kernel.core_pattern = |/bin/x a=b", {"kernel.core_pattern": "|/bin/x a=b"}),
        (
            "net.ipv4.conf.eth0/100.rp_filter = 2",
            {"net.ipv4.conf.eth0/100.rp_filter": 2},
        ),
        ("net.ipv4.conf.a@b.rp_filter = 0", {"net.ipv4.conf.a@b.rp_filter": 0}),
        ("fs.file-max = 9223372036854775807", {"fs.file-max": 9223372036854775807}),
        ("kernel.shmall = 18446744073692774399", {"kernel.shmall": 18446744073692774399}),
        ("sunrpc.rpc_debug = 0x0000", {"sunrpc.rpc_debug": "0x0000"}),
        ("net.core.flow_limit_cpu_bitmap = 00", {"net.core.flow_limit_cpu_bitmap": "00"}),
        ("x.load = 0.50 1", {"x.load": "0.50 1"}),
        ("abi.vsyscall32 = 1\nnope what\n\n", {"abi.vsyscall32": 1}),
    ],
)
def test_odd_lines(line: str, expected: dict[str, object]) -> None:
    assert parse_values(line) == expected


@pytest.mark.parametrize(
    "noise",
    [
        "sysctl: permission denied on key 'fs.protected_fifos'",
        'sysctl: reading key "net.ipv6.conf.all.stable_secret"',
        "sysctl: cannot stat /proc/sys/net/x=y: No such file or directory",
        'error: "Input/output error" reading key "net.ipv6.conf.lo.stable_secret"',
        "/usr/sbin/sysctl: permission denied",
        "= 5",
    ],
)
def test_complaints_are_no_values(noise: str) -> None:
    assert parse_values(f"vm.swappiness = 60\n{noise}\nvm.zone_reclaim_mode = 0\n") == {
        "vm.swappiness": 60,
        "vm.zone_reclaim_mode": 0,
    }


@pytest.mark.parametrize("text", ["", "\n", "sh: 1: sysctl: not found\n"])
def test_no_value_at_all_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="expected lines of the form"):
        parse_values(text)


_KEY = st.from_regex(r"[a-z]{1,6}(\.[a-z0-9_@/-]{1,6}){1,3}", fullmatch=True)
_NUMBERS = st.lists(st.integers(-(2**63), 2**64 - 1), min_size=1, max_size=6)


@given(st.dictionaries(_KEY, _NUMBERS, min_size=1), st.sampled_from([" ", "\t", " \t "]))
def test_numbers_come_back(values: dict[str, list[int]], blank: str) -> None:
    text = "\n".join(f"{k} = {blank.join(map(str, v))}" for k, v in values.items())
    found = parse_values(text)
    assert {k: [v] if isinstance(v, int) else list(v) for k, v in found.items()} == values


@given(st.text())
def test_any_text_is_values_or_an_error(text: str) -> None:
    found = {}
    with contextlib.suppress(ValueError):
        found = parse_values(text)
    assert all(key in text for key in found)


def test_refusals_are_read_and_missing_keys_are_none() -> None:
    journal = (
        "Couldn't write '1024' to 'vm/mmap_rnd_bits': Invalid argument\n"
        "Couldn't write '5' to 'net/ipv4/conf/eth0.1/x', ignoring: Invalid argument\n"
        "Couldn't write '5' to 'net/ipv4/nope', ignoring: No such file or directory\n"
        "systemd-sysctl.service: Main process exited, code=exited, status=1/FAILURE\n"
    )
    assert [(r.key, r.value, r.error) for r in parse_refusals(journal)] == [
        ("vm.mmap_rnd_bits", "1024", "Invalid argument"),
        ("net.ipv4.conf.eth0/1.x", "5", "Invalid argument"),
    ]
