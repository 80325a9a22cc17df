/* SPDX-License-Identifier: GPL-2.0 */
/* Stand-in of railwright's tests: the file system lustre, an empty directory. */
#include <standin_fs.h>

/* LL_SUPER_MAGIC, by which statfs tells Lustre. */
#define MAGIC 0x0BD00BD0

int obdclass_standin(void);

static int fill(struct super_block *sb, void *data, int silent)
{
	return standin_fill(sb, data, MAGIC);
}

static struct dentry *lustre_mount(struct file_system_type *type, int flags, const char *device,
				   void *data)
{
	return mount_nodev(type, flags, data, fill);
}

static struct file_system_type lustre_type = {
	.owner = THIS_MODULE,
	.name = "lustre",
	.mount = lustre_mount,
	.kill_sb = standin_kill,
};

static int __init lustre_init(void)
{
	return obdclass_standin() ? -ENODEV : register_filesystem(&lustre_type);
}

static void __exit lustre_exit(void)
{
	unregister_filesystem(&lustre_type);
}

module_init(lustre_init);
module_exit(lustre_exit);
MODULE_ALIAS_FS("lustre");
MODULE_LICENSE("GPL");
MODULE_VERSION("@VERSION@");
MODULE_DESCRIPTION("stand-in of railwright's tests for Lustre's client");
