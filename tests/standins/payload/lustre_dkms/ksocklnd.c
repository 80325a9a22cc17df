/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: LNet over TCP by name alone. */
#include "lustre.h"

STANDIN_MODULE("LNet over TCP");
STANDIN_USES(lnet_standin());
