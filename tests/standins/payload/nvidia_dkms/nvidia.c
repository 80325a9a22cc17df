/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for nvidia.ko: parameters, /proc/driver/nvidia, and symbols for
 * the modules upon it. It drives no GPU, and loads where there is none. Texts as nv-procfs.c and
 * nv-reg.h of open-gpu-kernel-modules give them.
 */
#include <linux/errno.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include "nv-standin.h"
#include "nv-p2p.h"

#define NV_NUMBERS(entry) \
	entry(EnableStreamMemOPs, 0) \
	entry(EnablePCIERelaxedOrderingMode, 0) \
	entry(EnableResizableBar, 0) \
	entry(EnableGpuFirmware, 18) \
	entry(PreserveVideoMemoryAllocations, 0) \
	entry(GrdmaPciTopoCheckOverride, 0) \
	entry(DmaRemapPeerMmio, 1) \
	entry(ImexChannelCount, 2048) \
	entry(CreateImexChannel0, 0) \
	entry(CoherentGPUMemoryMode, 0) \
	entry(NvLinkDisable, 0) \
	entry(EnableSystemMemoryPools, 529) \
	entry(OpenRmEnableUnsupportedGpus, 1)

#define NV_TEXTS(entry) \
	entry(RegistryDwords) \
	entry(RegistryDwordsPerDevice) \
	entry(ExcludedGpus)

#define NV_NUMBER(name, value) \
	static int NVreg_##name = value; \
	module_param(NVreg_##name, int, 0);
#define NV_TEXT(name) \
	static char *NVreg_##name; \
	module_param(NVreg_##name, charp, 0);

NV_NUMBERS(NV_NUMBER)
NV_TEXTS(NV_TEXT)
/* The list has this one under another name. */
NV_NUMBER(RestrictProfilingToAdminUsers, 1)

static struct proc_dir_entry *folder;

static int show_version(struct seq_file *file, void *unused)
{
	seq_puts(file, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  @VERSION@  "
		 "Release Build  (railwright@stand-in)  \n");
	seq_puts(file, "GCC version:  gcc version " __VERSION__ "\n");
	return 0;
}

static int show_params(struct seq_file *file, void *unused)
{
#define SHOW_NUMBER(name, value) seq_printf(file, #name ": %u\n", NVreg_##name);
#define SHOW_TEXT(name) \
	seq_printf(file, #name ": \"%s\"\n", NVreg_##name ? NVreg_##name : "");
	NV_NUMBERS(SHOW_NUMBER)
	seq_printf(file, "RmProfilingAdminOnly: %u\n", NVreg_RestrictProfilingToAdminUsers);
	NV_TEXTS(SHOW_TEXT)
	return 0;
}

int init_module(void)
{
	folder = proc_mkdir("driver/nvidia", NULL);
	if (!folder)
		return -ENOMEM;
	proc_create_single("version", 0444, folder, show_version);
	proc_create_single("params", 0444, folder, show_params);
	return 0;
}

void cleanup_module(void)
{
	proc_remove(folder);
}

int nvidia_p2p_get_pages(unsigned long long address, unsigned long long length,
			 struct nvidia_p2p_page_table **table)
{
	return -EINVAL;
}
EXPORT_SYMBOL(nvidia_p2p_get_pages);

int nvidia_p2p_put_pages(unsigned long long address, struct nvidia_p2p_page_table *table)
{
	return -EINVAL;
}
EXPORT_SYMBOL(nvidia_p2p_put_pages);

int nvUvmInterfaceSessionCreate(void *session)
{
	return 0;
}
EXPORT_SYMBOL(nvUvmInterfaceSessionCreate);

int nvidia_get_rm_ops(void *ops)
{
	return 0;
}
EXPORT_SYMBOL(nvidia_get_rm_ops);

NV_STANDIN_MODULE("the GPU driver");
