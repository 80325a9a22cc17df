"""The components of a GPU node, in the order in which they are brought in.

Packages come first, for they bring the modules that all others look for, and modules before the
sysctls that they bring into being; the kernel's arguments come before the huge pages that some of
them reserve, and the rails' names before the sysctls that bear them. The drivers come in the order
in which each is built upon the one before, when all of their packages are held. What is mounted
comes last: it needs the rails, and what drives them.
"""

from deploys import (
    beegfs,
    firmware,
    gds,
    gpu_driver,
    holds,
    hugepages,
    kernel,
    limits,
    lustre,
    modules,
    nfs,
    nvmeof,
    ofed,
    packages,
    pcie,
    ports,
    qos,
    rails,
    scratch,
    sysctl,
    time,
)
from railwright.component import Component

COMPONENTS: tuple[Component, ...] = (
    packages.COMPONENT,
    modules.COMPONENT,
    kernel.COMPONENT,
    hugepages.COMPONENT,
    rails.COMPONENT,
    sysctl.COMPONENT,
    limits.COMPONENT,
    time.COMPONENT,
    holds.COMPONENT,
    ofed.COMPONENT,
    gpu_driver.COMPONENT,
    gds.COMPONENT,
    pcie.COMPONENT,
    qos.COMPONENT,
    ports.COMPONENT,
    firmware.COMPONENT,
    scratch.COMPONENT,
    nvmeof.COMPONENT,
    nfs.COMPONENT,
    lustre.COMPONENT,
    beegfs.COMPONENT,
)
