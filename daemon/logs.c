/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/logs.h"

#include <string.h>

static const char *const module_names[] = {
	[LOG_ADMIN] = "admin", [LOG_DAEMON] = "daemon", [LOG_GSS] = "gss",
	[LOG_NFS2] = "nfs2",   [LOG_NFS3] = "nfs3",	[LOG_NFS4] = "nfs4",
	[LOG_RDMA] = "rdma",   [LOG_TCP] = "tcp",	[LOG_VFS] = "vfs",
};

static const char *const level_names[] = {
	[RN_ERROR] = "error", [RN_WARNING] = "warning", [RN_NOTICE] = "notice",
	[RN_INFO] = "info",   [RN_DEBUG] = "debug",
};

void logs_init(struct logs *logs, const struct rn_logger *as)
{
	for (int i = 0; i < LOG_MODULES; i++)
		logs->of[i] = *as;
}

const char *logs_module_name(enum log_module module)
{
	return module_names[module];
}

const char *logs_level_name(enum rn_level level)
{
	return level_names[level];
}

bool logs_find_module(const char *name, enum log_module *out)
{
	for (int i = 0; i < LOG_MODULES; i++) {
		if (strcmp(name, module_names[i]) != 0)
			continue;
		*out = (enum log_module)i;
		return true;
	}
	return false;
}

bool logs_find_level(const char *name, enum rn_level *out)
{
	for (int i = RN_ERROR; i <= RN_DEBUG; i++) {
		if (strcmp(name, level_names[i]) != 0)
			continue;
		*out = (enum rn_level)i;
		return true;
	}
	return false;
}

enum rn_level logs_level(const struct logs *logs, enum log_module module)
{
	return atomic_load_explicit(&logs->of[module].level, memory_order_relaxed);
}

void logs_set_level(struct logs *logs, enum log_module module, enum rn_level level)
{
	atomic_store_explicit(&logs->of[module].level, level, memory_order_relaxed);
}
