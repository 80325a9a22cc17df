"""The components of a GPU node, in the order in which they are brought in.

Modules come first, for they bring sysctls into being; the kernel's arguments come before the huge
pages that some of them reserve.
"""

from railwright.component import Component

COMPONENTS: tuple[Component, ...] = ()
