/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests for the peer memory API of OFED's ib_core: names alone. */
#ifndef STANDIN_PEER_MEM_H
#define STANDIN_PEER_MEM_H

/* What a module is built against is of one release, and so are its symbols' versions. */
struct peer_memory_client {
	char name[64];
	char version[16];
	char release[sizeof("@VERSION@")];
};

typedef int invalidate_peer_memory(void *handle, unsigned long long context);

void *ib_register_peer_memory_client(const struct peer_memory_client *client,
				     invalidate_peer_memory *invalidate);
void ib_unregister_peer_memory_client(void *handle);

#endif
