/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/log_sink.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"

static int journal_prefix(char *buf, size_t size, enum rn_level level)
{
	return snprintf(buf, size, "<%d>", (int)level);
}

static int time_prefix(char *buf, size_t size, enum rn_level level)
{
	const struct timespec now = rn_clock_read(CLOCK_REALTIME);
	struct tm tm;

	localtime_r(&now.tv_sec, &tm);
	size_t n = strftime(buf, size, "%Y-%m-%dT%H:%M:%S", &tm);
	return (int)n + snprintf(buf + n, size - n, ".%03ld %s: ", now.tv_nsec / 1000000,
				 logs_level_name(level));
}

static void sink_write(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	char line[1024];
	int n = ctx ? journal_prefix(line, sizeof(line), level)
		    : time_prefix(line, sizeof(line), level);
	int text = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);

	if (text < 0)
		return;
	n += text;
	if ((size_t)n > sizeof(line) - 2)
		n = sizeof(line) - 2;
	line[n++] = '\n';
	/* An error of the log itself cannot be reported anywhere. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}

void log_sink_init(struct logs *logs, enum rn_level level)
{
	const struct rn_logger as = {
		.level = level,
		.write = sink_write,
		.ctx = getenv("JOURNAL_STREAM"),
	};

	logs_init(logs, &as);
}

void log_diags(const struct rn_logger *log, const struct cfg_diags *diags)
{
	for (unsigned i = 0; i < diags->n; i++) {
		const struct cfg_diag *d = &diags->items[i];
		enum rn_level level = d->severity == CFG_ERROR	   ? RN_ERROR
				      : d->severity == CFG_WARNING ? RN_WARNING
								   : RN_NOTICE;
		char text[900];

		cfg_diag_format(d, text, sizeof(text));
		rn_log(log, level, "%s", text);
	}
	if (diags->dropped)
		rn_warn(log, "%u more configuration messages are not shown", diags->dropped);
}
