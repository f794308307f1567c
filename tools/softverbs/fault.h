/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fault injection: the functions by which other parts ask whether to fail now, and the rules that
 * decide (grammar in README.md). Rules count events, never time. All with the fabric's lock held.
 */
#ifndef SV_FAULT_H
#define SV_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tools/softverbs/engine.h"

struct sv_qp;

/* Points at which a rule counts events, as bits. A Send counts as a work request, too. */
enum sv_point {
	SV_AT_SEND = 1,
	SV_AT_WRITE = 2,
	SV_AT_READ = 4,
	SV_AT_ATOMIC = 8,
	SV_AT_POST = 16,       /* any work request of the send queue */
	SV_AT_REQUEST = 32,    /* a peer's work request arrives */
	SV_AT_COMPLETION = 64, /* a completion of the send or receive queue */
	SV_AT_REG_MR = 128,
	SV_AT_DEREG_MR = 256,
};

enum sv_action {
	SV_DROP_CONNECTION = 1,
	SV_DEVICE_REMOVED,
	SV_STOP_READING,
	SV_RNR,
	SV_FULL_SQ,
	SV_DELAY,
	SV_REORDER,
	SV_FAIL,
};

struct sv_rule {
	TAILQ_ENTRY(sv_rule) link;
	enum sv_point point;
	enum sv_action action;
	uint64_t arg;	 /* microseconds, or an errno */
	uint32_t qp;	 /* ordinal of the queue pair among the connected ones, 0 for any */
	uint32_t nth;	 /* first event to which the rule applies, counted from 1 */
	uint32_t every;	 /* then to every event of this many, 1 for each */
	uint32_t times;	 /* most times that the rule fires, 0 for no limit */
	uint32_t one_in; /* not 0: fires at random, once in this many events on average */
	uint64_t random; /* state of the generator */
	uint32_t seen, fired;
};

struct sv_deferred {
	TAILQ_ENTRY(sv_deferred) link;
	enum sv_action action;
	uint32_t qpn;
};

struct sv_faults {
	TAILQ_HEAD(sv_rules, sv_rule) rules;
	/* Actions that the engine runs later, since the caller's stack is too deep for them */
	TAILQ_HEAD(, sv_deferred) deferred;
	struct sv_timer timer;
	uint32_t fired;
	int ctl_fd;
	struct sv_watch ctl;
};

/* Reads SOFTVERBS_FAULTS and opens the control socket of this process's slot. */
int sv_faults_init(void);

/* Adds all rules of a text, or none. -EINVAL: *where is the part that is not understood. */
int sv_faults_add(struct sv_faults *f, const char *text, const char **where);
void sv_faults_clear(struct sv_faults *f);

/* fault_parse.c: parses one statement; returns 1 if it is for a process of another name. */
int sv_rule_parse(const char *statement, struct sv_rule *rule);

/* fault_ctl.c */
int sv_faults_listen(struct sv_faults *f);

/* Called when a work request is posted (op: enum sv_op). Returns 0, or the errno of
 * ibv_post_send(). */
int sv_fault_post(struct sv_qp *qp, uint8_t op);

/* Called when a peer's work request arrives; sets qp->rnr and qp->silent. */
void sv_fault_request(struct sv_qp *qp);

/* Called when memory is registered or deregistered. Returns 0 or -errno. */
int sv_fault_mr(enum sv_point point);

#define SV_HOLD_REORDER UINT64_MAX /* held until another queue pair completes something */

/* Called for a completion of the queue pair. Returns the microseconds to hold it back, or
 * SV_HOLD_REORDER. */
uint64_t sv_fault_completion(struct sv_qp *qp);

#endif
