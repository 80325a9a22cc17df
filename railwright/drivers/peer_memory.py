"""Is nvidia-peermem there, now and after a reboot, on a node that reaches GPU memory through it?

Nothing loads it by itself. After a reboot a node without it sends GPU data through the CPU's
memory, and only bandwidth tells. Whether it or DMA-BUF fits a node is in railwright.compat.
"""

from collections.abc import Iterator, Mapping

from facts.modinfo import LoadedModule
from railwright.drivers.finding import Finding

MODULE = "nvidia_peermem"
NVIDIA_FS = "nvidia_fs"


def peermem_findings(
    loaded: Mapping[str, LoadedModule], at_boot: Mapping[str, str]
) -> Iterator[Finding]:
    """What keeps nvidia-peermem from working.

    ``at_boot`` is module to what has it loaded at boot (a line of modules-load.d, or a unit).
    """
    if MODULE not in loaded:
        yield Finding(
            kind="loaded",
            subject=MODULE,
            found="is not loaded",
            remedy="load nvidia-peermem, after nvidia and OFED's ib_core",
        )
    if MODULE not in at_boot:
        yield Finding(
            kind="config",
            subject=MODULE,
            found="nothing loads it at boot",
            remedy="list nvidia-peermem in modules-load.d",
        )
