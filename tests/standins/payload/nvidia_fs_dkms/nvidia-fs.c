/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for nvidia-fs.ko: /proc/driver/nvidia-fs as with no IO and
 * no GPU. Names and texts as nvfs-proc.c, nvfs-stat.c and nvfs-pci.c of gds-nvidia-fs give them.
 */
#include <linux/errno.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <nv-p2p.h>

static unsigned int rw_stats_enabled;
module_param(rw_stats_enabled, uint, 0644);
static unsigned int peer_stats_enabled;
module_param(peer_stats_enabled, uint, 0644);
static unsigned int max_devices = 16;
module_param(max_devices, uint, 0444);
/* The storage driver that is taken to have registered; the real one has no such parameter. */
static char *standin_storage = "";
module_param(standin_storage, charp, 0444);

#ifdef NVFS_LOOKS_FOR_POISONED_PAGES
/* A flag that a kernel has only with CONFIG_MEMORY_FAILURE: Debian's cloud kernels are without. */
#include <linux/page-flags.h>

static unsigned long poisoned = 1UL << PG_hwpoison;
module_param_named(poisoned_page_flag, poisoned, ulong, 0444);
#endif

static const char *switched(unsigned int on)
{
	return on ? "Enabled" : "Disabled";
}

static int show_version(struct seq_file *file, void *unused)
{
	seq_puts(file, "version: @SHORT@\n");
	return 0;
}

static int show_devcount(struct seq_file *file, void *unused)
{
	seq_puts(file, "0\n");
	return 0;
}

/* No bridges with ACS, no storage driver that has registered, no GPU. */
static int show_modules(struct seq_file *file, void *unused)
{
	if (*standin_storage)
		seq_printf(file, "%s: 1\n", standin_storage);
	return 0;
}

static int show_nothing(struct seq_file *file, void *unused)
{
	return 0;
}

static int show_distance(struct seq_file *file, void *unused)
{
	seq_puts(file, "gpu\t\tpeer\t\tpeerrank\t\tp2pdist\tlink\tgen\tnuma\tnp2p\tclass\n");
	return 0;
}

static int show_stats(struct seq_file *file, void *unused)
{
	seq_puts(file, "GDS Version: " GDS_VERSION " \n"
		 "NVFS statistics(ver: 4.0)\n"
		 "NVFS Driver(version: @VERSION@)\n"
		 "Mellanox PeerDirect Supported: False\n");
	seq_printf(file, "IO stats: %s, peer IO stats: %s\n", switched(rw_stats_enabled),
		   switched(peer_stats_enabled));
	seq_puts(file, "Logging level: info\n\n"
		 "Active Shadow-Buffer (MiB): 0\n"
		 "Active Process: 0\n");
	if (rw_stats_enabled)
		seq_puts(file, "Batches\t\t\t\t: n=0 ok=0 err=0 Avg-Submit-Latency(usec)=0\n"
			 "Reads\t\t\t\t: n=0 ok=0 err=0 readMiB=0 io_state_err=0\n"
			 "Reads\t\t\t\t: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0\n"
			 "Writes\t\t\t\t: n=0 ok=0 err=0 writeMiB=0 io_state_err=0 "
			 "pg-cache=0 pg-cache-fail=0 pg-cache-eio=0\n"
			 "Writes\t\t\t\t: Bandwidth(MiB/s)=0 Avg-Latency(usec)=0\n");
	else
		seq_puts(file, "Reads\t\t\t\t: err=0 io_state_err=0\n"
			 "Writes\t\t\t\t: err=0 io_state_err=0 pg-cache=0 pg-cache-fail=0 pg-cache-eio=0\n");
	seq_puts(file, "Mmap\t\t\t\t: n=0 ok=0 err=0 munmap=0\n"
		 "Bar1-map\t\t\t: n=0 ok=0 err=0 free=0 callbacks=0 active=0 delay-frees=0\n"
		 "Error\t\t\t\t: cpu-gpu-pages=0 sg-ext=0 dma-map=0 dma-ref=0\n"
		 "Ops\t\t\t\t: Read=0 Write=0 BatchIO=0\n");
	return 0;
}

static struct proc_dir_entry *folder;

int init_module(void);
void cleanup_module(void);

int init_module(void)
{
	folder = proc_mkdir("driver/nvidia-fs", NULL);
	if (!folder)
		return -ENOMEM;
	proc_create_single("version", 0444, folder, show_version);
	proc_create_single("devcount", 0444, folder, show_devcount);
	proc_create_single("bridges", 0444, folder, show_nothing);
	proc_create_single("modules", 0444, folder, show_modules);
	proc_create_single("stats", 0444, folder, show_stats);
	proc_create_single("peer_affinity", 0444, folder, show_nothing);
	proc_create_single("peer_distance", 0444, folder, show_distance);
	return 0;
}

void cleanup_module(void)
{
	proc_remove(folder);
	nvidia_p2p_put_pages(0, NULL);
}

__MODULE_INFO(license, license, "GPL v2");
__MODULE_INFO(version, version, "@VERSION@");
__MODULE_INFO(description, description, "stand-in of railwright's tests for GPUDirect Storage");
___ADDRESSABLE(init_module, __initdata);
___ADDRESSABLE(cleanup_module, __exitdata);
