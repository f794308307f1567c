/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that accept contexts: the library's replay cache, its keytab and its look-ups may wait for a disk or for a
 * name service. One host has GSS_HOST_THREADS of them at most. Hosts share the places in the queue as lib/shares.h says.
 */
#ifndef RN_GSS_ACCEPTOR_H
#define RN_GSS_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "lib/shares.h"

#define GSS_THREADS 4u
#define GSS_HOST_THREADS 2u
#define GSS_JOBS 256u
#define GSS_HOST_JOBS 16u /* of the queue, at most */

struct gss_acceptor;

/* The members before abandoned are set by the caller. */
struct gss_job {
	struct rn_host host; /* the host that has it run */
	bool admitted;	     /* some export admits it */
	/* On one of the threads; may take long. */
	void (*run)(struct gss_job *job);
	/* Behind run, or without it if the job never ran. The job is the callee's again. */
	void (*done)(struct gss_job *job);
	/* Before done, once at most, if the server stops, or the job made room for another: nothing waits for it any
	 * more. May be called while run is under way; must not wait. NULL is allowed. */
	void (*abandon)(struct gss_job *job);
	bool abandoned;		    /* for done: abandon was called */
	bool made_room;		    /* the same, for another job */
	struct rn_share_item place; /* while it is in the queue */
	STAILQ_ENTRY(gss_job) link;
};

struct gss_acceptor *gss_acceptor_new(void); /* NULL: no memory, or no thread */
/* Abandons every job, and takes no more. Jobs that run go on. */
void gss_acceptor_close(struct gss_acceptor *a);
/* Closes, and waits for the threads, at most for seconds. False: one is still in its job; what it uses must stay, and a
 * too. */
bool gss_acceptor_free(struct gss_acceptor *a, unsigned seconds);
/* False: there is no room for it, or it is closed. Any thread. */
bool gss_acceptor_submit(struct gss_acceptor *a, struct gss_job *job);

#endif
