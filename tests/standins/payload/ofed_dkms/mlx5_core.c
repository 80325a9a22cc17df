/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's mlx5_core by name alone. */
#include "ofed.h"

int mlx5_core_attach(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(mlx5_core_attach);

STANDIN_MODULE("the driver of ConnectX");
STANDIN_USES(mlx_backports_loaded(NULL));
