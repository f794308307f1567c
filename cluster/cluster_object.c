/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster/cluster_object.h"

#include <string.h>

#include "lib/host.h"

#define CLUSTER_NUMBER_MAX                                                                         \
	(UINT64_MAX / 2) /* epochs and incarnations never come near it; a damaged object might */

const char *cluster_refusal_text(enum cluster_refusal r)
{
	switch (r) {
	case CLUSTER_OK:
		return "done";
	case CLUSTER_BAD_NAME:
		return "a member's name has 1 to 63 letters, digits, \".\", \"_\" and \"-\", and "
		       "does not begin with \".\"";
	case CLUSTER_BAD_TIME:
		return "a member is declared dead after 2 to 600 seconds";
	case CLUSTER_FULL:
		return "the cluster has 64 members; remove one that is gone";
	case CLUSTER_BAD_PLACE:
		return "a member has at most 8 addresses, each of one machine";
	case CLUSTER_SAME_PLACE:
		return "another member that runs has one of the addresses, with the same port";
	case CLUSTER_UNLIKE:
		return "handle key, exports or settings differ from those of the members that run";
	case CLUSTER_CLOCK:
		return "its clock is behind those of the members that run; check NTP on both";
	case CLUSTER_FENCED:
		return "this run was declared dead, or was removed, or the member was started anew";
	case CLUSTER_NO_GRACE:
		return "there is no grace period";
	case CLUSTER_OLD_EPOCH:
		return "another grace period has begun";
	case CLUSTER_NOT_ENFORCED:
		return "not all members enforce the grace period yet";
	case CLUSTER_UNKNOWN_MEMBER:
		return "no member has this name";
	case CLUSTER_NOT_RUNNING:
		return "the member does not run";
	case CLUSTER_IS_RUNNING:
		return "the member runs; stop it first, or wait until it is declared dead";
	case CLUSTER_STARTED_ANEW:
		return "the member was started again";
	case CLUSTER_RELEASED:
		return "what the member held in the file system may be released";
	}
	return "unknown";
}

void cluster_init(struct cluster_object *o)
{
	memset(o, 0, sizeof(*o));
	o->epoch = 1;
}

static bool cluster_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

bool cluster_name_is_valid(const char *name)
{
	const size_t len = strnlen(name, CLUSTER_NAME_SIZE);

	if (len == 0 || len == CLUSTER_NAME_SIZE || name[0] == '.')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!cluster_name_char(name[i]))
			return false;
	return true;
}

const struct cluster_member *cluster_look(const struct cluster_object *o, const char *name)
{
	for (unsigned i = 0; i < o->nmembers; i++)
		if (strcmp(o->member[i].name, name) == 0)
			return &o->member[i];
	return NULL;
}

struct cluster_member *cluster_find(struct cluster_object *o, const char *name)
{
	return (struct cluster_member *)cluster_look(o, name);
}

static bool cluster_some_need_grace(const struct cluster_object *o)
{
	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].needs_grace)
			return true;
	return false;
}

static bool cluster_place_is_sound(const struct cluster_place *place)
{
	if (place->naddresses > CLUSTER_ADDRESSES)
		return false;
	for (unsigned i = 0; i < place->naddresses; i++)
		if (!rn_address_is_one_machine(place->address[i]))
			return false;
	return true;
}

static uint64_t cluster_bit(unsigned i)
{
	return UINT64_C(1) << i;
}

/* Bits of the rows of members that run. */
static uint64_t cluster_running(const struct cluster_object *o)
{
	uint64_t rows = 0;

	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].state == CLUSTER_RUNNING)
			rows |= cluster_bit(i);
	return rows;
}

static bool cluster_clocks_are_sound(const struct cluster_object *o, unsigned i)
{
	const uint64_t running = cluster_running(o), ahead = o->member[i].ahead;

	return ahead == 0 ||
	       ((running & cluster_bit(i)) && !(ahead & ~running) && !(ahead & cluster_bit(i)));
}

static bool cluster_holder_is_sound(const struct cluster_member *m)
{
	if (m->holder == 0 || m->holder > m->incarnation || (m->needs_grace && m->lost))
		return false;
	if (m->state == CLUSTER_DEAD)
		return m->needs_grace || m->lost;
	/* A member that runs without reclaims has its own locks, unless an earlier run's are lost. */
	return m->state != CLUSTER_RUNNING || m->needs_grace ||
	       m->lost == (m->holder != m->incarnation);
}

static bool cluster_member_is_sound(const struct cluster_object *o, unsigned i)
{
	const struct cluster_member *m = &o->member[i];

	if (!cluster_name_is_valid(m->name) || m->incarnation == 0 ||
	    m->incarnation > o->last_incarnation || !cluster_place_is_sound(&m->place) ||
	    !cluster_clocks_are_sound(o, i))
		return false;
	if (m->enforcing && (m->state != CLUSTER_RUNNING || o->reclaim_epoch == 0))
		return false;
	if (!cluster_holder_is_sound(m))
		return false;
	for (unsigned k = 0; k < i; k++)
		if (strcmp(o->member[k].name, m->name) == 0 ||
		    o->member[k].incarnation == m->incarnation)
			return false;
	return true;
}

bool cluster_is_sound(const struct cluster_object *o)
{
	if (o->epoch == 0 || o->epoch > CLUSTER_NUMBER_MAX ||
	    o->last_incarnation > CLUSTER_NUMBER_MAX || o->reclaim_epoch >= o->epoch ||
	    o->nmembers > CLUSTER_MEMBERS)
		return false;
	for (unsigned i = 0; i < o->nmembers; i++)
		if (!cluster_member_is_sound(o, i))
			return false;
	if (o->nmembers > 0 &&
	    (o->dead_ms < CLUSTER_DEAD_MS_MIN || o->dead_ms > CLUSTER_DEAD_MS_MAX))
		return false;
	return (o->reclaim_epoch != 0) == cluster_some_need_grace(o);
}

bool cluster_all_enforce(const struct cluster_object *o)
{
	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].state == CLUSTER_RUNNING && !o->member[i].enforcing)
			return false;
	return o->reclaim_epoch != 0;
}

bool cluster_may_release(const struct cluster_object *o, const struct cluster_self *run)
{
	const struct cluster_member *m = cluster_look(o, run->name);

	if (!m)
		return true;
	/* Not known to have ended: it may say that all have reclaimed, after what they have reclaimed was released. */
	if (m->state == CLUSTER_RUNNING && m->incarnation == run->incarnation)
		return false;
	return !m->needs_grace || cluster_all_enforce(o);
}

bool cluster_must_stand(const struct cluster_object *o, const struct cluster_member *m)
{
	const bool runs = m->state == CLUSTER_RUNNING && m->holder == m->incarnation;

	return runs || (m->needs_grace && !cluster_all_enforce(o));
}

/* The caller's row; NULL: the caller is fenced. */
static struct cluster_member *cluster_caller(struct cluster_object *o,
					     const struct cluster_self *self)
{
	struct cluster_member *m = cluster_find(o, self->name);

	return m && m->state == CLUSTER_RUNNING && m->incarnation == self->incarnation ? m : NULL;
}

enum cluster_wait cluster_waits_for(const struct cluster_object *o, const struct cluster_member *m)
{
	if (o->reclaim_epoch == 0)
		return CLUSTER_WAITS_NOT;
	if (m->state != CLUSTER_RUNNING)
		return m->needs_grace ? CLUSTER_WAITS_START : CLUSTER_WAITS_NOT;
	if (!m->enforcing)
		return CLUSTER_WAITS_ENFORCE;
	return m->needs_grace ? CLUSTER_WAITS_RECLAIM : CLUSTER_WAITS_NOT;
}

/* ---- clocks ---- */

static unsigned cluster_row(const struct cluster_object *o, const struct cluster_member *m)
{
	return (unsigned)(m - o->member);
}

/* Bits of the rows of members whose clocks are apart from that of row i. */
static uint64_t cluster_apart_from(const struct cluster_object *o, unsigned i)
{
	uint64_t rows = o->member[i].ahead;

	for (unsigned k = 0; k < o->nmembers; k++)
		if (o->member[k].ahead & cluster_bit(i))
			rows |= cluster_bit(k);
	return rows;
}

bool cluster_are_apart(const struct cluster_object *o, const char *a, const char *b)
{
	const struct cluster_member *x = cluster_look(o, a), *y = cluster_look(o, b);

	return x && y &&
	       (cluster_apart_from(o, cluster_row(o, x)) & cluster_bit(cluster_row(o, y)));
}

static unsigned cluster_count(uint64_t rows)
{
	return (unsigned)__builtin_popcountll(rows);
}

/* The row, among those of the bits, whose clock is apart from most others; of several, that which was started last. There is one. */
static unsigned cluster_most_apart(const struct cluster_object *o, uint64_t rows)
{
	unsigned worst = CLUSTER_MEMBERS, most = 0;

	for (unsigned i = 0; i < o->nmembers; i++) {
		const unsigned apart = cluster_count(cluster_apart_from(o, i) & rows);

		if (!(rows & cluster_bit(i)))
			continue;
		if (worst == CLUSTER_MEMBERS || apart > most ||
		    (apart == most && o->member[i].incarnation > o->member[worst].incarnation)) {
			worst = i;
			most = apart;
		}
	}
	return worst;
}

/* True if the row's member has to leave because of its clock. */
static bool cluster_clock_ends(const struct cluster_object *o, unsigned row)
{
	uint64_t rows = cluster_running(o);

	if (cluster_apart_from(o, row) == 0)
		return false;
	while (rows & cluster_bit(row)) {
		const unsigned worst = cluster_most_apart(o, rows);
		const unsigned apart = cluster_count(cluster_apart_from(o, worst) & rows);

		if (2 * apart <= cluster_count(rows) - 1)
			return false;
		rows &= ~cluster_bit(worst);
	}
	return true;
}

/* Forgets all that members have seen of this one's clock, and it of theirs. */
static void cluster_forget_clock(struct cluster_object *o, struct cluster_member *m)
{
	m->ahead = 0;
	for (unsigned i = 0; i < o->nmembers; i++)
		o->member[i].ahead &= ~cluster_bit(cluster_row(o, m));
}

enum cluster_refusal cluster_see_clock(struct cluster_object *o, const struct cluster_self *self,
				       const char *name, uint64_t incarnation, bool is_ahead)
{
	struct cluster_member *m = cluster_caller(o, self);
	const struct cluster_member *other = cluster_look(o, name);

	if (!m)
		return CLUSTER_FENCED;
	if (!other || other == m)
		return CLUSTER_UNKNOWN_MEMBER;
	if (other->state != CLUSTER_RUNNING)
		return CLUSTER_NOT_RUNNING;
	if (other->incarnation != incarnation)
		return CLUSTER_STARTED_ANEW;
	m->ahead &= ~cluster_bit(cluster_row(o, other));
	if (is_ahead)
		m->ahead |= cluster_bit(cluster_row(o, other));
	return CLUSTER_OK;
}

struct cluster_duty cluster_duty(const struct cluster_object *o, const struct cluster_self *self)
{
	const struct cluster_member *m = cluster_look(o, self->name);
	struct cluster_duty d = { .epoch = o->epoch };

	d.fenced = !m || m->state != CLUSTER_RUNNING || m->incarnation != self->incarnation;
	if (d.fenced)
		return d;
	d.leave = cluster_clock_ends(o, cluster_row(o, m));
	/* A lost member grants nothing: its records are to be dropped, and with them those of locks that it granted meanwhile. */
	d.lost = d.enforce = m->lost;
	if (o->reclaim_epoch == 0)
		return d;
	d.enforce = true;
	d.confirm = !m->enforcing;
	d.may_reclaim = m->needs_grace && cluster_all_enforce(o);
	return d;
}

unsigned cluster_differences(const struct cluster_digest *a, const struct cluster_digest *b)
{
	return (memcmp(a->key, b->key, sizeof(a->key)) ? CLUSTER_KEY : 0u) |
	       (memcmp(a->exports, b->exports, sizeof(a->exports)) ? CLUSTER_EXPORTS : 0u) |
	       (memcmp(a->settings, b->settings, sizeof(a->settings)) ? CLUSTER_SETTINGS : 0u);
}

/* Nobody enforces a new grace before it says so. A grace under way goes on: those that enforce it do so for the new member, too. */
static void cluster_begin_grace(struct cluster_object *o)
{
	if (o->reclaim_epoch != 0)
		return;
	o->reclaim_epoch = o->epoch++;
	for (unsigned i = 0; i < o->nmembers; i++)
		o->member[i].enforcing = false;
}

static void cluster_end_grace(struct cluster_object *o)
{
	if (cluster_some_need_grace(o))
		return;
	o->reclaim_epoch = 0;
	for (unsigned i = 0; i < o->nmembers; i++)
		o->member[i].enforcing = false;
}

/* True if a member other than that one runs. */
static bool cluster_others_run(const struct cluster_object *o, const char *name)
{
	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].state == CLUSTER_RUNNING && strcmp(o->member[i].name, name) != 0)
			return true;
	return false;
}

/* True if a member with that digest may join those that run. */
static bool cluster_is_alike(const struct cluster_object *o, const struct cluster_starter *starter)
{
	bool like_one = false;

	for (unsigned i = 0; i < o->nmembers; i++) {
		const struct cluster_member *m = &o->member[i];
		const unsigned differs = cluster_differences(&m->digest, &starter->digest);

		if (m->state != CLUSTER_RUNNING || strcmp(m->name, starter->name) == 0)
			continue;
		if (differs & CLUSTER_KEY)
			return false;
		like_one |= differs == 0;
	}
	return like_one || !cluster_others_run(o, starter->name);
}

static bool cluster_places_meet(const struct cluster_place *a, const struct cluster_place *b)
{
	if (a->tcp_port != b->tcp_port)
		return false;
	for (unsigned i = 0; i < a->naddresses; i++)
		for (unsigned k = 0; k < b->naddresses; k++)
			if (memcmp(a->address[i], b->address[k], sizeof(a->address[i])) == 0)
				return true;
	return false;
}

/* True if another member runs where the starter's clients would look for it. */
static bool cluster_place_is_taken(const struct cluster_object *o,
				   const struct cluster_starter *starter)
{
	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].state == CLUSTER_RUNNING &&
		    strcmp(o->member[i].name, starter->name) != 0 &&
		    cluster_places_meet(&o->member[i].place, &starter->place))
			return true;
	return false;
}

static enum cluster_refusal cluster_may_join(const struct cluster_object *o,
					     const struct cluster_starter *starter)
{
	if (!cluster_name_is_valid(starter->name))
		return CLUSTER_BAD_NAME;
	if (starter->dead_ms < CLUSTER_DEAD_MS_MIN || starter->dead_ms > CLUSTER_DEAD_MS_MAX)
		return CLUSTER_BAD_TIME;
	if (!cluster_place_is_sound(&starter->place))
		return CLUSTER_BAD_PLACE;
	if (cluster_place_is_taken(o, starter))
		return CLUSTER_SAME_PLACE;
	if (!cluster_is_alike(o, starter))
		return CLUSTER_UNLIKE;
	if (o->nmembers == CLUSTER_MEMBERS && !cluster_look(o, starter->name))
		return CLUSTER_FULL;
	return CLUSTER_OK;
}

enum cluster_refusal cluster_join(struct cluster_object *o, const struct cluster_starter *starter,
				  struct cluster_self *self)
{
	const enum cluster_refusal refusal = cluster_may_join(o, starter);
	struct cluster_member *m;
	bool reclaims;

	if (refusal != CLUSTER_OK)
		return refusal;
	if (!cluster_others_run(o, starter->name))
		o->dead_ms = starter->dead_ms;
	m = cluster_find(o, starter->name);
	/* A member that the object still shows as running has crashed unseen: no other was granted what its clients had. */
	reclaims = starter->has_records && m && !m->lost &&
		   (m->needs_grace || m->state == CLUSTER_RUNNING);
	if (!m) {
		m = &o->member[o->nmembers++];
		memset(m, 0, sizeof(*m));
		memcpy(m->name, starter->name, strlen(starter->name) + 1);
	}
	if (reclaims)
		cluster_begin_grace(o);
	cluster_forget_clock(o, m);
	m->state = CLUSTER_RUNNING;
	m->incarnation = ++o->last_incarnation;
	m->digest = starter->digest;
	m->place = starter->place;
	m->needs_grace = reclaims;
	m->lost = false;
	if (!reclaims)
		m->holder = m->incarnation;
	m->enforcing = o->reclaim_epoch != 0;
	cluster_end_grace(o);
	memset(self, 0, sizeof(*self));
	memcpy(self->name, m->name, sizeof(self->name));
	self->incarnation = m->incarnation;
	return CLUSTER_OK;
}

enum cluster_refusal cluster_enforcing(struct cluster_object *o, const struct cluster_self *self,
				       uint64_t epoch)
{
	struct cluster_member *m = cluster_caller(o, self);

	if (!m)
		return CLUSTER_FENCED;
	if (o->reclaim_epoch == 0)
		return CLUSTER_NO_GRACE;
	if (epoch != o->epoch)
		return CLUSTER_OLD_EPOCH;
	m->enforcing = true;
	return CLUSTER_OK;
}

enum cluster_refusal cluster_reclaimed(struct cluster_object *o, const struct cluster_self *self)
{
	struct cluster_member *m = cluster_caller(o, self);

	if (!m)
		return CLUSTER_FENCED;
	if (!m->needs_grace && !m->lost)
		return CLUSTER_OK;
	if (m->needs_grace && !cluster_all_enforce(o))
		return CLUSTER_NOT_ENFORCED;
	m->needs_grace = m->lost = false;
	m->holder = m->incarnation;
	cluster_end_grace(o);
	return CLUSTER_OK;
}

/* Ends the run: all that its process still tries is refused. */
static void cluster_end_run(struct cluster_object *o, struct cluster_member *m,
			    enum cluster_state state)
{
	cluster_forget_clock(o, m);
	m->state = state;
	m->enforcing = false;
}

enum cluster_refusal cluster_declare_dead(struct cluster_object *o, const struct cluster_self *by,
					  const char *name, uint64_t incarnation)
{
	struct cluster_member *m = cluster_find(o, name);

	if (by && !cluster_caller(o, by))
		return CLUSTER_FENCED;
	if (!m)
		return CLUSTER_UNKNOWN_MEMBER;
	if (m->state != CLUSTER_RUNNING)
		return CLUSTER_NOT_RUNNING;
	if (m->incarnation != incarnation)
		return CLUSTER_STARTED_ANEW;
	cluster_end_run(o, m, CLUSTER_DEAD);
	m->needs_grace = !m->lost;
	if (m->needs_grace)
		cluster_begin_grace(o);
	return CLUSTER_OK;
}

enum cluster_refusal cluster_lose(struct cluster_object *o, const struct cluster_self *by,
				  const char *name, uint64_t holder)
{
	struct cluster_member *m = cluster_find(o, name);

	if (by && !cluster_caller(o, by))
		return CLUSTER_FENCED;
	if (!m)
		return CLUSTER_UNKNOWN_MEMBER;
	if (m->holder != holder)
		return CLUSTER_STARTED_ANEW;
	if (!cluster_must_stand(o, m))
		return CLUSTER_RELEASED;
	if (m->state == CLUSTER_RUNNING && holder == m->incarnation)
		cluster_end_run(o, m, CLUSTER_DEAD);
	m->needs_grace = false;
	m->lost = true;
	cluster_end_grace(o);
	return CLUSTER_OK;
}

enum cluster_refusal cluster_leave(struct cluster_object *o, const struct cluster_self *self,
				   bool has_records)
{
	struct cluster_member *m = cluster_caller(o, self);

	if (!m)
		return CLUSTER_FENCED;
	cluster_end_run(o, m, CLUSTER_STOPPED);
	m->needs_grace = has_records && !m->lost;
	if (m->needs_grace)
		cluster_begin_grace(o);
	cluster_end_grace(o);
	return CLUSTER_OK;
}

enum cluster_refusal cluster_remove(struct cluster_object *o, const char *name)
{
	struct cluster_member *m = cluster_find(o, name);

	if (!m)
		return CLUSTER_UNKNOWN_MEMBER;
	if (m->state == CLUSTER_RUNNING)
		return CLUSTER_IS_RUNNING;
	/* The last row takes the place of the removed one. */
	for (unsigned i = 0; i < o->nmembers; i++)
		if (o->member[i].ahead & cluster_bit(o->nmembers - 1))
			o->member[i].ahead ^=
				cluster_bit(o->nmembers - 1) | cluster_bit(cluster_row(o, m));
	*m = o->member[--o->nmembers];
	memset(&o->member[o->nmembers], 0, sizeof(*m));
	cluster_end_grace(o);
	return CLUSTER_OK;
}

enum cluster_refusal cluster_set_digest(struct cluster_object *o, const struct cluster_self *self,
					const struct cluster_digest *digest)
{
	struct cluster_member *m = cluster_caller(o, self);

	if (!m)
		return CLUSTER_FENCED;
	m->digest = *digest;
	return CLUSTER_OK;
}
