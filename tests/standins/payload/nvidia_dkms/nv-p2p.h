/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests for the header by which others reach a GPU's memory. */
#ifndef NV_P2P_H
#define NV_P2P_H

struct nvidia_p2p_page_table;

int nvidia_p2p_get_pages(unsigned long long address, unsigned long long length,
			 struct nvidia_p2p_page_table **table);
int nvidia_p2p_put_pages(unsigned long long address, struct nvidia_p2p_page_table *table);

#endif
