/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's ib_umad by name alone. */
#include "ofed.h"

STANDIN_MODULE("OFED's management datagrams for programs");
STANDIN_USES(mlx_backports_loaded(NULL) | ib_register_client(NULL));
