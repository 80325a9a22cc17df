/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests for nvidia-modeset.ko: it holds nvidia, and does nothing. */
#include "nv-standin.h"

int init_module(void)
{
	return nvidia_get_rm_ops(NULL);
}

void cleanup_module(void)
{
}

NV_STANDIN_MODULE("display modes");
