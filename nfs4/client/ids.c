/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers and tags that cannot be guessed. With AUTH_SYS a caller that names a client id, session
 * id or stateid acts for its client, so each of them is worth as much as a password.
 *
 * A client's number is a counter behind a permutation with a random key for each run. It finds the
 * client without a search, is unique within a run, and reveals nothing about the numbers of other
 * clients. Client ids and stateids also carry a tag of 32 bits, a keyed hash of what they name. So
 * a guess must hit 64 bits, and no answer tells that half of them were right.
 */
#include "nfs4/client/client_table.h"

#define ROUNDS 4u

/* Kind of the hashed values, so that a tag of one kind is not valid for another. */
enum nfs4_tag_kind { TAG_ROUND, TAG_CLIENT, TAG_STATEID };

static uint64_t keyed(const struct nfs4_clients *all, uint32_t kind, uint32_t a, uint32_t b)
{
	const uint32_t in[4] = { kind, a, b, 0 };
	uint64_t h;

	crypto_shorthash((uint8_t *)&h, (const uint8_t *)in, sizeof(in), all->id_key);
	return h;
}

/* A Feistel network over two halves of 16 bits. */
static uint32_t permute(const struct nfs4_clients *all, uint32_t v)
{
	uint32_t left = v >> 16, right = v & 0xffffu;

	for (uint32_t i = 0; i < ROUNDS; i++) {
		const uint32_t f = (uint32_t)keyed(all, TAG_ROUND, i, right) & 0xffffu;
		const uint32_t was = right;

		right = left ^ f;
		left = was;
	}
	return left << 16 | right;
}

uint32_t nfs4_next_number(struct nfs4_clients *all)
{
	return permute(all, ++all->last_number);
}

uint64_t nfs4_make_clientid(const struct nfs4_clients *all, uint32_t number)
{
	return keyed(all, TAG_CLIENT, number, 0) << 32 | number;
}

uint32_t nfs4_stateid_tag(const struct nfs4_server *srv, uint32_t number, uint32_t id)
{
	return (uint32_t)keyed(srv->clients, TAG_STATEID, number, id);
}
