/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests for NVIDIA's open kernel modules: no driver of any device. */
#ifndef NV_STANDIN_H
#define NV_STANDIN_H

#include <linux/export.h>
#include <linux/moduleparam.h>

#define NV_STANDIN_MODULE(text) \
	__MODULE_INFO(license, license, "Dual MIT/GPL"); \
	__MODULE_INFO(version, version, "@VERSION@"); \
	__MODULE_INFO(description, description, "stand-in of railwright's tests for " text); \
	___ADDRESSABLE(init_module, __initdata); \
	___ADDRESSABLE(cleanup_module, __exitdata)

/* objtool takes a function that nothing points to for one that is never called by a pointer. */
int init_module(void);
void cleanup_module(void);

int nvUvmInterfaceSessionCreate(void *session);
int nvidia_get_rm_ops(void *ops);

#endif
