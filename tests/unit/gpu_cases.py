"""Nodes that ask for the GPU driver, and what its component makes of them."""

from deploys.gpu_driver import COMPONENT
from facts.gpu_driver import (
    PLAN_PATH,
)
from railwright.settings import Effect, Setting, Verdict
from railwright.snapshot import Snapshot
from tests.unit import gpu_host
from tests.unit.gpu_host import (
    DOCA,
    GPU,
    LIVE,
    SERVICE,
    SHIPPED,
    VERSION,
    files,
    host,
    loaded,
    node,
    smi,
    units,
)

ALL = {
    **GPU,
    "fabric_manager": True,
    "persistence": True,
    "peer_memory": "nvidia_peermem",
    "graphics_clock_mhz": (1200, 1980),
    "power_limit_w": 650,
    "mig": "off",
}
PEERMEM = f"S1 {VERSION} 0 -"


def asked(allow: frozenset[Effect] = LIVE, **driver: object) -> gpu_host.Node:
    """Eight GPUs behind DOCA-OFED, so that dkms is component ofed's."""
    return node(allow, ofed=DOCA, gpu_driver={**GPU, **driver})


def found(snapshot: Snapshot, **driver: object) -> dict[str, Setting]:
    return gpu_host.found(COMPONENT, asked(**driver), snapshot)  # type: ignore[arg-type]


def wrong(snapshot: Snapshot, **driver: object) -> dict[str, Verdict]:
    return gpu_host.wrong(COMPONENT, asked(**driver), snapshot)  # type: ignore[arg-type]


def commands(
    snapshot: Snapshot, allow: frozenset[Effect] = LIVE, **driver: object
) -> list[tuple[str, ...]]:
    return gpu_host.commands(COMPONENT, asked(allow, **driver), snapshot)


def ours(**driver: object) -> dict[str, str]:
    return gpu_host.ours_of(COMPONENT, asked(**driver), host())  # type: ignore[arg-type]


def converged(driver: dict[str, object] = ALL, **sections: str) -> Snapshot:
    """A node as a run for ``driver`` leaves it."""
    content = {SERVICE: SHIPPED, **ours(**driver)}
    return host(
        **{
            "gpu_files": files(content, enabled=PLAN_PATH in content),
            "gpu_units": units(),
            "drivers_loaded": loaded(nvidia_peermem=PEERMEM),
            "drivers_smi": smi(power_limit="650.00"),
            **sections,
        }
    )
