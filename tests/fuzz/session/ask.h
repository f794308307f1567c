/* SPDX-License-Identifier: BSD-2-Clause */
/* The driver's own calls, as root of a host that every export admits. */
#ifndef RN_TESTS_FUZZ_SESSION_ASK_H
#define RN_TESTS_FUZZ_SESSION_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/session/message.h"

#define SS_ASK_DATA (64u << 10) /* of each WRITE */
#define SS_ASK_NOENT 2
#define SS_ASK_STALE 70
#define SS_ASK_JUKEBOX 10008

/* These must succeed: a finding if one does not. */

/* Fills the handles of the tree; what was the file's becomes the stale one. */
void ss_ask_handles(uint16_t port, struct ss_values *v);
/* A fresh connection gets a NULL call answered. */
void ss_ask_alive(uint16_t port);

/* These return the NFSv3 status, over a connection of their own. */

int64_t ss_ask_mount(uint16_t port, const char *path, struct ss_fh *out);
int64_t ss_ask_look_up(uint16_t port, const struct ss_fh *dir, const char *name, struct ss_fh *out);
int64_t ss_ask_read(uint16_t port, const struct ss_fh *fh);

struct ss_ask_write {
	uint64_t offset;
	bool stable;
	const uint8_t *data; /* SS_ASK_DATA */
};
/* verifier is set where the status is 0. */
int64_t ss_ask_write(uint16_t port, const struct ss_fh *fh, const struct ss_ask_write *w,
		     uint64_t *verifier);
int64_t ss_ask_commit(uint16_t port, const struct ss_fh *fh, uint64_t *verifier);

#endif
