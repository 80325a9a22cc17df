/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests for nvidia-uvm.ko: it holds nvidia, and does nothing. */
#include "nv-standin.h"

int init_module(void)
{
	return nvUvmInterfaceSessionCreate(NULL);
}

void cleanup_module(void)
{
}

NV_STANDIN_MODULE("unified memory");
