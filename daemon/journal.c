/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/journal.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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
