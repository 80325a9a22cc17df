/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for OFED's kernel modules: no driver of any device.
 *
 * moduleparam.h instead of module.h: an emulated processor compiles eleven of these.
 */
#ifndef STANDIN_OFED_H
#define STANDIN_OFED_H

#include <linux/export.h>
#include <linux/moduleparam.h>

#define STANDIN_MODULE(text) \
	__MODULE_INFO(license, license, "Dual BSD/GPL"); \
	__MODULE_INFO(version, version, "@SHORT@"); \
	__MODULE_INFO(description, description, "stand-in of railwright's tests for " text)

/*
 * A module that uses symbols of others, which is all that holds those. objtool takes a function
 * that nothing points to for one that is never called by a pointer.
 */
#define STANDIN_USES(call) \
	int init_module(void); \
	int init_module(void) { return call; } \
	void cleanup_module(void); \
	void cleanup_module(void) { } \
	___ADDRESSABLE(init_module, __initdata); \
	___ADDRESSABLE(cleanup_module, __exitdata)

/* In place of a device's structure: another release has another, and so other symbol versions. */
struct ofed_release {
	char name[sizeof("@VERSION@")];
};

int mlx_backports_loaded(const struct ofed_release *release);
int ib_register_client(const struct ofed_release *release);
int ib_register_mad_agent(const struct ofed_release *release);
int ib_create_cm_id(const struct ofed_release *release);
int iw_create_cm_id(const struct ofed_release *release);
int ib_uverbs_get_ucontext_file(const struct ofed_release *release);
int __rdma_create_kernel_id(const struct ofed_release *release);
int mlx5_core_attach(const struct ofed_release *release);

#endif
