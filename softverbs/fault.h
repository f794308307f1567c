/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Faults: the places where the rest asks whether something is to go wrong now, and the rules that
 * say so (README.md has their grammar). Rules count what happens, never the time. All with the
 * fabric's lock held.
 */
#ifndef SV_FAULT_H
#define SV_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "softverbs/engine.h"

struct sv_qp;

/* What is counted, as bits: a Send is a work request, too. */
enum sv_point {
	SV_AT_SEND = 1,
	SV_AT_WRITE = 2,
	SV_AT_READ = 4,
	SV_AT_ATOMIC = 8,
	SV_AT_POST = 16,       /* any work request of the send queue */
	SV_AT_REQUEST = 32,    /* a peer's work request arrives */
	SV_AT_COMPLETION = 64, /* of either queue */
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
	uint32_t qp;	 /* its place among the connected ones, 0 for any */
	uint32_t nth;	 /* from this on, counted from 1 */
	uint32_t every;	 /* then each of so many */
	uint32_t times;	 /* at most, 0 for no limit */
	uint32_t one_in; /* not 0: by chance */
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
	TAILQ_HEAD(, sv_deferred) deferred; /* done by the engine: their place is too deep inside */
	struct sv_timer timer;
	uint32_t fired;
	int ctl_fd;
	struct sv_watch ctl;
};

/* From SOFTVERBS_FAULTS; opens the control socket of this process's slot. */
int sv_faults_init(void);

/* Adds the rules of a text, all or none of them; -EINVAL, and *where is what was not understood. */
int sv_faults_add(struct sv_faults *f, const char *text, const char **where);
void sv_faults_clear(struct sv_faults *f);

/* fault_parse.c: one statement; 1 if it is for a process of another name. */
int sv_rule_parse(const char *statement, struct sv_rule *rule);

/* fault_ctl.c */
int sv_faults_listen(struct sv_faults *f);

/* A work request is posted (op: enum sv_op): 0, or the errno of ibv_post_send(). */
int sv_fault_post(struct sv_qp *qp, uint8_t op);

/* A peer's work request arrives; qp->rnr and qp->silent are set for it. */
void sv_fault_request(struct sv_qp *qp);

/* The registration of memory, or its end: 0 or -errno. */
int sv_fault_mr(enum sv_point point);

#define SV_HOLD_REORDER UINT64_MAX /* until another queue pair completes something */

/* A completion of the queue pair: microseconds that it is held back, or SV_HOLD_REORDER. */
uint64_t sv_fault_completion(struct sv_qp *qp);

#endif
