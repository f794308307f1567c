/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the monitor's program, by UDP. Anybody may send NULL and SM_NOTIFY; the latter does
 * something only if it comes from a privileged port of a host on record. The other procedures are for
 * this machine's own lock manager, and told to no other host. They monitor nothing: a machine has one lock
 * manager, and that is this server's. A reply is never longer than its call.
 */
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/util.h"
#include "nsm/nsm_private.h"
#include "rpc/message.h"

enum {
	SM_NULL,
	SM_STAT,
	SM_MON,
	SM_UNMON,
	SM_UNMON_ALL,
	SM_SIMU_CRASH,
	SM_NOTIFY,
};

#define STAT_FAIL 1u

static bool is_loopback(const struct rpc_address *a)
{
	struct in6_addr in6;

	memcpy(&in6, a->bytes, sizeof(in6));
	return IN6_IS_ADDR_LOOPBACK(&in6) || (IN6_IS_ADDR_V4MAPPED(&in6) && a->bytes[12] == 127);
}

/* Bytes that were received are for the log only if they can be printed. */
static void put_printable(const uint8_t *name, uint32_t len, char *out, size_t size)
{
	const size_t n = rn_min(len, size - 1);

	for (size_t i = 0; i < n; i++)
		out[i] = isgraph(name[i]) ? (char)name[i] : '?';
	out[n] = '\0';
}

static void log_notify(struct nsm *n, const struct nsm_datagram *d, const struct nsm_peer *who,
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
	else if (d->port >= IPPORT_RESERVED)
		rn_notice(n->cfg.log,
			  "%s says from the unprivileged port %u that %s has restarted: ignored",
			  addr, d->port, name);
	else
		rn_debug(n->cfg.log, "%s (%s) has restarted, and has no NFSv3 locks here", name,
			 addr);
}

/* Returns false if the arguments are garbage. */
static bool notified(struct nsm *n, const struct nsm_datagram *d, struct xdr_in *x)
{
	struct nsm_peer who = { .addr = d->peer };
	unsigned found = 0;
	uint32_t state;

	who.name = xdr_get_opaque(x, NSM_NAME_MAX, &who.name_len);
	state = xdr_get_u32(x);
	if (x->err)
		return false;
	if (d->port < IPPORT_RESERVED)
		found = nsm_host_rebooted(n, &who, state);
	log_notify(n, d, &who, found);
	return true;
}

/* True if the procedure is done, and its result put. */
static enum rpc_accept_stat local_call(struct nsm *n, uint32_t proc, struct xdr_out *x)
{
	switch (proc) {
	case SM_STAT:
	case SM_MON:
		xdr_put_u32(x, STAT_FAIL);
		break;
	case SM_UNMON:
	case SM_UNMON_ALL:
		break;
	default:
		return RPC_PROC_UNAVAIL;
	}
	xdr_put_u32(x, n->state);
	return RPC_SUCCESS;
}

static void run(struct nsm *n, const struct nsm_datagram *d, const struct rpc_call *call,
		struct xdr_in *in, struct xdr_out *x)
{
	enum rpc_accept_stat stat = RPC_SUCCESS;

	if (call->prog != NSM_PROGRAM) {
		rpc_put_accepted(x, call->xid, RPC_PROG_UNAVAIL);
		return;
	}
	if (call->vers != NSM_VERSION) {
		rpc_put_prog_mismatch(x, call->xid, NSM_VERSION, NSM_VERSION);
		return;
	}
	if (call->proc >= SM_STAT && call->proc <= SM_SIMU_CRASH &&
	    (!is_loopback(&d->peer) || d->port >= IPPORT_RESERVED)) {
		rpc_put_auth_error(x, call->xid, RPC_AUTH_TOOWEAK);
		return;
	}
	rpc_put_accepted(x, call->xid, RPC_SUCCESS);
	if (call->proc == SM_NOTIFY)
		stat = notified(n, d, in) ? RPC_SUCCESS : RPC_GARBAGE_ARGS;
	else if (call->proc != SM_NULL)
		stat = local_call(n, call->proc, x);
	if (stat == RPC_SUCCESS)
		return;
	xdr_out_rewind(x, 0);
	rpc_put_accepted(x, call->xid, stat);
}

size_t nsm_answer(struct nsm *n, const struct nsm_datagram *d, uint8_t *out, size_t size)
{
	struct rpc_seg seg = { .base = (uint8_t *)d->data, .len = (uint32_t)d->len };
	enum rpc_auth_stat stat = RPC_AUTH_OK;
	struct rpc_call call;
	struct rn_arena none;
	struct xdr_in in;
	struct xdr_out x;

	rn_arena_init(&none, NULL, 0);
	xdr_in_init(&in, &seg, 1, &none);
	xdr_out_init(&x, out, size);
	switch (rpc_decode_call(&in, &call, &stat)) {
	case RPC_HEADER_OK:
		run(n, d, &call, &in, &x);
		break;
	case RPC_HEADER_MISMATCH:
		rpc_put_rpc_mismatch(&x, call.xid);
		break;
	case RPC_HEADER_AUTH:
		rpc_put_auth_error(&x, call.xid, stat);
		break;
	default: /* no call, or cut short: nothing to be said to a datagram */
		return 0;
	}
	return x.overflow || x.used > d->len ? 0 : x.used;
}
