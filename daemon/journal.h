/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The journal of systemd, by its native protocol (systemd's "Native Journal Protocol"): a message is a datagram of fields.
 * libsystemd's sd_journal_send() waits while the journal's queue is full, and so would the call that logs.
 */
#ifndef RN_DAEMON_JOURNAL_H
#define RN_DAEMON_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
