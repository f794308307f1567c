/* SPDX-License-Identifier: BSD-2-Clause */
/* Who calls: the credentials that a session's connections take in turn, and reading one back. */
#ifndef RN_TESTS_FUZZ_SESSION_USERS_H
#define RN_TESTS_FUZZ_SESSION_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_UID_ROOT 0u
#define SS_UID_OWNER 1000u /* of the files that nobody else may read */
#define SS_UID_OTHER 1001u
#define SS_UID_NOBODY 65534u

/* A principal as the server knows it: the flavour and the uid on the wire. */
struct ss_who {
	bool known; /* else nothing can be said about it */
	uint32_t flavour, uid;
};

/* Of a call's first len bytes; known is false if that is no whole credential of AUTH_NONE or
 * AUTH_SYS. */
struct ss_who ss_who_of(const uint8_t *msg, size_t len);
static inline bool ss_who_same(const struct ss_who *a, const struct ss_who *b)
{
	return a->known && b->known && a->flavour == b->flavour && a->uid == b->uid;
}

/* Puts user k's credential into a call in place of its own; k 0: as it is. Returns the new length,
 * at most max. */
size_t ss_user_put(uint8_t *msg, size_t len, size_t max, unsigned k);
/* Is k somebody else than the call's own user? */
bool ss_user_is_other(unsigned k);

#endif
