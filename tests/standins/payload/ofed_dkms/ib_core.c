/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: OFED's ib_core by name, with what others register by. */
#include "ofed.h"
#include "include/rdma/peer_mem.h"

int ib_register_client(const struct ofed_release *release)
{
	return 0;
}
EXPORT_SYMBOL(ib_register_client);

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate)
{
	return (void *)client;
}
EXPORT_SYMBOL(ib_register_peer_memory_client);

void ib_unregister_peer_memory_client(void *handle)
{
}
EXPORT_SYMBOL(ib_unregister_peer_memory_client);

STANDIN_MODULE("OFED's InfiniBand core");
STANDIN_USES(mlx_backports_loaded(NULL));
