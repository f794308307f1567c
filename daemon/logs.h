/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's loggers: one for each part of the server, so that a level can be raised where it helps while the rest
 * stays quiet. A part is named by its folder. It is handed its logger at its start, so a message needs no look at the
 * name of its source file, and code that two parts share logs for the part that called it.
 */
#ifndef RN_DAEMON_LOGS_H
#define RN_DAEMON_LOGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/diag.h"
#include "lib/log.h"

/* In the order of their names. */
enum log_module {
	LOG_ADMIN,
	LOG_DAEMON,
	LOG_GSS,
	LOG_NFS2,
	LOG_NFS3,
	LOG_NFS4,
	LOG_RDMA,
	LOG_TCP,
	LOG_VFS,
	LOG_MODULES, /* number of them */
};

struct logs {
	struct rn_logger of[LOG_MODULES];
};

/* Every module's logger as that one. */
void logs_init(struct logs *logs, const struct rn_logger *as);

const char *logs_module_name(enum log_module module);
const char *logs_level_name(enum rn_level level);
/* False: there is no such name. */
bool logs_find_module(const char *name, enum log_module *out);
bool logs_find_level(const char *name, enum rn_level *out);

enum rn_level logs_level(const struct logs *logs, enum log_module module);
/* From the next message on. Any thread. */
void logs_set_level(struct logs *logs, enum log_module module, enum rn_level level);

/*
 * The destination of the daemon's log: the journal, with fields for programs, if standard error leads there; else
 * standard error, one line a message, with the time and the level's name. Thread-safe: one system call a message.
 */

void log_sink_init(struct logs *logs, enum rn_level level);

/* Logs every configuration message at its level. */
void log_diags(const struct rn_logger *log, const struct cfg_diags *diags);

/*
 * The journal of systemd, by its native protocol (systemd's "Native Journal Protocol"): a message is a datagram of fields.
 * libsystemd's sd_journal_send() waits while the journal's queue is full, and so would the call that logs.
 */

struct journal {
	int fd;
	_Atomic unsigned lost; /* messages that the journal did not take */
};

struct journal_field {
	const char *name;
	const char *value; /* NULL: the field is left out */
};

/* True if standard error is a stream of the journal, as JOURNAL_STREAM tells. */
bool journal_is_stderr(void);
/* 0 or -errno. */
int journal_open(struct journal *j);
/* Sends a message, or counts it as lost if the journal's queue is full. False: there is no journal. Any thread. */
bool journal_send(struct journal *j, const struct journal_field *fields, size_t n);

/* The datagram, of at most size bytes; its length, or 0 if there is no room. Values may have any bytes. */
size_t journal_encode(uint8_t *out, size_t size, const struct journal_field *fields, size_t n);

#endif
