"""What holds for every GPU node."""

from railwright.schema import KernelSpec, LimitsSpec, ThpSpec

kernel = KernelSpec(
    # PyTorch's allocators ask for huge pages where they help; services are left alone.
    thp=ThpSpec(enabled="madvise", defrag="madvise"),
)
limits = LimitsSpec(services={"slurmd.service", "containerd.service", "docker.service"})
