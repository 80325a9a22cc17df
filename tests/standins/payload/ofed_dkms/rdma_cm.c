/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's rdma_cm by name alone. */
#include "ofed.h"

int __rdma_create_kernel_id(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(__rdma_create_kernel_id);

STANDIN_MODULE("OFED's RDMA connection manager");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_register_client(NULL) | ib_create_cm_id(NULL)
	     | iw_create_cm_id(NULL));
