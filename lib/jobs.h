/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded queue of jobs that may take long, with threads of its own, so that no other thread waits for them.
 *
 * Each job is some host's. Hosts take turns, each with a job at a time. lib/quota.h says which job makes room when too
 * many wait, and a host has some of the threads only. So a host whose jobs never end keeps no other from its turn.
 *
 * A job belongs to the queue from rn_jobs_submit() until its done() is called. Thread-safe.
 */
#ifndef RN_LIB_JOBS_H
#define RN_LIB_JOBS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/queue.h>

#include "lib/fair_queue.h"
#include "lib/quota.h"

struct rn_jobs;
struct rn_jobs_host;

struct rn_jobs_config {
	const char *name;      /* of the threads, 15 characters at most */
	unsigned threads;      /* at most, all */
	unsigned host_threads; /* of them, for one host; 0: all */
	size_t max, host_max;  /* jobs that wait; of one host. host_max 0: as many as max */
	bool keep_oldest; /* a host that has host_max is refused, instead of losing its oldest job */
	bool on_demand;	  /* threads start when jobs wait for them; else with the queue */
	int nice;	  /* of the threads: see setpriority(2) */
};

/* The members before `abandoned` are set by the caller; host and admitted for good. */
struct rn_job {
	struct rn_host host; /* the host that has it run */
	bool admitted;	     /* some export admits it */
	/* On one of the threads; may take long. */
	void (*run)(struct rn_job *job);
	/* Behind run, or without it if the job never ran. The job is the callee's again, which may submit it anew. */
	void (*done)(struct rn_job *job);
	/* Before done, once at most, if the queue is closed, or the job made room for another: nothing waits for it any
	 * more. May be called while run is under way, with the queue's lock held; must not wait. NULL is allowed. */
	void (*abandon)(struct rn_job *job);
	/* For done. */
	bool ran;
	bool abandoned; /* the queue was closed, or the next: */
	bool made_room; /* for another job */
	/* Inside. */
	struct rn_quota_item place; /* while it waits */
	struct rn_fq_item turn;	    /* the same */
	struct rn_jobs_host *of;
	TAILQ_ENTRY(rn_job) link; /* of those that run, or make room */
};

/* NULL: no memory, or no thread could be started. cfg is copied, but not the name. */
struct rn_jobs *rn_jobs_new(const struct rn_jobs_config *cfg);
/* Hands a job over. False: it finds no room, there is no memory or thread, or the queue is closed; done is not called. Others
 * that make room are done before it returns. */
bool rn_jobs_submit(struct rn_jobs *q, struct rn_job *job);
/* Abandons every job, and takes no more. Jobs that run go on. */
void rn_jobs_close(struct rn_jobs *q);
bool rn_jobs_closed(struct rn_jobs *q);
/* Closes, and waits for the threads, at most until it has been closed for seconds (RN_JOBS_FOREVER: as long as they take), so
 * that queues which were closed together are waited for together. False: one is still in its job; what it uses must stay, and q
 * too. NULL is allowed. */
#define RN_JOBS_FOREVER (~0u)
bool rn_jobs_free(struct rn_jobs *q, unsigned seconds);

#endif
