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

#endif
