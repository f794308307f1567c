/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of hosts (lib/host.h). Apart from addresses, as programs that only read settings have no use for their hash. */
#include <sodium.h>
#include <string.h>

#include "lib/host.h"

uint64_t rn_host_hash(const struct rn_host *host, const uint8_t key[16])
{
	uint64_t h;

	_Static_assert(crypto_shorthash_KEYBYTES == 16, "key of the hash");
	crypto_shorthash((uint8_t *)&h, (const uint8_t *)host, sizeof(*host), key);
	return h;
}

void rn_host_table_init(struct rn_host_table *t)
{
	memset(t, 0, sizeof(*t));
	randombytes_buf(t->key, sizeof(t->key));
}

struct rn_host_entry *rn_host_find(const struct rn_host_table *t, const struct rn_host *host)
{
	struct rn_host_entry *e;

	LIST_FOREACH (e, &t->bucket[rn_host_hash(host, t->key) % RN_HOST_BUCKETS], link) {
		if (rn_host_equal(&e->host, host))
			break;
	}
	return e;
}

void rn_host_add(struct rn_host_table *t, struct rn_host_entry *entry)
{
	LIST_INSERT_HEAD(&t->bucket[rn_host_hash(&entry->host, t->key) % RN_HOST_BUCKETS], entry,
			 link);
}

void rn_host_remove(struct rn_host_entry *entry)
{
	LIST_REMOVE(entry, link);
}
