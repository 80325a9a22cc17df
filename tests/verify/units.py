"""Units that set something at boot."""

import re

from testinfra.host import Host


def assert_unit(host: Host, unit: str, owns_kernel: bool) -> None:
    """``unit`` starts at boot and its script can run; on a node of its own it has succeeded."""
    assert host.run(f"systemctl is-enabled {unit}").stdout.strip() == "enabled"
    started = re.search(r"^ExecStart=(\S+)", host.run(f"systemctl cat {unit}").stdout, re.M)
    assert started is not None
    assert host.file(started[1]).mode & 0o777 == 0o755
    assert host.run(f"sh -n {started[1]}").rc == 0
    if owns_kernel:
        assert host.run(f"systemctl is-active {unit}").stdout.strip() == "active"
