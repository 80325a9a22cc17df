"""Which line of modprobe.d and modules-load.d decides.

The order of options and of install commands was tried with kmod 30:
``modprobe --showconfig`` and ``modprobe --dry-run --verbose``.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from railwright.files import FileRecord
from railwright.modprobe import same
from railwright.resolve.initramfs import may_load
from railwright.resolve.modules import (
    arguments,
    loaded_at_boot,
    modprobe_config,
    refuses,
)


def file(path: str, content: str) -> FileRecord:
    return FileRecord(path=path, kind="file", content=content, size=len(content))


def test_files_are_read_by_name_over_all_directories_and_the_last_option_holds() -> None:
    config = modprobe_config(
        [
            file("/etc/modprobe.d/10-a.conf", "options foo-bar a=1 b=1\n"),
            file("/usr/lib/modprobe.d/99-b.conf", "# x\noptions foo_bar a=2\n"),
            file("/run/modprobe.d/50-c.conf", "options foo_bar a=3 b=3\n"),
        ]
    )
    decided = config.option("foo_bar", "a")
    assert decided is not None
    assert (decided.value, decided.decider) == ("2", "/usr/lib/modprobe.d/99-b.conf:2")
    decided = config.option("foo_bar", "b")
    assert decided is not None
    assert (decided.value, decided.decider) == ("3", "/run/modprobe.d/50-c.conf:1")


def test_a_name_in_a_higher_directory_replaces_the_lower_one() -> None:
    config = modprobe_config(
        [
            file("/usr/lib/modprobe.d/x.conf", "options foo a=1\n"),
            file("/etc/modprobe.d/x.conf", "options foo b=1\n"),
        ]
    )
    assert config.option("foo", "a") is None
    assert config.option("foo", "b") is not None


def test_a_link_to_dev_null_masks() -> None:
    mask = FileRecord(
        path="/etc/modprobe.d/x.conf", kind="link", target="/dev/null", content="", size=0
    )
    config = modprobe_config([file("/usr/lib/modprobe.d/x.conf", "blacklist foo\n"), mask])
    assert config.blacklisting("foo") is None


def test_the_kernel_command_line_comes_last() -> None:
    config = modprobe_config(
        [file("/etc/modprobe.d/zz.conf", "options nvme_core multipath=Y\n")],
        'quiet nvme-core.multipath=N modprobe.blacklist=a,b-c module_blacklist=d x="e f.g=1"',
    )
    decided = config.option("nvme_core", "multipath")
    assert decided is not None
    assert (decided.value, decided.decider) == ("N", "/proc/cmdline")
    listed = config.blacklisting("b_c")
    assert listed is not None
    assert listed.decider == "/proc/cmdline modprobe.blacklist="
    assert config.refusal("b_c") is None
    assert config.refusal("d") is not None
    assert config.option("f", "g") is None


def test_of_install_commands_the_first_holds_and_names_are_patterns() -> None:
    config = modprobe_config(
        [
            file("/etc/modprobe.d/99-zz.conf", "install foo_bar /bin/false\n"),
            file("/etc/modprobe.d/10-a.conf", "install foo_* /sbin/modprobe -i foo-bar\n"),
        ]
    )
    decided = config.install("foo_bar")
    assert decided is not None
    assert (decided.value, decided.decider) == (
        "/sbin/modprobe -i foo-bar",
        "/etc/modprobe.d/10-a.conf:1",
    )
    assert not refuses(decided)
    assert config.install("other") is None


@pytest.mark.parametrize(
    ("command", "expected"),
    [("/bin/false", True), ("/usr/bin/true", True), ("false", True), ("/bin/false; x", False)],
)
def test_install_commands_that_load_nothing(command: str, expected: bool) -> None:
    config = modprobe_config([file("/etc/modprobe.d/a.conf", f"install x {command}\n")])
    assert refuses(config.install("x")) is expected


def test_lines_that_go_on_and_comments() -> None:
    text = "options foo\\\n_bar c=3\n#options foo_bar c=4\n  # options foo_bar c=5\nbad\n d\n"
    config = modprobe_config([file("/etc/modprobe.d/a.conf", text)])
    decided = config.option("foo_bar", "c")
    assert decided is not None
    assert (decided.value, decided.decider) == ("3", "/etc/modprobe.d/a.conf:1")


def test_an_alias() -> None:
    config = modprobe_config([file("/etc/modprobe.d/a.conf", "alias nvidia nvidia-current\n")])
    assert config.is_alias("nvidia")
    assert not config.is_alias("nvidia_current")


def test_modules_load_d() -> None:
    found = loaded_at_boot(
        [
            file("/etc/modules-load.d/b.conf", "# x\n; y\n\n nvidia-peermem \n"),
            file("/usr/lib/modules-load.d/a.conf", "ib_umad\n"),
            file("/etc/modprobe.d/a.conf", "options x y=1\n"),
            # Debian's link to /etc/modules.
            FileRecord(
                path="/etc/modules-load.d/modules.conf",
                kind="link",
                target="/etc/modules",
                content="loop\n",
                size=5,
            ),
        ]
    )
    assert found == {
        "ib_umad": "/usr/lib/modules-load.d/a.conf:1",
        "nvidia_peermem": "/etc/modules-load.d/b.conf:4",
        "loop": "/etc/modules-load.d/modules.conf:1",
    }


@pytest.mark.parametrize(
    "record",
    [
        FileRecord(path="/etc/modprobe.d/a.conf", kind="unreadable", size=3),
        FileRecord(path="/etc/modprobe.d/a.conf", kind="file", content="x", size=65537),
    ],
)
def test_a_file_that_might_decide_and_is_not_read_is_an_error(record: FileRecord) -> None:
    with pytest.raises(ValueError, match=r"/etc/modprobe\.d/a\.conf cannot be read whole"):
        modprobe_config([record])


def test_a_directory_and_a_dangling_link_are_passed_over() -> None:
    records = [
        FileRecord(path="/etc/modprobe.d/a.conf", kind="directory", size=4096),
        FileRecord(path="/etc/modprobe.d/b.conf", kind="link", target=""),
    ]
    assert modprobe_config(records).lines == ()


def test_arguments_are_parted_as_the_kernel_does() -> None:
    assert arguments('NVreg_RegistryDwords="a=1;b=2 c" x-y=1 debug "q r=s t"') == [
        ("NVreg_RegistryDwords", "a=1;b=2 c"),
        ("x_y", "1"),
        ("debug", "Y"),
        ("q r", "s t"),
    ]


@pytest.mark.parametrize(
    ("desired", "found", "expected"),
    [
        (True, "Y", True),
        (True, "1", True),
        (True, "on", True),
        (True, "N", False),
        (False, "N", True),
        (False, "0", True),
        (False, "none", False),
        (1, "Y", True),
        (0, "N", True),
        (2, "Y", False),
        (0, "none", False),
        (16, "0x10", True),
        (-2, "-2", True),
        (16, "sixteen", False),
        ("16", "0x10", True),
        ("a  b", "a b", True),
        ("8,8", "8,8", True),
        ("Y", "N", False),
        ("(null)", "x", False),
    ],
)
def test_values_are_compared_by_meaning(
    desired: bool | int | str, found: str, expected: bool
) -> None:
    assert same(desired, found) is expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("kernel/drivers/net/ethernet/mellanox/mlx5/core/mlx5_core.ko.zst", True),
        ("kernel/drivers/gpu/drm/nouveau/nouveau.ko", True),
        ("updates/dkms/nvidia.ko", True),
        ("kernel/net/netfilter/nf_conntrack.ko", False),
        ("kernel/net/sctp/sctp.ko", False),
    ],
)
def test_modules_that_an_initramfs_may_load(path: str, expected: bool) -> None:
    assert may_load(path) is expected


NAMES = st.sampled_from(["10-a", "50-b", "99-zz-railwright", "99-sysctl", "zz"])
PLACES = st.sampled_from(["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"])


@given(st.dictionaries(st.tuples(PLACES, NAMES), st.integers(0, 9), min_size=1))
def test_the_winner_is_the_last_name_of_the_first_directory(
    files: dict[tuple[str, str], int],
) -> None:
    records = [
        file(f"{place}/modprobe.d/{name}.conf", f"options m p={value}\n")
        for (place, name), value in files.items()
    ]
    last = max(name for _, name in files)
    order = ["/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"]
    first = min((place for place, name in files if name == last), key=order.index)
    decided = modprobe_config(records).option("m", "p")
    assert decided is not None
    assert decided.value == str(files[first, last])
    assert decided.decider == f"{first}/modprobe.d/{last}.conf:1"


WORDS = st.text(st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=1).filter(
    lambda word: '"' not in word
)


@given(st.lists(st.tuples(WORDS.filter(lambda w: "=" not in w), WORDS)))
def test_any_arguments_come_back(pairs: list[tuple[str, str]]) -> None:
    text = " ".join(f'{name}="{value}"' for name, value in pairs)
    assert arguments(text) == [(name.replace("-", "_"), value) for name, value in pairs]
