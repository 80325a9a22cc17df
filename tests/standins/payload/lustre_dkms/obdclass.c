/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: obdclass by name alone; lctl lists what is mounted for it. */
#include "lustre.h"

int obdclass_standin(void)
{
	return lnet_standin();
}
EXPORT_SYMBOL(obdclass_standin);

STANDIN_MODULE("Lustre's devices");
STANDIN_USES(0 * lnet_standin());
