/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for the modules of Lustre's client, by name and by what they take
 * from each other.
 */
#ifndef STANDIN_LUSTRE_H
#define STANDIN_LUSTRE_H

#include <linux/export.h>
#include <linux/moduleparam.h>

#define STANDIN_MODULE(text) \
	__MODULE_INFO(license, license, "GPL"); \
	__MODULE_INFO(version, version, "@VERSION@"); \
	__MODULE_INFO(description, description, "stand-in of railwright's tests for " text)

/* A module that takes a symbol of another one, which is all that holds that. */
#define STANDIN_USES(call) \
	int init_module(void); \
	int init_module(void) { return call; } \
	void cleanup_module(void); \
	void cleanup_module(void) { } \
	___ADDRESSABLE(init_module, __initdata); \
	___ADDRESSABLE(cleanup_module, __exitdata)

int libcfs_standin(void);
int lnet_standin(void);
int obdclass_standin(void);

#endif
