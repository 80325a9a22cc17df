"""A simulated InfiniBand fabric: ibsim and OpenSM as plain processes, and tools that read it.

A stand-in: management packets are real, and so are the tools that send them; ports, switches and
cables are ibsim's. Debian packages: ibsim-utils, opensm, infiniband-diags.
"""

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

_TOOLS = "/usr/sbin:/usr/bin:/sbin:/bin"
_POLL_S = 0.25


@dataclass(frozen=True)
class Topology:
    """Nodes with one HCA per rail; each rail has leaves of its own, and all share the spines.

    ``slow`` are HCAs that came up at a lower rate, as with a cable of another kind.
    """

    nodes: int
    rails: int
    nodes_per_leaf: int
    spines: int
    speed: str
    slow: dict[str, str] = field(default_factory=dict)

    def hcas(self) -> Iterator[tuple[str, str, int]]:
        """Each HCA, its leaf, and the leaf's port that it is cabled to."""
        for node in range(self.nodes):
            for rail in range(self.rails):
                leaf = f"leaf{rail}-{node // self.nodes_per_leaf}"
                yield f"gpu{node + 1:03d} mlx5_{rail}", leaf, node % self.nodes_per_leaf + 1

    def text(self) -> str:
        """The fabric as ``ibnetdiscover`` would list it, which is what ibsim reads."""
        hcas = list(self.hcas())
        leaves = list(dict.fromkeys(leaf for _, leaf, _ in hcas))
        ports = self.nodes_per_leaf + self.spines
        blocks = []
        for number, leaf in enumerate(leaves, 1):
            lines = [f'Switch {ports} "{leaf}"']
            lines += [
                f'[{port}] "{hca}"[1] # "{hca}" lid 0 4x{self._speed(hca)}'
                for hca, of, port in hcas
                if of == leaf
            ]
            lines += [
                f'[{self.nodes_per_leaf + spine}] "spine{spine}"[{number}] '
                f'# "spine{spine}" lid 0 4x{self.speed}'
                for spine in range(1, self.spines + 1)
            ]
            blocks.append(lines)
        for spine in range(1, self.spines + 1):
            lines = [f'Switch {len(leaves)} "spine{spine}"']
            lines += [
                f'[{number}] "{leaf}"[{self.nodes_per_leaf + spine}] '
                f'# "{leaf}" lid 0 4x{self.speed}'
                for number, leaf in enumerate(leaves, 1)
            ]
            blocks.append(lines)
        blocks += [
            [
                f'Hca 1 "{hca}"',
                f'[1] "{leaf}"[{port}] # lid 0 lmc 0 "{leaf}" lid 0 4x{self._speed(hca)}',
            ]
            for hca, leaf, port in hcas
        ]
        return "\n".join("\n".join(lines) + "\n" for lines in blocks)

    def _speed(self, hca: str) -> str:
        return self.slow.get(hca, self.speed)


@dataclass
class Simulator:
    """A running fabric; ``folder`` holds its logs."""

    folder: Path
    console: subprocess.Popen[str]

    def order(self, command: str) -> None:
        """Give ibsim's console a command (``Unlink "leaf0-0"[5]``)."""
        assert self.console.stdin is not None
        self.console.stdin.write(f"{command}\n")
        self.console.stdin.flush()

    def environment(self, host: str) -> dict[str, str]:
        """What makes a tool run as if on the HCA ``host``."""
        (library,) = Path("/usr/lib").glob("*/umad2sim/libumad2sim.so")
        return {
            "PATH": _TOOLS,
            "LD_PRELOAD": str(library),
            "SIM_HOST": host,
            # Of its own, so that two fabrics can run on one machine.
            "IBSIM_SOCKNAME": f"railwright-{os.getpid()}",
            "OSM_TMP_DIR": str(self.folder),
            "OSM_CACHE_DIR": str(self.folder),
        }

    def run(self, host: str, *command: str) -> str:
        """What a tool prints on the HCA ``host``. Raises CalledProcessError."""
        ran = subprocess.run(
            command,
            env=self.environment(host),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return ran.stdout

    @contextmanager
    def subnet_manager(self, host: str, *options: str) -> Iterator[Path]:
        """OpenSM on the HCA ``host``; yields the path of its log."""
        log = self.folder / "opensm.log"
        with (self.folder / "opensm.out").open("w") as out:
            process = subprocess.Popen(
                ["nice", "-n", "19", "opensm", "--log_file", str(log), *options],
                env=self.environment(host),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
            try:
                yield log
            finally:
                process.terminate()
                process.wait(timeout=30)


@contextmanager
def simulated(topology: Topology, folder: Path) -> Iterator[Simulator]:
    """The fabric ``topology``, with no subnet manager yet."""
    net = folder / "net"
    net.write_text(topology.text(), encoding="utf-8")
    with (folder / "ibsim.log").open("w") as log:
        console = subprocess.Popen(
            ["nice", "-n", "19", "ibsim", "-s", str(net)],
            env={"PATH": _TOOLS, "IBSIM_SOCKNAME": f"railwright-{os.getpid()}"},
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
        )
        try:
            yield Simulator(folder=folder, console=console)
        finally:
            console.terminate()
            console.wait(timeout=30)


def wait_for(condition: Callable[[], bool], what: str, timeout_s: float = 60) -> None:
    """Return when ``condition`` holds. Raises AssertionError where it does not in time."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {timeout_s:g} s"
        time.sleep(_POLL_S)
