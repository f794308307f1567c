/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that accept contexts: the library's replay cache, its keytab and its look-ups may wait for a disk or for a
 * name service. One host (an IPv4 address, an IPv6 /64) has GSS_HOST_THREADS of them at most, and GSS_HOST_JOBS places in
 * the queue.
 */
#ifndef RN_GSS_ACCEPTOR_H
#define RN_GSS_ACCEPTOR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define GSS_THREADS 4u
#define GSS_HOST_THREADS 2u
#define GSS_JOBS 256u
#define GSS_HOST_JOBS 16u

struct gss_acceptor;

struct gss_job {
	STAILQ_ENTRY(gss_job) link;
	uint8_t host[16]; /* set by the caller: rpc_address_host() */
	/* Called by one of the threads; the job is the callee's again. */
	void (*run)(struct gss_job *job);
};

struct gss_acceptor *gss_acceptor_new(void); /* NULL: no memory, or no thread */
/* Runs what is queued, and ends the threads. */
void gss_acceptor_free(struct gss_acceptor *a);
/* False: the host has too many there, or all have. Any thread. */
bool gss_acceptor_submit(struct gss_acceptor *a, struct gss_job *job);

#endif
