// SPDX-License-Identifier: GPL-2.0
/*
 * What the vendor's driver shows beside the kernel's own interfaces, and the inbox driver does not:
 * ecn and qos under the net device, tc under the RDMA device. Inbox, debugfs has a part of it.
 * Both have counters in debugfs that can be made to grow.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>
#include "railsim.h"

static char *personality = "inbox";
module_param(personality, charp, 0444);
MODULE_PARM_DESC(personality, "inbox or ofed");

static struct dentry *rs_debugfs;

bool rs_is_ofed(void)
{
	return !strcmp(personality, "ofed");
}

bool rs_personality_is_known(void)
{
	return rs_is_ofed() || !strcmp(personality, "inbox");
}

static ssize_t rs_number_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%u\n", *container_of(attr, struct rs_number, attr)->value);
}

static ssize_t rs_number_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	struct rs_number *number = container_of(attr, struct rs_number, attr);
	u8 value;
	int err = kstrtou8(buf, 0, &value);

	if (err)
		return err;
	if (value > number->max)
		return -EINVAL;
	WRITE_ONCE(*number->value, value);
	return count;
}

static struct kobject *rs_folder(struct rs *rs, struct kobject *parent, const char *name)
{
	struct kobject *folder = parent ? kobject_create_and_add(name, parent) : NULL;

	if (folder)
		rs->folders[rs->folder_count++] = folder;
	else
		netdev_err(rs->dev, "no folder %s in sysfs\n", name);
	return folder;
}

static void rs_file(struct rs *rs, struct kobject *folder, const struct attribute *attr)
{
	if (folder && sysfs_create_file(folder, attr))
		netdev_err(rs->dev, "no file %s in sysfs\n", attr->name);
}

static void rs_number(struct rs *rs, struct kobject *folder, const char *name, u8 *value, u8 max)
{
	struct rs_number *number = &rs->numbers[rs->number_count++];

	sysfs_attr_init(&number->attr.attr);
	number->attr.attr.name = name;
	number->attr.attr.mode = 0644;
	number->attr.show = rs_number_show;
	number->attr.store = rs_number_store;
	number->value = value;
	number->max = max;
	rs_file(rs, folder, &number->attr.attr);
}

static struct kobject *rs_ecn_point(struct rs *rs, struct kobject *ecn, const char *name,
				    u8 *enable)
{
	static const char * const digits[RS_PRIOS] = { "0", "1", "2", "3", "4", "5", "6", "7" };
	struct kobject *point = rs_folder(rs, ecn, name);
	struct kobject *folder = rs_folder(rs, point, "enable");
	int prio;

	for (prio = 0; prio < RS_PRIOS; prio++)
		rs_number(rs, folder, digits[prio], &enable[prio], 1);
	return point;
}

static struct rs *rs_of_folder(struct kobject *folder)
{
	return netdev_priv(to_net_dev(kobj_to_dev(folder->parent)));
}

static ssize_t trust_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	return sysfs_emit(buf, "%s\n", rs_of_folder(kobj)->qos.trust_dscp ? "dscp" : "pcp");
}

static ssize_t trust_store(struct kobject *kobj, struct kobj_attribute *attr,
			   const char *buf, size_t count)
{
	bool dscp = sysfs_streq(buf, "dscp");

	if (!dscp && !sysfs_streq(buf, "pcp"))
		return -EINVAL;
	WRITE_ONCE(rs_of_folder(kobj)->qos.trust_dscp, dscp);
	return count;
}

static struct kobj_attribute trust = __ATTR_RW(trust);

static ssize_t dscp2prio_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct rs *rs = rs_of_folder(kobj);
	int len = sysfs_emit(buf, "dscp2prio mapping:\n");
	int dscp;

	for (dscp = 0; dscp < RS_DSCPS; dscp++)
		len += sysfs_emit_at(buf, len, "\t%d\t%u\n", dscp, rs->qos.dscp2prio[dscp]);
	return len;
}

static ssize_t dscp2prio_store(struct kobject *kobj, struct kobj_attribute *attr,
			       const char *buf, size_t count)
{
	unsigned int dscp, prio;

	if (sscanf(buf, "%u %u", &dscp, &prio) != 2 || dscp >= RS_DSCPS || prio >= RS_PRIOS)
		return -EINVAL;
	WRITE_ONCE(rs_of_folder(kobj)->qos.dscp2prio[dscp], prio);
	return count;
}

static struct kobj_attribute dscp2prio = __ATTR_RW(dscp2prio);

static void rs_add_sysfs(struct rs *rs)
{
	struct kobject *ecn = rs_folder(rs, &rs->dev->dev.kobj, "ecn");
	struct kobject *np = rs_ecn_point(rs, ecn, "roce_np", rs->ecn.np_enable);
	struct kobject *qos = rs_folder(rs, &rs->dev->dev.kobj, "qos");

	rs_ecn_point(rs, ecn, "roce_rp", rs->ecn.rp_enable);
	rs_number(rs, np, "cnp_dscp", &rs->ecn.cnp_dscp, RS_DSCPS - 1);
	rs_number(rs, np, "cnp_802p_prio", &rs->ecn.cnp_prio, RS_PRIOS - 1);
	rs_file(rs, qos, &trust.attr);
	rs_file(rs, qos, &dscp2prio.attr);
}

static void rs_add_debugfs(struct rs *rs)
{
	static const char * const names[RS_EVENTS] = {
		"rx_prio%d_discards", "rx_prio%d_pause", "tx_prio%d_pause"
	};
	struct dentry *folder;
	char name[32];
	int prio, event;

	rs->debugfs = debugfs_create_dir(dev_name(rs->dev->dev.parent), rs_debugfs);
	folder = debugfs_create_dir("counters", rs->debugfs);
	for (prio = 0; prio < RS_PRIOS; prio++)
		for (event = 0; event < RS_EVENTS; event++) {
			snprintf(name, sizeof(name), names[event], prio);
			debugfs_create_u64(name, 0600, folder, &rs->events[prio][event]);
		}
	if (rs_is_ofed())
		return;
	folder = debugfs_create_dir("cc_params", rs->debugfs);
	debugfs_create_u8("np_cnp_dscp", 0600, folder, &rs->ecn.cnp_dscp);
	debugfs_create_u8("np_cnp_prio", 0600, folder, &rs->ecn.cnp_prio);
	debugfs_create_u8("np_cnp_prio_mode", 0600, folder, &rs->ecn.cnp_prio_mode);
}

void rs_personality_add(struct rs *rs)
{
	rs_add_debugfs(rs);
	if (rs_is_ofed())
		rs_add_sysfs(rs);
}

void rs_personality_remove(struct rs *rs)
{
	debugfs_remove_recursive(rs->debugfs);
	while (rs->folder_count)
		kobject_put(rs->folders[--rs->folder_count]);
}

/* The simulated NIC under an RDMA device, which holds it until the device is gone. */
static struct rs *rs_of_rdma(struct ib_device *rdma)
{
	struct net_device *dev;

	rcu_read_lock();
	dev = rcu_dereference(rdma->port_data[1].netdev);
	rcu_read_unlock();
	return dev && dev->netdev_ops == &rs_netdev_ops ? netdev_priv(dev) : NULL;
}

static struct rs *rs_of_port(struct kobject *port)
{
	return rs_of_rdma(rdma_device_to_ibdev(kobj_to_dev(port->parent->parent)));
}

static ssize_t traffic_class_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)
{
	struct rs *rs = rs_of_port(kobj);

	return rs && rs->tclass >= 0 ? sysfs_emit(buf, "Global tclass=%d\n", rs->tclass) : 0;
}

static ssize_t traffic_class_store(struct kobject *kobj, struct kobj_attribute *attr,
				   const char *buf, size_t count)
{
	struct rs *rs = rs_of_port(kobj);
	int value;
	int err = kstrtoint(buf, 0, &value);

	if (err)
		return err;
	if (!rs || value < -1 || value > 255)
		return -EINVAL;
	WRITE_ONCE(rs->tclass, value);
	return count;
}

static struct kobj_attribute traffic_class = __ATTR_RW(traffic_class);

static struct ib_client rs_rdma_client;

static int rs_rdma_add(struct ib_device *rdma)
{
	struct kobject *tc, *port;

	if (!rs_of_rdma(rdma))
		return -EOPNOTSUPP;
	tc = kobject_create_and_add("tc", &rdma->dev.kobj);
	if (!tc)
		return -ENOMEM;
	port = kobject_create_and_add("1", tc);
	if (!port || sysfs_create_file(port, &traffic_class.attr)) {
		kobject_put(port);
		kobject_put(tc);
		return -ENOMEM;
	}
	ib_set_client_data(rdma, &rs_rdma_client, port);
	return 0;
}

static void rs_rdma_remove(struct ib_device *rdma, void *client_data)
{
	struct kobject *port = client_data, *tc = port->parent;

	kobject_put(port);
	kobject_put(tc);
}

static struct ib_client rs_rdma_client = {
	.name	= KBUILD_MODNAME,
	.add	= rs_rdma_add,
	.remove	= rs_rdma_remove,
};

int rs_personality_start(void)
{
	rs_debugfs = debugfs_create_dir("mlx5", NULL);
	return rs_is_ofed() ? ib_register_client(&rs_rdma_client) : 0;
}

void rs_personality_stop(void)
{
	if (rs_is_ofed())
		ib_unregister_client(&rs_rdma_client);
	debugfs_remove_recursive(rs_debugfs);
}
