/* SPDX-License-Identifier: BSD-2-Clause */
/* The log: its level, the journal, standard error. */
#include "daemon/logs.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/util.h"

#define SOCKET "/run/systemd/journal/socket"
#define DATAGRAM_MAX 8192 /* bytes */

bool journal_is_stderr(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	unsigned long long dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%llu:%llu", &dev, &ino) == 2 &&
	       fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev && st.st_ino == ino;
}

int journal_open(struct journal *j)
{
	atomic_init(&j->lost, 0);
	j->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return j->fd < 0 ? -errno : 0;
}

struct writer {
	uint8_t *out;
	size_t size, used;
	bool overflow;
};

static void journal_put(struct writer *w, const void *data, size_t len)
{
	if (w->overflow || len > w->size - w->used) {
		w->overflow = true;
		return;
	}
	memcpy(w->out + w->used, data, len);
	w->used += len;
}

/* NAME=value, or for a value of several lines: NAME, its length and its bytes. */
static void put_field(struct writer *w, const struct journal_field *f)
{
	const size_t len = strlen(f->value);
	const uint64_t wire_len = htole64(len);
	const bool lines = strchr(f->value, '\n');

	journal_put(w, f->name, strlen(f->name));
	journal_put(w, lines ? "\n" : "=", 1);
	if (lines)
		journal_put(w, &wire_len, sizeof(wire_len));
	journal_put(w, f->value, len);
	journal_put(w, "\n", 1);
}

size_t journal_encode(uint8_t *out, size_t size, const struct journal_field *fields, size_t n)
{
	struct writer w = { .out = out, .size = size };

	for (size_t i = 0; i < n; i++)
		if (fields[i].value)
			put_field(&w, &fields[i]);
	return w.overflow ? 0 : w.used;
}

/* 0 or -errno. */
static int send_datagram(const struct journal *j, const struct journal_field *fields, size_t n)
{
	static const struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = SOCKET };
	uint8_t data[DATAGRAM_MAX];
	const size_t len = journal_encode(data, sizeof(data), fields, n);

	if (!len)
		return -EMSGSIZE;
	return sendto(j->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&to,
		      sizeof(to)) < 0
		       ? -errno
		       : 0;
}

static void tell_lost(struct journal *j)
{
	const unsigned n = atomic_exchange_explicit(&j->lost, 0, memory_order_relaxed);
	char text[80];
	const struct journal_field fields[] = { { "MESSAGE", text },
						{ "PRIORITY", "4" },
						{ "SYSLOG_IDENTIFIER", "ringnfsd" } };

	snprintf(text, sizeof(text), "%u messages were lost, as the journal took none", n);
	if (n && send_datagram(j, fields, sizeof(fields) / sizeof(fields[0])) != 0)
		atomic_fetch_add_explicit(&j->lost, n, memory_order_relaxed);
}

bool journal_send(struct journal *j, const struct journal_field *fields, size_t n)
{
	if (atomic_load_explicit(&j->lost, memory_order_relaxed))
		tell_lost(j);
	switch (send_datagram(j, fields, n)) {
	case 0:
		return true;
	case -EAGAIN:
	case -ENOBUFS:
		atomic_fetch_add_explicit(&j->lost, 1, memory_order_relaxed);
		return true;
	default:
		return false;
	}
}

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
