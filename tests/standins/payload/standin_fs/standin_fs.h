/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for a network's file system: an empty directory. While the
 * parameter `hang` is Y nobody who asks for it (statfs) gets an answer, as where its server is away;
 * whoever waits can be killed.
 */
#ifndef STANDIN_FS_H
#define STANDIN_FS_H

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/statfs.h>

#define STANDIN_BLOCKS (1ULL << 30)

static bool hang;
module_param(hang, bool, 0644);

static int standin_statfs(struct dentry *dentry, struct kstatfs *found)
{
	while (READ_ONCE(hang)) {
		schedule_timeout_killable(HZ / 5);
		if (fatal_signal_pending(current))
			return -EINTR;
	}
	found->f_type = dentry->d_sb->s_magic;
	found->f_bsize = PAGE_SIZE;
	found->f_blocks = STANDIN_BLOCKS;
	found->f_bfree = STANDIN_BLOCKS / 2;
	found->f_bavail = STANDIN_BLOCKS / 2;
	found->f_namelen = NAME_MAX;
	return 0;
}

/* What is behind a super block: the options that it was mounted with, and what comes after. */
struct standin_info {
	char *options;
	void *more;
};

static int standin_show_options(struct seq_file *file, struct dentry *root)
{
	const struct standin_info *info = root->d_sb->s_fs_info;

	if (*info->options)
		seq_printf(file, ",%s", info->options);
	return 0;
}

static const struct super_operations standin_operations = {
	.statfs = standin_statfs,
	.show_options = standin_show_options,
	.drop_inode = generic_delete_inode,
};

static int standin_fill(struct super_block *sb, void *data, unsigned long magic)
{
	static const struct tree_descr nothing[] = { { "" } };
	struct standin_info *info = kzalloc(sizeof(*info), GFP_KERNEL);

	if (!info)
		return -ENOMEM;
	sb->s_fs_info = info;
	info->options = kstrdup(data ? data : "", GFP_KERNEL);
	if (!info->options)
		return -ENOMEM;
	if (simple_fill_super(sb, magic, nothing))
		return -ENOMEM;
	sb->s_op = &standin_operations;
	return 0;
}

static void standin_kill(struct super_block *sb)
{
	struct standin_info *info = sb->s_fs_info;

	kill_litter_super(sb);
	if (info)
		kfree(info->options);
	kfree(info);
}

#endif
