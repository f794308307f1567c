/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared object as bytes (cluster/cluster_object.h). */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <errno.h>
#include <string.h>

#include "cluster/cluster_object.h"
#include "lib/util.h"

#define VERSION 4u
#define HEADER 24u /* magic, version, length, checksum */

enum { FLAG_NEEDS_GRACE = 1, FLAG_ENFORCING = 2, FLAG_LOST = 4 };

static const uint8_t cluster_magic[8] = { 'R', 'N', 'F', 'S', 'C', 'L', 'U', 'S' };

/* Position in the bytes while they are decoded. After a read beyond the end, all further reads give zeros. */
struct cluster_cursor {
	const uint8_t *p;
	size_t left;
	bool failed;
};

static uint8_t *cluster_put32(uint8_t *p, uint32_t v)
{
	rn_put32(p, v);
	return p + 4;
}

static uint8_t *cluster_put64(uint8_t *p, uint64_t v)
{
	rn_put32(p, (uint32_t)(v >> 32));
	rn_put32(p + 4, (uint32_t)v);
	return p + 8;
}

static uint8_t *cluster_put_bytes(uint8_t *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

static void cluster_get_bytes(struct cluster_cursor *c, void *out, size_t len)
{
	if (len > c->left) {
		c->failed = true;
		c->left = 0;
		memset(out, 0, len);
		return;
	}
	memcpy(out, c->p, len);
	c->p += len;
	c->left -= len;
}

static uint32_t cluster_get32(struct cluster_cursor *c)
{
	uint8_t b[4];

	cluster_get_bytes(c, b, sizeof(b));
	return rn_get32(b);
}

static uint64_t cluster_get64(struct cluster_cursor *c)
{
	const uint64_t high = cluster_get32(c);

	return high << 32 | cluster_get32(c);
}

static uint8_t *cluster_encode_member(uint8_t *start, const struct cluster_member *m)
{
	const size_t name = strlen(m->name);
	uint8_t *p = start + 4;

	p = cluster_put32(p, (uint32_t)name);
	p = cluster_put_bytes(p, m->name, name);
	p = cluster_put32(p, m->state);
	p = cluster_put32(p, (m->needs_grace ? FLAG_NEEDS_GRACE : 0u) |
				     (m->enforcing ? FLAG_ENFORCING : 0u) |
				     (m->lost ? FLAG_LOST : 0u));
	p = cluster_put64(p, m->incarnation);
	p = cluster_put64(p, m->holder);
	p = cluster_put64(p, m->ahead);
	p = cluster_put_bytes(p, m->digest.key, CLUSTER_DIGEST_SIZE);
	p = cluster_put_bytes(p, m->digest.exports, CLUSTER_DIGEST_SIZE);
	p = cluster_put_bytes(p, m->digest.settings, CLUSTER_DIGEST_SIZE);
	p = cluster_put32(p, (uint32_t)m->place.tcp_port << 16 | m->place.rdma_port);
	p = cluster_put32(p, m->place.naddresses);
	p = cluster_put_bytes(p, m->place.address, m->place.naddresses * 16);
	cluster_put32(start, (uint32_t)(p - start - 4));
	return p;
}

size_t cluster_encode(const struct cluster_object *o, uint8_t *bytes)
{
	uint8_t *p = bytes + HEADER;
	size_t body;

	p = cluster_put64(p, o->epoch);
	p = cluster_put64(p, o->reclaim_epoch);
	p = cluster_put64(p, o->last_incarnation);
	p = cluster_put32(p, o->dead_ms);
	p = cluster_put32(p, o->nmembers);
	for (unsigned i = 0; i < o->nmembers; i++)
		p = cluster_encode_member(p, &o->member[i]);
	body = (size_t)(p - bytes) - HEADER;
	memcpy(bytes, cluster_magic, sizeof(cluster_magic));
	cluster_put32(bytes + 8, VERSION);
	cluster_put32(bytes + 12, (uint32_t)body);
	cluster_put64(bytes + 16, XXH3_64bits(bytes + HEADER, body));
	return HEADER + body;
}

/* False: there are more addresses than a member has. */
static bool cluster_decode_place(struct cluster_cursor *c, struct cluster_place *place)
{
	const uint32_t ports = cluster_get32(c);

	place->tcp_port = (uint16_t)(ports >> 16);
	place->rdma_port = (uint16_t)ports;
	place->naddresses = cluster_get32(c);
	if (place->naddresses > CLUSTER_ADDRESSES)
		return false;
	cluster_get_bytes(c, place->address, place->naddresses * 16);
	return true;
}

/* False: the bytes are no member. */
static bool cluster_decode_member(struct cluster_cursor *all, struct cluster_member *m)
{
	const uint32_t len = cluster_get32(all);
	struct cluster_cursor c = { all->p, len, false };
	uint32_t name, state, flags;

	if (all->failed || len > all->left)
		return false;
	all->p += len;
	all->left -= len;
	name = cluster_get32(&c);
	if (c.failed || name >= CLUSTER_NAME_SIZE)
		return false;
	cluster_get_bytes(&c, m->name, name);
	state = cluster_get32(&c);
	flags = cluster_get32(&c);
	m->incarnation = cluster_get64(&c);
	m->holder = cluster_get64(&c);
	m->ahead = cluster_get64(&c);
	cluster_get_bytes(&c, m->digest.key, CLUSTER_DIGEST_SIZE);
	cluster_get_bytes(&c, m->digest.exports, CLUSTER_DIGEST_SIZE);
	cluster_get_bytes(&c, m->digest.settings, CLUSTER_DIGEST_SIZE);
	if (!cluster_decode_place(&c, &m->place) || c.failed || c.left != 0 ||
	    strlen(m->name) != name || state < CLUSTER_RUNNING || state > CLUSTER_DEAD ||
	    flags > (FLAG_NEEDS_GRACE | FLAG_ENFORCING | FLAG_LOST))
		return false;
	m->state = (enum cluster_state)state;
	m->needs_grace = flags & FLAG_NEEDS_GRACE;
	m->enforcing = flags & FLAG_ENFORCING;
	m->lost = flags & FLAG_LOST;
	return true;
}

int cluster_decode(const uint8_t *bytes, size_t len, struct cluster_object *out)
{
	struct cluster_object o = { 0 };
	struct cluster_cursor c;

	if (len < HEADER || memcmp(bytes, cluster_magic, sizeof(cluster_magic)) != 0)
		return -EBADMSG;
	c = (struct cluster_cursor){ bytes + HEADER, len - HEADER, false };
	if (rn_get32(bytes + 8) != VERSION)
		return -EPROTONOSUPPORT;
	if (rn_get32(bytes + 12) != c.left || ((uint64_t)rn_get32(bytes + 16) << 32 |
					       rn_get32(bytes + 20)) != XXH3_64bits(c.p, c.left))
		return -EBADMSG;
	o.epoch = cluster_get64(&c);
	o.reclaim_epoch = cluster_get64(&c);
	o.last_incarnation = cluster_get64(&c);
	o.dead_ms = cluster_get32(&c);
	o.nmembers = cluster_get32(&c);
	if (c.failed || o.nmembers > CLUSTER_MEMBERS)
		return -EBADMSG;
	for (unsigned i = 0; i < o.nmembers; i++)
		if (!cluster_decode_member(&c, &o.member[i]))
			return -EBADMSG;
	if (c.left != 0 || !cluster_is_sound(&o))
		return -EBADMSG;
	*out = o;
	return 0;
}
