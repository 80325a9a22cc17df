/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests: LNet over RDMA by name, with a symbol of the ib_core that it was
 * built against, the kernel's or OFED's: by another one it is refused.
 */
#include "lustre.h"

int ib_register_client(void *client);

static int (*const of_ib_core)(void *client) __attribute__((used)) = ib_register_client;

STANDIN_MODULE("LNet over RDMA");
STANDIN_USES(lnet_standin());
