/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Logging without a global: each user is handed a logger. The daemon makes the only one, for
 * standard error or the journal. lib/, rpc/ and vfs/ log at debug level only; anything an operator
 * must know is counted or returned, and logged by the daemon or the transport.
 */
#ifndef RN_LIB_LOG_H
#define RN_LIB_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>

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
	/* The same with those facts; NULL: write. */
	void (*write_event)(void *ctx, enum rn_level level, const struct rn_log_event *event,
			    const char *fmt, va_list ap);
	void *ctx;
};

/* Thread-safe if the logger's write is; a NULL logger discards. The level may change meanwhile. A message that is dropped
 * costs one load. */
void rn_log(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with facts for programs. The text says them as well. */
void rn_log_event(const struct rn_logger *log, enum rn_level level,
		  const struct rn_log_event *event, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same as rn_log, at any level of the logger: for changes that an administrator makes. */
void rn_log_always(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* True if a message of that level is written: for callers whose message is expensive to make. */
bool rn_log_wants(const struct rn_logger *log, enum rn_level level);

#define rn_err(log, ...) rn_log(log, RN_ERROR, __VA_ARGS__)
#define rn_warn(log, ...) rn_log(log, RN_WARNING, __VA_ARGS__)
#define rn_notice(log, ...) rn_log(log, RN_NOTICE, __VA_ARGS__)
#define rn_info(log, ...) rn_log(log, RN_INFO, __VA_ARGS__)
#define rn_debug(log, ...) rn_log(log, RN_DEBUG, __VA_ARGS__)

#endif
