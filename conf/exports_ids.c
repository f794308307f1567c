/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Export ids. File handles contain them, so they must not change with a restart, a reload or the
 * order of lines.
 *
 * fsid=NUMBER is the id itself. Otherwise it is a hash of the UUID or the path with the top bit
 * set, which keeps it clear of the small numbers people choose. Two exports with one hash are told
 * apart by hashing again. That id depends on both exports being there, so there is a warning.
 */
#include <string.h>

#include "conf/exports_builder.h"

static uint32_t fnv1a(uint32_t hash, const void *data, size_t len)
{
	const uint8_t *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash;
}

static uint32_t hashed_id(const struct exp_id_request *request, uint32_t round)
{
	uint32_t hash = fnv1a(2166136261u, &(uint8_t){ (uint8_t)round }, 1);

	if (request->has_uuid)
		hash = fnv1a(hash, request->uuid, 16);
	else
		hash = fnv1a(hash, request->path, strlen(request->path));
	return hash | 0x80000000u;
}

static struct exp_id_request *owner_of(struct exp_id_request *requests, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (requests[i].has_fsid && requests[i].id == id)
			return &requests[i];
	return NULL;
}

static struct exp_id_request *hash_owner(struct exp_id_request *requests, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (!requests[i].has_fsid && requests[i].id == id)
			return &requests[i];
	return NULL;
}

/* Two exports with one fsid: the first in the files keeps it. The other is known by its path, as if it had none, which is as good for
 * two directories of one file system, and safe for those of two. */
static void assign_given(struct exp_id_request *requests, size_t n, struct cfg_diags *diags)
{
	for (size_t i = 0; i < n; i++) {
		struct exp_id_request *request = &requests[i];
		struct exp_id_request *loser = request;
		struct exp_id_request *other;

		if (!request->has_fsid)
			continue;
		request->id = request->fsid;
		other = owner_of(requests, i, request->fsid);
		if (!other)
			continue;
		if (other->first->seq > request->first->seq)
			loser = other;
		loser->has_fsid = false;
		cfg_diag_add(diags, loser->first->at, CFG_WARNING,
			     "fsid=%u is already that of %s: it does not count for %s, which is "
			     "known by its path",
			     request->fsid, loser == request ? other->path : request->path,
			     loser->path);
	}
}

static void assign_hashed(struct exp_id_request *requests, size_t n, size_t i,
			  struct cfg_diags *diags)
{
	struct exp_id_request *request = &requests[i];
	uint32_t round = 0;

	for (;; round++) {
		uint32_t id = hashed_id(request, round);
		struct exp_id_request *other = owner_of(requests, n, id);

		if (!other)
			other = hash_owner(requests, i, id);
		if (!other) {
			request->id = id;
			return;
		}
		if (!round)
			cfg_diag_add(diags, request->first->at, CFG_WARNING,
				     "%s and %s have the same id by chance: give one of them "
				     "fsid=NUMBER, or its handles depend on the other",
				     request->path, other->path);
	}
}

void exp_assign_ids(struct exp_id_request *requests, size_t n, struct cfg_diags *diags)
{
	assign_given(requests, n, diags);
	for (size_t i = 0; i < n; i++)
		if (!requests[i].has_fsid)
			assign_hashed(requests, n, i, diags);
}
