// SPDX-License-Identifier: GPL-2.0
/* What ethtool reads and sets, under the names of mlx5. */
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/utsname.h>
#include "railsim.h"

static unsigned int speed = 400000;
module_param(speed, uint, 0644);
MODULE_PARM_DESC(speed, "link speed that is reported, in Mbit/s");

/* Counters being listed: their names, their values, or only their number. */
struct rs_list {
	u8 *names;
	u64 *values;
	int count;
};

static void rs_list_add(struct rs_list *list, u64 value, const char *name, int prio)
{
	if (list->names)
		snprintf(list->names + list->count * ETH_GSTRING_LEN, ETH_GSTRING_LEN, name, prio);
	if (list->values)
		list->values[list->count] = value;
	list->count++;
}

u64 rs_event_sum(struct rs *rs, enum rs_event event)
{
	u64 sum = 0;
	int prio;

	for (prio = 0; prio < RS_PRIOS; prio++)
		sum += READ_ONCE(rs->events[prio][event]);
	return sum;
}

static void rs_list_port(struct rs *rs, struct rs_list *list)
{
	struct rtnl_link_stats64 stats;

	dev_get_stats(rs->dev, &stats);
	rs_list_add(list, stats.rx_packets, "rx_packets", 0);
	rs_list_add(list, stats.rx_bytes, "rx_bytes", 0);
	rs_list_add(list, stats.tx_packets, "tx_packets", 0);
	rs_list_add(list, stats.tx_bytes, "tx_bytes", 0);
	rs_list_add(list, 0, "rx_out_of_buffer", 0);
	rs_list_add(list, 0, "rx_crc_errors_phy", 0);
	rs_list_add(list, 0, "rx_symbol_err_phy", 0);
	rs_list_add(list, stats.rx_dropped, "rx_discards_phy", 0);
	rs_list_add(list, stats.tx_dropped, "tx_discards_phy", 0);
	rs_list_add(list, rs_event_sum(rs, RS_RX_PAUSE), "rx_pause_ctrl_phy", 0);
	rs_list_add(list, rs_event_sum(rs, RS_TX_PAUSE), "tx_pause_ctrl_phy", 0);
	rs_list_add(list, atomic_read(&rs->dev->carrier_down_count), "link_down_events_phy", 0);
}

static void rs_list_prio(struct rs *rs, struct rs_list *list, int prio)
{
	atomic64_t *traffic = rs->traffic[prio];
	u64 *events = rs->events[prio];

	rs_list_add(list, atomic64_read(&traffic[RS_RX_BYTES]), "rx_prio%d_bytes", prio);
	rs_list_add(list, atomic64_read(&traffic[RS_RX_PACKETS]), "rx_prio%d_packets", prio);
	rs_list_add(list, events[RS_RX_DISCARDS], "rx_prio%d_discards", prio);
	rs_list_add(list, atomic64_read(&traffic[RS_TX_BYTES]), "tx_prio%d_bytes", prio);
	rs_list_add(list, atomic64_read(&traffic[RS_TX_PACKETS]), "tx_prio%d_packets", prio);
}

static int rs_list_all(struct rs *rs, u8 *names, u64 *values)
{
	struct rs_list list = { .names = names, .values = values };
	int prio;

	rs_list_port(rs, &list);
	for (prio = 0; prio < RS_PRIOS; prio++)
		rs_list_prio(rs, &list, prio);
	/* mlx5 has these only for priorities with PFC, and the global ones only with pause. */
	for (prio = 0; prio < RS_PRIOS; prio++) {
		if (!(rs->qos.pfc_en & BIT(prio)))
			continue;
		rs_list_add(&list, rs->events[prio][RS_RX_PAUSE], "rx_prio%d_pause", prio);
		rs_list_add(&list, rs->events[prio][RS_TX_PAUSE], "tx_prio%d_pause", prio);
	}
	if (rs->qos.rx_pause || rs->qos.tx_pause) {
		rs_list_add(&list, 0, "rx_global_pause", 0);
		rs_list_add(&list, 0, "tx_global_pause", 0);
	}
	return list.count;
}

static int rs_sset_count(struct net_device *dev, int set)
{
	return set == ETH_SS_STATS ? rs_list_all(netdev_priv(dev), NULL, NULL) : -EOPNOTSUPP;
}

static void rs_strings(struct net_device *dev, u32 set, u8 *names)
{
	if (set == ETH_SS_STATS)
		rs_list_all(netdev_priv(dev), names, NULL);
}

static void rs_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *values)
{
	rs_list_all(netdev_priv(dev), NULL, values);
}

static void rs_drvinfo(struct net_device *dev, struct ethtool_drvinfo *info)
{
	strscpy(info->driver, KBUILD_MODNAME, sizeof(info->driver));
	strscpy(info->version, rs_is_ofed() ? "24.10-1.1.4" : utsname()->release,
		sizeof(info->version));
	strscpy(info->fw_version, "28.43.1014 (SIM0000000838)", sizeof(info->fw_version));
	strscpy(info->bus_info, dev_name(dev->dev.parent), sizeof(info->bus_info));
}

static void rs_get_pause(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct rs *rs = netdev_priv(dev);

	pause->rx_pause = rs->qos.rx_pause;
	pause->tx_pause = rs->qos.tx_pause;
}

static int rs_set_pause(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct rs *rs = netdev_priv(dev);

	if (pause->autoneg)
		return -EINVAL;
	rs->qos.rx_pause = !!pause->rx_pause;
	rs->qos.tx_pause = !!pause->tx_pause;
	return 0;
}

static int rs_link_settings(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	bool up = netif_carrier_ok(dev);

	settings->base.speed = up ? READ_ONCE(speed) : SPEED_UNKNOWN;
	settings->base.duplex = up ? DUPLEX_FULL : DUPLEX_UNKNOWN;
	settings->base.port = PORT_FIBRE;
	settings->base.autoneg = AUTONEG_ENABLE;
	return 0;
}

const struct ethtool_ops rs_ethtool_ops = {
	.get_drvinfo		= rs_drvinfo,
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= rs_link_settings,
	.get_pauseparam		= rs_get_pause,
	.set_pauseparam		= rs_set_pause,
	.get_sset_count		= rs_sset_count,
	.get_strings		= rs_strings,
	.get_ethtool_stats	= rs_stats,
};
