// SPDX-License-Identifier: GPL-2.0
/* Priority flow control, transmission selection, DSCP map and buffers, by the rules of mlx5. */
#include "railsim.h"

#define RS_FULL_BW 100
/* Bytes; as a ConnectX reports them. */
#define RS_LOSSY_BUFFER 20016
#define RS_LOSSLESS_BUFFER 156096
#define RS_ALL_BUFFERS 4151808
/* Metres. */
#define RS_CABLE_LEN 7
#define RS_MAX_CABLE_LEN 1000

/* The firmware divides the buffer as PFC needs it, until somebody divides it by hand. */
static void rs_divide_buffer(struct rs_qos *qos)
{
	struct dcbnl_buffer *buffer = &qos->buffer;
	int prio;

	if (qos->manual_buffer)
		return;
	memset(buffer, 0, sizeof(*buffer));
	buffer->total_size = RS_ALL_BUFFERS;
	buffer->buffer_size[0] = RS_LOSSY_BUFFER + RS_LOSSLESS_BUFFER;
	if (!qos->pfc_en)
		return;
	buffer->buffer_size[0] = RS_LOSSY_BUFFER;
	buffer->buffer_size[1] = RS_LOSSLESS_BUFFER;
	for (prio = 0; prio < RS_PRIOS; prio++)
		buffer->prio2buffer[prio] = !!(qos->pfc_en & BIT(prio));
}

static void rs_qos_defaults(struct rs_qos *qos)
{
	int i;

	memset(qos, 0, sizeof(*qos));
	for (i = 0; i < RS_PRIOS; i++) {
		qos->ets.prio_tc[i] = i;
		qos->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_VENDOR;
	}
	qos->ets.prio_tc[0] = 1;
	qos->ets.prio_tc[1] = 0;
	/* Inbox, a DSCP that no APP entry maps is on priority 0. */
	if (rs_is_ofed())
		for (i = 0; i < RS_DSCPS; i++)
			qos->dscp2prio[i] = i >> 3;
	qos->cable_len = RS_CABLE_LEN;
	qos->dcbx = DCB_CAP_DCBX_VER_CEE | DCB_CAP_DCBX_VER_IEEE;
	qos->rx_pause = true;
	qos->tx_pause = true;
	rs_divide_buffer(qos);
}

void rs_qos_init(struct rs *rs)
{
	rs_qos_defaults(&rs->qos);
	memset(rs->ecn.np_enable, 1, sizeof(rs->ecn.np_enable));
	memset(rs->ecn.rp_enable, 1, sizeof(rs->ecn.rp_enable));
	rs->ecn.cnp_dscp = 48;
	rs->ecn.cnp_prio = 6;
	rs->ecn.cnp_prio_mode = 1;
	rs->tclass = -1;
}

static struct dcb_app rs_app(struct rs *rs, u8 dscp)
{
	return (struct dcb_app) {
		.selector = IEEE_8021QAZ_APP_SEL_DSCP,
		.protocol = dscp,
		.priority = rs->qos.dscp2prio[dscp],
	};
}

void rs_qos_forget(struct rs *rs)
{
	struct dcb_app app;
	int dscp;

	for (dscp = 0; rs->qos.dscp_apps && dscp < RS_DSCPS; dscp++) {
		app = rs_app(rs, dscp);
		if (!dcb_ieee_delapp(rs->dev, &app))
			rs->qos.dscp_apps--;
	}
	rs_qos_defaults(&rs->qos);
}

static int rs_getets(struct net_device *dev, struct ieee_ets *ets)
{
	struct rs *rs = netdev_priv(dev);
	int tc;

	*ets = rs->qos.ets;
	ets->ets_cap = RS_PRIOS;
	/* mlx5 reads back the full rate for a class that shares none. */
	for (tc = 0; tc < RS_PRIOS; tc++)
		if (ets->tc_tsa[tc] != IEEE_8021QAZ_TSA_ETS)
			ets->tc_tx_bw[tc] = RS_FULL_BW;
	return 0;
}

static int rs_setets(struct net_device *dev, struct ieee_ets *ets)
{
	struct rs *rs = netdev_priv(dev);
	bool shared = false;
	int sum = 0, i;

	for (i = 0; i < RS_PRIOS; i++) {
		if (ets->prio_tc[i] >= RS_PRIOS)
			return -EINVAL;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS) {
			shared = true;
			sum += ets->tc_tx_bw[i];
		}
	}
	if (shared && sum != RS_FULL_BW)
		return -EINVAL;
	memcpy(rs->qos.ets.prio_tc, ets->prio_tc, sizeof(ets->prio_tc));
	memcpy(rs->qos.ets.tc_tsa, ets->tc_tsa, sizeof(ets->tc_tsa));
	memcpy(rs->qos.ets.tc_tx_bw, ets->tc_tx_bw, sizeof(ets->tc_tx_bw));
	return 0;
}

static int rs_getmaxrate(struct net_device *dev, struct ieee_maxrate *maxrate)
{
	struct rs *rs = netdev_priv(dev);

	memcpy(maxrate->tc_maxrate, rs->qos.maxrate, sizeof(rs->qos.maxrate));
	return 0;
}

static int rs_setmaxrate(struct net_device *dev, struct ieee_maxrate *maxrate)
{
	struct rs *rs = netdev_priv(dev);

	memcpy(rs->qos.maxrate, maxrate->tc_maxrate, sizeof(rs->qos.maxrate));
	return 0;
}

static int rs_getpfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct rs *rs = netdev_priv(dev);
	int prio;

	pfc->pfc_cap = RS_PRIOS;
	pfc->pfc_en = rs->qos.pfc_en;
	pfc->delay = rs->qos.cable_len;
	for (prio = 0; prio < RS_PRIOS; prio++) {
		pfc->requests[prio] = rs->events[prio][RS_TX_PAUSE];
		pfc->indications[prio] = rs->events[prio][RS_RX_PAUSE];
	}
	return 0;
}

static int rs_setpfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct rs *rs = netdev_priv(dev);

	if (pfc->pfc_en != rs->qos.pfc_en) {
		rs->qos.pfc_en = pfc->pfc_en;
		rs_divide_buffer(&rs->qos);
		rs_toggle_link(rs);
	}
	if (pfc->delay && pfc->delay < RS_MAX_CABLE_LEN)
		rs->qos.cable_len = pfc->delay;
	return 0;
}

static int rs_setapp(struct net_device *dev, struct dcb_app *app)
{
	struct rs *rs = netdev_priv(dev);
	struct dcb_app old;
	bool replaces;
	int err;

	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= RS_DSCPS)
		return -EINVAL;
	old = rs_app(rs, app->protocol);
	replaces = !dcb_ieee_delapp(dev, &old);
	WRITE_ONCE(rs->qos.dscp2prio[app->protocol], app->priority);
	WRITE_ONCE(rs->qos.trust_dscp, true);
	err = dcb_ieee_setapp(dev, app);
	if (!err && !replaces)
		rs->qos.dscp_apps++;
	return err;
}

static int rs_delapp(struct net_device *dev, struct dcb_app *app)
{
	struct rs *rs = netdev_priv(dev);
	int err;

	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= RS_DSCPS)
		return -EINVAL;
	err = dcb_ieee_delapp(dev, app);
	if (err)
		return err;
	WRITE_ONCE(rs->qos.dscp2prio[app->protocol], 0);
	if (!--rs->qos.dscp_apps)
		WRITE_ONCE(rs->qos.trust_dscp, false);
	return 0;
}

static u8 rs_getdcbx(struct net_device *dev)
{
	struct rs *rs = netdev_priv(dev);

	return rs->qos.dcbx;
}

/* 0: taken; 1: refused. */
static u8 rs_setdcbx(struct net_device *dev, u8 mode)
{
	struct rs *rs = netdev_priv(dev);

	if (mode & DCB_CAP_DCBX_LLD_MANAGED)
		return 1;
	if (!mode)
		rs->qos.dcbx &= ~DCB_CAP_DCBX_HOST;
	else if (mode & DCB_CAP_DCBX_HOST)
		rs->qos.dcbx = mode;
	else
		return 1;
	return 0;
}

static int rs_getbuffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	struct rs *rs = netdev_priv(dev);

	*buffer = rs->qos.buffer;
	return 0;
}

static int rs_setbuffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	struct rs *rs = netdev_priv(dev);
	u64 sum = 0;
	int i;

	for (i = 0; i < DCBX_MAX_BUFFERS; i++)
		sum += buffer->buffer_size[i];
	if (sum > RS_ALL_BUFFERS)
		return -EINVAL;
	for (i = 0; i < RS_PRIOS; i++) {
		u8 number = buffer->prio2buffer[i];

		if (number >= DCBX_MAX_BUFFERS)
			return -EINVAL;
		if ((rs->qos.pfc_en & BIT(i)) && !buffer->buffer_size[number])
			return -EINVAL;
	}
	rs->qos.manual_buffer = true;
	rs->qos.buffer = *buffer;
	rs->qos.buffer.total_size = RS_ALL_BUFFERS;
	return 0;
}

const struct dcbnl_rtnl_ops rs_dcbnl_ops = {
	.ieee_getets		= rs_getets,
	.ieee_setets		= rs_setets,
	.ieee_getmaxrate	= rs_getmaxrate,
	.ieee_setmaxrate	= rs_setmaxrate,
	.ieee_getpfc		= rs_getpfc,
	.ieee_setpfc		= rs_setpfc,
	.ieee_setapp		= rs_setapp,
	.ieee_delapp		= rs_delapp,
	.getdcbx		= rs_getdcbx,
	.setdcbx		= rs_setdcbx,
	.dcbnl_getbuffer	= rs_getbuffer,
	.dcbnl_setbuffer	= rs_setbuffer,
};
