/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's mlx_compat by name alone. */
#include "ofed.h"

int mlx_backports_loaded(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(mlx_backports_loaded);

STANDIN_MODULE("OFED's backports");
STANDIN_USES(0);
