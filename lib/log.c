/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/log.h"

#include <stddef.h>

void rn_log(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
{
	if (!log || level > atomic_load_explicit(&log->level, memory_order_relaxed))
		return;
	va_list ap;
	va_start(ap, fmt);
	log->write(log->ctx, level, fmt, ap);
	va_end(ap);
}

void rn_log_always(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
{
	va_list ap;

	if (!log)
		return;
	va_start(ap, fmt);
	log->write(log->ctx, level, fmt, ap);
	va_end(ap);
}
