"""What stands in for hardware, in a repository that no inventory names: a bus with GPUs, drives."""

from collections.abc import Iterator

from tests.standins.debs import Deb, dkms_scripts
from tests.standins.marks import Marks

VERSION = "1.0"


def packages() -> Iterator[Deb]:
    """One package: modprobe standin-gpu-bus, which boots do, puts a GPU at 001f:00:00.0."""
    yield Deb(
        name="standin-gpu-bus-dkms",
        version=f"{VERSION}-1",
        about="GPUs in their slots, for dkms",
        architecture="all",
        marks=Marks(VERSION, VERSION),
        relations={"Depends": "dkms"},
        parts={"gpu_bus": f"usr/src/standin-gpu-bus-{VERSION}", "gpu_bus_load": ""},
        conffiles=(
            "/etc/modules-load.d/standin-gpu-bus.conf",
            "/etc/modprobe.d/standin-storage.conf",
        ),
        scripts=dkms_scripts("standin-gpu-bus", "standin-gpu-bus-dkms", VERSION),
    )
