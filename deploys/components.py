"""The components of a GPU node, in the order in which they are brought in.

Modules come first, for they bring sysctls into being; the kernel's arguments come before the huge
pages that some of them reserve.
"""

from deploys import holds, hugepages, kernel, limits, modules, sysctl, time
from railwright.component import Component

COMPONENTS: tuple[Component, ...] = (
    modules.COMPONENT,
    kernel.COMPONENT,
    hugepages.COMPONENT,
    sysctl.COMPONENT,
    limits.COMPONENT,
    time.COMPONENT,
    holds.COMPONENT,
)
