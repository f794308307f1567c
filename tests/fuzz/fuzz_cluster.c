/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The object that members of a cluster share, as somebody hostile may leave it in the file: all behind the header, which gets the right
 * length and checksum here. An object that is taken must stay sound through every transition of every member.
 */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_object.h"
#include "lib/util.h"

#define HEADER 24u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cluster_object object;

static void check_taken(enum cluster_refusal r, const struct cluster_object *o)
{
	if (!cluster_is_sound(o) || (r != CLUSTER_OK && memcmp(o, &object, sizeof(*o)) != 0))
		abort();
}

static void try_transitions(const struct cluster_member *m)
{
	const struct cluster_starter starter = { m->name, m->digest, true, CLUSTER_DEAD_MS_MIN,
						 m->place };
	const struct cluster_member *other = &object.member[object.nmembers - 1];
	struct cluster_object o = object;
	struct cluster_self self = { .incarnation = m->incarnation }, again;

	memcpy(self.name, m->name, sizeof(self.name));
	check_taken(cluster_enforcing(&o, &self, o.epoch), &o);
	o = object;
	check_taken(cluster_reclaimed(&o, &self), &o);
	o = object;
	check_taken(cluster_declare_dead(&o, &self, other->name, other->incarnation), &o);
	o = object;
	check_taken(cluster_leave(&o, &self, true), &o);
	o = object;
	check_taken(cluster_leave(&o, &self, false), &o);
	o = object;
	check_taken(cluster_remove(&o, m->name), &o);
	o = object;
	check_taken(cluster_join(&o, &starter, &again), &o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[2 * CLUSTER_BYTES_MAX], back[CLUSTER_BYTES_MAX];
	const size_t body = rn_min(size, sizeof(bytes) - HEADER);
	const uint64_t sum = XXH3_64bits(data, body);

	cluster_init(&object);
	cluster_encode(&object, bytes); /* for magic and version */
	rn_put32(bytes + 12, (uint32_t)body);
	rn_put32(bytes + 16, (uint32_t)(sum >> 32));
	rn_put32(bytes + 20, (uint32_t)sum);
	memcpy(bytes + HEADER, data, body);
	if (cluster_decode(bytes, HEADER + body, &object) != 0)
		return 0;
	if (!cluster_is_sound(&object) || cluster_encode(&object, back) != HEADER + body ||
	    memcmp(back, bytes, HEADER + body) != 0)
		abort();
	for (unsigned i = 0; i < object.nmembers; i++)
		try_transitions(&object.member[i]);
	return 0;
}
