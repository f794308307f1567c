/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The software verbs fabric: libibverbs and librdmacm for the processes of one machine.
 *
 * A fabric is one directory. Each process that opens it takes a slot (a file that it holds locked)
 * and listens on a stream socket beside it; between two processes there is a link (link.h) that all
 * their queue pairs share. A queue pair's number names its slot, so that its owner is found from
 * the number alone.
 *
 * sv_fabric is the one mutable object of the process. Everything in it, and every object made of
 * it, is guarded by its lock, except what is said to have a lock of its own: completion queues
 * (cq.h) and event queues (event_queue.h), whose locks are taken inside this one and never the
 * other way round.
 *
 * Functions return 0 or -errno; the entry points of libibverbs and librdmacm keep their own
 * manners.
 */
#ifndef SV_FABRIC_H
#define SV_FABRIC_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tools/softverbs/engine.h"
#include "tools/softverbs/sinks.h"

#define SV_EXPORT __attribute__((visibility("default")))

#define SV_SLOTS 256u
#define SV_QPS 65536u /* queue pairs of one process */

#define SV_SINKS 64u /* most sinks that are remembered */

/*
 * The last memory keys and addresses that peers revealed to this process by RDMA Reads over iWARP.
 */
struct sv_sinks {
	struct softverbs_sink last[SV_SINKS];
	uint64_t count; /* so far */
};

struct sv_link;
struct sv_qp;
struct sv_mr;
struct sv_device;
struct sv_faults;
struct sv_cm; /* the connection manager's */

struct sv_mr_table {
	struct sv_mr **mr;
	uint32_t size; /* entries of mr */
	uint32_t hint; /* index at which the search for a free entry starts */
	uint32_t used;
	uint32_t remote;      /* entries in use that grant rights to peers */
	uint32_t remote_ever; /* so far */
};

struct sv_qp_table {
	struct sv_qp **qp; /* array of SV_QPS entries */
	uint32_t next;
	uint32_t used;
	uint32_t connected; /* so far */
};

struct sv_fabric {
	pthread_mutex_t lock;
	bool open;
	int error; /* error of the attempt to open it, -errno */
	char dir[PATH_MAX - 64];
	char name[64]; /* SOFTVERBS_NAME: this process's part in a fault script */
	unsigned slot;
	int slot_fd;
	int listen_fd;
	struct sv_watch listen_watch;
	struct sv_engine engine;
	struct sv_link *links[SV_SLOTS]; /* links that carry frames to each slot */
	LIST_HEAD(sv_links, sv_link) all_links;
	TAILQ_HEAD(sv_devices, sv_device) devices;
	unsigned ndevices;
	struct sv_mr_table mrs;
	uint32_t mr_tag;
	uint32_t pds;
	struct sv_sinks sinks;
	pthread_cond_t
		pulled; /* a peer has taken a Read's data, has answered a sync or has ended */
	uint64_t moved; /* bytes of data received */
	uint64_t syncs; /* SYNC frames sent, to all slots */
	uint64_t synced[SV_SLOTS];
	struct sv_qp_table qps;
	struct sv_qp *acks; /* queue pairs that owe acknowledgements: a list by sv_qp.next_ack */
	struct sv_faults *faults; /* fault.c */
	/* Held completions that wait for a completion of another queue pair */
	TAILQ_HEAD(, sv_held) reordered;
	struct sv_cm *cm;
	uint64_t nonce; /* peers read it to find out whether they can read this process's memory */
};

extern struct sv_fabric sv_fabric;

/* Opens the fabric of SOFTVERBS_DIR at the first call; later calls return the same result. Called
 * without the lock. */
int sv_open(void);

void sv_lock(void);
void sv_unlock(void);

/* Value of an environment variable, or the default if it is unset or empty. */
const char *sv_env(const char *name, const char *otherwise);

#endif
