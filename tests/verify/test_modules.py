"""Kernel modules: what modprobe makes of its configuration, and what the kernel has loaded."""

import shlex
from collections.abc import Iterator

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.base import module_name
from tests.verify.cases import for_each

Value = bool | int | str
SWITCHES = {"Y": "1", "N": "0", "True": "1", "False": "0"}


def _each_load(node: Node) -> Iterator[tuple[str]]:
    for name in node.modules.load:
        yield (module_name(name),)


def _each_option(node: Node) -> Iterator[tuple[str, str, str, Value]]:
    for module, parameters in node.modules.options.items():
        for name, value in parameters.items():
            yield f"{module_name(module)}.{name}", module_name(module), name, value


def _each_blacklist(node: Node) -> Iterator[tuple[str]]:
    for name in node.modules.blacklist:
        yield (module_name(name),)


def _configured(host: Host, *words: str) -> list[str]:
    """The rest of the lines of modprobe's configuration that begin with ``words``, in order."""
    start = " ".join(words) + " "
    lines = host.check_output("modprobe --showconfig").splitlines()
    return [f"{line} "[len(start) :].strip() for line in lines if f"{line} ".startswith(start)]


def _loaded(host: Host, name: str) -> bool:
    lines = host.file("/proc/modules").content_string.splitlines()
    return name in [line.split()[0] for line in lines]


def _built_in(host: Host, name: str) -> bool:
    # modinfo finds a module under either spelling.
    return "(builtin)" in host.run(f"modinfo -F filename {name}").stdout


def _plain(value: object) -> str:
    """A switch as 1 or 0, any other value as it is written."""
    return SWITCHES.get(str(value), str(value))


@for_each(_each_load)
def test_module_is_loaded(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    (name,) = case
    if owns_kernel and _built_in(host, name):
        return
    listed = host.run(
        "cat /etc/modules-load.d/*.conf /run/modules-load.d/*.conf /usr/lib/modules-load.d/*.conf"
    ).stdout.splitlines()
    assert name in [module_name(line.strip()) for line in listed]
    # systemd-modules-load passes over what is blacklisted.
    assert not [x for x in _configured(host, "blacklist") if x == name]
    assert not [x for x in _configured(host, "install", name) if x in ("/bin/false", "/bin/true")]
    assert not owns_kernel or _loaded(host, name)


@for_each(_each_option)
def test_module_option(
    host: Host, node: Node, case: tuple[str, str, str, Value], owns_kernel: bool
) -> None:
    _, module, name, value = case
    words = [word for line in _configured(host, "options", module) for word in shlex.split(line)]
    given = [word.partition("=")[2] for word in words if word.partition("=")[0] == name]
    assert given, words
    assert _plain(given[-1]) == _plain(value)
    if owns_kernel and _loaded(host, module):
        shown = host.file(f"/sys/module/{module}/parameters/{name}")
        if shown.exists:
            # A number of a switch is shown as Y or N.
            assert _plain(shown.content_string.strip()) == _plain(value)
        elif module != "nvidia":
            assert f"{name}:" in host.run(f"modinfo {module}").stdout


@for_each(_each_blacklist)
def test_module_is_kept_out(host: Host, node: Node, case: tuple[str], owns_kernel: bool) -> None:
    (name,) = case
    assert _configured(host, "blacklist", name)
    # Of several install commands the first holds.
    assert _configured(host, "install", name)[:1] in (["/bin/false"], ["/bin/true"])
    if owns_kernel:
        assert not _loaded(host, name)
