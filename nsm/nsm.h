/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The network status monitor (program 100024 version 1 of the XNFS specification), for the locks of
 * NFSv3 clients, and for another lock manager of this machine (nsm/monitor.h). Hosts that have locks are on record in the state directory. At the next start each
 * is told that the server has restarted (SM_NOTIFY), and may reclaim its locks. A host on record that
 * tells the same of itself loses the locks of its former life.
 *
 * A host is an address together with the name that its calls of NLM carry. Everything is sent to an
 * address on record: no message makes the server call another one.
 *
 * Locks: nsm.lock is a leaf. Any thread may call the functions below; none waits for the disk or
 * the network, but for nsm_new and nsm_free.
 */
#ifndef RN_NSM_NSM_H
#define RN_NSM_NSM_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/image.h"
#include "lib/log.h"
#include "nsm/nsm_call.h"
#include "rpc/address.h"

#define NSM_PROGRAM 100024u
#define NSM_VERSION 1u
#define NSM_NAME_MAX 1024u /* SM_MAXSTRLEN, and the longest caller_name of NLM */

struct nsm;
struct nsm_host;

struct nsm_reboot {
	const struct rpc_address *addr;
	const uint8_t *name; /* as NLM knows the host */
	uint32_t name_len;
	uint32_t state; /* the host's new state number */
};

struct nsm_config {
	const char *state_dir;
	const struct rn_logger *log;
	uint16_t port; /* UDP; 0: any privileged one */
	/* A name that moves with the state directory from machine to machine, which hosts are told of; NULL: this machine's. */
	const char *name;
	const struct rpc_address *
		listen; /* the only address of the socket; NULL: all of the machine; for nsm_new() alone */
	bool continues; /* the program before this one ran a moment ago: hosts on record are this one's, and are told nothing */
	/* A record that a caller of nsm_host_get has to wait for is on disk. */
	void (*recorded)(void *ctx);
	void *recorded_ctx;
};

/* Calls of nsm/ to NLM, from a thread of nsm/. */
struct nsm_hooks {
	/* A host has restarted: its locks from before are to be freed. False: some could not be, and
	 * the call comes again. */
	bool (*rebooted)(void *ctx, const struct nsm_reboot *r);
	/* True while hosts of the run before may reclaim. Their records are kept until then. */
	bool (*in_grace)(void *ctx);
	/* About once a second. Must not wait. NULL: nothing is to be done. */
	void (*tick)(void *ctx);
	void *ctx;
};

/*
 * Reads the records of the run before, and writes the new state number. Records that cannot be used
 * are no error: the cause is logged. 0 or -errno.
 */
int nsm_new(const struct nsm_config *cfg, struct nsm **out);
/* Starts the threads. 0 or -errno. */
int nsm_start(struct nsm *n, const struct nsm_hooks *hooks);
/* Clients find the server's programs: the hosts on record are told now. */
void nsm_tell_hosts(struct nsm *n);
/* Ends the threads: they call no hook any more. NULL is allowed. */
void nsm_stop(struct nsm *n);
/* Behind nsm_stop: frees what clients had that are known to have rebooted, by the hook `rebooted`. False: some of it is in use, and is
 * kept. NULL is allowed. */
bool nsm_free_rebooted(struct nsm *n);
/* Hand hosts that have not been told of this server's restart yet to the next program, and take them (lib/image.h). save: behind nsm_stop(), and
 * outside of grace. load: 0, -EPROTO, -ENOMEM. */
void nsm_save(struct nsm *n, struct image_writer *w);
int nsm_load(struct nsm *n, struct image_reader *image);
/* All references of hosts are put. NULL is allowed. */
void nsm_free(struct nsm *n);

/* UDP port of the monitor, or 0: no socket could be had (logged). */
uint16_t nsm_port(const struct nsm *n);
/* The monitor's program, for the transports of an rpc_server; it refers to n. */
struct rpc_program;
void nsm_program(struct nsm *n, struct rpc_program *out);
/* Number of hosts of the run before. */
unsigned nsm_former_hosts(struct nsm *n);

struct nsm_peer {
	struct rpc_address addr;  /* of the host */
	struct rpc_address local; /* that the host calls, and expects calls from */
	const uint8_t *name;
	uint32_t name_len;
};

#define NSM_RECLAIM 1u	   /* only a host that is on record from the run before */
#define NSM_BY_DATAGRAM 2u /* somebody else may have sent the call */
#define NSM_CONNECTED 4u   /* the host has a connection, so it is where its address says */
#define NSM_ON_RECORD 8u   /* only a host that is on record */

/*
 * A reference to the host, which is on record from now on, and stays there while there are
 * references. flags: as above. A record that cannot be written is logged, and holds up nobody. 0, -ENOMEM, or
 * - -RN_ESOON: the record is being written, or the host asked whether it is there: call again when cfg.recorded was called;
 * - -EINPROGRESS: it is asked, call again in some seconds;
 * - -ENOLCK: there is no room (nsm/nsm_hosts.c), or the host does not answer;
 * - -ENOENT: NSM_ON_RECORD, and the host is not on record;
 * - -EPERM: NSM_RECLAIM, and the host is not on record from the run before.
 */
int nsm_host_get(struct nsm *n, const struct nsm_peer *peer, unsigned flags, struct nsm_host **out);
/* A reference for a lock that the program before this one has handed over. The host's record is as that one wrote it; peer->local counts
 * only if there is none. 0, -ENOMEM, or -ENOLCK: there is no room. */
int nsm_host_resume(struct nsm *n, const struct nsm_peer *peer, struct nsm_host **out);
void nsm_host_hold(struct nsm *n, struct nsm_host *h); /* one more reference */
/* Puts a reference by which the host has had a lock: the record stays for NSM_IDLE_SECONDS. NULL is allowed. */
void nsm_host_put(struct nsm *n, struct nsm_host *h);
/* Puts another: the record of a host that has had no lock ends with the last reference. NULL is allowed. */
void nsm_host_drop(struct nsm *n, struct nsm_host *h);
/* State number that the host has told of last; 0: none. */
uint32_t nsm_host_state(struct nsm *n, const struct nsm_host *h);

struct nsm_stats {
	uint64_t with_locks, without; /* hosts on record */
	uint64_t made_room;	      /* records that made room for others' */
	uint64_t refused, silent;     /* calls refused: no room; the host did not answer */
	bool failing;		      /* records cannot be written */
};
void nsm_stats(struct nsm *n, struct nsm_stats *out);

/*
 * Has the messenger make a call; args are copied. 0: end->done is called, on its thread, or by nsm_stop
 * with -ECANCELED. -RN_EFULL: too many wait; -ENOMEM; -ENOTCONN: the monitor does not run. One host has a few
 * calls at a time, so that one that does not answer holds up no other.
 */
int nsm_submit(struct nsm *n, const struct nsm_callee *to, const uint8_t *args, uint32_t len,
	       const struct nsm_call_end *end);

#endif
