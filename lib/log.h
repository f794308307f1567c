/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logging without a global: each user is handed a logger. The daemon makes the only one, for
 * standard error or the journal. lib/, rpc/ and vfs/ log at debug level only; anything an operator
 * must know is counted or returned, and logged by the daemon or the transport.
 */
#ifndef RN_LIB_LOG_H
#define RN_LIB_LOG_H

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/host.h"

/* The values are syslog(3)'s, so that the journal's <N> prefix needs no table. */
enum rn_level {
	RN_ERROR = 3,
	RN_WARNING = 4,
	RN_NOTICE = 5,
	RN_INFO = 6,
	RN_DEBUG = 7,
};

/* Facts of a message that programs look for; NULL: the message has none. */
struct rn_log_event {
	const char *id; /* of lib/log_ids.h */
	const char *client, *export, *operation;
};

struct rn_logger {
	_Atomic(enum rn_level) level; /* messages above it are dropped */
	void (*write)(void *ctx, enum rn_level level, const char *fmt, va_list ap);
	/* Like write, with those facts; NULL: write is used. */
	void (*write_event)(void *ctx, enum rn_level level, const struct rn_log_event *event,
			    const char *fmt, va_list ap);
	void *ctx;
};

/* Thread-safe if the logger's write is; a NULL logger discards. The level may change meanwhile. A message that is dropped
 * costs one load. */
void rn_log(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Like rn_log(), with facts for programs. The text says them as well. */
void rn_log_event(const struct rn_logger *log, enum rn_level level,
		  const struct rn_log_event *event, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Like rn_log(), whatever the logger's level: for changes that an administrator makes. */
void rn_log_always(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True if a message of that level is written: for callers whose message is expensive to make. */
bool rn_log_wants(const struct rn_logger *log, enum rn_level level);

#define rn_err(log, ...) rn_log(log, RN_ERROR, __VA_ARGS__)
#define rn_warn(log, ...) rn_log(log, RN_WARNING, __VA_ARGS__)
#define rn_notice(log, ...) rn_log(log, RN_NOTICE, __VA_ARGS__)
#define rn_info(log, ...) rn_log(log, RN_INFO, __VA_ARGS__)
#define rn_debug(log, ...) rn_log(log, RN_DEBUG, __VA_ARGS__)

#define RN_LOG_TEXT 160u /* bytes that a name takes in a message, at most, with its NUL */

/*
 * Makes a text of bytes that a peer has chosen. It cannot be taken for the rest of a message between quotation marks,
 * and does no harm to a terminal: printable ASCII stays, quotation marks, backslashes and all other bytes become \xNN. A longer text is cut, and
 * ends with "...". size: of out, at least 8.
 */
void rn_log_text(char *out, size_t size, const void *bytes, size_t len);

/* A limit for messages that a peer can bring about: a few in each ten seconds, then the number of
 * those left out. Thread-safe, without a lock; zeroed memory is ready. */
#define RN_LOG_LIMIT 10u	 /* messages in one span */
#define RN_LOG_LIMIT_SECONDS 10u /* length of a span */

struct rn_log_limit {
	_Atomic uint64_t span; /* number of the span << 32, and the messages in it */
	_Atomic unsigned left_out;
};

/* True if a message may be written at that time (CLOCK_MONOTONIC, ns). *left_out: messages
 * suppressed since the last one that was written. */
bool rn_log_limit_pass(struct rn_log_limit *l, uint64_t now_ns, unsigned *left_out);

/*
 * A limit for messages that clients can bring about, for each client: RN_LOG_LIMIT in a span of RN_LOG_LIMIT_SECONDS, so
 * that one who fills the log does not keep others out of it; and six times that many for all together, as a client may
 * have many addresses. Memory is bounded: a client that finds no place shares one limit with others of that kind.
 */
#define RN_LOG_HOSTS 256u  /* clients with a limit of their own */
#define RN_LOG_HOST_WAYS 4 /* places that a client may have */
#define RN_LOG_ALL (6 * RN_LOG_LIMIT)

struct rn_log_host {
	struct rn_host who;
	uint64_t span; /* number of the span, from 1 on; 0: the place is free */
	unsigned n, left_out;
};

struct rn_log_hosts {
	pthread_mutex_t lock; /* a leaf */
	struct rn_log_host host[RN_LOG_HOSTS], others, all;
};

void rn_log_hosts_init(struct rn_log_hosts *h);
void rn_log_hosts_fini(struct rn_log_hosts *h);
/* True if a message about that client may be written at that time (CLOCK_MONOTONIC). *left_out: messages about it that were
 * suppressed since its last one; those that only the limit for all has suppressed are in the next client's number. */
bool rn_log_hosts_pass(struct rn_log_hosts *h, const struct rn_host *who, uint64_t now_ns,
		       unsigned *left_out);

#endif
