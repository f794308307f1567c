/* SPDX-License-Identifier: BSD-2-Clause */
#include "cluster/member.h"

#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"

#define SWAP_TRIES 8u /* of a change in one step: other members change the object meanwhile */
#define CLOCK_SURE                                                                                 \
	3u /* heartbeats by which a clock is ahead before it counts: one that was just set right does not */
#define CLOCK_WINDOW 600u /* heartbeats after which a clock that was ahead counts as right again */

static const char *const member_failures[MEMBER_CALLS] = {
	"cannot read the cluster's object",
	"cannot write its heartbeat",
	"cannot read the heartbeats of others",
	"cannot change the cluster's object",
	"cannot evict a dead member's file system client",
	"cannot look for another's locks in the file system",
};

/* Another member, as seen from here. */
struct member_peer {
	char name[CLUSTER_NAME_SIZE];
	uint64_t incarnation, count;
	uint64_t changed_ms; /* when the heartbeat was first seen with the present count */
	bool death_told;     /* the death of this run was logged */
	bool loss_told;	     /* it was logged that its clients may not reclaim */
	bool evicted;	     /* the file system client was evicted, or the store cannot evict */
	bool stands_still;   /* to be declared dead in this step */
	unsigned ahead;	     /* heartbeats by which its clock is ahead of this one's */
	unsigned in_time;    /* heartbeats since the clock was last seen ahead */
	unsigned differed;   /* bits of enum cluster_difference that were logged */
};

struct member {
	struct member_cfg cfg;
	struct cluster_self self;
	struct cluster_object object; /* as read last */
	uint64_t version;
	_Atomic uint64_t valid_until; /* end of the lease; 0: fenced */
	atomic_bool reclaimed, leaving, leaving_with_records, may_close;
	bool fenced, left, enforcing, apart, lost_told;
	uint64_t enforced_ms;	/* when this member had stopped granting locks */
	uint64_t reclaim_epoch; /* epoch for which reclaim_allowed() was called */
	uint64_t
		previous; /* incarnation before this one, if its machine may still hold locks in the file system; 0: none */
	uint64_t beats;
	int told_rc[MEMBER_CALLS]; /* last error of each call that was logged; 0: the call works */
	uint64_t beat_ms;	   /* begin of the last heartbeat that reached the store */
	uint64_t grace_ms, grace_epoch; /* since when this member has seen that grace */
	uint64_t evicted, refused, failed[MEMBER_CALLS];
	uint32_t jitter;
	struct member_peer peer[CLUSTER_MEMBERS];
	unsigned npeers;
};

static uint64_t member_now(const struct member *m)
{
	if (m->cfg.calls->now_ms)
		return m->cfg.calls->now_ms(m->cfg.ctx);
	return rn_clock_ns(CLOCK_BOOTTIME) / RN_NS_PER_MS;
}

static uint64_t member_wall(const struct member *m)
{
	return m->cfg.calls->wall_ns ? m->cfg.calls->wall_ns(m->cfg.ctx) : rn_wall_ns();
}

static uint64_t member_lease_ms(const struct member *m)
{
	return m->object.dead_ms / 5 * 4;
}

bool member_may_answer(struct member *m)
{
	return member_now(m) < m->valid_until;
}

static void member_fence(struct member *m, const char *reason)
{
	m->valid_until = 0;
	m->fenced = true;
	rn_err(m->cfg.log, "cluster: member %s is fenced: %s; it answers nothing more",
	       m->self.name, reason);
	m->cfg.calls->fenced(m->cfg.ctx, reason);
}

/* Notes the result of a call to the store, and logs it if it differs from the last one of that call. */
static int member_store_result(struct member *m, enum member_call call, int rc)
{
	if (rc != 0 && rc != m->told_rc[call])
		rn_warn(m->cfg.log, "cluster: member %s %s: %s", m->self.name,
			member_failures[call], cluster_store_error_text(rc));
	m->told_rc[call] = rc;
	m->failed[call] += rc != 0;
	return rc;
}

/* Notes when a grace was seen first. */
static void member_note_grace(struct member *m)
{
	const uint64_t epoch = m->object.reclaim_epoch ? m->object.epoch : 0;

	if (epoch != m->grace_epoch)
		m->grace_ms = member_now(m);
	m->grace_epoch = epoch;
}

static int member_read(struct member *m)
{
	const int rc = member_store_result(
		m, MEMBER_READ, cluster_store_read(m->cfg.store, &m->object, &m->version));

	if (rc == 0)
		member_note_grace(m);
	return rc;
}

static int member_beat(struct member *m)
{
	struct cluster_beat beat = {
		.incarnation = m->self.incarnation,
		.count = ++m->beats,
		.wall_ns = member_wall(m),
	};

	memcpy(beat.name, m->self.name, sizeof(beat.name));
	return member_store_result(m, MEMBER_BEAT, m->cfg.store->ops->beat(m->cfg.store, &beat));
}

static uint64_t member_previous(const struct cluster_object *o, const char *name)
{
	const struct cluster_member *row = cluster_look(o, name);

	return row ? row->incarnation : 0;
}

/* Nanoseconds by which the clock of a heartbeat is ahead of this member's, at least: it was written before it was read, however long the reading
 * took. */
static int64_t member_ahead(const struct member *m, const struct cluster_beat *beat)
{
	return (int64_t)(beat->wall_ns - member_wall(m));
}

/* True if this member's clock is certainly behind those of more than half of the other running members. */
static bool member_is_behind(struct member *m)
{
	unsigned others = 0, ahead = 0;

	for (unsigned i = 0; i < m->object.nmembers; i++) {
		const struct cluster_member *row = &m->object.member[i];
		struct cluster_beat beat = { 0 };

		if (row->state != CLUSTER_RUNNING || strcmp(row->name, m->self.name) == 0)
			continue;
		others++;
		if (m->cfg.store->ops->look(m->cfg.store, row->name, &beat) != 0 ||
		    beat.incarnation != row->incarnation ||
		    member_ahead(m, &beat) <= CLUSTER_CLOCK_MS * (int64_t)RN_NS_PER_MS)
			continue;
		ahead++;
		rn_err(m->cfg.log,
		       "cluster: the clock of member %s is at least %" PRId64
		       " ms ahead of this one's",
		       row->name, member_ahead(m, &beat) / (int64_t)RN_NS_PER_MS);
	}
	return 2 * ahead > others;
}

/* ---- locks that the file system has dropped ---- */

/* 1: the file system has dropped the locks that the member's clients may reclaim; 0: it has them, or they are not needed; -errno: not known. */
static int member_has_lost(const struct member_cfg *cfg, const struct cluster_object *o,
			   const struct cluster_member *row, uint64_t since)
{
	int rc;

	if (!cfg->calls->stands || !cluster_must_stand(o, row))
		return 0;
	rc = cfg->calls->stands(cfg->ctx, row->holder, since);
	return rc < 0 ? rc : !rc;
}

/* Bits of the rows of members, including this one, whose locks the file system has dropped; -errno: not known. */
static int member_losers(const struct member_cfg *cfg, const struct cluster_object *o,
			 uint64_t since, uint64_t *rows)
{
	int unknown = 0;

	*rows = 0;
	for (unsigned i = 0; i < o->nmembers; i++) {
		const struct cluster_member *row = &o->member[i];
		const int rc = row->needs_grace ? member_has_lost(cfg, o, row, since) : 0;

		if (rc < 0)
			unknown = rc; /* goes on, so that all are asked for at once */
		else
			*rows |= (uint64_t)rc << i;
	}
	return unknown;
}

static void member_lose(struct cluster_object *o, const struct cluster_self *by, uint64_t rows)
{
	for (unsigned i = 0; i < o->nmembers; i++)
		if (rows >> i & 1)
			(void)cluster_lose(o, by, o->member[i].name, o->member[i].holder);
}

int member_lose_before(const struct member_cfg *cfg, struct cluster_object *o)
{
	const struct cluster_member *own = cluster_look(o, cfg->starter.name);
	uint64_t rows = 0;
	int rc = 0;

	if (!own || own->state != CLUSTER_RUNNING)
		return 0;
	if (!own->enforcing)
		rc = member_losers(cfg, o, 0, &rows);
	if (!rc)
		rc = member_has_lost(cfg, o, own, 0);
	if (rc < 0)
		return rc;
	member_lose(o, NULL, rows);
	if (rc)
		(void)cluster_lose(o, NULL, own->name, own->holder);
	return 0;
}

int member_lose_granted(const struct member_cfg *cfg, struct cluster_object *o,
			const struct cluster_self *by, uint64_t since)
{
	uint64_t rows;
	const int rc = member_losers(cfg, o, since, &rows);

	if (rc == 0)
		member_lose(o, by, rows);
	return rc;
}

int member_leave_by(const struct member_cfg *cfg, struct cluster_object *o,
		    const struct cluster_self *self, bool has_records, uint64_t since)
{
	const struct cluster_member *own = cluster_look(o, self->name);
	const int lost = own && has_records ? member_has_lost(cfg, o, own, since) : 0;

	if (lost < 0)
		return lost;
	return (lost ? cluster_lose(o, self, self->name, own->holder)
		     : cluster_leave(o, self, has_records)) == CLUSTER_OK
		       ? 0
		       : -EPERM;
}

int member_end_run(const struct member_cfg *cfg, struct cluster_object *o,
		   const struct cluster_self *by, const struct cluster_self *run, uint64_t since)
{
	const struct cluster_member *row = cluster_look(o, run->name);
	uint64_t rows = 0;
	int lost, rc = 0;

	if (!row || row->incarnation != run->incarnation)
		return -EPERM;
	lost = member_has_lost(cfg, o, row, since);
	/* The dead run can no longer look itself whether it has granted locks that clients of others may reclaim. */
	if (lost >= 0 && !row->enforcing)
		rc = member_losers(cfg, o, since, &rows);
	if (lost < 0 || rc < 0)
		return lost < 0 ? lost : rc;
	member_lose(o, by, rows);
	if (lost)
		(void)cluster_lose(o, by, run->name, row->holder);
	if (row->state == CLUSTER_DEAD ||
	    cluster_declare_dead(o, by, run->name, run->incarnation) == CLUSTER_OK)
		return 0;
	return -EPERM;
}

/* began: a time before the object showed this run as running. */
static void member_begin(struct member *m, uint64_t began)
{
	m->valid_until = began + member_lease_ms(m);
	m->enforcing = true;
	m->enforced_ms = member_now(m);
	member_note_grace(m);
	m->jitter = (uint32_t)m->self.incarnation * 2654435761u + (uint32_t)member_wall(m) + 1;
	m->cfg.starter.name = m->self.name;
}

int member_start(const struct member_cfg *cfg, struct member **member,
		 enum cluster_refusal *refusal)
{
	struct member *m = calloc(1, sizeof(*m));
	uint64_t began = 0;
	int rc = m ? -RN_ECHANGED : -ENOMEM;

	*refusal = CLUSTER_OK;
	if (m)
		m->cfg = *cfg;
	for (unsigned i = 0; i < SWAP_TRIES && rc == -RN_ECHANGED; i++) {
		began = member_now(m);
		rc = cluster_store_read(cfg->store, &m->object, &m->version);
		if (rc != 0)
			break;
		rc = member_lose_before(cfg, &m->object);
		if (rc != 0)
			break;
		m->previous = member_previous(&m->object, cfg->starter.name);
		*refusal = cluster_join(&m->object, &cfg->starter, &m->self);
		if (*refusal == CLUSTER_OK && member_is_behind(m))
			*refusal = CLUSTER_CLOCK;
		rc = *refusal == CLUSTER_OK ? cluster_store_swap(cfg->store, m->version, &m->object)
					    : -EPERM;
	}
	if (rc != 0) {
		free(m);
		return rc;
	}
	/* From here on the others look for its heartbeat. */
	member_begin(m, began);
	*member = m;
	return 0;
}

struct member_run member_run(const struct member *m)
{
	return (struct member_run){ m->self.incarnation, m->beats };
}

static bool member_is_same_place(const struct cluster_place *a, const struct cluster_place *b)
{
	return a->naddresses == b->naddresses && a->tcp_port == b->tcp_port &&
	       a->rdma_port == b->rdma_port &&
	       memcmp(a->address, b->address, a->naddresses * sizeof(a->address[0])) == 0;
}

/* Exports may differ, as after a reload. */
static bool member_may_resume(const struct member *m)
{
	const struct cluster_member *row = cluster_look(&m->object, m->self.name);
	const struct cluster_starter *now = &m->cfg.starter;

	return row && row->state == CLUSTER_RUNNING && row->incarnation == m->self.incarnation &&
	       !(cluster_differences(&row->digest, &now->digest) &
		 (CLUSTER_KEY | CLUSTER_SETTINGS)) &&
	       member_is_same_place(&row->place, &now->place);
}

int member_resume(const struct member_cfg *cfg, const struct member_run *run,
		  struct member **member)
{
	struct member *m = calloc(1, sizeof(*m));
	uint64_t began;
	int rc;

	if (!m)
		return -ENOMEM;
	m->cfg = *cfg;
	snprintf(m->self.name, sizeof(m->self.name), "%s", cfg->starter.name);
	m->self.incarnation = run->incarnation;
	m->beats = run->beats;
	began = member_now(m);
	rc = member_beat(m);
	if (!rc)
		rc = member_read(m);
	if (!rc && !member_may_resume(m))
		rc = -ESTALE;
	if (rc) {
		free(m);
		return rc;
	}
	m->beat_ms = began;
	member_begin(m, began);
	*member = m;
	return 0;
}

void member_free(struct member *m)
{
	free(m);
}

bool member_has_reclaims(const struct member *m)
{
	return cluster_look(&m->object, m->self.name)->needs_grace;
}

const struct cluster_object *member_object(const struct member *m)
{
	return &m->object;
}

static uint64_t member_beat_of(const struct member *m, const char *name)
{
	for (unsigned i = 0; i < m->npeers; i++)
		if (strcmp(m->peer[i].name, name) == 0)
			return m->peer[i].changed_ms;
	return strcmp(m->self.name, name) == 0 ? m->beat_ms : 0;
}

void member_look(const struct member *m, struct member_view *out)
{
	memset(out, 0, sizeof(*out));
	out->object = m->object;
	for (unsigned i = 0; i < m->object.nmembers; i++)
		out->beat_ms[i] = member_beat_of(m, m->object.member[i].name);
	out->lease_until_ms = m->valid_until;
	out->grace_ms = m->grace_epoch ? m->grace_ms : 0;
	out->evicted = m->evicted;
	out->refused = m->refused;
	memcpy(out->failed, m->failed, sizeof(out->failed));
}

void member_reclaimed(struct member *m)
{
	m->reclaimed = true;
}

void member_set_digest(struct member *m, const struct cluster_digest *digest)
{
	m->cfg.starter.digest = *digest;
}

void member_leave(struct member *m, bool has_records)
{
	m->leaving_with_records = has_records;
	m->leaving = true;
}

bool member_may_close(const struct member *m)
{
	return m->may_close;
}

/* ---- the others ---- */

/* Updates the table of peers from the object, and keeps what is known of each peer. */
static void member_list_peers(struct member *m)
{
	static const struct member_peer unknown;
	struct member_peer peer[CLUSTER_MEMBERS];
	unsigned n = 0;

	for (unsigned i = 0; i < m->object.nmembers; i++) {
		const struct cluster_member *row = &m->object.member[i];
		struct member_peer *p = &peer[n];

		if (strcmp(row->name, m->self.name) == 0)
			continue;
		n++;
		*p = unknown;
		for (unsigned k = 0; k < m->npeers; k++)
			if (strcmp(m->peer[k].name, row->name) == 0)
				*p = m->peer[k];
		if (p->incarnation == row->incarnation)
			continue;
		*p = unknown;
		memcpy(p->name, row->name, sizeof(p->name));
		p->incarnation = row->incarnation;
		p->changed_ms = member_now(m);
	}
	memcpy(m->peer, peer, n * sizeof(peer[0]));
	m->npeers = n;
}

/*
 * Delays make a clock look behind, never ahead. A clock that is behind is found by its own member, which sees this one ahead. Since steps come at
 * uneven times, some heartbeat of every few minutes is read within milliseconds.
 */
static void member_compare_clock(struct member *m, struct member_peer *p,
				 const struct cluster_beat *beat)
{
	const int64_t ahead = member_ahead(m, beat) / (int64_t)RN_NS_PER_MS;

	if (ahead <= CLUSTER_CLOCK_MS) {
		if (++p->in_time < CLOCK_WINDOW || p->ahead == 0)
			return;
		if (p->ahead >= CLOCK_SURE)
			rn_notice(m->cfg.log,
				  "cluster: the clock of member %s is no longer seen ahead of this "
				  "one's",
				  p->name);
		p->ahead = 0;
		return;
	}
	p->in_time = 0;
	if (++p->ahead == CLOCK_SURE)
		rn_warn(m->cfg.log,
			"cluster: the clock of member %s is at least %" PRId64
			" ms ahead of this one's; they may be %d ms apart: check NTP on both",
			p->name, ahead, CLUSTER_CLOCK_MS);
}

static void member_compare_digest(struct member *m, struct member_peer *p,
				  const struct cluster_member *row)
{
	const unsigned differs = cluster_differences(&row->digest, &m->cfg.starter.digest);

	if (differs == p->differed)
		return;
	p->differed = differs;
	if (differs)
		rn_warn(m->cfg.log, "cluster: differs from member %s:%s%s%s", p->name,
			differs & CLUSTER_KEY ? " handle key" : "",
			differs & CLUSTER_EXPORTS ? " exports" : "",
			differs & CLUSTER_SETTINGS ? " settings" : "");
	else
		rn_notice(m->cfg.log, "cluster: member %s has the same exports and settings again",
			  p->name);
}

/*
 * Looks whether a running peer's heartbeat moves. The time since it moved is taken from after the look that saw it move to before the look that
 * sees it stand still: however long looks take, the peer was without a heartbeat for longer than its lease.
 */
static void member_look_at(struct member *m, struct member_peer *p)
{
	const uint64_t before = member_now(m);
	struct cluster_beat beat = { 0 };
	const int rc = m->cfg.store->ops->look(m->cfg.store, p->name, &beat);

	p->stands_still = false;
	if (rc != 0 && rc != -ENOENT && rc != -EBADMSG) {
		member_store_result(m, MEMBER_LOOK, rc);
		return;
	}
	if (rc == 0 && beat.incarnation == p->incarnation && beat.count != p->count) {
		p->count = beat.count;
		member_compare_clock(m, p, &beat);
		p->changed_ms = member_now(m);
		return;
	}
	p->stands_still = before >= p->changed_ms + m->object.dead_ms;
}

/* True if the run's client of the file system is evicted, or cannot be from here. All members enforce. run 0: there is none. */
static bool member_evict(struct member *m, const char *name, uint64_t incarnation)
{
	int rc;

	if (incarnation == 0)
		return true;
	rc = m->cfg.store->ops->evict(m->cfg.store, name, incarnation);
	m->evicted += rc == 0;
	if (rc == -EINPROGRESS)
		return false;
	if (rc == -EOPNOTSUPP)
		rc = 0;
	return member_store_result(m, MEMBER_EVICT, rc) == 0;
}

static void member_note_death(struct member *m, struct member_peer *p,
			      const struct cluster_member *row)
{
	struct cluster_self run = { .incarnation = p->incarnation };

	memcpy(run.name, p->name, sizeof(run.name));
	if (!p->death_told) {
		p->death_told = true;
		rn_warn(m->cfg.log, "cluster: member %s is dead%s", p->name,
			row->lost ? ""
				  : "; no new locks until its clients have reclaimed, or it is "
				    "removed");
	}
	if (!p->evicted && cluster_may_release(&m->object, &run))
		p->evicted = member_evict(m, p->name, p->incarnation);
}

/* Logs, once, that a peer's clients may not reclaim, as others may have been granted their locks. */
static void member_note_loss(struct member *m, struct member_peer *p)
{
	if (!p->loss_told)
		rn_warn(m->cfg.log,
			"cluster: the file system had dropped the locks of member %s before all "
			"members stopped granting: its clients may not reclaim. Was its "
			"machine's client evicted by hand, or the daemon killed with its keeper?",
			p->name);
	p->loss_told = true;
}

static void member_look_around(struct member *m)
{
	member_list_peers(m);
	for (unsigned i = 0; i < m->npeers; i++) {
		struct member_peer *p = &m->peer[i];
		const struct cluster_member *row = cluster_look(&m->object, p->name);

		p->stands_still = false;
		if (row->lost)
			member_note_loss(m, p);
		if (row->state == CLUSTER_DEAD)
			member_note_death(m, p, row);
		if (row->state != CLUSTER_RUNNING)
			continue;
		member_compare_digest(m, p, row);
		member_look_at(m, p);
	}
}

/* ---- this member's part ---- */

/* Logs which clocks are apart from this member's, and has the server leave. */
static void member_leave_by_clock(struct member *m)
{
	char names[256] = "";

	for (unsigned i = 0; i < m->npeers; i++)
		if (cluster_are_apart(&m->object, m->self.name, m->peer[i].name))
			snprintf(names + strlen(names), sizeof(names) - strlen(names), " %s",
				 m->peer[i].name);
	m->apart = true;
	rn_err(m->cfg.log,
	       "cluster: the clock of member %s is more than %d ms apart from those of:%s; it "
	       "leaves "
	       "the cluster: check NTP on both, and start it again",
	       m->self.name, CLUSTER_CLOCK_MS, names);
	m->cfg.calls->apart(m->cfg.ctx);
}

/* Carries out the duties that the object gives to this member. */
static void member_follow(struct member *m, const struct cluster_duty *duty, bool leaving)
{
	const bool enforce = duty->enforce || leaving;

	if (duty->leave && !leaving && !m->apart)
		member_leave_by_clock(m);
	if (enforce != m->enforcing) {
		m->enforcing = enforce;
		m->cfg.calls->enforce(m->cfg.ctx, enforce);
		m->enforced_ms = member_now(m);
	}
	if (duty->lost && !m->lost_told) {
		m->lost_told = true;
		m->cfg.calls->reclaims_lost(m->cfg.ctx);
	}
	if (duty->may_reclaim && m->reclaim_epoch != duty->epoch && !m->reclaimed &&
	    member_evict(m, m->self.name, m->previous)) {
		m->reclaim_epoch = duty->epoch;
		m->previous = 0;
		m->cfg.calls->reclaim_allowed(m->cfg.ctx, duty->epoch);
	}
}

/* Counts a refused transition. True: the transition was made, so the object has changed. */
static bool member_tried(struct member *m, enum cluster_refusal r)
{
	m->refused += r != CLUSTER_OK;
	return r == CLUSTER_OK;
}

/* Puts what is new about a peer's clock into the object. False: there is nothing new. */
static bool member_tell_clock(struct member *m)
{
	const uint64_t *row = &cluster_look(&m->object, m->self.name)->ahead;

	for (unsigned i = 0; i < m->npeers; i++) {
		const struct member_peer *p = &m->peer[i];
		const uint64_t before = *row;

		if (cluster_see_clock(&m->object, &m->self, p->name, p->incarnation,
				      p->ahead >= CLOCK_SURE) == CLUSTER_OK &&
		    *row != before)
			return true;
	}
	return false;
}

/* Marks members that have lost their locks. False: it is not known yet which have. */
static bool member_settle_losses(struct member *m)
{
	const int rc = member_lose_granted(&m->cfg, &m->object, &m->self, m->enforced_ms);

	member_store_result(m, MEMBER_STANDS, rc == -EINPROGRESS ? 0 : rc);
	return rc == 0;
}

/* True: the object has changed. */
static bool member_declare(struct member *m, const struct member_peer *p)
{
	struct cluster_self run = { .incarnation = p->incarnation };
	int rc;

	memcpy(run.name, p->name, sizeof(run.name));
	rc = member_end_run(&m->cfg, &m->object, &m->self, &run, p->changed_ms + m->object.dead_ms);

	member_store_result(m, MEMBER_STANDS, rc == -EINPROGRESS || rc == -EPERM ? 0 : rc);
	m->refused += rc == -EPERM;
	return rc == 0;
}

/* True: the object has changed. */
static bool member_try_leave(struct member *m)
{
	const int rc = member_leave_by(&m->cfg, &m->object, &m->self, m->leaving_with_records,
				       m->enforced_ms);

	member_store_result(m, MEMBER_STANDS, rc == -EINPROGRESS || rc == -EPERM ? 0 : rc);
	m->refused += rc == -EPERM;
	return rc == 0;
}

/* The next transition of this member in the object. False: there is none. */
static bool member_change(struct member *m, const struct cluster_duty *duty, bool leaving)
{
	const struct cluster_digest *digest = &m->cfg.starter.digest;

	if (duty->confirm && !member_settle_losses(m))
		return false;
	if (leaving)
		return member_try_leave(m);
	/* The grace may have ended with the mark of those that have lost their locks. */
	if (duty->confirm)
		return m->object.reclaim_epoch == 0 ||
		       member_tried(m, cluster_enforcing(&m->object, &m->self, duty->epoch));
	if (m->reclaimed && (duty->may_reclaim || duty->lost))
		return member_tried(m, cluster_reclaimed(&m->object, &m->self));
	if (cluster_differences(&cluster_look(&m->object, m->self.name)->digest, digest))
		return member_tried(m, cluster_set_digest(&m->object, &m->self, digest));
	if (member_tell_clock(m))
		return true;
	for (unsigned i = 0; i < m->npeers; i++)
		if (m->peer[i].stands_still && member_declare(m, &m->peer[i]))
			return true;
	return false;
}

/* The run has left, or another member has ended it: the object does not show it as running any more. */
static void member_end(struct member *m)
{
	const struct cluster_member *row = cluster_look(&m->object, m->self.name);

	if (!row && m->version == 0)
		member_fence(m, "the cluster's object is gone");
	else if (!row)
		member_fence(m, "it was removed from the cluster");
	else if (row->incarnation != m->self.incarnation)
		member_fence(m, "it was started anew elsewhere");
	else if (row->lost)
		member_fence(m, "the file system has dropped its locks");
	else if (row->state == CLUSTER_DEAD)
		member_fence(m, "others have declared it dead");
	else
		m->left = true;
}

/* Follows the object and changes it, until there is nothing to do. */
static void member_take_part(struct member *m)
{
	for (unsigned i = 0; i < SWAP_TRIES + CLUSTER_MEMBERS; i++) {
		const struct cluster_duty duty = cluster_duty(&m->object, &m->self);
		const bool leaving = m->leaving; /* read once: it leaves only after it enforces */
		int rc;

		if (duty.fenced) {
			member_end(m);
			return;
		}
		member_follow(m, &duty, leaving);
		if (!member_change(m, &duty, leaving))
			return;
		rc = cluster_store_swap(m->cfg.store, m->version, &m->object);
		if (rc == -RN_ECHANGED)
			rc = 0;
		member_store_result(m, MEMBER_SWAP, rc);
		/* Read again in any case: a change that failed may have been made. */
		if (member_read(m) != 0 || rc != 0)
			return;
	}
}

/* After the member has left: until others enforce, it keeps its locks in the file system. */
static void member_await_close(struct member *m)
{
	if (member_read(m) == 0)
		m->may_close = cluster_may_release(&m->object, &m->self);
}

/* Writes the heartbeat and reads the object; renews the lease if both succeed within it. False: the member is fenced, or the object was not read. */
static bool member_renew(struct member *m)
{
	const uint64_t began = member_now(m);
	const int beat = member_beat(m);
	const int rc = member_read(m);

	if (member_now(m) >= m->valid_until) {
		member_fence(m, "its heartbeat did not reach the store in time");
		return false;
	}
	if (beat == 0)
		m->beat_ms = began;
	if (rc != 0)
		return false;
	if (beat == 0 && !cluster_duty(&m->object, &m->self).fenced)
		m->valid_until = began + member_lease_ms(m);
	return true;
}

unsigned member_step(struct member *m)
{
	const uint64_t began = member_now(m);
	unsigned pause;

	if (m->left)
		member_await_close(m);
	else if (!m->fenced && member_renew(m)) {
		member_look_around(m);
		/* If the looks took longer than the lease, this member is the slow one: it makes no transition. */
		if (member_may_answer(m))
			member_take_part(m);
		if (m->left)
			member_await_close(m);
	}
	m->jitter = m->jitter * 1664525u + 1013904223u;
	pause = (unsigned)rn_min(MEMBER_BEAT_MS, m->object.dead_ms / 10);
	pause = pause - pause / 4 + (m->jitter >> 16) % (pause / 2 + 1);
	return pause - (unsigned)rn_min(pause, member_now(m) - began);
}

void member_wait(struct member *m, unsigned ms)
{
	/* A store that fails returns at once; the next step logs the error. */
	if (cluster_store_wait(m->cfg.store, m->version, ms) != 0)
		rn_sleep_ms(100);
}
