/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to hosts that are known by datagrams alone. A call waits for the answer a moment, and not very many do, as
 * datagrams in the name of hosts that are not there would else take the places of others. Then the client is told to
 * come again, by which time its host has answered. Three questions are sent at most, which together are not longer than
 * a call of LOCK.
 */
#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "nsm/nsm_private.h"
#include "rpc/message.h"

#define RPCBIND_PROGRAM 100000u
#define RPCBIND_VERSION 2u
#define RPCBIND_PORT 111u
#define QUESTIONS 3u
#define PAUSE_NS                                                                                   \
	(500 * RN_NS_PER_MS) /* before the second question, and twice that before the third */
#define SILENT_NS                                                                                  \
	(4 * RN_NS_PER_SECOND) /* after which calls are refused, since the host does not answer */
#define WAIT_NS (300 * RN_NS_PER_MS)	 /* for which a call waits */
#define WAITING 16u			 /* questions in that time for which calls wait */
#define AGAIN_NS (60 * RN_NS_PER_SECOND) /* after which it is asked anew */
#define PROVED_NS (60 * RN_NS_PER_SECOND)
#define XID_SECONDS 60u

static unsigned cell_of(const struct nsm *n, const struct rpc_address *addr)
{
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)addr, sizeof(*addr), n->key);
	return h / NSM_BUCKETS % NSM_PROOF_CELLS;
}

static uint32_t nsm_prove_xid(const struct nsm *n, const struct rpc_address *addr, uint64_t period)
{
	struct {
		struct rpc_address addr;
		uint32_t zero;
		uint64_t period;
	} of = { *addr, 0, period };
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)&of, sizeof(of), n->key);
	return (uint32_t)h;
}

static uint64_t period_now(void)
{
	return rn_now_ns() / (XID_SECONDS * RN_NS_PER_SECOND);
}

/* True if a call may wait for the answer to a question that is sent now. */
static bool nsm_prove_may_wait(struct nsm_proofs *p, uint64_t now)
{
	if (now >= p->span_ns + WAIT_NS) {
		p->span_ns = now;
		p->waiting = 0;
	}
	return p->waiting++ < WAITING;
}

int nsm_prove(struct nsm *n, const struct rpc_address *addr, uint64_t now, bool *ask)
{
	const unsigned cell = cell_of(n, addr);
	const struct nsm_answered *answered = &n->proofs.answered[cell];
	struct nsm_asked *a = &n->proofs.asked[cell];

	if (n->calls.fd < 0)
		return -EHOSTDOWN;
	if (now < answered->until_ns && rpc_address_equal(&answered->addr, addr))
		return 0;
	if (a->begun_ns == 0 || !rpc_address_equal(&a->addr, addr) || now > a->begun_ns + AGAIN_NS)
		*a = (struct nsm_asked){ .addr = *addr, .begun_ns = now };
	if (a->questions == QUESTIONS && now > a->begun_ns + SILENT_NS) {
		n->proofs.silent++;
		return -EHOSTDOWN;
	}
	if (a->questions < QUESTIONS &&
	    now >= a->begun_ns + ((1u << a->questions) - 1) * PAUSE_NS) {
		a->questions++;
		a->wait_until_ns = nsm_prove_may_wait(&n->proofs, now) ? now + WAIT_NS : 0;
		*ask = true;
	}
	return now < a->wait_until_ns ? -RN_ESOON : -EINPROGRESS;
}

void nsm_prove_ask(struct nsm *n, const struct nsm_peer *peer)
{
	const struct rpc_callee null = { RPCBIND_PROGRAM, RPCBIND_VERSION, 0 };
	uint8_t msg[64];
	struct nsm_datagram d = {
		.peer = peer->addr, .local = peer->local, .port = RPCBIND_PORT, .data = msg
	};
	struct xdr_out x;

	xdr_out_init(&x, msg, sizeof(msg));
	rpc_put_call(&x, &null, RPC_AUTH_NONE, NULL, 0);
	xdr_patch_u32(&x, 0, nsm_prove_xid(n, &peer->addr, period_now()));
	d.len = x.used;
	nsm_send(&n->calls, &d);
}

/* False: it was known. */
static bool nsm_prove_note(struct nsm *n, const struct rpc_address *addr)
{
	struct nsm_answered *a = &n->proofs.answered[cell_of(n, addr)];
	const uint64_t now = rn_now_ns();
	bool known;

	pthread_mutex_lock(&n->lock);
	known = now < a->until_ns && rpc_address_equal(&a->addr, addr);
	*a = (struct nsm_answered){ *addr, now + PROVED_NS };
	pthread_mutex_unlock(&n->lock);
	return !known;
}

/* Any reply will do, also one that the program is not there. */
bool nsm_prove_reply(struct nsm *n, const struct nsm_datagram *d)
{
	const uint64_t period = period_now();
	uint32_t xid;

	if (d->port != RPCBIND_PORT || d->len < sizeof(xid))
		return false;
	memcpy(&xid, d->data, sizeof(xid));
	xid = ntohl(xid);
	if (xid != nsm_prove_xid(n, &d->peer, period) &&
	    xid != nsm_prove_xid(n, &d->peer, period - 1))
		return false;
	/* The same answer again wakes no calls. */
	if (nsm_prove_note(n, &d->peer))
		n->cfg.recorded(n->cfg.recorded_ctx);
	return true;
}
