/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine: outcomes of events, and invariants. */
#include "tests/unit/nfs4_machine.h"

#include <string.h>

enum mach_fault mach_fault;

/* Outcomes of one event, while they are collected. */
struct doing {
	const struct mach_state *s;
	struct mach_event e;
	struct mach_outcome *out;
	unsigned n;
};

static bool is_faulty(enum mach_fault fault)
{
	return mach_fault == fault;
}

uint32_t mach_access(unsigned modes)
{
	return (modes & (1u << MACH_R | 1u << MACH_D) ? 1u : 0) | (modes & 1u << MACH_W ? 2u : 0);
}

uint32_t mach_deny(unsigned modes)
{
	return modes & 1u << MACH_D ? 2u : 0;
}

static bool shares_conflict(unsigned a, unsigned b)
{
	return (mach_access(a) & mach_deny(b)) || (mach_deny(a) & mach_access(b));
}

static bool locks_conflict(unsigned a, unsigned b)
{
	return a && b && (a == MACH_LOCK_W || b == MACH_LOCK_W);
}

/* True if somebody's delegation is in the way of another's open. */
static bool deleg_meets(unsigned deleg, unsigned modes)
{
	if ((deleg & MACH_REVOKED) || modes == 0)
		return false;
	return (deleg & MACH_DELEG_W) ||
	       ((deleg & MACH_DELEG_R) && ((mach_access(modes) & 2) || (mach_deny(modes) & 1)));
}

/* Likewise for a delegation that may still be reclaimed. */
static bool reclaim_meets(unsigned deleg, unsigned modes)
{
	const bool writes = mach_access(modes) & 2;

	return deleg_meets(deleg, modes) &&
	       !is_faulty(writes ? MACH_GRACE_LETS_WRITE : MACH_GRACE_LETS_READ);
}

static bool delegs_conflict(unsigned a, unsigned b)
{
	return a && b && !((a | b) & MACH_REVOKED) && ((a | b) & MACH_DELEG_W);
}

void mach_init(struct mach_state *s)
{
	memset(s, 0, sizeof(*s));
	memset(s->life, MACH_LIVE, sizeof(s->life));
}

struct mach_hold mach_held(const struct mach_state *s, int c, int f)
{
	struct mach_hold h = s->hold[c][f];

	if (s->life[c] == MACH_LIVE || s->life[c] == MACH_AWAY)
		return h;
	if (s->life[c] != MACH_BACK)
		return (struct mach_hold){ 0 };
	if (!(h.back & MACH_OPEN))
		h.modes = 0;
	if (!(h.back & MACH_LOCK))
		h.lock = 0;
	if (!(h.back & MACH_DELEG))
		h.deleg = 0;
	return h;
}

/* The part that the client believes to hold, and the server does not hold for it. */
static struct mach_hold believed(const struct mach_state *s, int c, int f)
{
	const struct mach_hold has = mach_held(s, c, f);
	struct mach_hold h = s->hold[c][f];

	if (has.modes)
		h.modes = 0;
	if (has.lock)
		h.lock = 0;
	if (has.deleg)
		h.deleg = 0;
	return h;
}

static bool may_reclaim(const struct mach_state *s, int c)
{
	return (s->life[c] == MACH_DOWN || s->life[c] == MACH_BACK) && !(s->flags[c] & MACH_BARRED);
}

bool mach_is_awaited(const struct mach_state *s, int c)
{
	bool something = false;

	for (int f = 0; f < MACH_FILES; f++) {
		const struct mach_hold h = believed(s, c, f);

		something |= h.modes || h.lock || (h.deleg && !(h.deleg & MACH_REVOKED));
	}
	return something && may_reclaim(s, c) && !(s->flags[c] & MACH_LAPSED);
}

static struct mach_outcome *add(struct doing *d, uint32_t says, const struct mach_state *next)
{
	struct mach_outcome *o = &d->out[d->n++];

	o->says = says;
	o->deleg = false;
	o->next = *next;
	return o;
}

static void drop(struct mach_state *s, int c)
{
	memset(s->hold[c], 0, sizeof(s->hold[c]));
	s->flags[c] = 0;
}

static void end_grace(struct mach_state *s)
{
	s->grace = 0;
	for (int c = 0; c < MACH_CLIENTS; c++) {
		if (may_reclaim(s, c))
			s->flags[c] |= MACH_BARRED;
		if (s->life[c] == MACH_LIVE)
			s->flags[c] &= (uint8_t)~MACH_BARRED;
	}
}

/* Grace may end by itself as soon as nobody is awaited. */
static void may_end_grace(struct doing *d)
{
	const unsigned n = d->n;

	for (unsigned i = 0; i < n; i++) {
		bool awaited = !d->out[i].next.grace;

		for (int c = 0; c < MACH_CLIENTS; c++)
			awaited |= mach_is_awaited(&d->out[i].next, c);
		if (awaited)
			continue;
		add(d, d->out[i].says, &d->out[i].next)->deleg = d->out[i].deleg;
		end_grace(&d->out[d->n - 1].next);
	}
}

/* Notes for whom something is lost that client c has got. */
static void note_given(struct mach_state *s, int c, int f)
{
	const struct mach_hold got = mach_held(s, c, f);

	for (int i = 0; i < MACH_CLIENTS; i++) {
		const struct mach_hold b = believed(s, i, f);
		struct mach_hold *h = &s->hold[i][f];

		if (i == c)
			continue;
		if (shares_conflict(b.modes, got.modes) || deleg_meets(got.deleg, b.modes))
			h->given |= MACH_OPEN;
		if (locks_conflict(b.lock, got.lock))
			h->given |= MACH_LOCK;
		if (deleg_meets(b.deleg, got.modes) || delegs_conflict(b.deleg, got.deleg))
			h->given |= MACH_DELEG;
	}
}

/* Who is in the way of a request, as sets of clients. */
struct in_way {
	unsigned refuse; /* live holders, whose shares or locks refuse it */
	unsigned delegs; /* live holders, whose delegations must be returned first */
	unsigned away;	 /* clients whose state is dropped for it */
	unsigned away_delegs;
	bool reclaims; /* somebody may still reclaim what is in the way */
};

static void meet(struct in_way *w, const struct mach_state *s, int i, bool refuses, bool deleg)
{
	if (s->life[i] == MACH_AWAY) {
		w->away |= (unsigned)(refuses || deleg) << i;
		w->away_delegs |= (unsigned)deleg << i;
	} else {
		w->refuse |= (unsigned)refuses << i;
		w->delegs |= (unsigned)deleg << i;
	}
}

static struct in_way meet_open(const struct mach_state *s, int c, int f, unsigned mode)
{
	struct in_way w = { 0 };

	for (int i = 0; i < MACH_CLIENTS; i++) {
		const struct mach_hold h = mach_held(s, i, f), b = believed(s, i, f);
		const bool waits =
			deleg_meets(h.deleg, mode) &&
			!(is_faulty(MACH_RECALL_NOT_AWAITED) && (h.deleg & MACH_RECALLED));

		/* An owner's own opens refuse it, too; its own delegation does not. */
		meet(&w, s, i, shares_conflict(h.modes, mode) && !is_faulty(MACH_IGNORES_DENY),
		     i != c && waits);
		w.reclaims |= i != c && may_reclaim(s, i) &&
			      (shares_conflict(b.modes, mode) ||
			       (!(s->flags[i] & MACH_LAPSED) && reclaim_meets(b.deleg, mode)));
	}
	return w;
}

static struct in_way meet_lock(const struct mach_state *s, int c, int f, unsigned lock)
{
	struct in_way w = { 0 };

	for (int i = 0; i < MACH_CLIENTS; i++) {
		const struct mach_hold h = mach_held(s, i, f), b = believed(s, i, f);

		if (i == c)
			continue;
		meet(&w, s, i, locks_conflict(h.lock, lock) && !is_faulty(MACH_IGNORES_LOCKS),
		     false);
		w.reclaims |= may_reclaim(s, i) && locks_conflict(b.lock, lock);
	}
	return w;
}

static void drop_away(struct mach_state *s, unsigned clients)
{
	for (int i = 0; i < MACH_CLIENTS; i++) {
		if ((clients >> i & 1) && !is_faulty(MACH_KEEPS_AND_GIVES))
			s->life[i] = MACH_GONE;
	}
}

/* A refusal: the server may already have dropped some that are away. */
static void refuse(struct doing *d, uint32_t says, const struct mach_state *next, unsigned away)
{
	for (unsigned some = away;; some = (some - 1) & away) {
		struct mach_state s = *next;

		drop_away(&s, some);
		add(d, says, &s);
		if (some == 0)
			break;
	}
}

/*
 * True if a request for something new is answered here: it is refused. Otherwise *next is without
 * those whose state was in the way.
 */
static bool is_refused(struct doing *d, const struct in_way *w, uint32_t refusal,
		       struct mach_state *next)
{
	const struct mach_state *s = d->s;
	const int c = d->e.c;
	const bool incomplete = s->life[c] == MACH_BACK && mach_has_sessions(c);
	const bool must_wait =
		s->grace && (incomplete || (w->reclaims && !is_faulty(MACH_GRACE_ADMITS)));

	*next = *s;
	if (s->grace || incomplete)
		add(d, MACH_SAYS_GRACE, s);
	if (w->refuse) {
		refuse(d, refusal, next, w->away);
		return true;
	}
	if (w->delegs) {
		for (int i = 0; i < MACH_CLIENTS; i++) {
			if ((w->delegs | w->away_delegs) >> i & 1)
				next->hold[i][d->e.f].deleg |= MACH_RECALLED;
		}
		refuse(d, MACH_SAYS_DELAY, next, w->away);
		return true;
	}
	drop_away(next, w->away);
	return must_wait;
}

/* True if the file's state allows the client a delegation. */
static bool deleg_fits(const struct mach_state *s, int c, int f, bool writes)
{
	bool fits = mach_has_sessions(c);

	for (int i = 0; i < MACH_CLIENTS; i++) {
		const struct mach_hold h = mach_held(s, i, f);

		fits &= h.lock == 0;
		if (i == c) {
			fits &= !writes || !(mach_deny(h.modes) & 2);
			continue;
		}
		if (is_faulty(MACH_DELEG_BESIDE_WRITER))
			continue;
		fits &= !(writes ? h.modes != 0 : mach_access(h.modes) & 2);
		if (h.deleg && !(h.deleg & MACH_REVOKED))
			fits &= !(h.deleg & (MACH_RECALLED | MACH_DELEG_W)) && !writes;
	}
	return fits;
}

static void do_open(struct doing *d, unsigned mode, unsigned deleg)
{
	const int c = d->e.c, f = d->e.f;
	const struct mach_hold *h = &d->s->hold[c][f];
	const bool back = d->s->life[c] == MACH_BACK;
	const struct in_way w = meet_open(d->s, c, f, 1u << mode);
	struct mach_state next;

	if (d->s->life[c] != MACH_LIVE && !(back && !h->modes && !h->deleg))
		return;
	if (deleg && (h->deleg || back || !mach_has_sessions(c)))
		return;
	if (is_refused(d, &w, MACH_SAYS_SHARE_DENIED, &next))
		return;
	next.hold[c][f].modes |= 1u << mode;
	if (back)
		next.hold[c][f].back |= MACH_OPEN;
	note_given(&next, c, f);
	if (deleg && !next.grace && deleg_fits(&next, c, f, deleg == MACH_DELEG_W)) {
		struct mach_outcome *o = add(d, MACH_SAYS_OK, &next);

		o->deleg = true;
		o->next.hold[c][f].deleg = (uint8_t)deleg;
		note_given(&o->next, c, f);
	}
	add(d, MACH_SAYS_OK, &next);
}

static void do_lock(struct doing *d, unsigned lock)
{
	const int c = d->e.c, f = d->e.f;
	const struct mach_hold h = mach_held(d->s, c, f);
	const struct in_way w = meet_lock(d->s, c, f, lock);
	struct mach_state next;

	if (!h.modes || d->s->life[c] == MACH_AWAY || (h.lock == 0 && d->s->hold[c][f].lock))
		return;
	if (!(mach_access(h.modes) & lock)) {
		add(d,
		    MACH_SAYS_OPENMODE | (d->s->life[c] == MACH_BACK ? MACH_SAYS_GRACE : 0) |
			    (d->s->grace ? MACH_SAYS_GRACE : 0),
		    d->s);
		return;
	}
	if (is_refused(d, &w, MACH_SAYS_DENIED, &next))
		return;
	next.hold[c][f].lock = (uint8_t)lock;
	if (next.life[c] == MACH_BACK)
		next.hold[c][f].back |= MACH_LOCK;
	note_given(&next, c, f);
	add(d, MACH_SAYS_OK, &next);
}

/* Operations on what the client holds; they always succeed. */
static void do_less(struct doing *d)
{
	const int c = d->e.c, f = d->e.f;
	const struct mach_hold has = mach_held(d->s, c, f);
	struct mach_state next = *d->s;
	struct mach_hold *h = &next.hold[c][f];

	if (d->s->life[c] == MACH_AWAY)
		return;
	if (d->e.kind == MACH_CLOSE && has.modes) {
		h->modes = 0;
		if (!is_faulty(MACH_CLOSE_LEAVES_LOCK))
			h->lock = 0;
		h->back &= MACH_DELEG;
		h->given &= MACH_DELEG;
	} else if (d->e.kind == MACH_DOWNGRADE && (has.modes & 1u << MACH_R) &&
		   has.modes != 1u << MACH_R) {
		h->modes = 1u << MACH_R;
	} else if (d->e.kind == MACH_UNLOCK && has.lock) {
		h->lock = 0;
		h->back &= MACH_OPEN | MACH_DELEG;
	} else if (d->e.kind == MACH_RETURN && has.deleg) {
		h->deleg = 0;
		h->back &= MACH_OPEN | MACH_LOCK;
	} else {
		return;
	}
	add(d, MACH_SAYS_OK, &next);
}

static void do_claim(struct doing *d)
{
	const unsigned deleg = d->s->hold[d->e.c][d->e.f].deleg;
	struct mach_state next = *d->s;

	if (!deleg || d->s->life[d->e.c] != MACH_LIVE)
		return;
	if (!(deleg & MACH_REVOKED))
		next.hold[d->e.c][d->e.f].modes |= 1u << MACH_R;
	add(d, deleg & MACH_REVOKED ? MACH_SAYS_REVOKED : MACH_SAYS_OK, &next);
}

/* I/O by a stateid that the client believes to be good. */
static void do_use(struct doing *d, bool deleg)
{
	const int c = d->e.c, f = d->e.f;
	const struct mach_hold has = mach_held(d->s, c, f), *h = &d->s->hold[c][f];

	if (!(deleg ? h->deleg : h->modes) || d->s->life[c] == MACH_AWAY)
		return;
	if (!(deleg ? has.deleg : has.modes))
		add(d, MACH_SAYS_UNKNOWN, d->s);
	else if (deleg && (has.deleg & MACH_REVOKED))
		add(d, MACH_SAYS_REVOKED, d->s);
	else
		add(d, MACH_SAYS_OK, d->s);
}

/* A client whose reclaim is refused gives the file up. */
static void give_up(struct doing *d, uint32_t says)
{
	struct mach_state next = *d->s;
	struct mach_hold *h = &next.hold[d->e.c][d->e.f];

	if (!(h->back & MACH_OPEN))
		h->modes = 0;
	if (!(h->back & MACH_LOCK))
		h->lock = 0;
	h->given &= MACH_DELEG;
	add(d, says, &next);
}

static bool is_taken(const struct mach_state *s, int c)
{
	const bool barred = (s->flags[c] & MACH_BARRED) && !is_faulty(MACH_DROPPED_MAY_RECLAIM);

	return (s->grace && !barred) || is_faulty(MACH_RECLAIM_AFTER_GRACE);
}

static void do_reclaim_open(struct doing *d)
{
	const int c = d->e.c, f = d->e.f;
	const struct mach_state *s = d->s;
	const struct mach_hold *h = &s->hold[c][f];
	const bool may = is_taken(s, c);
	const bool dead = (h->deleg & MACH_REVOKED) && !is_faulty(MACH_REVOKED_IS_RECLAIMED);
	const bool lapsed = (s->flags[c] & MACH_LAPSED) && !is_faulty(MACH_LAPSED_HAS_DELEG);
	const bool had = h->deleg && !dead && !lapsed;
	struct mach_state next = *s;

	if (s->life[c] != MACH_BACK || !h->modes || (h->back & MACH_OPEN))
		return;
	if (!may || (s->flags[c] & MACH_LAPSED))
		give_up(d, MACH_SAYS_NO_RECLAIM);
	if (!may)
		return;
	next.hold[c][f].back |= MACH_OPEN;
	if (had && deleg_fits(&next, c, f, h->deleg & MACH_DELEG_W)) {
		struct mach_outcome *o = add(d, MACH_SAYS_OK, &next);

		o->deleg = true;
		o->next.hold[c][f].back |= MACH_DELEG;
		o->next.hold[c][f].deleg &= MACH_DELEG_R | MACH_DELEG_W;
		if (!(s->flags[c] & MACH_LOST))
			return;
	}
	next.hold[c][f].deleg = 0;
	next.hold[c][f].given &= MACH_OPEN | MACH_LOCK;
	add(d, MACH_SAYS_OK, &next);
}

static void do_reclaim_lock(struct doing *d)
{
	const int c = d->e.c, f = d->e.f;
	const struct mach_state *s = d->s;
	const struct mach_hold *h = &s->hold[c][f];
	const bool may = is_taken(s, c);
	struct mach_state next = *s;

	if (s->life[c] != MACH_BACK || !(h->back & MACH_OPEN) || !h->lock || (h->back & MACH_LOCK))
		return;
	next.hold[c][f].back |= MACH_LOCK;
	if (!(mach_access(h->modes) & h->lock))
		give_up(d, MACH_SAYS_OPENMODE | MACH_SAYS_NO_RECLAIM);
	else if (may)
		add(d, MACH_SAYS_OK, &next);
	else
		give_up(d, MACH_SAYS_NO_RECLAIM);
}

/* A client that has said that it is done, or that has booted, claims what it cannot have. */
static void do_reclaim_late(struct doing *d)
{
	const int c = d->e.c;
	const struct mach_hold *h = &d->s->hold[c][d->e.f];
	const bool booted = d->s->flags[c] & MACH_BARRED;
	struct mach_state next = *d->s;

	if (d->s->life[c] != MACH_LIVE || h->modes || h->deleg ||
	    (d->s->grace && !mach_has_sessions(c) && !booted))
		return;
	if (is_faulty(MACH_BOOTED_RECLAIMS) && d->s->grace && booted) {
		next.hold[c][d->e.f].modes = 1u << MACH_R;
		add(d, MACH_SAYS_OK, &next);
		return;
	}
	add(d, MACH_SAYS_NO_RECLAIM, d->s);
}

static void do_renew(struct doing *d)
{
	const int c = d->e.c;
	struct mach_state next = *d->s;

	if (d->s->life[c] == MACH_AWAY ||
	    (d->s->life[c] == MACH_GONE && is_faulty(MACH_GONE_COMES_BACK))) {
		next.life[c] = MACH_LIVE;
		add(d, MACH_SAYS_OK, &next);
	} else if (d->s->life[c] == MACH_GONE) {
		next.life[c] = MACH_NEW;
		drop(&next, c);
		add(d, MACH_SAYS_UNKNOWN, &next);
	}
}

/* The client has reclaimed all that it wants. */
static void do_complete(struct doing *d)
{
	const int c = d->e.c;
	struct mach_state next = *d->s;

	if (d->s->life[c] != MACH_BACK)
		return;
	for (int f = 0; f < MACH_FILES; f++)
		next.hold[c][f] = mach_held(d->s, c, f);
	for (int f = 0; f < MACH_FILES; f++)
		next.hold[c][f].back = next.hold[c][f].given = 0;
	next.life[c] = MACH_LIVE;
	next.flags[c] = 0;
	add(d, MACH_SAYS_OK, &next);
}

static bool holds_something(const struct mach_state *s, int c)
{
	bool holds = false;

	for (int f = 0; f < MACH_FILES; f++)
		holds |= s->hold[c][f].modes || s->hold[c][f].deleg;
	return holds;
}

static void do_client(struct doing *d)
{
	const int c = d->e.c;
	struct mach_state next = *d->s;

	switch (d->e.kind) {
	case MACH_REGISTER:
		if (next.life[c] != MACH_NEW)
			return;
		next.life[c] = MACH_LIVE;
		break;
	case MACH_REBOOT:
		if (next.life[c] == MACH_NEW || next.life[c] == MACH_GONE ||
		    !holds_something(&next, c))
			return;
		next.life[c] = MACH_LIVE;
		drop(&next, c);
		if (next.grace)
			next.flags[c] = MACH_BARRED;
		break;
	default:
		if (next.life[c] != MACH_DOWN)
			return;
		next.life[c] = MACH_BACK;
	}
	add(d, MACH_SAYS_OK, &next);
}

/* A recall that is not answered for a lease ends in a revocation. */
static bool revoke_late(struct mach_state *s, int c)
{
	bool any = false;

	for (int f = 0; f < MACH_FILES; f++) {
		struct mach_hold *h = &s->hold[c][f];

		if (!(h->deleg & MACH_RECALLED))
			continue;
		any = true;
		h->deleg = (uint8_t)((h->deleg & ~MACH_RECALLED) | MACH_REVOKED);
		if (is_faulty(MACH_REVOKES_SILENTLY))
			h->deleg = 0;
		if (s->restarts < MACH_RESTARTS)
			s->flags[c] |= MACH_LOST;
	}
	return any;
}

static bool has_recalled(const struct mach_state *s, int c)
{
	bool any = false;

	for (int f = 0; f < MACH_FILES; f++)
		any |= (s->hold[c][f].deleg & MACH_RECALLED) != 0;
	return any;
}

/* A lease passes, and client gone (-1: none) does not renew its own. Recalls keep clients that are
 * away from being kept for long, so each may be dropped. Not modelled beside reclaims. */
static void do_time(struct doing *d, int gone)
{
	struct mach_state next = *d->s;
	unsigned away = 0;
	bool any = gone >= 0;

	if (d->s->grace || (gone >= 0 && d->s->life[gone] != MACH_LIVE))
		return;
	for (int c = 0; c < MACH_CLIENTS; c++) {
		if (d->s->life[c] == MACH_BACK)
			return;
		if (d->s->life[c] == MACH_LIVE && c != gone)
			any |= revoke_late(&next, c);
		else if ((d->s->life[c] == MACH_AWAY || c == gone) && has_recalled(d->s, c))
			away |= 1u << c;
	}
	if (gone >= 0)
		next.life[gone] = MACH_AWAY;
	if (any)
		refuse(d, MACH_SAYS_OK, &next, away);
}

static void do_restart(struct doing *d)
{
	struct mach_state next = *d->s;

	if (d->s->restarts == MACH_RESTARTS || d->s->grace)
		return;
	next.restarts++;
	next.grace = 1;
	for (int c = 0; c < MACH_CLIENTS; c++) {
		if (next.life[c] == MACH_NEW)
			continue;
		if (next.life[c] == MACH_AWAY)
			next.flags[c] |= MACH_LAPSED;
		if (next.life[c] == MACH_GONE)
			next.flags[c] |= MACH_BARRED;
		next.life[c] = MACH_DOWN;
		for (int f = 0; f < MACH_FILES; f++)
			next.hold[c][f].deleg &= (uint8_t)~MACH_RECALLED;
	}
	add(d, MACH_SAYS_OK, &next);
}

static void do_grace_ends(struct doing *d)
{
	struct mach_state next = *d->s;

	if (!d->s->grace)
		return;
	end_grace(&next);
	add(d, MACH_SAYS_OK, &next);
}

static void do_per_file(struct doing *d)
{
	switch (d->e.kind) {
	case MACH_OPEN_R:
	case MACH_OPEN_W:
	case MACH_OPEN_D:
		do_open(d, d->e.kind - MACH_OPEN_R, 0);
		return;
	case MACH_OPEN_R_DELEG:
		do_open(d, MACH_R, MACH_DELEG_R);
		return;
	case MACH_OPEN_W_DELEG:
		do_open(d, MACH_W, MACH_DELEG_W);
		return;
	case MACH_CLAIM:
		do_claim(d);
		return;
	case MACH_LOCK_READ:
	case MACH_LOCK_WRITE:
		do_lock(d, d->e.kind == MACH_LOCK_READ ? MACH_LOCK_R : MACH_LOCK_W);
		return;
	case MACH_USE:
	case MACH_USE_DELEG:
		do_use(d, d->e.kind == MACH_USE_DELEG);
		return;
	case MACH_RECLAIM_OPEN:
		do_reclaim_open(d);
		return;
	case MACH_RECLAIM_LOCK:
		do_reclaim_lock(d);
		return;
	case MACH_RECLAIM_LATE:
		do_reclaim_late(d);
		return;
	default:
		do_less(d);
	}
}

unsigned mach_outcomes(const struct mach_state *s, struct mach_event e,
		       struct mach_outcome out[MACH_OUTCOMES])
{
	struct doing d = { .s = s, .e = e, .out = out };

	if (e.kind < MACH_PER_FILE)
		do_per_file(&d);
	else if (e.kind == MACH_RENEW)
		do_renew(&d);
	else if (e.kind == MACH_COMPLETE)
		do_complete(&d);
	else if (e.kind == MACH_LEASE_ENDS)
		do_time(&d, e.c);
	else if (e.kind == MACH_TIME)
		do_time(&d, -1);
	else if (e.kind == MACH_RESTART)
		do_restart(&d);
	else if (e.kind == MACH_GRACE_ENDS)
		do_grace_ends(&d);
	else
		do_client(&d);
	may_end_grace(&d);
	return d.n;
}

static const char *pair_violates(struct mach_hold a, struct mach_hold b)
{
	if (shares_conflict(a.modes, b.modes))
		return "two clients hold shares that conflict";
	if (locks_conflict(a.lock, b.lock))
		return "two clients hold locks that conflict";
	if (deleg_meets(a.deleg, b.modes) || deleg_meets(b.deleg, a.modes))
		return "a client has a file open against another's delegation";
	if (delegs_conflict(a.deleg, b.deleg))
		return "two clients hold delegations that conflict";
	return NULL;
}

static const char *file_violates(const struct mach_state *s, int c, int f)
{
	const struct mach_hold h = mach_held(s, c, f), b = believed(s, c, f);
	const unsigned given = s->hold[c][f].given;
	const bool deleg_counts =
		b.deleg && !(b.deleg & MACH_REVOKED) && !(s->flags[c] & MACH_LAPSED);
	const char *why;

	if (h.lock && !h.modes)
		return "a lock outlives its open";
	if ((h.modes && (given & MACH_OPEN)) || (h.lock && (given & MACH_LOCK)) ||
	    (h.deleg && (given & MACH_DELEG)))
		return "a client has back what another has got meanwhile";
	if (s->grace && may_reclaim(s, c) &&
	    ((given & (MACH_OPEN | MACH_LOCK)) || ((given & MACH_DELEG) && deleg_counts)))
		return "grace admits what is in the way of a reclaim";
	for (int i = 0; i < c; i++) {
		why = pair_violates(h, mach_held(s, i, f));
		if (why)
			return why;
	}
	return NULL;
}

const char *mach_violates(const struct mach_state *s)
{
	const char *why = NULL;

	for (int c = 0; c < MACH_CLIENTS && !why; c++) {
		for (int f = 0; f < MACH_FILES && !why; f++)
			why = file_violates(s, c, f);
	}
	return why;
}

static bool is_more(struct mach_hold now, struct mach_hold was)
{
	return (now.modes & ~was.modes) || now.lock > was.lock || (now.deleg & 3 & ~was.deleg) != 0;
}

static bool is_event_of(struct mach_event e, int c, int f)
{
	return e.kind < MACH_PER_FILE && e.c == c && e.f == f;
}

const char *mach_step_violates(const struct mach_state *s, struct mach_event e,
			       const struct mach_outcome *o)
{
	const bool reclaims = e.kind == MACH_RECLAIM_OPEN || e.kind == MACH_RECLAIM_LOCK ||
			      e.kind == MACH_RECLAIM_LATE;

	for (int c = 0; c < MACH_CLIENTS; c++) {
		if (s->life[c] == MACH_GONE && o->next.life[c] == MACH_LIVE)
			return "a client goes on whose state was given away";
		for (int f = 0; f < MACH_FILES; f++) {
			const struct mach_hold *b = &s->hold[c][f];
			const struct mach_hold was = mach_held(s, c, f),
					       now = mach_held(&o->next, c, f);
			const bool mine = is_event_of(e, c, f);

			if (is_more(now, was) && !mine)
				return "a client holds more by what another does";
			if (!is_more(now, was) || !reclaims)
				continue;
			if (now.deleg && !was.deleg && (s->flags[c] & MACH_LAPSED))
				return "a client whose lease had run out reclaims a delegation";
			if (is_more(now, *b) || (now.deleg && (b->deleg & MACH_REVOKED)))
				return "a client reclaims more than it had";
			if (s->flags[c] & MACH_BARRED)
				return "a client reclaims that must not";
		}
	}
	for (int c = 0; c < MACH_CLIENTS; c++) {
		for (int f = 0; f < MACH_FILES; f++) {
			const unsigned was = s->hold[c][f].deleg, now = o->next.hold[c][f].deleg;

			if (s->life[c] == MACH_LIVE && o->next.life[c] == MACH_LIVE && was &&
			    !now && !(is_event_of(e, c, f) && e.kind == MACH_RETURN) &&
			    !(e.kind == MACH_REBOOT && e.c == c))
				return "a delegation ends, and its holder is not told";
		}
	}
	return NULL;
}
