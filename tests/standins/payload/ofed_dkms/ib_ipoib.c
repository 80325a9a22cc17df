/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's ib_ipoib by name alone. */
#include "ofed.h"

STANDIN_MODULE("IP over InfiniBand");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_register_client(NULL) | ib_create_cm_id(NULL));
