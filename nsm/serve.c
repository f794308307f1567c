/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The procedures of the status monitor, whatever transport a call came by.
 *
 * Anybody may send NULL and SM_NOTIFY; the latter does something only if it comes from a privileged port of a
 * host on record, or of one that is monitored. The other procedures are for root of this machine, whose kernel
 * may be a client of other servers.
 */
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/host.h"
#include "lib/util.h"
#include "nsm/monitor.h"
#include "nsm/nsm_private.h"
#include "rpc/message.h"
#include "rpc/program.h"

struct nsm_caller {
	struct rpc_address addr;
	uint16_t port;
	/* Call that waits while a record is being written. NULL: a datagram, which is to be served again then, */
	struct rpc_request *req;
	bool again; /* as is said here */
};

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
	return is_privileged(c) &&
	       (IN6_IS_ADDR_LOOPBACK(&in6) ||
		(rn_address_is_ipv4(c->addr.bytes) && c->addr.bytes[12] == 127));
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
	char addr[RN_ADDRESS_TEXT], name[80];
	unsigned left_out;

	if (!rn_log_limit_pass(&n->refusals, rn_now_ns(), &left_out))
		return;
	rn_address_text(who->addr.bytes, addr);
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

/* Decodes, runs and puts the result. RPC_RUN_DONE, _GARBAGE or _AUTH_TOOWEAK. proc is below SM_PROCS. */
static enum rpc_run nsm_serve(struct nsm *n, struct nsm_caller *from, uint32_t proc,
			      struct xdr_in *in, struct xdr_out *out)
{
	if (proc == SM_NULL)
		return RPC_RUN_DONE;
	if (proc == SM_NOTIFY)
		return notified(n, from, in);
	return is_local(from) ? serve_local(n, from, proc, in, out) : RPC_RUN_AUTH_TOOWEAK;
}

/* The monitor's program on the transports of the server. UDP has a socket of its own (nsm/serve.c). */

static enum rpc_run nsm_program_run(struct rpc_request *req, void *args)
{
	struct nsm_caller from = { .port = rpc_address_port(&req->conn->peer), .req = req };
	enum rpc_run how;

	(void)args;
	rpc_address_of(&req->conn->peer, &from.addr);
	how = nsm_serve(req->program_ctx, &from, req->call.proc, &req->in, &req->out);
	/* No argument may come by a Read chunk. */
	if (how == RPC_RUN_DONE && xdr_in_placed_left(&req->in))
		return RPC_RUN_GARBAGE;
	return how;
}

/* Hosts with locks are, or were, admitted; the others are for root of this machine, who is asked for. */
#define ROW(row, text, hosts)                                                                      \
	[row] = &(const struct rpc_proc)                                                           \
	{                                                                                          \
		.name = text, .run = nsm_program_run, .flags = RPC_RUN_DECODES | (hosts)           \
	}

static const struct rpc_proc *const procs[SM_PROCS] = {
	ROW(SM_NULL, "NULL", RPC_FOR_ALL),
	ROW(SM_STAT, "STAT", RPC_FOR_ALL),
	ROW(SM_MON, "MON", RPC_FOR_ALL),
	ROW(SM_UNMON, "UNMON", RPC_FOR_ALL),
	ROW(SM_UNMON_ALL, "UNMON_ALL", RPC_FOR_ALL),
	ROW(SM_SIMU_CRASH, "SIMU_CRASH", RPC_FOR_ALL),
	ROW(SM_NOTIFY, "NOTIFY", RPC_FOR_RECENT),
};

static const struct rpc_version versions[] = {
	{ .vers = NSM_VERSION, .procs = procs, .nprocs = SM_PROCS },
};

void nsm_program(struct nsm *n, struct rpc_program *out)
{
	*out = (struct rpc_program){
		.prog = NSM_PROGRAM,
		.name = "nsm",
		.versions = versions,
		.nversions = rn_array_size(versions),
		.ctx = n,
	};
}

/* Calls of the monitor's program, by UDP. A reply is never longer than its call. */

#define WAITING_MAX 32u /* calls that wait for a record; further ones come again */

/* A call that waits until a record is on disk. */
struct nsm_waiting {
	TAILQ_ENTRY(nsm_waiting) link;
	struct nsm_datagram d;
	uint8_t bytes[];
};

/* Ends a reply: the procedure has put its result, or an error replaces it. */
static void conclude(enum rpc_run how, const struct rpc_call *call, struct xdr_out *x)
{
	if (how == RPC_RUN_DONE)
		return;
	xdr_out_rewind(x, 0);
	if (how == RPC_RUN_AUTH_TOOWEAK)
		rpc_put_auth_error(x, call->xid, RPC_AUTH_TOOWEAK);
	else
		rpc_put_accepted(x, call->xid, RPC_GARBAGE_ARGS);
}

/* False: the call is to be run again when a record is on disk. */
static bool nsm_answer_run(struct nsm *n, const struct nsm_datagram *d, const struct rpc_call *call,
			   struct xdr_in *in, struct xdr_out *x)
{
	struct nsm_caller from = { .addr = d->peer, .port = d->port };

	if (call->prog != NSM_PROGRAM) {
		rpc_put_accepted(x, call->xid, RPC_PROG_UNAVAIL);
		return true;
	}
	if (call->vers != NSM_VERSION) {
		rpc_put_prog_mismatch(x, call->xid, NSM_VERSION, NSM_VERSION);
		return true;
	}
	if (call->proc >= SM_PROCS) {
		rpc_put_accepted(x, call->xid, RPC_PROC_UNAVAIL);
		return true;
	}
	rpc_put_accepted(x, call->xid, RPC_SUCCESS);
	conclude(nsm_serve(n, &from, call->proc, in, x), call, x);
	return !from.again;
}

static void nsm_answer_keep(struct nsm *n, const struct nsm_datagram *d)
{
	struct nsm_waiting *w = n->nwaiting < WAITING_MAX ? malloc(sizeof(*w) + d->len) : NULL;

	if (!w)
		return;
	w->d = *d;
	w->d.data = w->bytes;
	memcpy(w->bytes, d->data, d->len);
	TAILQ_INSERT_TAIL(&n->waiting, w, link);
	n->nwaiting++;
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
		if (!nsm_answer_run(n, d, &call, &in, &x)) {
			nsm_answer_keep(n, d);
			return 0;
		}
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

void nsm_answer_waiting(struct nsm *n)
{
	struct nsm_waiting_list all = TAILQ_HEAD_INITIALIZER(all);
	struct nsm_waiting *w;
	uint8_t out[256];

	TAILQ_CONCAT(&all, &n->waiting, link);
	n->nwaiting = 0;
	while ((w = TAILQ_FIRST(&all)) != NULL) {
		struct nsm_datagram reply = w->d;

		TAILQ_REMOVE(&all, w, link);
		reply.len = nsm_answer(n, &w->d, out, sizeof(out));
		reply.data = out;
		if (reply.len > 0)
			nsm_send(&n->calls, &reply);
		free(w);
	}
}

void nsm_answer_free(struct nsm *n)
{
	struct nsm_waiting *w;

	while ((w = TAILQ_FIRST(&n->waiting)) != NULL) {
		TAILQ_REMOVE(&n->waiting, w, link);
		free(w);
	}
}
