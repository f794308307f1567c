/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls that the driver makes for itself, as root from a host that every export admits. */
#ifndef RN_TESTS_FUZZ_SESSION_ASK_H
#define RN_TESTS_FUZZ_SESSION_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/fuzz/session/message.h"

#define SS_ASK_DATA (64u << 10) /* octets of each WRITE */
#define SS_ASK_NOENT 2
#define SS_ASK_NOENT 2
#define SS_ASK_STALE 70
#define SS_ASK_JUKEBOX 10008

/* A failure of these calls is a finding. */

/* Fills the handles of the tree. The file's former handle becomes the stale one. */
void ss_ask_handles(uint16_t port, struct ss_values *v);
/* Checks that the server answers NULL on a new connection. */
void ss_ask_alive(uint16_t port);

/* These calls use a new connection each, and return the NFSv3 status. */

int64_t ss_ask_mount(uint16_t port, const char *path, struct ss_fh *out);
int64_t ss_ask_look_up(uint16_t port, const struct ss_fh *dir, const char *name, struct ss_fh *out);
int64_t ss_ask_read(uint16_t port, const struct ss_fh *fh);

struct ss_ask_write {
	uint64_t offset;
	bool stable;
	const uint8_t *data; /* SS_ASK_DATA octets */
};
/* *verifier is set if the returned status is 0. */
int64_t ss_ask_write(uint16_t port, const struct ss_fh *fh, const struct ss_ask_write *w,
		     uint64_t *verifier);
int64_t ss_ask_commit(uint16_t port, const struct ss_fh *fh, uint64_t *verifier);

#endif
