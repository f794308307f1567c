/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/log.h"

#include <stddef.h>

bool rn_log_wants(const struct rn_logger *log, enum rn_level level)
{
	return log && level <= atomic_load_explicit(&log->level, memory_order_relaxed);
}

void rn_log(const struct rn_logger *log, enum rn_level level, const char *fmt, ...)
{
	if (!rn_log_wants(log, level))
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

void rn_log_event(const struct rn_logger *log, enum rn_level level,
		  const struct rn_log_event *event, const char *fmt, ...)
{
	va_list ap;

	if (!rn_log_wants(log, level))
		return;
	va_start(ap, fmt);
	if (log->write_event)
		log->write_event(log->ctx, level, event, fmt, ap);
	else
		log->write(log->ctx, level, fmt, ap);
	va_end(ap);
}
