/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/log_sink.h"

#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "daemon/journal.h"
#include "lib/clock.h"
#include "lib/util.h"

#define TEXT_MAX 1024 /* bytes of a message */

/* The process has one standard error, and one journal. */
static struct journal journal;

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

/* A message is one line, whatever bytes are in the paths and names that it has. */
static bool format(char text[TEXT_MAX], const char *fmt, va_list ap)
{
	if (vsnprintf(text, TEXT_MAX, fmt, ap) < 0)
		return false;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return true;
}

static void write_stderr(const char *text, enum rn_level level,
			 int (*prefix)(char *buf, size_t size, enum rn_level level))
{
	char line[TEXT_MAX + 64];
	const int n = prefix(line, sizeof(line), level);
	const int len = n + snprintf(line + n, sizeof(line) - (size_t)n, "%s\n", text);

	/* An error of the log itself cannot be reported anywhere. */
	if (write(STDERR_FILENO, line, (size_t)len) < 0)
		return;
}

static void to_stderr(void *module, enum rn_level level, const char *fmt, va_list ap)
{
	char text[TEXT_MAX];

	(void)module;
	if (format(text, fmt, ap))
		write_stderr(text, level, time_prefix);
}

static void event_to_journal(void *module, enum rn_level level, const struct rn_log_event *event,
			     const char *fmt, va_list ap)
{
	char text[TEXT_MAX], priority[16];
	const struct journal_field fields[] = {
		{ "MESSAGE", text },
		{ "PRIORITY", priority },
		{ "SYSLOG_IDENTIFIER", "ringnfsd" },
		{ "RINGNFS_MODULE", module },
		{ "MESSAGE_ID", event->id },
		{ "CLIENT", event->client },
		{ "EXPORT", event->export },
		{ "OPERATION", event->operation },
	};

	if (!format(text, fmt, ap))
		return;
	snprintf(priority, sizeof(priority), "%d", (int)level);
	/* Standard error leads to the journal as well, without fields. */
	if (!journal_send(&journal, fields, rn_array_size(fields)))
		write_stderr(text, level, journal_prefix);
}

static void to_journal(void *module, enum rn_level level, const char *fmt, va_list ap)
{
	event_to_journal(module, level, &(struct rn_log_event){ .id = NULL }, fmt, ap);
}

void log_sink_init(struct logs *logs, enum rn_level level)
{
	struct rn_logger as = { .level = level, .write = to_stderr };

	if (journal_is_stderr() && journal_open(&journal) == 0) {
		as.write = to_journal;
		as.write_event = event_to_journal;
	}
	logs_init(logs, &as);
	for (int i = 0; i < LOG_MODULES; i++)
		logs->of[i].ctx = (void *)(uintptr_t)logs_module_name((enum log_module)i);
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
