"""The components of a GPU node, in the order in which they are brought in.

Modules come first, for they bring sysctls into being; the kernel's arguments come before the huge
pages that some of them reserve, and the rails' names before the sysctls that bear them.
"""

from deploys import (
    firmware,
    holds,
    hugepages,
    kernel,
    limits,
    modules,
    pcie,
    ports,
    qos,
    rails,
    sysctl,
    time,
)
from railwright.component import Component

COMPONENTS: tuple[Component, ...] = (
    modules.COMPONENT,
    kernel.COMPONENT,
    hugepages.COMPONENT,
    rails.COMPONENT,
    sysctl.COMPONENT,
    limits.COMPONENT,
    time.COMPONENT,
    holds.COMPONENT,
    pcie.COMPONENT,
    qos.COMPONENT,
    ports.COMPONENT,
    firmware.COMPONENT,
)
