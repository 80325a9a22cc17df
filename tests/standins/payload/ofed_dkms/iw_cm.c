/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's iw_cm by name alone. */
#include "ofed.h"

int iw_create_cm_id(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(iw_create_cm_id);

STANDIN_MODULE("OFED's connection manager of iWARP");
STANDIN_USES(mlx_backports_loaded(NULL));
