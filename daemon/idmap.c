/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/idmap.h"

#include <errno.h>
#include <nfsidmap.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SLOTS 512u
#define NAME_MAX_LEN 255u
#define TTL_SECONDS 300
#define TTL_UNKNOWN_SECONDS 30

/* Direct-mapped: of two that collide, one is asked again, which is only slower. */
struct slot {
	time_t expires; /* 0: empty */
	int rc;
	uint32_t id;
	uint32_t len;
	char name[NAME_MAX_LEN + 1];
};

enum kind { UID_TO_NAME, GID_TO_NAME, NAME_TO_UID, NAME_TO_GID, KINDS };

struct idmap {
	pthread_mutex_t lock;	 /* guards slots; never held over a question */
	pthread_mutex_t library; /* libnfsidmap says nothing of threads; guards the next three */
	bool started;
	int start_rc;
	char domain[NFS4_MAX_DOMAIN_LEN];
	struct slot slots[KINDS][SLOTS];
};

static time_t now_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec;
}

/* FNV-1a: who chooses names that collide makes only his own slower. */
static unsigned hash_name(const char *name, uint32_t len)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return (h ^ h >> 16) % SLOTS;
}

/* The library's log goes nowhere: it is by syslog and does not know our levels. */
static void ignore_log(const char *fmt, ...)
{
	(void)fmt;
}

struct idmap *idmap_new(void)
{
	struct idmap *m = calloc(1, sizeof(*m));

	if (m) {
		pthread_mutex_init(&m->lock, NULL);
		pthread_mutex_init(&m->library, NULL);
	}
	return m;
}

/* Under library. */
static int start(struct idmap *m)
{
	if (m->started)
		return m->start_rc;
	m->started = true;
	nfs4_set_debug(0, ignore_log);
	if (nfs4_init_name_mapping(NULL) != 0 ||
	    nfs4_get_default_domain(NULL, m->domain, sizeof(m->domain)) != 0)
		m->start_rc = -ENOENT;
	return m->start_rc;
}

int idmap_start(struct idmap *m)
{
	int rc;

	pthread_mutex_lock(&m->library);
	rc = start(m);
	pthread_mutex_unlock(&m->library);
	return rc;
}

void idmap_free(struct idmap *m)
{
	if (!m)
		return;
	if (m->started && m->start_rc == 0)
		nfs4_term_name_mapping();
	pthread_mutex_destroy(&m->library);
	pthread_mutex_destroy(&m->lock);
	free(m);
}

static bool same_question(const struct slot *a, const struct slot *b, enum kind kind)
{
	if (kind == UID_TO_NAME || kind == GID_TO_NAME)
		return a->id == b->id;
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}

/* Fills in the answer in *s if it is known. */
static bool find(struct idmap *m, enum kind kind, unsigned at, struct slot *s)
{
	const struct slot *there = &m->slots[kind][at];
	bool found;

	pthread_mutex_lock(&m->lock);
	found = there->expires > now_seconds() && same_question(there, s, kind);
	if (found)
		*s = *there;
	pthread_mutex_unlock(&m->lock);
	return found;
}

static void keep(struct idmap *m, enum kind kind, unsigned at, struct slot *s)
{
	s->expires = now_seconds() + (s->rc == 0 ? TTL_SECONDS : TTL_UNKNOWN_SECONDS);
	pthread_mutex_lock(&m->lock);
	m->slots[kind][at] = *s;
	pthread_mutex_unlock(&m->lock);
}

static int ask_library(struct idmap *m, enum kind kind, struct slot *s)
{
	switch (kind) {
	case UID_TO_NAME:
		return nfs4_uid_to_name(s->id, m->domain, s->name, sizeof(s->name));
	case GID_TO_NAME:
		return nfs4_gid_to_name(s->id, m->domain, s->name, sizeof(s->name));
	case NAME_TO_UID:
		return nfs4_name_to_uid(s->name, &s->id);
	default:
		return nfs4_name_to_gid(s->name, &s->id);
	}
}

static void ask(struct idmap *m, enum kind kind, struct slot *s)
{
	s->rc = start(m) == 0 && ask_library(m, kind, s) == 0 ? 0 : -ENOENT;
	if (s->rc == 0 && (kind == UID_TO_NAME || kind == GID_TO_NAME))
		s->len = (uint32_t)strnlen(s->name, NAME_MAX_LEN);
}

static int id_to_name(struct idmap *m, enum kind kind, uint32_t id, char *name, size_t size)
{
	struct slot s = { .id = id };
	unsigned at = id % SLOTS;

	if (!find(m, kind, at, &s)) {
		pthread_mutex_lock(&m->library);
		ask(m, kind, &s);
		pthread_mutex_unlock(&m->library);
		keep(m, kind, at, &s);
	}
	if (s.rc != 0)
		return s.rc;
	if (s.len >= size)
		return -ENAMETOOLONG;
	memcpy(name, s.name, s.len + 1);
	return 0;
}

/* Names are what a client likes, and a service may take its time for each: those that ask for more
 * meanwhile are sent away, so that they do not hold up all workers. */
static int name_to_id(struct idmap *m, enum kind kind, const char *name, uint32_t len, uint32_t *id)
{
	struct slot s = { .len = len };
	unsigned at = hash_name(name, len);

	if (len > NAME_MAX_LEN || memchr(name, '\0', len))
		return -ENOENT;
	memcpy(s.name, name, len);
	if (!find(m, kind, at, &s)) {
		if (pthread_mutex_trylock(&m->library) != 0)
			return -EAGAIN;
		ask(m, kind, &s);
		pthread_mutex_unlock(&m->library);
		keep(m, kind, at, &s);
	}
	*id = s.id;
	return s.rc;
}

static int uid_to_name(void *ctx, uint32_t uid, char *name, size_t size)
{
	return id_to_name(ctx, UID_TO_NAME, uid, name, size);
}

static int gid_to_name(void *ctx, uint32_t gid, char *name, size_t size)
{
	return id_to_name(ctx, GID_TO_NAME, gid, name, size);
}

static int name_to_uid(void *ctx, const char *name, uint32_t len, uint32_t *uid)
{
	return name_to_id(ctx, NAME_TO_UID, name, len, uid);
}

static int name_to_gid(void *ctx, const char *name, uint32_t len, uint32_t *gid)
{
	return name_to_id(ctx, NAME_TO_GID, name, len, gid);
}

void idmap_view(struct idmap *m, struct nfs4_idmap *out)
{
	out->uid_to_name = uid_to_name;
	out->gid_to_name = gid_to_name;
	out->name_to_uid = name_to_uid;
	out->name_to_gid = name_to_gid;
	out->ctx = m;
}
