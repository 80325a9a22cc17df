// SPDX-License-Identifier: GPL-2.0
/*
 * railsim: stands in for a RoCE NIC with DCB in a virtual machine.
 *
 * Every virtio NIC behind a downstream port of a PCIe switch gets a second net device on top,
 * which carries its traffic and answers dcb, ethtool and sysfs as mlx5 does. PFC, ETS and ECN are
 * kept and reported, but nothing is paused, shaped or marked.
 */
#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/inet_ecn.h>
#include <net/dsfield.h>
#include <rdma/ib_verbs.h>
#include "railsim.h"

static bool lose_on_link_down;
module_param(lose_on_link_down, bool, 0644);
MODULE_PARM_DESC(lose_on_link_down, "a link that comes up again has the firmware's QoS defaults");

static unsigned int link_toggle_ms = 200;
module_param(link_toggle_ms, uint, 0644);
MODULE_PARM_DESC(link_toggle_ms, "how long a change of PFC takes the link down; 0: not at all");

/* 802.1p priority of a packet, as the port's trust state has it. */
static u8 rs_priority(struct rs *rs, struct sk_buff *skb)
{
	int dsfield;

	if (!READ_ONCE(rs->qos.trust_dscp))
		return skb_vlan_tag_present(skb) ? skb_vlan_tag_get_prio(skb) : 0;
	dsfield = skb_get_dsfield(skb);
	return dsfield < 0 ? 0 : READ_ONCE(rs->qos.dscp2prio[dsfield >> 2]);
}

static void rs_count(struct rs *rs, struct sk_buff *skb, enum rs_traffic bytes,
		     enum rs_traffic packets, unsigned int len)
{
	atomic64_t *traffic = rs->traffic[rs_priority(rs, skb)];

	atomic64_add(len, &traffic[bytes]);
	/* Packets that GRO has merged were one each on the wire. */
	atomic64_add(max_t(u16, skb_shinfo(skb)->gso_segs, 1), &traffic[packets]);
}

/* What OFED's traffic_class does in the NIC; RoCE's ICRC does not cover these bits. */
static void rs_force_tclass(struct sk_buff *skb, u8 tclass)
{
	int udp = skb_transport_offset(skb);
	bool roce = skb_transport_header_was_set(skb) &&
		    pskb_may_pull(skb, udp + sizeof(struct udphdr)) &&
		    udp_hdr(skb)->dest == htons(ROCE_V2_UDP_DPORT);

	if (!roce || skb_ensure_writable(skb, udp))
		return;
	if (skb->protocol == htons(ETH_P_IP) && ip_hdr(skb)->protocol == IPPROTO_UDP)
		ipv4_change_dsfield(ip_hdr(skb), 0, tclass);
	else if (skb->protocol == htons(ETH_P_IPV6) && ipv6_hdr(skb)->nexthdr == IPPROTO_UDP)
		ipv6_change_dsfield(ipv6_hdr(skb), 0, tclass);
}

static netdev_tx_t rs_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct rs *rs = netdev_priv(dev);
	int tclass = READ_ONCE(rs->tclass);
	int err;

	if (tclass >= 0)
		rs_force_tclass(skb, tclass);
	rs_count(rs, skb, RS_TX_BYTES, RS_TX_PACKETS, skb->len);
	skb->dev = rs->lower;
	err = dev_queue_xmit(skb);
	if (net_xmit_eval(err))
		atomic64_inc(&rs->tx_dropped);
	return NETDEV_TX_OK;
}

static rx_handler_result_t rs_receive(struct sk_buff **pskb)
{
	struct rs *rs = rcu_dereference((*pskb)->dev->rx_handler_data);
	struct net_device *dev = rs->dev;
	struct sk_buff *skb = skb_share_check(*pskb, GFP_ATOMIC);

	if (!skb)
		return RX_HANDLER_CONSUMED;
	*pskb = skb;
	if (!netif_running(dev) || !netif_carrier_ok(dev)) {
		kfree_skb(skb);
		return RX_HANDLER_CONSUMED;
	}
	rs_count(rs, skb, RS_RX_BYTES, RS_RX_PACKETS, skb->len + ETH_HLEN);
	skb->dev = dev;
	/* The lower device judged the packet by its own address. */
	if (skb->pkt_type == PACKET_HOST || skb->pkt_type == PACKET_OTHERHOST)
		skb->pkt_type = ether_addr_equal(eth_hdr(skb)->h_dest, dev->dev_addr) ?
				PACKET_HOST : PACKET_OTHERHOST;
	return RX_HANDLER_ANOTHER;
}

static void rs_update_carrier(struct rs *rs)
{
	if (!READ_ONCE(rs->link_toggling) && netif_running(rs->dev) &&
	    netif_running(rs->lower) && netif_carrier_ok(rs->lower))
		netif_carrier_on(rs->dev);
	else
		netif_carrier_off(rs->dev);
}

static void rs_toggle_end(struct work_struct *work)
{
	struct rs *rs = container_of(to_delayed_work(work), struct rs, toggle_end);

	WRITE_ONCE(rs->link_toggling, false);
	rs_update_carrier(rs);
}

/* mlx5 takes the link down and up to make the peer learn of a change. */
void rs_toggle_link(struct rs *rs)
{
	unsigned int ms = READ_ONCE(link_toggle_ms);

	if (!ms || !netif_running(rs->dev))
		return;
	WRITE_ONCE(rs->link_toggling, true);
	rs_update_carrier(rs);
	mod_delayed_work(system_wq, &rs->toggle_end, msecs_to_jiffies(ms));
}

static int rs_open(struct net_device *dev)
{
	struct rs *rs = netdev_priv(dev);
	int err = dev_open(rs->lower, NULL);

	if (err)
		return err;
	if (READ_ONCE(lose_on_link_down))
		rs_qos_forget(rs);
	rs_update_carrier(rs);
	netif_start_queue(dev);
	return 0;
}

static int rs_stop(struct net_device *dev)
{
	netif_stop_queue(dev);
	netif_carrier_off(dev);
	return 0;
}

static int rs_change_mtu(struct net_device *dev, int mtu)
{
	struct rs *rs = netdev_priv(dev);

	if (mtu > rs->lower->mtu)
		return -EINVAL;
	WRITE_ONCE(dev->mtu, mtu);
	return 0;
}

static int rs_phys_port_name(struct net_device *dev, char *name, size_t len)
{
	return snprintf(name, len, "p0") < len ? 0 : -EOPNOTSUPP;
}

static void rs_get_stats64(struct net_device *dev, struct rtnl_link_stats64 *stats)
{
	struct rs *rs = netdev_priv(dev);
	int prio;

	for (prio = 0; prio < RS_PRIOS; prio++) {
		stats->rx_packets += atomic64_read(&rs->traffic[prio][RS_RX_PACKETS]);
		stats->rx_bytes += atomic64_read(&rs->traffic[prio][RS_RX_BYTES]);
		stats->tx_packets += atomic64_read(&rs->traffic[prio][RS_TX_PACKETS]);
		stats->tx_bytes += atomic64_read(&rs->traffic[prio][RS_TX_BYTES]);
	}
	stats->rx_dropped = rs_event_sum(rs, RS_RX_DISCARDS);
	stats->tx_dropped = atomic64_read(&rs->tx_dropped);
}

const struct net_device_ops rs_netdev_ops = {
	.ndo_open		= rs_open,
	.ndo_stop		= rs_stop,
	.ndo_start_xmit		= rs_xmit,
	.ndo_change_mtu		= rs_change_mtu,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
	.ndo_get_stats64	= rs_get_stats64,
	.ndo_get_phys_port_name	= rs_phys_port_name,
};

/* The PCI device of a NIC in a rail slot; NULL for all other net devices. */
static struct pci_dev *rs_slot(struct net_device *lower)
{
	struct device *virtio = lower->dev.parent;
	struct pci_dev *slot, *bridge;

	if (!virtio || !virtio->bus || strcmp(virtio->bus->name, "virtio") ||
	    !dev_is_pci(virtio->parent))
		return NULL;
	slot = to_pci_dev(virtio->parent);
	bridge = pci_upstream_bridge(slot);
	return bridge && pci_pcie_type(bridge) == PCI_EXP_TYPE_DOWNSTREAM ? slot : NULL;
}

static struct rs *rs_on(struct net_device *lower)
{
	if (rtnl_dereference(lower->rx_handler) != rs_receive)
		return NULL;
	return rtnl_dereference(lower->rx_handler_data);
}

static void rs_setup(struct net_device *dev, struct net_device *lower, struct pci_dev *slot)
{
	struct rs *rs = netdev_priv(dev);
	u8 address[ETH_ALEN];

	rs->dev = dev;
	rs->lower = lower;
	INIT_DELAYED_WORK(&rs->toggle_end, rs_toggle_end);

	SET_NETDEV_DEV(dev, &slot->dev);
	dev->netdev_ops = &rs_netdev_ops;
	dev->ethtool_ops = &rs_ethtool_ops;
	dev->dcbnl_ops = &rs_dcbnl_ops;
	dev->needs_free_netdev = true;
	dev->max_mtu = lower->max_mtu;
	dev->needed_headroom = lower->needed_headroom;
	dev->features = dev->hw_features = NETIF_F_HIGHDMA | NETIF_F_HW_VLAN_CTAG_TX;
	dev->priv_flags |= IFF_NO_QUEUE;
	/* Another address, of the same administration. */
	ether_addr_copy(address, lower->perm_addr);
	address[0] ^= 0x08;
	eth_hw_addr_set(dev, address);

	rs_qos_init(rs);
}

static int rs_create(struct net_device *lower, struct pci_dev *slot)
{
	struct net_device *dev = alloc_etherdev(sizeof(struct rs));
	struct rs *rs;
	int err;

	if (!dev)
		return -ENOMEM;
	rs = netdev_priv(dev);
	rs_setup(dev, lower, slot);
	err = netdev_rx_handler_register(lower, rs_receive, rs);
	if (err)
		goto free;
	err = dev_set_promiscuity(lower, 1);
	if (err)
		goto unhandle;
	netif_carrier_off(dev);
	err = register_netdevice(dev);
	if (err)
		goto calm;
	rs_personality_add(rs);
	return 0;
calm:
	dev_set_promiscuity(lower, -1);
unhandle:
	netdev_rx_handler_unregister(lower);
free:
	free_netdev(dev);
	return err;
}

static void rs_destroy(struct rs *rs)
{
	cancel_delayed_work_sync(&rs->toggle_end);
	netdev_rx_handler_unregister(rs->lower);
	dev_set_promiscuity(rs->lower, -1);
	rs_personality_remove(rs);
	unregister_netdevice(rs->dev);
}

/* The kernel tells a new listener of all that is there, and one that leaves that all is gone. */
static int rs_notify(struct notifier_block *block, unsigned long event, void *ptr)
{
	struct net_device *lower = netdev_notifier_info_to_dev(ptr);
	struct rs *rs = rs_on(lower);
	struct pci_dev *slot;
	int err;

	switch (event) {
	case NETDEV_REGISTER:
		slot = rs_slot(lower);
		if (!slot || rs)
			break;
		err = rs_create(lower, slot);
		if (err)
			pci_err(slot, "railsim: no simulated NIC: error %d\n", err);
		break;
	case NETDEV_UNREGISTER:
		if (rs)
			rs_destroy(rs);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		if (rs)
			rs_update_carrier(rs);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block rs_notifier = { .notifier_call = rs_notify };

static int __init rs_init(void)
{
	int err;

	if (!rs_personality_is_known())
		return -EINVAL;
	err = rs_personality_start();
	if (err)
		return err;
	err = register_netdevice_notifier(&rs_notifier);
	if (err)
		rs_personality_stop();
	return err;
}

static void __exit rs_exit(void)
{
	unregister_netdevice_notifier(&rs_notifier);
	rs_personality_stop();
}

module_init(rs_init);
module_exit(rs_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Stand-in for a RoCE NIC with DCB, on top of a virtio NIC");
MODULE_SOFTDEP("pre: virtio_net");
