/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Anybody may send NULL and SM_NOTIFY; the latter does something only if it comes from a privileged port of a
 * host on record, or of one that is monitored. The other procedures are for root of this machine, whose kernel
 * may be a client of other servers.
 */
#include "nsm/serve.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nsm/monitor.h"
#include "nsm/nsm_private.h"

#define STAT_SUCC 0u
#define STAT_FAIL 1u

static bool is_privileged(const struct nsm_caller *c)
{
	return c->port < IPPORT_RESERVED;
}

/* True if root of this machine calls. */
static bool is_local(const struct nsm_caller *c)
{
	struct in6_addr in6;

	memcpy(&in6, c->addr.bytes, sizeof(in6));
	return is_privileged(c) && (IN6_IS_ADDR_LOOPBACK(&in6) ||
				    (IN6_IS_ADDR_V4MAPPED(&in6) && c->addr.bytes[12] == 127));
}

/* Bytes that were received are for the log only if they can be printed. */
static void put_printable(const uint8_t *name, uint32_t len, char *out, size_t size)
{
	const size_t n = rn_min(len, size - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = isgraph(name[i]) ? (char)name[i] : '?';
	out[n] = '\0';
}

static void log_notify(struct nsm *n, const struct nsm_caller *from, const struct nsm_peer *who,
		       unsigned found)
{
	char addr[RPC_ADDRESS_TEXT], name[80];
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	struct sockaddr_storage ss = { .ss_family = AF_UNSPEC };
	unsigned left_out;

	if (!rn_log_limit_pass(&n->refusals, rn_now_ns(), &left_out))
		return;
	memcpy(&in6.sin6_addr, who->addr.bytes, 16);
	memcpy(&ss, &in6, sizeof(in6));
	rpc_address_text(&ss, addr);
	put_printable(who->name, who->name_len, name, sizeof(name));
	if (found)
		rn_notice(n->cfg.log,
			  "%s (%s) has restarted: its NFSv3 locks from before are freed", name,
			  addr);
	else if (!is_privileged(from))
		rn_notice(n->cfg.log,
			  "%s says from the unprivileged port %u that %s has restarted: ignored",
			  addr, from->port, name);
	else
		rn_debug(n->cfg.log, "%s (%s) has restarted, and has no NFSv3 locks here", name,
			 addr);
}

static enum rpc_run notified(struct nsm *n, const struct nsm_caller *from, struct xdr_in *in)
{
	struct nsm_peer who = { .addr = from->addr };
	unsigned found = 0;
	uint32_t state;

	who.name = xdr_get_opaque(in, NSM_NAME_MAX, &who.name_len);
	state = xdr_get_u32(in);
	if (in->err)
		return RPC_RUN_GARBAGE;
	if (is_privileged(from)) {
		found = nsm_host_rebooted(n, &who, state);
		nsm_monitor_rebooted(n, &who.addr, state);
	}
	log_notify(n, from, &who, found);
	return RPC_RUN_DONE;
}

static void nsm_put_state(struct nsm *n, struct xdr_out *out)
{
	uint32_t state;

	pthread_mutex_lock(&n->lock);
	state = n->state;
	pthread_mutex_unlock(&n->lock);
	xdr_put_u32(out, state);
}

/* STAT_SUCC: the host could be monitored. */
static enum rpc_run stat_host(struct nsm *n, struct xdr_in *in, struct xdr_out *out)
{
	struct rpc_address addr;
	uint32_t len;
	const uint8_t *name = xdr_get_opaque(in, NSM_NAME_MAX, &len);

	if (in->err)
		return RPC_RUN_GARBAGE;
	xdr_put_u32(out, nsm_name_address(name, len, &addr) ? STAT_SUCC : STAT_FAIL);
	nsm_put_state(n, out);
	return RPC_RUN_DONE;
}

static enum rpc_run monitor(struct nsm *n, struct nsm_caller *from, struct xdr_in *in,
			    struct xdr_out *out)
{
	struct nsm_monitor m = { .serial = 0 };
	int rc;

	if (!nsm_get_mon_id(in, &m))
		return RPC_RUN_GARBAGE;
	xdr_get_fixed(in, m.priv, sizeof(m.priv));
	if (in->err)
		return RPC_RUN_GARBAGE;
	do
		rc = nsm_monitor_add(n, &m);
	while (rc == -RN_ESOON && from->req && rpc_try_later(from->req, RN_WAIT_RECORD, 0));
	from->again = rc == -RN_ESOON && !from->req;
	xdr_put_u32(out, rc ? STAT_FAIL : STAT_SUCC);
	nsm_put_state(n, out);
	return RPC_RUN_DONE;
}

static enum rpc_run unmonitor(struct nsm *n, struct xdr_in *in, struct xdr_out *out)
{
	struct nsm_monitor m = { .serial = 0 };

	if (!nsm_get_mon_id(in, &m))
		return RPC_RUN_GARBAGE;
	nsm_monitor_remove(n, &m.my, m.name, m.name_len);
	nsm_put_state(n, out);
	return RPC_RUN_DONE;
}

static enum rpc_run unmonitor_all(struct nsm *n, struct xdr_in *in, struct xdr_out *out)
{
	struct nsm_my_id my = { .prog = 0 };

	if (!nsm_get_my_id(in, &my))
		return RPC_RUN_GARBAGE;
	nsm_monitor_remove(n, &my, NULL, 0);
	nsm_put_state(n, out);
	return RPC_RUN_DONE;
}

static enum rpc_run serve_local(struct nsm *n, struct nsm_caller *from, uint32_t proc,
				struct xdr_in *in, struct xdr_out *out)
{
	switch (proc) {
	case SM_STAT:
		return stat_host(n, in, out);
	case SM_MON:
		return monitor(n, from, in, out);
	case SM_UNMON:
		return unmonitor(n, in, out);
	case SM_UNMON_ALL:
		return unmonitor_all(n, in, out);
	default:
		nsm_monitor_crash(n);
		return RPC_RUN_DONE;
	}
}

enum rpc_run nsm_serve(struct nsm *n, struct nsm_caller *from, uint32_t proc, struct xdr_in *in,
		       struct xdr_out *out)
{
	if (proc == SM_NULL)
		return RPC_RUN_DONE;
	if (proc == SM_NOTIFY)
		return notified(n, from, in);
	return is_local(from) ? serve_local(n, from, proc, in, out) : RPC_RUN_AUTH_TOOWEAK;
}
