/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for nvidia-peermem.ko. Without OFED's ib_core at its build it is
 * there, and loads with EINVAL, as NVIDIA's does.
 */
#include <linux/errno.h>
#include "nv-standin.h"
#include "nv-p2p.h"

#ifdef NV_MLNX_IB_PEER_MEM_SYMBOLS_PRESENT
#include <rdma/peer_mem.h>

static const struct peer_memory_client client = { .name = "nv_mem", .version = "@VERSION@" };
static void *handle;

int init_module(void)
{
	invalidate_peer_memory *invalidate;

	handle = ib_register_peer_memory_client(&client, (void *)&invalidate);
	return handle ? 0 : -EINVAL;
}

void cleanup_module(void)
{
	ib_unregister_peer_memory_client(handle);
	nvidia_p2p_put_pages(0, NULL);
}
#else
int init_module(void)
{
	return -EINVAL;
}

void cleanup_module(void)
{
	nvidia_p2p_put_pages(0, NULL);
}
#endif

NV_STANDIN_MODULE("peer memory of NICs");
