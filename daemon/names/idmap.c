/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/names/names.h"

#include <errno.h>
#include <nfsidmap.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/clock.h"
#include "lib/error.h"

#define SETS 1024u
#define WAYS 4u
#define NAME_MAX_LEN 255u
#define TTL_SECONDS 300
#define TTL_UNKNOWN_SECONDS 30
#define PASSWD_MAX (1u << 20) /* bytes of a user's entry, at most */
#define REST_SECONDS 2	      /* time for which an entry is not replaced: one call may need many */
#define OLD_SECONDS 3600      /* longest use of an expired answer, while there is no newer one */
#define TURN_SECONDS 2	      /* time after which a question that hangs keeps no other waiting */

struct slot {
	time_t expires; /* time after which it is asked again; 0: empty */
	time_t ends;	/* time after which it is not used any more */
	time_t since;	/* time of the question, or of the answer */
	bool asking;
	int rc;
	uint32_t id;
	uint32_t gid; /* PRINCIPAL, USER: the user's group */
	uint32_t len;
	char name[NAME_MAX_LEN + 1];
};

enum kind { UID_TO_NAME, GID_TO_NAME, NAME_TO_UID, NAME_TO_GID, PRINCIPAL, USER, KINDS };

struct idmap {
	struct askers *askers;	 /* NULL: the caller waits */
	const char *file;	 /* the library's configuration, or NULL */
	pthread_mutex_t lock;	 /* guards slots; never held over a question */
	pthread_mutex_t library; /* guards the next four */
	pthread_cond_t left;
	const struct slot
		*asked;	       /* the question that has its turn in the library; NULL: none has */
	uint64_t turn_ends_ns; /* CLOCK_MONOTONIC; 0: only when it is answered */
	/* Set by the first question, and read by others in their turns. */
	bool started;
	int start_rc;
	char domain[NFS4_MAX_DOMAIN_LEN];
	struct slot slots[KINDS][SETS][WAYS];
};

/* FNV-1a is enough: somebody who chooses colliding names slows down only his own look-ups. */
static unsigned hash_name(const char *name, uint32_t len)
{
	uint32_t h = 2166136261u;

	for (uint32_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)name[i]) * 16777619u;
	return (h ^ h >> 16) % SETS;
}

/* Discards the library's log, which uses syslog and does not know our levels. */
static void ignore_log(const char *fmt, ...)
{
	(void)fmt;
}

struct idmap *idmap_new(struct askers *askers, const char *file)
{
	struct idmap *m = calloc(1, sizeof(*m));
	pthread_condattr_t attr;

	if (m) {
		m->askers = askers;
		m->file = file;
		pthread_condattr_init(&attr);
		pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
		pthread_mutex_init(&m->lock, NULL);
		pthread_mutex_init(&m->library, NULL);
		pthread_cond_init(&m->left, &attr);
		pthread_condattr_destroy(&attr);
	}
	return m;
}

/*
 * Questions take turns in the library, which does not promise to be thread-safe. One whose name service is silent loses its turn
 * to the next after TURN_SECONDS, else one name would keep all users out. It waits in a call of its plug-in then, and not in the
 * library's own data, which does not change once the configuration was read. Reading that has a turn without an end.
 */
static void begin_turn(struct idmap *m, const struct slot *s)
{
	pthread_mutex_lock(&m->library);
	while (m->asked && (m->turn_ends_ns == 0 || rn_now_ns() < m->turn_ends_ns)) {
		const struct timespec limit = {
			.tv_sec = (time_t)(m->turn_ends_ns / RN_NS_PER_SECOND),
			.tv_nsec = (long)(m->turn_ends_ns % RN_NS_PER_SECOND),
		};

		if (m->turn_ends_ns == 0)
			pthread_cond_wait(&m->left, &m->library);
		else
			pthread_cond_timedwait(&m->left, &m->library, &limit);
	}
	m->asked = s;
	m->turn_ends_ns = m->started ? rn_now_ns() + TURN_SECONDS * RN_NS_PER_SECOND : 0;
	pthread_mutex_unlock(&m->library);
}

static void end_turn(struct idmap *m, const struct slot *s)
{
	pthread_mutex_lock(&m->library);
	if (m->asked == s) {
		m->asked = NULL;
		pthread_cond_signal(&m->left);
	}
	pthread_mutex_unlock(&m->library);
}

/* In a turn. */
static int idmap_start_library(struct idmap *m)
{
	if (m->started)
		return m->start_rc;
	nfs4_set_debug(0, ignore_log);
	if (nfs4_init_name_mapping((char *)(uintptr_t)m->file) != 0 ||
	    nfs4_get_default_domain(NULL, m->domain, sizeof(m->domain)) != 0)
		m->start_rc = -ENOENT;
	pthread_mutex_lock(&m->library);
	m->started = true;
	m->turn_ends_ns = rn_now_ns() + TURN_SECONDS * RN_NS_PER_SECOND;
	/* Those who came meanwhile wait without a limit, and this turn has one now. */
	pthread_cond_broadcast(&m->left);
	pthread_mutex_unlock(&m->library);
	return m->start_rc;
}

int idmap_start(struct idmap *m)
{
	const struct slot none = { 0 };
	int rc;

	begin_turn(m, &none);
	rc = idmap_start_library(m);
	end_turn(m, &none);
	return rc;
}

void idmap_free(struct idmap *m)
{
	if (!m)
		return;
	if (m->started && m->start_rc == 0)
		nfs4_term_name_mapping();
	pthread_cond_destroy(&m->left);
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

static int principal_to_ids(struct slot *s)
{
	uid_t uid;
	gid_t gid;
	const int rc = nfs4_gss_princ_to_ids((char[]){ "krb5" }, s->name, &uid, &gid);

	s->id = uid;
	s->gid = gid;
	return rc;
}

/* 0, or -1: there is no such user, or no answer. */
static int user_to_ids(struct slot *s)
{
	struct passwd pw, *found = NULL;
	size_t size = 4096;
	int rc;

	do {
		char *buf = malloc(size);

		if (!buf)
			return -1;
		rc = getpwnam_r(s->name, &pw, buf, size, &found);
		free(buf);
		size *= 2;
	} while (rc == ERANGE && size <= PASSWD_MAX);
	if (rc || !found)
		return -1;
	s->id = pw.pw_uid;
	s->gid = pw.pw_gid;
	return 0;
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
	case PRINCIPAL:
		return principal_to_ids(s);
	default:
		return nfs4_name_to_gid(s->name, &s->id);
	}
}

static void idmap_ask_library(struct idmap *m, enum kind kind, struct slot *s)
{
	/* The library has no part in it. */
	if (kind == USER) {
		s->rc = user_to_ids(s) == 0 ? 0 : -ENOENT;
		return;
	}
	begin_turn(m, s);
	s->rc = idmap_start_library(m) == 0 && ask_library(m, kind, s) == 0 ? 0 : -ENOENT;
	end_turn(m, s);
	if (s->rc == 0 && (kind == UID_TO_NAME || kind == GID_TO_NAME))
		s->len = (uint32_t)strnlen(s->name, NAME_MAX_LEN);
}

/* Under the lock: the slot of the question, or one for it; NULL: all slots have just been taken. */
static struct slot *idmap_find_slot(struct idmap *m, enum kind kind, unsigned at,
				    const struct slot *s, time_t now)
{
	struct slot *set = m->slots[kind][at], *oldest = NULL;

	for (unsigned i = 0; i < WAYS; i++) {
		if (set[i].since > 0 && same_question(&set[i], s, kind))
			return &set[i];
		if (!oldest || set[i].since < oldest->since)
			oldest = &set[i];
	}
	if (oldest->since > 0 && now - oldest->since < REST_SECONDS)
		return NULL;
	*oldest = *s;
	oldest->since = now;
	return oldest;
}

enum found { UNKNOWN, KNOWN, NO_PLACE };

/* Fills in the answer in *s if it is known. *want: the caller has to ask. */
static enum found idmap_find(struct idmap *m, enum kind kind, unsigned at, struct slot *s,
			     bool *want)
{
	const time_t now = (time_t)rn_now_seconds();
	enum found found = NO_PLACE;
	struct slot *there;

	*want = false;
	pthread_mutex_lock(&m->lock);
	there = idmap_find_slot(m, kind, at, s, now);
	if (there) {
		found = now < there->ends ? KNOWN : UNKNOWN;
		*want = now >= there->expires && !there->asking;
		if (found == KNOWN)
			*s = *there;
		if (*want)
			there->asking = true;
	}
	pthread_mutex_unlock(&m->lock);
	return found;
}

static void idmap_keep_answer(struct idmap *m, enum kind kind, unsigned at, struct slot *s)
{
	const time_t now = (time_t)rn_now_seconds();
	struct slot *there;

	s->asking = false;
	s->since = now;
	s->expires = now + (s->rc == 0 ? TTL_SECONDS : TTL_UNKNOWN_SECONDS);
	s->ends = s->expires + (s->rc == 0 ? OLD_SECONDS : 0);
	pthread_mutex_lock(&m->lock);
	there = idmap_find_slot(m, kind, at, s, now);
	if (there)
		*there = *s;
	pthread_mutex_unlock(&m->lock);
}

struct job {
	struct idmap *m;
	enum kind kind;
	unsigned at;
	struct slot s;
};

static void not_asked(const struct job *j)
{
	struct slot *there;

	pthread_mutex_lock(&j->m->lock);
	there = idmap_find_slot(j->m, j->kind, j->at, &j->s, (time_t)rn_now_seconds());
	if (there && there->expires == 0)
		there->since = 0; /* the slot may belong to another question now */
	if (there)
		there->asking = false;
	pthread_mutex_unlock(&j->m->lock);
}

static void idmap_answer_job(struct job *j)
{
	idmap_ask_library(j->m, j->kind, &j->s);
	idmap_keep_answer(j->m, j->kind, j->at, &j->s);
}

static void idmap_run_job(void *arg, bool cancelled)
{
	struct job *j = arg;

	if (cancelled)
		not_asked(j);
	else
		idmap_answer_job(j);
	free(j);
}

static void idmap_ask_later(const struct job *question, const struct sockaddr *peer)
{
	struct job *j = malloc(sizeof(*j));

	if (j) {
		*j = *question;
		if (askers_ask(j->m->askers, ASK_OWNERS, peer, idmap_run_job, j))
			return;
		free(j);
	}
	not_asked(question);
}

/* 0 and the answer in *s, which may be "no such name"; -RN_EUNNAMED: not known yet; -ENOENT: it will not
 * be known soon. */
static int idmap_look_up(const struct job *question, const struct sockaddr *peer, struct slot *s)
{
	struct job j = *question;
	bool want;

	*s = j.s;
	const enum found found = idmap_find(j.m, j.kind, j.at, s, &want);

	if (!j.m->askers && (want || found != KNOWN)) {
		idmap_answer_job(&j);
		*s = j.s;
		return 0;
	}
	if (want)
		idmap_ask_later(&j, peer);
	if (found == KNOWN)
		return 0;
	return found == UNKNOWN ? -RN_EUNNAMED : -ENOENT;
}

static int idmap_id_to_name(const struct job *question, const struct sockaddr *peer, char *name,
			    size_t size)
{
	struct slot s;
	int rc = idmap_look_up(question, peer, &s);

	if (rc == 0)
		rc = s.rc;
	if (rc != 0)
		return rc;
	if (s.len >= size)
		return -ENAMETOOLONG;
	memcpy(name, s.name, s.len + 1);
	return 0;
}

static int idmap_name_to_id(struct job *question, const struct sockaddr *peer, const char *name,
			    uint32_t len, uint32_t *id)
{
	struct slot s;
	int rc;

	if (len > NAME_MAX_LEN || memchr(name, '\0', len))
		return -ENOENT;
	memcpy(question->s.name, name, len);
	question->s.len = len;
	question->at = hash_name(name, len);
	rc = idmap_look_up(question, peer, &s);
	if (rc != 0)
		return -RN_EUNNAMED; /* no question was asked, so the owner is not unknown */
	*id = s.id;
	return s.rc;
}

static int uid_to_name(void *ctx, const struct sockaddr *peer, uint32_t uid, char *name,
		       size_t size)
{
	const struct job j = { ctx, UID_TO_NAME, uid % SETS, { .id = uid } };

	return idmap_id_to_name(&j, peer, name, size);
}

static int gid_to_name(void *ctx, const struct sockaddr *peer, uint32_t gid, char *name,
		       size_t size)
{
	const struct job j = { ctx, GID_TO_NAME, gid % SETS, { .id = gid } };

	return idmap_id_to_name(&j, peer, name, size);
}

static int name_to_uid(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
		       uint32_t *uid)
{
	struct job j = { .m = ctx, .kind = NAME_TO_UID };

	return idmap_name_to_id(&j, peer, name, len, uid);
}

static int name_to_gid(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
		       uint32_t *gid)
{
	struct job j = { .m = ctx, .kind = NAME_TO_GID };

	return idmap_name_to_id(&j, peer, name, len, gid);
}

/* j has the kind; the ids come back in its slot. */
static int to_ids(struct job *j, const struct sockaddr *peer, const char *name, size_t len)
{
	struct slot s;

	if (len > NAME_MAX_LEN)
		return -ENOENT;
	memcpy(j->s.name, name, len);
	j->s.len = (uint32_t)len;
	j->at = hash_name(name, (uint32_t)len);
	if (idmap_look_up(j, peer, &s) != 0)
		return -RN_EUNNAMED;
	j->s.id = s.id;
	j->s.gid = s.gid;
	return s.rc;
}

int idmap_principal(struct idmap *m, const struct sockaddr *peer, const char *name, size_t len,
		    uint32_t *uid, uint32_t *gid)
{
	struct job j = { .m = m, .kind = PRINCIPAL };
	const int rc = to_ids(&j, peer, name, len);

	*uid = j.s.id;
	*gid = j.s.gid;
	return rc;
}

int idmap_user(struct idmap *m, const struct sockaddr *peer, const char *name, uint32_t *uid,
	       uint32_t *gid)
{
	struct job j = { .m = m, .kind = USER };
	const int rc = to_ids(&j, peer, name, strlen(name));

	*uid = j.s.id;
	*gid = j.s.gid;
	return rc;
}

void idmap_view(struct idmap *m, struct nfs4_idmap *out)
{
	out->uid_to_name = uid_to_name;
	out->gid_to_name = gid_to_name;
	out->name_to_uid = name_to_uid;
	out->name_to_gid = name_to_gid;
	out->ctx = m;
}
