/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: libcfs by name alone. */
#include "lustre.h"

int libcfs_standin(void)
{
	return 0;
}
EXPORT_SYMBOL(libcfs_standin);

STANDIN_MODULE("Lustre's common helpers");
STANDIN_USES(0);
