/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPC calls to hosts: the port of the program is asked of the host's rpcbind, then the call is made. The
 * question goes by UDP, and by TCP if that is not answered. The call goes by the transport that the caller
 * prefers if rpcbind knows the program there, else by the other one. A reply counts if it has the xid of the
 * call and comes from the address and port that was called; no reply changes the address.
 *
 * One thread uses a struct nsm_calls. It never waits for one host: calls are under way beside each other.
 * When there are too many, the oldest that has had its time to be answered ends.
 */
#ifndef RN_NSM_NSM_CALL_H
#define RN_NSM_NSM_CALL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "rpc/address.h"
#include "rpc/xdr_in.h"

#define NSM_CALLS_MAX 128u  /* calls under way, but for brief ones */
#define NSM_BRIEF_MAX 2048u /* brief calls under way: by UDP they need no descriptor each */
#define NSM_DATAGRAM_MAX 8192u

struct pollfd;

/* A message and its ends. */
struct nsm_datagram {
	struct rpc_address peer, local;
	uint16_t port; /* of the peer */
	const uint8_t *data;
	size_t len;
};

struct nsm_callee {
	struct rpc_address peer, local; /* local: address to call from */
	uint32_t prog, vers, proc;
	bool tcp;	   /* preferred to UDP */
	bool brief;	   /* by UDP alone, and given up after a second and a half */
	bool answer;	   /* nsm_submit: to a message; one of too many for its host is dropped */
	uint64_t delay_ns; /* nsm_submit: before the call begins */
};

struct nsm_call;
/* rc 0: results is at the procedure's result. -ETIMEDOUT: no answer; -EOPNOTSUPP: the host does not have
 * the program, or refuses the call; -ECANCELED: the monitor stops, or the call is not wanted any more. The
 * call is freed afterwards. */
typedef void nsm_called(void *ctx, int rc, struct xdr_in *results);

TAILQ_HEAD(nsm_call_list, nsm_call);

struct nsm_calls {
	int fd; /* UDP socket, -1: none */
	struct nsm_call_list list;
	unsigned n, brief; /* under way: other calls, and brief ones */
};

/* Opens the socket, at that address, or NULL: at all; any privileged port if port is 0. 0 or -errno. */
int nsm_calls_open(struct nsm_calls *c, const struct rpc_address *at, uint16_t port);
void nsm_calls_cancel(struct nsm_calls *c); /* calls under way end: -ECANCELED */
void nsm_calls_close(struct nsm_calls *c);  /* no call is under way */
uint16_t nsm_calls_port(const struct nsm_calls *c);

struct nsm_call_end {
	nsm_called *done;
	/* nsm_submit: asked before the call begins, after its delay; false: it ends with -ECANCELED. NULL: it is
	 * made always. */
	bool (*wanted)(void *ctx);
	void *ctx;
};
/* Calls to that address that are under way. */
unsigned nsm_calls_to(const struct nsm_calls *c, const struct rpc_address *peer);
/* True if a call may begin. Ends an old one if there are too many. */
bool nsm_calls_make_room(struct nsm_calls *c, uint64_t now);
/* Begins a call; args are copied. 0; -RN_EFULL: too many are under way; -ENOMEM. */
int nsm_call(struct nsm_calls *c, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	     const struct nsm_call_end *end);
/* A reply has come. */
void nsm_calls_reply(struct nsm_calls *c, const struct nsm_datagram *d);
/* Repeats calls, or ends them. Returns the time of the next look, ns; UINT64_MAX: none. */
uint64_t nsm_calls_tick(struct nsm_calls *c, uint64_t now);
/* Fills out, which has NSM_CALLS_MAX elements, with the connections of calls. Returns their number. */
unsigned nsm_calls_poll(const struct nsm_calls *c, struct pollfd *out);
/* Goes on with those that poll() found ready. No call has begun or ended since nsm_calls_poll. */
void nsm_calls_polled(struct nsm_calls *c, const struct pollfd *polled);

/* Receives a datagram into buf. False: there is none. */
bool nsm_receive(struct nsm_calls *c, uint8_t *buf, size_t size, struct nsm_datagram *out);
void nsm_send(struct nsm_calls *c, const struct nsm_datagram *d);

#endif
