/* SPDX-License-Identifier: BSD-2-Clause */
/* Data shared by the parts of nsm/: the table of hosts, the thread that writes it, and the thread that
 * sends and receives. */
#ifndef RN_NSM_PRIVATE_H
#define RN_NSM_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include "lib/log.h"
#include "lib/quota.h"
#include "nsm/monitor.h"
#include "nsm/nsm.h"
#include "nsm/nsm_call.h"
#include "nsm/nsm_records.h"

/* A TCP connection for one call: a message is sent, and one reply read, without waiting. */
#define NSM_REPLY_MAX 2048u /* bytes; longer replies end the connection */

struct nsm_stream {
	int fd; /* -1: none */
	uint8_t *out;
	size_t out_len, sent;
	size_t body; /* bytes of whole fragments at the start of in */
	size_t len;  /* bytes in `in`: body, then a record mark, then a part of its fragment */
	uint8_t in[NSM_REPLY_MAX];
};

/* Begins to connect to d's peer and port, from its local address and a privileged port if one can be had.
 * The message is copied. 0 or -errno. */
int nsm_stream_open(struct nsm_stream *s, const struct nsm_datagram *d);
void nsm_stream_close(struct nsm_stream *s);
/* Events of poll() that it waits for. */
short nsm_stream_events(const struct nsm_stream *s);
/* Goes on. The length of the reply, which is at s->in; 0: it has not come yet; or -errno. */
int nsm_stream_step(struct nsm_stream *s);

/* Procedures of the status monitor. */
enum nsm_proc {
	SM_NULL,
	SM_STAT,
	SM_MON,
	SM_UNMON,
	SM_UNMON_ALL,
	SM_SIMU_CRASH,
	SM_NOTIFY,
	SM_PROCS
};

#define NSM_BUCKETS 1024u
#define NSM_NAMES_MAX 64u      /* hosts of one address */
#define NSM_DATAGRAM_NAMES 16u /* of these, hosts whose calls come by datagrams */
#define NSM_IDLE_SECONDS 60u   /* after which the record of a host without locks is deleted */
#define NSM_UNUSED_SECONDS 10u /* the same, of a host that got no lock at all */
#define NSM_HELD_SURE 8u       /* records with locks that a host may have whatever others have */
#define NSM_HELD_RESERVE 2048u /* of NSM_HOSTS_MAX, records that are kept for hosts with so few */
#define NSM_RETRY_SECONDS 5u   /* between two attempts to write the records */
#define NSM_TELL_SECONDS                                                                           \
	(15u * 60) /* in which hosts are told of a restart: as sm-notify(8) by default */
#define NSM_PAUSE_MOST_SECONDS 60u /* between two attempts to tell a host */

/* Progress of telling a host of the run before that the server has restarted. */
enum nsm_telling { NSM_TOLD, NSM_TELL, NSM_BEING_TOLD };

#define NSM_TELL_QUEUES 7u /* by attempts to tell the host; those with more are in the last one */

struct nsm_host;
TAILQ_HEAD(nsm_host_queue, nsm_host);

/* Under nsm.lock, but for what never changes: address and name. */
struct nsm_host {
	LIST_ENTRY(nsm_host) link;
	struct rn_quota_item place;
	struct rn_quota *in; /* nsm.held or nsm.idle; NULL: neither */
	TAILQ_ENTRY(nsm_host) due;
	struct nsm_host_queue *queue; /* that it waits in for the messenger; NULL: none */
	struct rpc_address addr, local;
	uint32_t refs;
	bool had_lock;	     /* the host has got a lock, in this run or the one before */
	bool by_datagram;    /* no call of its has come over a connection */
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

/*
 * Anybody can write another's address on a datagram. So a host that is known by datagrams alone is asked, which is not
 * written down: its rpcbind is called with an xid that only who receives the call can know. Cells are found by a keyed
 * hash, and hosts that share one push each other out, which costs another question.
 */
#define NSM_PROOF_CELLS 1024u
struct nsm_asked {
	struct rpc_address addr;
	uint64_t begun_ns;	/* first question; 0: the cell is empty */
	uint64_t wait_until_ns; /* calls wait for the answer until then */
	unsigned questions;
};
struct nsm_answered {
	struct rpc_address addr;
	uint64_t until_ns;
};
struct nsm_proofs {
	struct nsm_asked asked[NSM_PROOF_CELLS];
	struct nsm_answered answered[NSM_PROOF_CELLS];
	uint64_t span_ns;
	unsigned waiting; /* questions for whose answers calls wait, in this span */
	uint64_t silent;  /* calls refused as their host did not answer */
};

struct nsm_job;
TAILQ_HEAD(nsm_job_list, nsm_job);
struct nsm_call_queue;
TAILQ_HEAD(nsm_ready_list, nsm_call_queue);
struct nsm_waiting;
TAILQ_HEAD(nsm_waiting_list, nsm_waiting);

struct nsm {
	struct nsm_config cfg;
	struct nsm_hooks hooks;
	pthread_mutex_t lock; /* guards what follows, up to the threads */
	pthread_cond_t changed;
	uint8_t key[16];
	struct nsm_host_list bucket[NSM_BUCKETS];
	/* All hosts together are NSM_HOSTS_MAX. Those with references and those of the run before may have locks, and
	 * make room for nobody. */
	struct rn_quota held, idle;
	unsigned nhosts, nformer;
	struct nsm_host_queue tell_queue[NSM_TELL_QUEUES],
		rebooted; /* each by the time when it is due */
	struct nsm_proofs proofs;
	uint64_t generation, saved; /* number of changes of the table, and of those on disk */
	/* The records of hosts, or of monitors, cannot be written. */
	bool failing, mon_failing;
	bool tell, stop;
	/* Calls of others that wait for the messenger: nsm_jobs.c. */
	struct rn_host_table call_queues;
	struct nsm_ready_list ready;
	struct nsm_job_list later;
	unsigned njobs;
	struct rn_quota answers; /* answers that wait */
	uint32_t state;		 /* this server's number in this run */
	struct nsm_monitor_list monitors;
	unsigned nmonitors, monitor_calls; /* calls under way about monitors, but for brief ones */
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
	struct rn_log_limit refusals, silences;
};

/* nsm_hosts.c */
void nsm_hosts_init(struct nsm *n);
/* For nsm_text_read: a host of the run before. */
int nsm_host_restore(void *nsm, const struct nsm_peer *peer);
/* True if both are names of one host: equal, or one is the other without its domain. */
bool nsm_same_name(const uint8_t *a, uint32_t a_len, const uint8_t *b, uint32_t b_len);
/* The host that name and address belong to has restarted; the messenger goes on with it. Returns the
 * number of hosts on record that it is. */
unsigned nsm_host_rebooted(struct nsm *n, const struct nsm_peer *who, uint32_t state);
/* Outside of grace: deletes the records of hosts that have not reclaimed, and of those that have had no
 * locks for long. */
void nsm_hosts_retire(struct nsm *n, uint64_t now);
void nsm_hosts_free(struct nsm *n);
/* Like the public functions of these names, under the lock. */
void nsm_host_hold_locked(struct nsm *n, struct nsm_host *h);
void nsm_host_drop_locked(struct nsm *n, struct nsm_host *h);
/* Under the lock: puts a host, which is in no queue, into one for the messenger, as the last or the first. */
void nsm_host_enqueue(struct nsm_host *h, struct nsm_host_queue *q, bool first);
void nsm_host_dequeue(struct nsm_host *h); /* if it is in one */
struct nsm_host_queue *nsm_tell_queue(struct nsm *n, const struct nsm_host *h);
/* Writes lines into the log that are due about records and answers that found no room. */
void nsm_log_quotas(struct nsm *n, uint64_t now);

/* nsm_jobs.c */
void nsm_jobs_init(struct nsm *n);
/* Begins the calls that wait, as far as there is room; and ends them. Returns the time when one is
 * due that was put off, ns. */
uint64_t nsm_jobs_begin(struct nsm *n, uint64_t now);
void nsm_jobs_cancel(struct nsm *n);

/* messenger.c */
void *nsm_messenger_main(void *nsm);
void nsm_wake(struct nsm *n); /* the messenger looks at what is due */

/* prove.c: whether hosts are where their datagrams say. Under the lock.
 * 0: the host has answered; it is asked, if *ask is set by the caller now, and -RN_ESOON: the call waits;
 * -EINPROGRESS: it does not; -EHOSTDOWN: the host does not answer. */
int nsm_prove(struct nsm *n, const struct rpc_address *addr, uint64_t now, bool *ask);
/* Sends the question, without the lock. */
void nsm_prove_ask(struct nsm *n, const struct nsm_peer *peer);
/* True if the reply is the answer to a question; takes note of it. */
bool nsm_prove_reply(struct nsm *n, const struct nsm_datagram *d);

/* serve.c: a call that has come by UDP. Returns the length of the reply in out, or 0: none. */
size_t nsm_answer(struct nsm *n, const struct nsm_datagram *d, uint8_t *out, size_t size);
/* Runs those again that wait for a record; some may wait on. */
void nsm_answer_waiting(struct nsm *n);
void nsm_answer_free(struct nsm *n);

#endif
