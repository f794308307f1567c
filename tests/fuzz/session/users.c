/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/users.h"

#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/message.h"

#define CRED_AT 24u /* offset: behind xid, type, RPC version, program, version and procedure */
#define CRED_MAX 400u
#define NAME_MAX_LEN 255u
#define AUTH_NONE 0u
#define AUTH_SYS 1u

/* Two users, one of them with the other's group, root with a user's group, and nobody. */
static const struct user {
	uint32_t flavour, uid, gid, group; /* group: one additional group; 0: none */
} users[] = {
	{ 0, 0, 0, 0 }, /* keeps the call's own credential */
	{ AUTH_SYS, SS_UID_OWNER, SS_UID_OWNER, 0 },
	{ AUTH_SYS, SS_UID_OTHER, SS_UID_OTHER, 0 },
	{ AUTH_SYS, SS_UID_OTHER, SS_UID_OTHER, SS_UID_OWNER },
	{ AUTH_NONE, 0, 0, 0 },
	{ AUTH_SYS, SS_UID_NOBODY, SS_UID_NOBODY, 0 },
	{ AUTH_SYS, SS_UID_OTHER, 0, 0 },
	{ AUTH_SYS, SS_UID_ROOT, SS_UID_OWNER, SS_UID_OTHER },
};

/* *body: octets of the credential's body. False if the message has no whole credential. */
static bool find_body(const uint8_t *msg, size_t len, uint32_t *body)
{
	if (len < CRED_AT + 8 || ss_word(msg + 4) != 0 || ss_word(msg + 8) != 2)
		return false;
	*body = ss_word(msg + CRED_AT + 4);
	return *body <= CRED_MAX && len - CRED_AT - 8 >= *body + rn_xdr_pad(*body);
}

struct ss_who ss_who_of(const uint8_t *msg, size_t len)
{
	struct ss_who who = { .known = false };
	uint32_t body, name;

	if (!find_body(msg, len, &body))
		return who;
	who.flavour = ss_word(msg + CRED_AT);
	who.known = who.flavour == AUTH_NONE;
	if (who.flavour != AUTH_SYS || body < 20)
		return who;
	name = ss_word(msg + CRED_AT + 12);
	if (name > NAME_MAX_LEN || body < 20 + name + rn_xdr_pad(name))
		return who;
	who.uid = ss_word(msg + CRED_AT + 16 + name + rn_xdr_pad(name));
	who.known = true;
	return who;
}

bool ss_user_is_other(unsigned k)
{
	return k % rn_array_size(users) != 0;
}

size_t ss_user_put(uint8_t *msg, size_t len, size_t max, unsigned k)
{
	const struct user *u = &users[k % rn_array_size(users)];
	const uint32_t words[] = { 0, 0, u->uid, u->gid, u->group != 0, u->group };
	uint32_t n = u->flavour == AUTH_NONE ? 0 : u->group ? 6 : 5, body;

	if (!ss_user_is_other(k) || !find_body(msg, len, &body))
		return len;
	size_t behind = CRED_AT + 8 + body + rn_xdr_pad(body);
	size_t after = CRED_AT + 8 + (size_t)4 * n;
	if (after + (len - behind) > max)
		return len;
	memmove(msg + after, msg + behind, len - behind);
	ss_set_word(msg + CRED_AT, u->flavour);
	ss_set_word(msg + CRED_AT + 4, 4 * n);
	for (uint32_t i = 0; i < n; i++)
		ss_set_word(msg + CRED_AT + 8 + (size_t)4 * i, words[i]);
	return after + (len - behind);
}
