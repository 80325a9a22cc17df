/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's mlx5_ib by name alone. */
#include "ofed.h"

STANDIN_MODULE("the RDMA driver of ConnectX");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_register_client(NULL)
	     | ib_uverbs_get_ucontext_file(NULL)
	     | mlx5_core_attach(NULL));
