/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's ib_cm by name alone. */
#include "ofed.h"

int ib_create_cm_id(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(ib_create_cm_id);

STANDIN_MODULE("OFED's connection manager of InfiniBand");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_register_client(NULL));
