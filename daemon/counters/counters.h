/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of the server: calls, statuses and times of each procedure, and of each operation of NFSv4 by its
 * minor version; bytes read and written by export. Written to the log on SIGUSR1 and, at debug level, at
 * the end; the metrics are made from them.
 *
 * A thread counts in a shard of its own, by plain stores: a GETATTR counts four times, and atomic additions
 * would be a good part of its cost. Threads beyond COUNTERS_THREADS share one shard. Failures are rarer, and
 * are counted in one place.
 */
#ifndef RN_DAEMON_COUNTERS_COUNTERS_H
#define RN_DAEMON_COUNTERS_COUNTERS_H

#include "lib/histogram.h"
#include "lib/image.h"
#include "lib/log.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/nfs4_server.h"
#include "rpc/program.h"
#include "rpc/request.h"

#define COUNTERS_PROCS 32
#define COUNTERS_NFS2 RPC_PROGRAMS_MAX /* place of NFSv2, whose procedures have other numbers */
#define COUNTERS_PLACES (RPC_PROGRAMS_MAX + 1)
#define COUNTERS_PROC_UNKNOWN (COUNTERS_PROCS - 1) /* calls of no procedure that there is */
#define COUNTERS_MINORS (NFS4_MINOR_MAX + 1)
#define COUNTERS_THREADS 128
#define COUNTERS_EXPORTS 4096 /* a power of two; further exports are counted as one */

/* Statuses: NFS's numbers below 100, those from 10000 on behind them, and two of our own. */
#define COUNTERS_STATUS_HIGH 100u /* place of NFS's 10000 */
#define COUNTERS_STATUS_OTHER 200u
#define COUNTERS_STATUS_REFUSED 201u /* by RPC, or because the reply had no room */
#define COUNTERS_STATUSES 202u

struct counter {
	struct rn_histogram time;
	_Atomic uint64_t ok; /* those that succeeded */
};

struct counters_bytes {
	_Atomic uint64_t read, written;
};

/* Calls of a kind: each member is in the shards and in struct counters_failures. */
struct counters_shard {
	bool shared; /* several threads count here */
	struct counter proc[COUNTERS_PLACES][COUNTERS_PROCS];
	struct counter null4;
	struct counter
		compound[COUNTERS_MINORS + 1]; /* the last: no minor version that is served */
	struct counter op[COUNTERS_MINORS][NFS4_OPS]; /* operation 0: unknown ones */
	/* Operations that have succeeded and whose time counts as that of a later one; not in op. */
	_Atomic uint64_t untimed[COUNTERS_MINORS][NFS4_OPS];
	struct counters_bytes exported[COUNTERS_EXPORTS + 1]; /* the last: of further exports */
};

struct counters_failures {
	_Atomic uint64_t proc[COUNTERS_PLACES][COUNTERS_PROCS][COUNTERS_STATUSES];
	_Atomic uint64_t op[COUNTERS_MINORS][NFS4_OPS][COUNTERS_STATUSES];
	_Atomic uint64_t null4, compound[COUNTERS_MINORS + 1]; /* refused by RPC */
};

struct counters {
	/* Made by their threads; the last one is shared. */
	_Atomic(struct counters_shard *) shard[COUNTERS_THREADS + 1];
	struct counters_failures *failures;
	_Atomic uint64_t
		export_id[COUNTERS_EXPORTS]; /* id + 1 of the export at that place; 0: free */
	const struct rpc_server *server;
};

/* 0 or -ENOMEM. The counters are zero before. */
int counters_init(struct counters *c, const struct rpc_server *server);
/* Hands all to the next program (daemon/counters/counters_image.c). load: in a program whose programs are known, before anybody counts; 0 or
 * -EPROTO, -ENOMEM. */
void counters_save(const struct counters *c, struct image_writer *w);
int counters_load(struct counters *c, struct image_reader *image);
/* No thread counts any more. Also if counters_init() failed, or was not called. */
void counters_fini(struct counters *c);

/* rpc_server.observe; ctx is a struct counters. */
void counters_observe(void *ctx, const struct rpc_request *req, uint64_t elapsed_ns, bool error);
/* nfs4_config.observe_op; ctx is a struct counters. */
void counters_observe_op(void *ctx, const struct rpc_request *req, const struct nfs4_op_end *end);
/* vfs_config.moved; ctx is a struct counters. */
void counters_moved(void *ctx, uint32_t export_id, uint64_t read, uint64_t written);

/* Sums of the counters over all threads. */

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
	/* Failures, a count for each status, COUNTERS_STATUSES in all. NULL and COMPOUND of NFSv4 have one
	 * count, COUNTERS_STATUS_REFUSED. */
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

/* A counter of the shared shard, by the names that it is shown by. */
struct counters_place {
	enum counters_kind kind;
	const char *version, *operation; /* static texts */
	struct counter *counter;
	_Atomic uint64_t *untimed; /* or NULL */
	_Atomic uint64_t *failures;
	unsigned nfailures;
};
/* Shows the places of all counters, called or not. Several may have the same names. */
void counters_each_place(struct counters *c,
			 void (*each)(void *ctx, const struct counters_place *place), void *ctx);
struct counters_bytes *counters_bytes_of(struct counters *c, bool further, uint32_t export_id);

void counters_log(const struct counters *c, const struct rn_logger *log, enum rn_level level);

/* Counts the calls of NFSv3's clients. */

/* Counts one answered call; the arguments are those of rpc_server.observe. */
void usage_observe(const struct rpc_request *req, uint64_t elapsed_ns, bool error);

#endif
