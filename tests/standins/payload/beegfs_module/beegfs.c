/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stand-in of railwright's tests for beegfs.ko: the file system beegfs, an empty directory. It reads
 * the file that cfgFile= names, as Config.c of ThinkParQ/beegfs does, and tells under
 * /proc/fs/beegfs/ID what is in force; of servers it has one of each kind.
 */
#include <linux/ctype.h>
#include <linux/inetdevice.h>
#include <linux/kernel_read_file.h>
#include <linux/netdevice.h>
#include <linux/proc_fs.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>
#include <standin_fs.h>

#define MAGIC 0x19830326
#define MOST_BYTES (256 << 10)
#define MOST_KEYS 128

/* How servers are reached where RDMA is asked for: Y is by TCP, as where it does not connect. */
static bool fallback;
module_param(fallback, bool, 0644);

/* The interface of OFED or the kernel that RDMA is built upon: by another one it is refused. */
int ib_register_client(void *client);
static int (*const of_ib_core)(void *client) __attribute__((used)) = ib_register_client;

struct client {
	int count;
	char *keys[MOST_KEYS], *values[MOST_KEYS];
	char *text, *told, *rdma, *file;
	char management[64], id[96];
	struct proc_dir_entry *folder;
};

static struct proc_dir_entry *root;
static atomic_t numbers = ATOMIC_INIT(0);

static char *read_file(const char *path)
{
	void *bytes = NULL;
	char *text;
	ssize_t size = kernel_read_file_from_path(path, 0, &bytes, MOST_BYTES, NULL,
						  READING_UNKNOWN);

	if (size < 0)
		return ERR_PTR(size);
	text = kmalloc(size + 1, GFP_KERNEL);
	if (text) {
		memcpy(text, bytes, size);
		text[size] = 0;
	}
	vfree(bytes);
	return text ? text : ERR_PTR(-ENOMEM);
}

static const char *value_of(const struct client *client, const char *key)
{
	int i;

	for (i = client->count - 1; i >= 0; i--)
		if (!strcmp(client->keys[i], key))
			return client->values[i];
	return NULL;
}

static bool is_on(const char *value)
{
	return value && (!strcasecmp(value, "true") || !strcasecmp(value, "yes")
			 || !strcasecmp(value, "on") || !strcmp(value, "1"));
}

/* A last line without a line break counts for nothing. */
static int parse(struct client *client)
{
	char *rest = client->text, *line, *value;

	while (strchr(rest, '\n')) {
		line = strim(strsep(&rest, "\n"));
		if (!*line || *line == '#')
			continue;
		value = strchr(line, '=');
		if (client->count == MOST_KEYS)
			return -E2BIG;
		if (value)
			*value++ = 0;
		client->keys[client->count] = strim(line);
		client->values[client->count++] = value ? strim(value) : "";
	}
	return 0;
}

/* Of the names of the ports 7 knows not those of 8, and 8 takes no two of one. */
static int check(const struct client *client)
{
	static const char *const pairs[][2] = {
		{ "connClientPort", "connClientPortUDP" },
		{ "connMgmtdPort", "connMgmtdPortTCP" },
		{ "connMgmtdPort", "connMgmtdPortUDP" },
	};
	const char *file = value_of(client, "connAuthFile");
	char *secret;
	int i;

	for (i = 0; i < ARRAY_SIZE(pairs); i++)
		if (value_of(client, pairs[i][0])
		    && (@SHORT@ == 7 || value_of(client, pairs[i][1]))) {
			pr_err("beegfs: invalid argument in the configuration: %s\n", pairs[i][0]);
			return -EINVAL;
		}
	if (!*client->management) {
		pr_err("beegfs: no management host (sysMgmtdHost)\n");
		return -EINVAL;
	}
	if (is_on(value_of(client, "connDisableAuthentication")))
		return 0;
	secret = file && *file ? read_file(file) : ERR_PTR(-ENOENT);
	if (IS_ERR(secret)) {
		pr_err("beegfs: connAuthFile cannot be read\n");
		return PTR_ERR(secret);
	}
	kfree_sensitive(secret);
	return 0;
}

/* A file of interfaces; NULL where the key is empty. */
static char *list_of(const struct client *client, const char *key)
{
	const char *path = value_of(client, key);

	return path && *path ? read_file(path) : NULL;
}

static bool listed(const char *list, const char *name)
{
	const char *at = list;
	size_t length = strlen(name);

	if (!list)
		return true;
	while ((at = strstr(at, name))) {
		if ((at == list || at[-1] == '\n') && (!at[length] || isspace(at[length])))
			return true;
		at += length;
	}
	return false;
}

static int show_interfaces(struct seq_file *file, const char *list, const char *type)
{
	struct net_device *device;
	struct in_ifaddr *address;
	int count = 0;

	rcu_read_lock();
	for_each_netdev_rcu(&init_net, device) {
		struct in_device *in = __in_dev_get_rcu(device);

		if (!in || device->flags & IFF_LOOPBACK || !(device->flags & IFF_UP)
		    || !listed(list, device->name))
			continue;
		in_dev_for_each_ifa_rcu(address, in) {
			seq_printf(file, "+ %s[ip addr: %pI4; type: %s]\n", device->name,
				   &address->ifa_local, type);
			count++;
		}
	}
	rcu_read_unlock();
	return count;
}

static int show_client(struct seq_file *file, void *unused)
{
	const struct client *client = file->private;

	seq_printf(file, "ClientID: %s\nInterfaces:\n", client->id);
	show_interfaces(file, client->told, "TCP");
	if (!is_on(value_of(client, "connUseRDMA")))
		return 0;
	seq_puts(file, "Outbound RDMA Interfaces:\n");
	if (!client->rdma)
		seq_puts(file, "+ Any\n");
	else
		show_interfaces(file, client->rdma, "RDMA");
	return 0;
}

static int show_config(struct seq_file *file, void *unused)
{
	const struct client *client = file->private;
	int i;

	seq_printf(file, "cfgFile = %s\n", client->file);
	for (i = 0; i < client->count; i++) {
		const char *key = client->keys[i], *value = client->values[i];

		if (value_of(client, key) != value)
			continue;
		if (!strcmp(key, "sysMgmtdHost"))
			value = client->management;
		else if (!strcasecmp(value, "true") || !strcasecmp(value, "false"))
			value = is_on(value) ? "1" : "0";
		seq_printf(file, "%s = %s\n", key, value);
	}
	return 0;
}

static void show_server(struct seq_file *file, bool by_rdma, int port)
{
	const struct client *client = file->private;

	by_rdma = by_rdma && is_on(value_of(client, "connUseRDMA"));
	if (by_rdma && READ_ONCE(fallback) && !is_on(value_of(client, "connTCPFallbackEnabled")))
		seq_puts(file, "   Connections: <none>\n");
	else
		seq_printf(file, "   Connections: %s: 4 (%s:%d%s); \n",
			   by_rdma && !READ_ONCE(fallback) ? "RDMA" : "TCP", client->management,
			   port, by_rdma && READ_ONCE(fallback) ? " [fallback route]" : "");
}

static int show_management(struct seq_file *file, void *unused)
{
	seq_puts(file, "mgmt01 [ID: 1]\n");
	show_server(file, false, 8008);
	return 0;
}

static int show_meta(struct seq_file *file, void *unused)
{
	seq_puts(file, "meta01 [ID: 2]\n   Root: <yes>\n");
	show_server(file, true, 8005);
	return 0;
}

static int show_storage(struct seq_file *file, void *unused)
{
	seq_puts(file, "stor01 [ID: 3]\n");
	show_server(file, true, 8003);
	return 0;
}

static void forget(struct client *client)
{
	if (!client)
		return;
	if (client->folder)
		proc_remove(client->folder);
	if (!IS_ERR(client->text))
		kfree(client->text);
	if (!IS_ERR(client->told))
		kfree(client->told);
	if (!IS_ERR(client->rdma))
		kfree(client->rdma);
	kfree(client->file);
	kfree(client);
}

static int tell(struct client *client)
{
	scnprintf(client->id, sizeof(client->id), "%X-%X-%s", atomic_inc_return(&numbers), 0x65,
		  utsname()->nodename);
	client->folder = proc_mkdir(client->id, root);
	if (!client->folder)
		return -ENOMEM;
	proc_create_single_data("config", 0444, client->folder, show_config, client);
	proc_create_single_data("client_info", 0444, client->folder, show_client, client);
	proc_create_single_data("mgmt_nodes", 0444, client->folder, show_management, client);
	proc_create_single_data("meta_nodes", 0444, client->folder, show_meta, client);
	proc_create_single_data("storage_nodes", 0444, client->folder, show_storage, client);
	return 0;
}

/* An option of mount, copied; NULL where it is not given. */
static char *option_of(const char *options, const char *name)
{
	const char *at = options;
	size_t length = strlen(name);

	while (at && *at) {
		if (!strncmp(at, name, length) && at[length] == '=')
			return kstrndup(at + length + 1, strcspn(at + length + 1, ","), GFP_KERNEL);
		at = strchr(at, ',');
		at = at ? at + 1 : NULL;
	}
	return NULL;
}

/* What mount says of the management host counts before the file. */
static void name_management(struct client *client, const char *options)
{
	char *given = option_of(options, "sysMgmtdHost");
	const char *host = given ? given : value_of(client, "sysMgmtdHost");

	strscpy(client->management, host ? host : "", sizeof(client->management));
	kfree(given);
}

static int configure(struct client *client, const char *options)
{
	int error;

	client->file = option_of(options, "cfgFile");
	if (!client->file)
		return -EINVAL;
	client->text = read_file(client->file);
	if (IS_ERR(client->text))
		return PTR_ERR(client->text);
	error = parse(client);
	if (error)
		return error;
	name_management(client, options);
	error = check(client);
	if (error)
		return error;
	client->told = list_of(client, "connInterfacesFile");
	client->rdma = list_of(client, "connRDMAInterfacesFile");
	if (IS_ERR(client->told) || IS_ERR(client->rdma)) {
		pr_err("beegfs: a list of interfaces cannot be read\n");
		return -ENOENT;
	}
	return tell(client);
}

static int fill(struct super_block *sb, void *data, int silent)
{
	struct client *client = kzalloc(sizeof(*client), GFP_KERNEL);
	struct standin_info *info;
	int error = client ? configure(client, data) : -ENOMEM;

	if (!error)
		error = standin_fill(sb, data, MAGIC);
	if (error) {
		forget(client);
		return error;
	}
	info = sb->s_fs_info;
	info->more = client;
	return 0;
}

static void kill(struct super_block *sb)
{
	struct standin_info *info = sb->s_fs_info;
	struct client *client = info ? info->more : NULL;

	standin_kill(sb);
	forget(client);
}

static struct dentry *beegfs_mount(struct file_system_type *type, int flags, const char *device,
				   void *data)
{
	return mount_nodev(type, flags, data, fill);
}

static struct file_system_type beegfs_type = {
	.owner = THIS_MODULE,
	.name = "beegfs",
	.mount = beegfs_mount,
	.kill_sb = kill,
};

static int __init beegfs_init(void)
{
	int error;

	root = proc_mkdir("fs/beegfs", NULL);
	if (!root)
		return -ENOMEM;
	error = register_filesystem(&beegfs_type);
	if (error)
		proc_remove(root);
	return error;
}

static void __exit beegfs_exit(void)
{
	unregister_filesystem(&beegfs_type);
	proc_remove(root);
}

module_init(beegfs_init);
module_exit(beegfs_exit);
MODULE_ALIAS_FS("beegfs");
MODULE_LICENSE("GPL v2");
MODULE_VERSION("@VERSION@");
MODULE_DESCRIPTION("stand-in of railwright's tests for BeeGFS's client");
