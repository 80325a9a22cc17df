"""Limits as a login opened now, a service started now, and services that run really have them."""

import re
from collections.abc import Iterator
from typing import Any

from testinfra.host import Host

from railwright.schema import Node
from railwright.schema.base import size_kib
from tests.verify.cases import for_each

INFINITE = 2**64 - 1
ROWS = {
    "memlock": "Max locked memory",
    "nofile": "Max open files",
    "nproc": "Max processes",
    "stack": "Max stack size",
}


def _wanted(node: Node) -> dict[str, int]:
    found = {}
    for name in ROWS:
        value = getattr(node.limits, name)
        if value == "unlimited":
            found[name] = INFINITE
        elif value is not None:
            found[name] = value if isinstance(value, int) else size_kib(value) * 1024
    return found


def _of_service(name: str, value: int) -> tuple[int, int]:
    """Soft and hard; of open files services keep the soft limit that select(2) can live with."""
    return (min(value, 1024) if name == "nofile" else value, value)


def _logins(node: Node) -> Iterator[tuple[str, str, str, int]]:
    for name, value in _wanted(node).items():
        yield f"{name}-of-users", "*", name, value
        yield f"{name}-of-root", "root", name, value


def _managers(node: Node) -> Iterator[tuple[str, str, int]]:
    for name, value in _wanted(node).items():
        yield f"{name}-of-services", name, value


def _services(node: Node) -> Iterator[tuple[str, str, str, int]]:
    for unit in sorted(node.limits.services):
        for name, value in _wanted(node).items():
            yield f"{name}-of-{unit}", unit, name, value


def _number(text: str) -> int:
    if text in ("infinity", "unlimited", "-1"):
        return INFINITE
    factor = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}.get(text[-1:], 1)
    return int(text.rstrip("KMGT")) * factor


def _pair(text: str) -> tuple[int, int]:
    soft, _, hard = text.partition(":")
    return _number(soft), _number(hard or soft)


def _of_process(text: str, name: str) -> tuple[int, int]:
    row = re.search(rf"^{ROWS[name]} +(\S+) +(\S+)", text, re.MULTILINE)
    assert row, f"no {ROWS[name]!r} in {text!r}"
    return _number(row[1]), _number(row[2])


def _written_for(host: Host, domain: str, name: str) -> dict[str, int]:
    """What the last lines for ``domain`` say, in the order in which pam_limits reads the files."""
    files = "cat /etc/security/limits.conf /etc/security/limits.d/*.conf"
    found: dict[str, int] = {}
    for line in host.check_output(f"env LC_ALL=C sh -c '{files}'").splitlines():
        words = line.partition("#")[0].split()
        if len(words) == 4 and words[0] == domain and words[2] == name:
            value = _number(words[3])
            if name in ("memlock", "stack") and value != INFINITE:
                value *= 1024
            found |= {bound: value for bound in ("soft", "hard") if words[1] in (bound, "-")}
    return found


def _configured(host: Host, manager: str, name: str) -> tuple[int, int] | None:
    """The default that systemd itself would read now."""
    text = host.check_output(f"systemd-analyze cat-config systemd/{manager}.conf")
    said = re.findall(rf"^\s*DefaultLimit{name.upper()}\s*=\s*(\S*)\s*$", text, re.MULTILINE)
    return _pair(said[-1]) if said and said[-1] else None


@for_each(_logins)
def test_login(host: Host, node: Node, case: tuple[Any, ...], owns_kernel: bool) -> None:
    _, domain, name, value = case
    assert _written_for(host, domain, name) == {"soft": value, "hard": value}
    if owns_kernel:
        # A session of its own by PAM: that of the connection may be older than the files.
        user = "root" if domain == "root" else "nobody"
        session = host.check_output(f"su -s /bin/cat {user} -- /proc/self/limits")
        assert _of_process(session, name) == (value, value)


@for_each(_managers)
def test_new_service(host: Host, node: Node, case: tuple[Any, ...], owns_kernel: bool) -> None:
    _, name, value = case
    wanted = _of_service(name, value)
    assert _configured(host, "system", name) == wanted
    assert _configured(host, "user", name) == wanted
    if owns_kernel:
        new = host.check_output("systemd-run --wait --pipe -q cat /proc/self/limits")
        assert _of_process(new, name) == wanted


@for_each(_services)
def test_service(host: Host, node: Node, case: tuple[Any, ...], owns_kernel: bool) -> None:
    _, unit, name, value = case
    soft, hard = _of_service(name, value)
    shown = host.check_output(f"systemctl show -p LoadState,MainPID {unit}")
    state = dict(line.split("=", 1) for line in shown.splitlines())
    if state["LoadState"] != "loaded":
        assert state["LoadState"] in ("not-found", "masked")
        return
    files = host.check_output(f"systemctl cat {unit}")
    own = re.findall(rf"^\s*Limit{name.upper()}\s*=\s*(\S*)\s*$", files, re.MULTILINE)
    persisted = _pair(own[-1]) if own and own[-1] else _configured(host, "system", name)
    assert persisted is not None, f"nothing sets {name} for {unit}"
    assert persisted[0] >= soft
    assert persisted[1] >= hard
    if owns_kernel and state["MainPID"] != "0":
        running = host.check_output(f"cat /proc/{state['MainPID']}/limits")
        found = _of_process(running, name)
        assert found[0] >= soft
        assert found[1] >= hard
