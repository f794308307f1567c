/* SPDX-License-Identifier: BSD-2-Clause */
/* Credentials that the connections of a session use in turn, and a parser of credentials. */
#ifndef RN_TESTS_FUZZ_SESSION_USERS_H
#define RN_TESTS_FUZZ_SESSION_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_UID_ROOT 0u
#define SS_UID_OWNER 1000u /* owner of the files that other users may not read */
#define SS_UID_OTHER 1001u
#define SS_UID_NOBODY 65534u

#define SS_FLAVOUR_GSS 6u
/* Principals of the realm (tests/fuzz/gss/realm.h) stand for users from this number on. The first one is root. */
#define SS_GSS_UID 0x10000000u

/* Principal as the server knows it: flavour and uid on the wire. */
struct ss_who {
	bool known; /* false: the principal could not be determined */
	uint32_t flavour, uid;
};

/* Principal of a call, from its first len bytes; known is false without a whole credential of
 * AUTH_NONE or AUTH_SYS. */
struct ss_who ss_who_of(const uint8_t *msg, size_t len);
static inline bool ss_who_same(const struct ss_who *a, const struct ss_who *b)
{
	return a->known && b->known && a->flavour == b->flavour && a->uid == b->uid;
}

/* Replaces the call's credential by that of user k; k 0 keeps it. Returns the new length, at most
 * max. */
size_t ss_user_put(uint8_t *msg, size_t len, size_t max, unsigned k);
/* True if user k differs from the user in the templates. */
bool ss_user_is_other(unsigned k);

#endif
