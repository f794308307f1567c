/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Model of a cluster: two or three members, each with one client that wants the same lock; members crash, are slow, restart, leave and
 * are removed, and the file system drops their locks. Every interleaving is explored breadth-first with the real transitions of cluster/cluster_object.c, until no new state
 * is found or to a depth (CLUSTER_DEPTH). In each state hold:
 *
 *  - no lock is granted by one member while a client of another may still reclaim it;
 *  - no reclaim succeeds after another client had the lock;
 *  - a client that may reclaim is not turned away by a restart;
 *  - from here the grace ends once all members have come back, or those that do not were removed;
 *  - runs that are over can change nothing.
 *
 * Each rule is broken in turn, and the search has to find it.
 *
 * A state is packed into a key. Epochs and incarnations only ever grow, so it is enough to know which of them are current.
 * Members are alike, so their order does not matter.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/member.h"
#include "lib/clock.h"
#include "lib/util.h"

#define MOST 3u
#define DEAD_MS 10000u
#define EPOCH 10u  /* current epoch in a state that was unpacked */
#define RUN 100u   /* current incarnations are above, old ones below */
#define ROUNDS 12u /* that a cluster takes at most to get out of a grace */
#define PATH_MOST 200u

/* Rules that a test breaks. */
enum fault {
	NO_FAULT,
	SKIP_ALL_ENFORCE, /* reclaims begin, and locks are released, before all members enforce */
	NO_KEEPER,	  /* locks are free as soon as a process ends */
	IGNORE_LEASE,	  /* a slow member goes on when its lease is over */
	ENFORCE_OWN_ONLY, /* a member enforces only as long as its own clients reclaim */
	REMOVED_RECLAIMS, /* a member that was removed keeps its records */
	LEAVE_SILENTLY,	  /* a member stops without a grace */
	KEEP_RECORDS,	  /* records of clients that did not reclaim in time are kept */
	ANY_EPOCH,	  /* a member confirms whichever epoch is current */
	RELEASE_UNSEEN, /* what a run held is released in a grace, though the run is not known to have ended */
	/* Nobody looks whether locks are still there: */
	CONFIRM_BLINDLY, /* who says that it enforces */
	LEAVE_BLINDLY,	 /* who leaves */
	DECLARE_BLINDLY, /* who declares another dead */
	JOIN_BLINDLY,	 /* who starts after an end that nobody has seen */
	RECLAIM_LOST, /* a member that has been started again keeps records that are worth nothing */
};

static const char *const faults[] = { "none",
				      "skip all_enforce",
				      "no keeper",
				      "ignore the lease",
				      "enforce for own clients only",
				      "removed member reclaims",
				      "leave without a grace",
				      "keep records of late clients",
				      "confirm any epoch",
				      "release before the end is seen",
				      "confirm without a look at locks",
				      "leave without a look at locks",
				      "declare dead without a look at locks",
				      "join without a look at locks",
				      "keep records of lost locks" };

enum event {
	LOOK,		/* reads the object */
	ACT,		/* follows what it has read */
	CONFIRM,	/* says that it enforces */
	GRANT,		/* its client gets the lock */
	UNLOCK,		/* and gives it back */
	RECLAIM,	/* its client reclaims the lock */
	DONE,		/* takes no more reclaims */
	CRASH,		/* its process ends */
	LAPSE,		/* its heartbeat stops for so long that its lease is over */
	RESTART,	/* with the records that it has */
	RESTART_LIKELY, /* without looking whether there are records: as if there were */
	LEAVE,
	REMOVE,
	RELEASE,  /* what its last run held in the file system is released */
	DROP,	  /* the file system drops what it holds, whether it runs or not */
	DROP_OLD, /* or what an earlier run of it holds */
	DEAD_BY,  /* member 0, 1, 2 declares it dead */
	EVENTS = DEAD_BY + MOST,
};

static const char *const events[] = { "looks",
				      "acts",
				      "confirms",
				      "grants",
				      "unlocks",
				      "has its lock reclaimed",
				      "is done with reclaims",
				      "crashes",
				      "lapses",
				      "restarts",
				      "restarts as if with records",
				      "leaves",
				      "is removed",
				      "has its file system state released",
				      "has its locks dropped",
				      "has the locks of an earlier run dropped",
				      "is declared dead by 0",
				      "is declared dead by 1",
				      "is declared dead by 2" };

struct process {
	bool alive, fresh;     /* fresh: its lease is not over */
	bool enforce, reclaim; /* grants nothing; lets its clients reclaim */
	uint64_t epoch;	       /* that it enforces */
	bool looked;	       /* duty is read, and not followed yet */
	struct cluster_duty duty;
	struct cluster_self self;
	/* Its client. */
	bool had;      /* has the lock, or believes that it has and could reclaim it */
	bool entitled; /* and may do so */
	bool recorded; /* and its server has a record of it */
	bool back;     /* has got or reclaimed the lock in this run */
	bool taken;    /* and another client has had the lock since */
	/* The lock in the file system. */
	bool holds;
	bool orphan;	 /* its holder is a run that is over */
	uint64_t holder; /* incarnation of the holder */
	/* Bytes that are locked in the file "runs": that of the last run, and that of the run whose locks may be reclaimed. */
	bool run_stands, holder_stands;
	bool lost_seen; /* it knows that its clients may not reclaim */
};

struct model {
	unsigned n;
	enum fault fault;
	struct cluster_object o;
	struct process p[MOST];
	bool blind; /* a look for locks sees them in any case */
	const char *violated;
};

static const char *const names[MOST] = { "a", "b", "c" };

/* ---- packing ---- */

struct key {
	uint32_t member[MOST], grace;
};

static uint32_t bits(uint32_t *word, uint32_t value, unsigned n)
{
	*word = *word << n | value;
	return *word;
}

static uint32_t pack_member(const struct model *m, unsigned i)
{
	const struct process *p = &m->p[i];
	const struct cluster_member *row = cluster_look(&m->o, names[i]);
	uint32_t w = 0;

	bits(&w, row ? row->state : 0, 2);
	bits(&w, row && row->needs_grace, 1);
	bits(&w, row && row->enforcing, 1);
	bits(&w, p->alive, 1);
	bits(&w, p->fresh, 1);
	bits(&w, p->alive && p->enforce, 1);
	bits(&w, p->alive && p->reclaim, 1);
	bits(&w, p->alive && p->epoch == m->o.epoch, 1);
	bits(&w, p->alive && p->looked, 1);
	bits(&w, p->alive && p->looked && p->duty.enforce, 1);
	bits(&w, p->alive && p->looked && p->duty.may_reclaim, 1);
	bits(&w, p->alive && p->looked && p->duty.epoch == m->o.epoch, 1);
	bits(&w, p->alive && row && p->self.incarnation == row->incarnation, 1);
	bits(&w, p->had, 1);
	bits(&w, p->entitled, 1);
	bits(&w, p->recorded, 1);
	bits(&w, p->taken, 1);
	bits(&w, p->alive && p->back, 1);
	bits(&w, p->holds, 1);
	bits(&w, p->holds && p->orphan, 1);
	bits(&w, p->holds && row && p->holder == row->incarnation, 1);
	bits(&w, row && row->lost, 1);
	bits(&w, row && row->holder == row->incarnation, 1);
	bits(&w, p->run_stands, 1);
	bits(&w, row && p->holder_stands, 1);
	bits(&w, p->alive && p->lost_seen, 1);
	bits(&w, p->alive && p->looked && p->duty.lost, 1);
	return w;
}

static int by_word(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct key pack(const struct model *m)
{
	struct key k = { .grace = m->o.reclaim_epoch != 0 };

	for (unsigned i = 0; i < m->n; i++)
		k.member[i] = pack_member(m, i);
	qsort(k.member, m->n, sizeof(k.member[0]), by_word);
	return k;
}

static uint32_t take(uint32_t *word, unsigned n)
{
	const uint32_t v = *word & ((1u << n) - 1);

	*word >>= n;
	return v;
}

static void unpack_member(struct model *m, unsigned i, uint32_t w)
{
	struct process *p = &m->p[i];
	struct cluster_member row = { 0 };
	uint64_t held_now;

	p->duty.lost = take(&w, 1);
	p->lost_seen = take(&w, 1);
	p->holder_stands = take(&w, 1);
	p->run_stands = take(&w, 1);
	row.holder = take(&w, 1) ? RUN + i : 1 + i;
	row.lost = take(&w, 1);
	held_now = take(&w, 1);
	p->orphan = take(&w, 1);
	p->holds = take(&w, 1);
	p->back = take(&w, 1);
	p->taken = take(&w, 1);
	p->recorded = take(&w, 1);
	p->entitled = take(&w, 1);
	p->had = take(&w, 1);
	p->self.incarnation = take(&w, 1) ? RUN + i : 1 + i;
	p->duty.epoch = take(&w, 1) ? EPOCH : 1;
	p->duty.may_reclaim = take(&w, 1);
	p->duty.enforce = take(&w, 1);
	p->looked = take(&w, 1);
	p->epoch = take(&w, 1) ? EPOCH : 1;
	p->reclaim = take(&w, 1);
	p->enforce = take(&w, 1);
	p->fresh = take(&w, 1);
	p->alive = take(&w, 1);
	p->holder = held_now ? RUN + i : 1 + i;
	memcpy(p->self.name, names[i], 2);
	row.enforcing = take(&w, 1);
	row.needs_grace = take(&w, 1);
	row.state = (enum cluster_state)take(&w, 2);
	row.incarnation = RUN + i;
	memcpy(row.name, names[i], 2);
	if (row.state != 0)
		m->o.member[m->o.nmembers++] = row;
}

static void unpack(const struct key *k, unsigned n, enum fault fault, struct model *m)
{
	memset(m, 0, sizeof(*m));
	m->n = n;
	m->fault = fault;
	m->o.epoch = EPOCH;
	m->o.reclaim_epoch = k->grace ? EPOCH - 1 : 0;
	m->o.last_incarnation = RUN + MOST;
	m->o.dead_ms = DEAD_MS;
	for (unsigned i = 0; i < n; i++)
		unpack_member(m, i, k->member[i]);
}

/* ---- events; each returns false if it cannot happen in this state ---- */

/* True if the process answers clients. One whose lease is over does all else, as it may have looked at the clock just before. One whose locks
 * were dropped by the file system gets no more there. */
static bool serves(const struct model *m, const struct process *p)
{
	return p->alive && p->run_stands && (p->fresh || m->fault == IGNORE_LEASE);
}

static int model_stands(void *ctx, uint64_t run, uint64_t since)
{
	const struct model *m = ctx;

	(void)since;
	for (unsigned i = 0; i < m->n && !m->blind; i++) {
		const struct cluster_member *row = cluster_look(&m->o, names[i]);

		if (row && row->holder == run)
			return m->p[i].holder_stands;
	}
	return 1;
}

static const struct member_calls calls = { .stands = model_stands };

/* For looks for locks by that member; if that fault is there, it does not look. */
static struct member_cfg looks(struct model *m, unsigned i, enum fault blindly)
{
	m->blind = m->fault == blindly;
	return (struct member_cfg){ .starter.name = names[i], .calls = &calls, .ctx = m };
}

static bool is_free(const struct model *m)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->p[i].holds)
			return false;
	return true;
}

static bool model_look(struct model *m, struct process *p)
{
	if (!p->alive)
		return false;
	p->duty = cluster_duty(&m->o, &p->self);
	if (m->fault == SKIP_ALL_ENFORCE)
		p->duty.may_reclaim =
			!p->duty.fenced && cluster_look(&m->o, p->self.name)->needs_grace;
	if (m->fault == ENFORCE_OWN_ONLY && !p->duty.fenced && !p->duty.confirm)
		p->duty.enforce = cluster_look(&m->o, p->self.name)->needs_grace;
	/* One that ignores its lease does not look whether it was fenced, either. */
	p->looked = !p->duty.fenced;
	return p->looked;
}

static bool model_act(struct process *p)
{
	if (!p->alive || !p->looked)
		return false;
	p->enforce = p->duty.enforce;
	p->epoch = p->duty.epoch;
	p->reclaim = p->duty.may_reclaim;
	p->lost_seen = p->duty.lost;
	p->looked = false;
	return true;
}

static bool model_confirm(struct model *m, struct process *p)
{
	const struct member_cfg cfg = looks(m, (unsigned)(p - m->p), CONFIRM_BLINDLY);
	const uint64_t epoch = m->fault == ANY_EPOCH ? m->o.epoch : p->epoch;
	const struct cluster_object before = m->o;

	if (!p->alive || !p->enforce || epoch != m->o.epoch ||
	    member_lose_granted(&cfg, &m->o, &p->self, 0) != 0)
		return false;
	cluster_enforcing(&m->o, &p->self, epoch);
	return memcmp(&before, &m->o, sizeof(before)) != 0;
}

static bool model_grant(struct model *m, struct process *p)
{
	if (!serves(m, p) || p->enforce || !is_free(m))
		return false;
	for (unsigned i = 0; i < m->n; i++) {
		struct process *other = &m->p[i];

		if (other != p && other->entitled)
			m->violated =
				"a lock was granted that another member's client may still reclaim";
		if (other != p && other->had)
			other->taken = true;
	}
	p->holds = p->had = p->entitled = p->recorded = p->back = true;
	p->orphan = p->taken = false;
	p->holder = p->self.incarnation;
	return true;
}

static bool model_unlock(struct model *m, struct process *p)
{
	if (!serves(m, p) || !p->holds || p->orphan)
		return false;
	p->holds = p->had = p->entitled = p->recorded = p->taken = p->back = false;
	return true;
}

static bool model_reclaim(struct model *m, struct process *p)
{
	if (!serves(m, p) || !p->reclaim || !p->had || !p->recorded || !is_free(m))
		return false;
	if (p->taken)
		m->violated = "a lock was reclaimed that another client has had since";
	p->holds = p->entitled = p->back = true;
	p->orphan = false;
	p->holder = p->self.incarnation;
	return true;
}

static bool model_done(struct model *m, struct process *p)
{
	enum cluster_refusal r;

	if (!p->alive || (!p->reclaim && !p->lost_seen))
		return false;
	if (!p->back) {
		p->entitled = false;
		p->recorded =
			p->recorded && m->fault == (p->lost_seen ? RECLAIM_LOST : KEEP_RECORDS);
	}
	p->reclaim = p->looked = p->lost_seen = false;
	p->holder_stands = p->run_stands;
	r = cluster_reclaimed(&m->o, &p->self);
	if (r != CLUSTER_OK && r != CLUSTER_FENCED && m->fault == NO_FAULT)
		m->violated = "the end of reclaims is refused";
	return true;
}

/* The process has ended, or is too slow to be told from one that has. */
static bool model_end(struct process *p, bool alive)
{
	p->alive = alive;
	p->orphan = p->holds;
	return true;
}

static bool model_lapse(struct process *p)
{
	if (!p->fresh)
		return false;
	p->fresh = false;
	return model_end(p, p->alive);
}

static bool model_restart(struct model *m, unsigned i, bool records)
{
	struct process *p = &m->p[i];
	const bool entitled = p->entitled;
	const struct cluster_starter starter = { .name = names[i],
						 .has_records = records || p->recorded,
						 .dead_ms = DEAD_MS };

	const struct member_cfg cfg = looks(m, i, JOIN_BLINDLY);

	if (p->alive || (records && p->recorded))
		return false; /* RESTART does the same */
	if (member_lose_before(&cfg, &m->o) != 0 ||
	    cluster_join(&m->o, &starter, &p->self) != CLUSTER_OK)
		m->violated = "a restart is refused";
	p->alive = p->fresh = p->enforce = p->run_stands = true;
	p->reclaim = p->looked = p->back = p->lost_seen = false;
	if (cluster_look(&m->o, names[i])->holder == p->self.incarnation)
		p->holder_stands = true;
	p->epoch = m->o.epoch;
	if (!cluster_look(&m->o, names[i])->needs_grace) {
		p->entitled = false;
		if (m->fault == REMOVED_RECLAIMS)
			p->reclaim = p->recorded;
		else
			p->recorded = false;
	}
	if (entitled && !p->entitled)
		m->violated = "a restart turns a client away that may reclaim";
	return true;
}

static bool model_leave(struct model *m, struct process *p)
{
	const struct member_cfg cfg = looks(m, (unsigned)(p - m->p), LEAVE_BLINDLY);

	if (!p->alive || cluster_duty(&m->o, &p->self).fenced)
		return false;
	if (cluster_duty(&m->o, &p->self).confirm)
		member_lose_granted(&cfg, &m->o, &p->self, 0);
	if (member_leave_by(&cfg, &m->o, &p->self, p->recorded && m->fault != LEAVE_SILENTLY, 0) !=
	    0)
		return false;
	p->fresh = false;
	return model_end(p, false);
}

static bool model_remove(struct model *m, unsigned i)
{
	if (cluster_remove(&m->o, names[i]) != CLUSTER_OK)
		return false;
	m->p[i].entitled = false;
	return true;
}

/* After all else, the byte of the run whose locks may be reclaimed. */
static bool model_release_byte(struct model *m, struct process *p)
{
	const struct cluster_member *row = cluster_look(&m->o, names[p - m->p]);
	struct cluster_self run = { .incarnation = row ? row->holder : 0 };
	const bool is_last = row && row->holder == row->incarnation;

	memcpy(run.name, names[p - m->p], 2);
	if (!row || !p->holder_stands || (is_last && p->alive && p->fresh) ||
	    !cluster_may_release(&m->o, &run))
		return false;
	p->holder_stands = false;
	p->run_stands &= !is_last;
	return true;
}

static bool model_release(struct model *m, struct process *p)
{
	struct cluster_self run = p->self;

	run.incarnation = p->holder;
	memcpy(run.name, names[p - m->p], 2);
	if (!p->holds || !p->orphan)
		return model_release_byte(m, p);
	if (m->fault == RELEASE_UNSEEN && cluster_all_enforce(&m->o))
		run.incarnation = 0;
	if (!cluster_may_release(&m->o, &run) && m->fault != NO_KEEPER &&
	    m->fault != SKIP_ALL_ENFORCE)
		return false;
	p->holds = p->orphan = false;
	model_release_byte(m, p);
	return true;
}

/* The file system gives the machine's client up. What the client of the member had is anybody's. */
static bool model_drop(struct process *p)
{
	if (!p->run_stands && !p->holder_stands)
		return false;
	p->run_stands = p->holder_stands = p->holds = p->orphan = p->entitled = false;
	return true;
}

/* Or its keeper is killed, after the member was started again. */
static bool model_drop_old(struct model *m, struct process *p)
{
	const struct cluster_member *row = cluster_look(&m->o, names[p - m->p]);

	if (!row || row->holder == row->incarnation || !p->holder_stands)
		return false;
	p->holder_stands = false;
	if (!p->back)
		p->holds = p->orphan = p->entitled = false;
	return true;
}

static bool model_declare(struct model *m, unsigned i, unsigned by)
{
	const struct cluster_member *row = cluster_look(&m->o, names[i]);
	struct cluster_self run = { .incarnation = row ? row->incarnation : 0 };

	memcpy(run.name, names[i], 2);
	if (by >= m->n || by == i || !row || m->p[i].fresh || !m->p[by].alive ||
	    row->state != CLUSTER_RUNNING || cluster_duty(&m->o, &m->p[by].self).fenced)
		return false;
	const struct member_cfg cfg = looks(m, by, DECLARE_BLINDLY);

	return member_end_run(&cfg, &m->o, &m->p[by].self, &run, 0) == 0;
}

/* Nobody is taken to have lost what its clients still have. */
static void check_losses(struct model *m)
{
	for (unsigned i = 0; i < m->n; i++) {
		const struct cluster_member *row = cluster_look(&m->o, names[i]);

		if (row && row->lost && m->p[i].entitled && !m->p[i].back)
			m->violated = "a member is taken to have lost what it has";
	}
}

static bool occurs(struct model *m, unsigned i, unsigned event)
{
	struct process *p = &m->p[i];

	switch (event) {
	case LOOK:
		return model_look(m, p);
	case ACT:
		return model_act(p);
	case CONFIRM:
		return model_confirm(m, p);
	case GRANT:
		return model_grant(m, p);
	case UNLOCK:
		return model_unlock(m, p);
	case RECLAIM:
		return model_reclaim(m, p);
	case DONE:
		return model_done(m, p);
	case CRASH:
		return p->alive && model_end(p, false);
	case LAPSE:
		return model_lapse(p);
	case RESTART:
		return model_restart(m, i, false);
	case RESTART_LIKELY:
		return model_restart(m, i, true);
	case LEAVE:
		return model_leave(m, p);
	case REMOVE:
		return model_remove(m, i);
	case RELEASE:
		return model_release(m, p);
	case DROP:
		return model_drop(p);
	case DROP_OLD:
		return model_drop_old(m, p);
	default:
		return model_declare(m, i, event - DEAD_BY);
	}
}

static bool happens(struct model *m, unsigned i, unsigned event)
{
	const bool did = occurs(m, i, event);

	if (did)
		check_losses(m);
	return did;
}

/* ---- invariants of a state ---- */

/* A run that is over changes nothing, whichever transition it tries. */
static void check_fenced(struct model *m)
{
	const struct cluster_object before = m->o;

	for (unsigned i = 0; i < m->n; i++) {
		const struct cluster_member *row = cluster_look(&m->o, names[i]);
		struct cluster_self old = { .incarnation = row && row->state == CLUSTER_RUNNING
								   ? 50 + i
								   : RUN + i };

		memcpy(old.name, names[i], 2);
		if (!cluster_duty(&m->o, &old).fenced ||
		    cluster_enforcing(&m->o, &old, m->o.epoch) != CLUSTER_FENCED ||
		    cluster_reclaimed(&m->o, &old) != CLUSTER_FENCED ||
		    cluster_leave(&m->o, &old, false) != CLUSTER_FENCED ||
		    cluster_lose(&m->o, &old, names[(i + 1) % m->n], RUN + (i + 1) % m->n) !=
			    CLUSTER_FENCED ||
		    cluster_declare_dead(&m->o, &old, names[(i + 1) % m->n],
					 RUN + (i + 1) % m->n) != CLUSTER_FENCED ||
		    memcmp(&before, &m->o, sizeof(before)) != 0)
			m->violated = "a run that is over is not fenced";
	}
}

/* One member does what it can. */
static void settle_member(struct model *m, unsigned i, bool give_up)
{
	struct process *p = &m->p[i];

	if (p->alive && (!p->fresh || !p->run_stands))
		happens(m, i, CRASH);
	/* Somebody has to be there to see that the others are dead. */
	if (!p->alive && (!give_up || i == 0))
		happens(m, i, RESTART);
	if (!p->alive) {
		happens(m, i, LAPSE);
		for (unsigned by = 0; by < m->n; by++)
			happens(m, i, DEAD_BY + by);
		happens(m, i, REMOVE);
	}
	happens(m, i, RELEASE);
	happens(m, i, LOOK);
	happens(m, i, ACT);
	happens(m, i, CONFIRM);
	happens(m, i, RECLAIM);
	happens(m, i, DONE);
}

/* The grace ends if all members come back; give_up: or if those that do not are removed. */
static void check_grace_ends(const struct model *from, bool give_up)
{
	struct model m = *from;

	for (unsigned round = 0; round < ROUNDS; round++)
		for (unsigned i = 0; i < m.n; i++)
			settle_member(&m, i, give_up);
	for (unsigned i = 0; i < m.n; i++)
		if (m.o.reclaim_epoch != 0 || (m.p[i].alive && m.p[i].enforce) ||
		    (m.p[i].holds && m.p[i].orphan))
			m.violated = "the grace does not end";
	((struct model *)from)->violated = m.violated;
}

static void check_state(struct model *m)
{
	if (!cluster_is_sound(&m->o))
		m->violated = "the object is not sound";
	if (!m->violated)
		check_fenced(m);
	for (unsigned give_up = 0; give_up < 2 && !m->violated; give_up++)
		check_grace_ends(m, give_up);
}

/* ---- search ---- */

struct found {
	size_t states, edges;
	unsigned depth;
	bool closed; /* true if there are no states beyond the depth */
	const char *violated;
	char path[8192];
};

struct search {
	unsigned n;
	enum fault fault;
	struct key *key; /* in the order in which they were found */
	uint32_t *parent;
	uint8_t *by; /* member * EVENTS + event */
	uint32_t *slot;
	size_t nkeys, room, nslots;
};

#define NONE UINT32_MAX

static uint64_t hash(const struct key *k)
{
	uint64_t h = k->grace;

	for (unsigned i = 0; i < MOST; i++)
		h = (h ^ k->member[i]) * UINT64_C(0x9e3779b97f4a7c15), h ^= h >> 29;
	return h;
}

static void search_grow(struct search *s)
{
	s->room = s->room ? s->room * 2 : 1u << 16;
	s->nslots = s->room * 2;
	s->key = realloc(s->key, s->room * sizeof(*s->key));
	s->parent = realloc(s->parent, s->room * sizeof(*s->parent));
	s->by = realloc(s->by, s->room);
	s->slot = realloc(s->slot, s->nslots * sizeof(*s->slot));
	cr_assert(s->key && s->parent && s->by && s->slot);
	memset(s->slot, 0xff, s->nslots * sizeof(*s->slot));
	for (uint32_t i = 0; i < s->nkeys; i++) {
		size_t at = hash(&s->key[i]) & (s->nslots - 1);

		while (s->slot[at] != NONE)
			at = (at + 1) & (s->nslots - 1);
		s->slot[at] = i;
	}
}

/* True if the state is new. */
static bool search_add(struct search *s, struct key k, uint32_t parent, unsigned by)
{
	size_t at;

	if (s->nkeys == s->room)
		search_grow(s);
	for (at = hash(&k) & (s->nslots - 1); s->slot[at] != NONE; at = (at + 1) & (s->nslots - 1))
		if (memcmp(&s->key[s->slot[at]], &k, sizeof(k)) == 0)
			return false;
	s->slot[at] = (uint32_t)s->nkeys;
	s->key[s->nkeys] = k;
	s->parent[s->nkeys] = parent;
	s->by[s->nkeys++] = (uint8_t)by;
	return true;
}

/* The way to a violation. Members change places between steps, as states are kept in order; the letters are those of the state before. */
static void search_tell(const struct search *s, uint32_t at, unsigned last, struct found *f)
{
	unsigned step[PATH_MOST], n = 0;
	size_t used = 0;

	step[n++] = last;
	for (; s->parent[at] != NONE && n < PATH_MOST; at = s->parent[at])
		step[n++] = s->by[at];
	while (n-- > 0 && used < sizeof(f->path) - 100)
		if (step[n] != NONE)
			used += (size_t)snprintf(f->path + used, sizeof(f->path) - used,
						 "  %s %s\n", names[step[n] / EVENTS],
						 events[step[n] % EVENTS]);
}

static void search_begin(struct search *s)
{
	struct model m = { .n = s->n };

	cluster_init(&m.o);
	for (unsigned i = 0; i < s->n; i++) {
		happens(&m, i, RESTART);
		happens(&m, i, LOOK);
		happens(&m, i, ACT);
	}
	search_add(s, pack(&m), NONE, 0);
}

/* All that may happen in a state. False: something that must not. */
static bool search_expand(struct search *s, uint32_t at, struct found *f)
{
	struct model from;

	unpack(&s->key[at], s->n, s->fault, &from);
	if (s->fault == NO_FAULT)
		check_state(&from);
	for (unsigned by = 0; by < s->n * EVENTS && !from.violated; by++) {
		struct model to = from;

		if (!happens(&to, by / EVENTS, by % EVENTS))
			continue;
		f->edges++;
		if (to.violated) {
			f->violated = to.violated;
			search_tell(s, at, by, f);
			return false;
		}
		search_add(s, pack(&to), at, by);
	}
	f->violated = from.violated;
	if (from.violated)
		search_tell(s, at, NONE, f);
	return !from.violated;
}

static void search(unsigned n, enum fault fault, unsigned depth, struct found *f)
{
	struct search s = { .n = n, .fault = fault };
	uint32_t at = 0;

	memset(f, 0, sizeof(*f));
	search_begin(&s);
	while (f->depth < depth && at < s.nkeys && !f->violated) {
		const size_t end = s.nkeys;

		while (at < end && search_expand(&s, at, f))
			at++;
		f->depth++;
	}
	f->states = s.nkeys;
	f->closed = at == s.nkeys;
	free(s.key);
	free(s.parent);
	free(s.by);
	free(s.slot);
}

static unsigned depth_or(unsigned otherwise)
{
	const char *s = getenv("CLUSTER_DEPTH");

	return s ? (unsigned)strtoul(s, NULL, 10) : otherwise;
}

static void explore(unsigned n, unsigned depth)
{
	const uint64_t start = rn_now_ms();
	static struct found f;

	search(n, NO_FAULT, depth_or(depth), &f);
	printf("cluster model: %u members, %zu states, %zu edges, depth %u%s, %llu ms\n", n,
	       f.states, f.edges, f.depth, f.closed ? ", all states" : "",
	       (unsigned long long)(rn_now_ms() - start));
	cr_expect_null(f.violated, "%s:\n%s", f.violated, f.path);
	cr_expect_gt(f.states, 1000u);
}

Test(cluster_model, two_members_in_every_state, .timeout = 600)
{
	explore(2, UINT32_MAX);
}

Test(cluster_model, three_members, .timeout = 3600)
{
	explore(3, 9);
}

/* The search has eyes: each broken rule breaks an invariant. */
Test(cluster_model, broken_rules_are_found, .timeout = 600)
{
	static struct found f;

	for (unsigned fault = NO_FAULT + 1; fault < rn_array_size(faults); fault++) {
		unsigned n = 2;

		search(n, fault, UINT32_MAX, &f);
		if (!f.violated)
			search(++n, fault, depth_or(16), &f);
		printf("cluster model: %s: with %u members after %u steps: %s\n", faults[fault], n,
		       f.depth, f.violated ? f.violated : "not found");
		if (getenv("CLUSTER_PATHS"))
			printf("%s", f.path);
		cr_expect_not_null(f.violated, "%s is not found", faults[fault]);
	}
}
