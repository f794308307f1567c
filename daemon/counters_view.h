/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums of the counters over all threads. */
#ifndef RN_DAEMON_COUNTERS_VIEW_H
#define RN_DAEMON_COUNTERS_VIEW_H

#include "daemon/counters.h"
#include "lib/log.h"

enum counters_kind {
	COUNTERS_PROC,	   /* a procedure of NFSv3, MOUNT or NLM; NULL of NFSv4 */
	COUNTERS_OP,	   /* an operation of NFSv4 */
	COUNTERS_COMPOUND, /* COMPOUND, whose operations are counted as well */
};

struct counters_row {
	enum counters_kind kind;
	const char *version; /* "3", "4.0", "mount", "nlm"; "4" without a minor version */
	const char *operation;
	struct rn_durations time; /* of those that were timed */
	uint64_t calls;		  /* all */
	uint64_t ok;
	/* Failures by their place, COUNTERS_STATUSES of them; of NULL and COMPOUND of NFSv4 one
	 * alone, for COUNTERS_STATUS_REFUSED. */
	const _Atomic uint64_t *failures;
	unsigned nfailures;
};

struct counters_export {
	bool further; /* those that had no place of their own */
	uint32_t id;
	uint64_t read, written;
};

/* Shows what was called at all. Any thread. */
void counters_each(const struct counters *c,
		   void (*each)(void *ctx, const struct counters_row *row), void *ctx);
void counters_each_export(const struct counters *c,
			  void (*each)(void *ctx, const struct counters_export *row), void *ctx);
uint64_t counters_failed(const struct counters_row *row);
/* The name of an operation of NFSv4; "ILLEGAL" if there is none. */
const char *counters_op_name(uint32_t op);

void counters_log(const struct counters *c, const struct rn_logger *log, enum rn_level level);

#endif
