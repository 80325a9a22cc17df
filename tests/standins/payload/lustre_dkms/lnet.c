/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests: lnet, with /proc/sys/lnet, which lnet.service looks for, and the
 * parameters that say its networks. What networks it has lnetctl keeps in /run.
 */
#include <linux/errno.h>
#include <linux/sysctl.h>
#include <linux/version.h>
#include "lustre.h"

static char *networks = "";
module_param(networks, charp, 0444);
static char *ip2nets = "";
module_param(ip2nets, charp, 0444);

static int console_ratelimit = 1;

static struct ctl_table entries[] = {
	{
		.procname = "console_ratelimit",
		.data = &console_ratelimit,
		.maxlen = sizeof(int),
		.mode = 0644,
		.proc_handler = proc_dointvec,
	},
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
	{ }
#endif
};

static struct ctl_table_header *folder;

int lnet_standin(void)
{
	return libcfs_standin();
}
EXPORT_SYMBOL(lnet_standin);

int init_module(void);
void cleanup_module(void);

int init_module(void)
{
	folder = register_sysctl("lnet", entries);
	return folder ? 0 : -ENOMEM;
}

void cleanup_module(void)
{
	unregister_sysctl_table(folder);
}

STANDIN_MODULE("Lustre's network");
___ADDRESSABLE(init_module, __initdata);
___ADDRESSABLE(cleanup_module, __exitdata);
