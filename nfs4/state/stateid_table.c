/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/state/stateid_table.h"

#include <errno.h>
#include <stdlib.h>

#include "nfs4/client/nfs4_client.h"

#define CHUNK 256u /* entries */
#define GEN_BITS 12
#define GEN_MASK ((1u << GEN_BITS) - 1)
#define NONE NFS4_STATES_MAX

/* An entry in use is the pointer to its state, which is even. A free entry holds its next
 * generation and the number of the next free entry. */
static uint64_t free_entry(uint32_t next, uint32_t gen)
{
	return ((uint64_t)next << GEN_BITS | (gen & GEN_MASK)) << 1 | 1;
}

static bool stateid_entry_is_free(uint64_t entry)
{
	return entry & 1;
}

static uint32_t stateid_entry_next(uint64_t entry)
{
	return (uint32_t)(entry >> (GEN_BITS + 1));
}

static uint32_t gen_of(uint64_t entry)
{
	return (uint32_t)(entry >> 1) & GEN_MASK;
}

static uint64_t *entry_at(const struct nfs4_holdings *held, uint32_t i)
{
	return &held->chunks[i / CHUNK][i % CHUNK];
}

void nfs4_stateids_init(struct nfs4_holdings *held)
{
	held->free_first = NONE;
	held->free_last = NONE;
}

static size_t directory_size(uint32_t nchunks)
{
	return nchunks * sizeof(uint64_t *);
}

void nfs4_stateids_fini(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;

	for (uint32_t i = 0; i < held->nchunks; i++)
		free(held->chunks[i]);
	nfs4_state_discharge(cl, held->nchunks * (CHUNK * sizeof(uint64_t) + sizeof(uint64_t *)));
	free(held->chunks);
	held->chunks = NULL;
	held->nchunks = 0;
	nfs4_stateids_init(held);
}

static void append_free(struct nfs4_holdings *held, uint32_t i, uint32_t gen)
{
	uint64_t *last;

	*entry_at(held, i) = free_entry(NONE, gen);
	if (held->free_last == NONE) {
		held->free_first = i;
	} else {
		last = entry_at(held, held->free_last);
		*last = free_entry(i, gen_of(*last));
	}
	held->free_last = i;
}

/* Adds a chunk. The array of chunks doubles, so that growing has a constant cost per chunk. */
static int stateid_add_chunk(struct nfs4_client *cl)
{
	struct nfs4_holdings *held = cl->holdings;
	const uint32_t n = held->nchunks;
	uint64_t **chunks = held->chunks, *chunk;
	size_t cost = CHUNK * sizeof(uint64_t) + sizeof(uint64_t *);

	if ((n + 1) * CHUNK > NFS4_STATES_MAX)
		return -ENOSPC;
	if (!nfs4_state_charge(cl, cost))
		return -ENOMEM;
	if ((n & (n - 1)) == 0)
		chunks = realloc(held->chunks, directory_size(n > 0 ? 2 * n : 1));
	chunk = chunks ? calloc(CHUNK, sizeof(uint64_t)) : NULL;
	if (chunks)
		held->chunks = chunks;
	if (!chunk) {
		nfs4_state_discharge(cl, cost);
		return -ENOMEM;
	}
	held->chunks[n] = chunk;
	held->nchunks++;
	for (uint32_t i = 0; i < CHUNK; i++)
		append_free(held, n * CHUNK + i, 1);
	return 0;
}

int nfs4_stateid_take(struct nfs4_client *cl, struct nfs4_state *st)
{
	struct nfs4_holdings *held = cl->holdings;
	int rc = held->free_first == NONE ? stateid_add_chunk(cl) : 0;
	uint64_t *entry;
	uint32_t i;

	if (rc != 0)
		return rc;
	i = held->free_first;
	entry = entry_at(held, i);
	held->free_first = stateid_entry_next(*entry);
	if (held->free_first == NONE)
		held->free_last = NONE;
	st->id = i << GEN_BITS | gen_of(*entry);
	st->tag = nfs4_stateid_tag(cl->srv, cl->number, st->id);
	*entry = (uint64_t)(uintptr_t)st;
	return 0;
}

void nfs4_stateid_free(struct nfs4_holdings *held, uint32_t id)
{
	append_free(held, id >> GEN_BITS, (id & GEN_MASK) + 1);
}

uint32_t nfs4_stateid_entries(const struct nfs4_holdings *held)
{
	return held->nchunks * CHUNK;
}

struct nfs4_state *nfs4_stateid_at(const struct nfs4_holdings *held, uint32_t entry)
{
	const uint64_t value = *entry_at(held, entry);

	/* NOLINT: the pointer that stateid_take stored */
	return stateid_entry_is_free(value) ? NULL : (struct nfs4_state *)(uintptr_t)value;
}

struct nfs4_state *nfs4_stateid_find(const struct nfs4_holdings *held, uint32_t id)
{
	const uint32_t i = id >> GEN_BITS;
	struct nfs4_state *st = i < nfs4_stateid_entries(held) ? nfs4_stateid_at(held, i) : NULL;

	return st && st->id == id ? st : NULL;
}
