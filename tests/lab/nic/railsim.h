/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RAILSIM_H
#define RAILSIM_H

#include <linux/netdevice.h>
#include <net/dcbnl.h>

#define RS_PRIOS IEEE_8021QAZ_MAX_TCS
#define RS_DSCPS 64

enum rs_traffic { RS_RX_BYTES, RS_RX_PACKETS, RS_TX_BYTES, RS_TX_PACKETS, RS_TRAFFIC };
enum rs_event { RS_RX_DISCARDS, RS_RX_PAUSE, RS_TX_PAUSE, RS_EVENTS };

/* What the firmware keeps of QoS, and forgets at a reset. */
struct rs_qos {
	struct ieee_ets ets;
	struct dcbnl_buffer buffer;
	u64 maxrate[RS_PRIOS];
	u16 cable_len;
	u8 pfc_en;
	u8 dcbx;
	u8 dscp2prio[RS_DSCPS];
	u8 dscp_apps;			/* entries in the kernel's APP table */
	bool trust_dscp;
	bool manual_buffer;
	bool rx_pause;
	bool tx_pause;
};

/* Congestion control: survives what makes the firmware forget its QoS. */
struct rs_ecn {
	u8 np_enable[RS_PRIOS];
	u8 rp_enable[RS_PRIOS];
	u8 cnp_dscp;
	u8 cnp_prio;
	u8 cnp_prio_mode;	/* 1: that of the packet that is answered */
};

/* A file of one number; writable up to max. */
struct rs_number {
	struct kobj_attribute attr;
	u8 *value;
	u8 max;
};

#define RS_NUMBERS (2 * RS_PRIOS + 2)
#define RS_FOLDERS 6

struct rs {
	struct net_device *dev;
	struct net_device *lower;
	struct rs_qos qos;
	struct rs_ecn ecn;
	int tclass;			/* forced on RoCE packets; -1: left as it is */
	bool link_toggling;
	struct delayed_work toggle_end;
	atomic64_t traffic[RS_PRIOS][RS_TRAFFIC];
	atomic64_t tx_dropped;
	u64 events[RS_PRIOS][RS_EVENTS];	/* happen when debugfs is told so */
	struct dentry *debugfs;
	struct kobject *folders[RS_FOLDERS];
	int folder_count;
	struct rs_number numbers[RS_NUMBERS];
	int number_count;
};

extern const struct net_device_ops rs_netdev_ops;
extern const struct dcbnl_rtnl_ops rs_dcbnl_ops;
extern const struct ethtool_ops rs_ethtool_ops;

void rs_toggle_link(struct rs *rs);

void rs_qos_init(struct rs *rs);
void rs_qos_forget(struct rs *rs);

u64 rs_event_sum(struct rs *rs, enum rs_event event);

bool rs_is_ofed(void);
bool rs_personality_is_known(void);
int rs_personality_start(void);
void rs_personality_stop(void);
void rs_personality_add(struct rs *rs);
void rs_personality_remove(struct rs *rs);

#endif
