/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's rdma_ucm by name alone. */
#include "ofed.h"

STANDIN_MODULE("OFED's RDMA connection manager for programs");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_uverbs_get_ucontext_file(NULL)
	     | __rdma_create_kernel_id(NULL));
