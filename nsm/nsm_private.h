/* SPDX-License-Identifier: BSD-2-Clause */
/* Data shared by the parts of nsm/: the table of hosts, the thread that writes it, and the thread that
 * sends and receives. */
#ifndef RN_NSM_PRIVATE_H
#define RN_NSM_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include "lib/log_limit.h"
#include "nsm/call.h"
#include "nsm/monitor.h"
#include "nsm/nsm.h"
#include "nsm/records.h"

#define NSM_BUCKETS 1024u
#define NSM_NAMES_MAX 64u    /* hosts of one address */
#define NSM_IDLE_SECONDS 60u /* after which the record of a host without locks is deleted */
#define NSM_RETRY_SECONDS 5u /* between two attempts to write the records */

/* How far a host of the run before is told that the server has restarted. */
enum nsm_telling { NSM_TOLD, NSM_TELL, NSM_BEING_TOLD };

/* Under nsm.lock, but for what never changes: address and name. */
struct nsm_host {
	LIST_ENTRY(nsm_host) link;
	struct rpc_address addr, local;
	uint32_t refs;
	uint64_t generation; /* of the table, when the host was added */
	uint64_t idle_ns;    /* when the last reference was put */
	bool former;	     /* on record in the run before, and not restarted since */
	bool lapsed;	     /* did not reclaim in time: told still, but on record no more */
	enum nsm_telling telling;
	unsigned tries;
	uint64_t tell_ns; /* when it is told next */
	bool rebooted;	  /* its locks of state numbers other than `state` are to be freed */
	uint32_t state;	  /* that it has told of last, or 0 */
	uint32_t name_len;
	uint8_t name[];
};
LIST_HEAD(nsm_host_list, nsm_host);

#define NSM_LANE_BUCKETS 256u

struct nsm_job;
TAILQ_HEAD(nsm_job_list, nsm_job);
struct nsm_lane;
LIST_HEAD(nsm_lane_list, nsm_lane);
TAILQ_HEAD(nsm_ready_list, nsm_lane);
struct nsm_waiting;
TAILQ_HEAD(nsm_waiting_list, nsm_waiting);

struct nsm {
	struct nsm_config cfg;
	struct nsm_hooks hooks;
	pthread_mutex_t lock; /* guards what follows, up to the threads */
	pthread_cond_t changed;
	uint8_t key[16];
	struct nsm_host_list bucket[NSM_BUCKETS];
	unsigned nhosts, nformer;
	uint64_t generation, saved; /* number of changes of the table, and of those on disk */
	bool failing;		    /* the records cannot be written */
	bool tell, stop;
	/* Calls of others that wait for the messenger: jobs.c. */
	struct nsm_lane_list lanes[NSM_LANE_BUCKETS];
	struct nsm_ready_list ready;
	struct nsm_job_list later;
	unsigned njobs, nanswers;
	uint32_t state; /* this server's number in this run */
	struct nsm_monitor_list monitors;
	unsigned nmonitors;
	uint64_t last_serial;
	uint64_t mon_generation, mon_saved; /* as generation and saved, of the monitors */
	pthread_t writer, messenger;
	bool writing, messaging;	 /* the threads run */
	int wake;			 /* eventfd: the messenger looks anew */
	struct nsm_calls calls;		 /* the messenger's */
	struct nsm_waiting_list waiting; /* calls that wait for a record; the messenger's */
	unsigned nwaiting;
	uint64_t tell_until_ns; /* when hosts that cannot be reached are given up */
	uint64_t looked_ns;	/* last look at the idle hosts */
	struct rn_log_limit refusals;
};

/* hosts.c */

/* For nsm_text_read: a host of the run before. */
int nsm_host_restore(void *nsm, const struct nsm_peer *peer);
struct nsm_host_list *nsm_bucket(struct nsm *n, const struct rpc_address *addr);
/* True if both are names of one host: equal, or one is the other without its domain. */
bool nsm_same_name(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len);
/* The host that name and address belong to has restarted; the messenger goes on with it. Returns the
 * number of hosts on record that it is. */
unsigned nsm_host_rebooted(struct nsm *n, const struct nsm_peer *who, uint32_t state);
/* Outside of grace: deletes the records of hosts that have not reclaimed, and of those that have had no
 * locks for long. */
void nsm_hosts_retire(struct nsm *n, uint64_t now);
void nsm_hosts_free(struct nsm *n);

/* writer.c */

/* Reads the records and writes the new state number. */
int nsm_records_begin(struct nsm *n);
void *nsm_writer_main(void *nsm);

/* jobs.c: begins the calls that wait, as far as there is room; and ends them. Returns the time when one is
 * due that was put off, ns. */
uint64_t nsm_jobs_begin(struct nsm *n, uint64_t now);
void nsm_jobs_cancel(struct nsm *n);

/* messenger.c */
void *nsm_messenger_main(void *nsm);
void nsm_wake(struct nsm *n); /* the messenger looks at what is due */

/* answer.c: a call that has come by UDP. Returns the length of the reply in out, or 0: none. */
size_t nsm_answer(struct nsm *n, const struct nsm_datagram *d, uint8_t *out, size_t size);
/* Runs those again that wait for a record; some may wait on. */
void nsm_answer_waiting(struct nsm *n);
void nsm_answer_free(struct nsm *n);

/* notify.c */

/* Begins to tell hosts that are due, and frees the locks of those that have restarted. Returns the
 * time of the next look, ns. */
uint64_t nsm_notify_tick(struct nsm *n, uint64_t now);

#endif
