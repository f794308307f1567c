/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/recovery/grace.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "lib/error.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "vfs/deleg.h"

int nfs4_drain_check(const struct nfs4_object *p)
{
	return p->kind == NFS4_FILE && vfs_export_is_draining(p->ctx.exp) ? NFS4ERR_DELAY : NFS4_OK;
}

int nfs4_drain_check_client(struct nfs4_server *srv)
{
	return atomic_load_explicit(&srv->drain, memory_order_relaxed) == NFS4_DRAIN_ALL &&
			       !nfs4_in_grace(srv)
		       ? NFS4ERR_DELAY
		       : NFS4_OK;
}

/*
 * Phases of grace. Running: some clients with a record have not ended reclaiming. Ending: the end
 * is being written; no client may reclaim, and no client is granted what could have conflicted with
 * reclaims. Over.
 *
 * A client of minor version 0 does not say when it has reclaimed everything, and no other operation
 * proves it: a client with a slow recovery writes to files that it has got back, and renews its
 * lease, in between. So the server waits for it until the time is over. A client's own reclaims do
 * not conflict with its requests: when all others are done, it need not wait.
 */

/* Seconds after which a client that has not sent RECLAIM_COMPLETE is granted new state. */
#define QUIET_S 2u
/* Grace is extended while the time since the last reclaim is below this, in seconds. */
#define APART_S 10u
/* Verifiers that other addresses may try for one record. A verifier is the client's boot time,
 * which can be guessed roughly. */
#define GUESSES_MOST 64u
/* Buckets of expected clients, with one each on average, that are shown under one hold of the lock. */
#define BUCKETS_AT_ONCE 128u

/* True if new locks wait for clients of some member of the cluster. */
static bool nfs4_cluster_blocks(const struct nfs4_server *srv)
{
	const struct nfs4_cluster *c = srv->cfg.cluster;

	return c && c->blocks_locks(c->ctx);
}

/* True if no other member of the cluster grants what clients reclaim here. */
static bool nfs4_cluster_is_ready(const struct nfs4_server *srv)
{
	const struct nfs4_cluster *c = srv->cfg.cluster;

	return !c || c->takes_reclaims(c->ctx);
}

/* bits of nfs4_record.reclaim */
enum { MAY = 1, MAY_DENY = 2, COMPLETE = 4, MAY_DELEG = 8 };

/* Marks clients with sessions that have reclaimed something but did not send RECLAIM_COMPLETE.
 * Other clients may now be granted the rest, so these must not reclaim it after another restart. */
static void mark_suspects(struct nfs4_recovery *r)
{
	struct nfs4_grace *g = &r->grace;

	for (uint32_t i = 0; i < g->nbuckets; i++) {
		for (const struct nfs4_expected *e = g->bucket[i]; e; e = e->next) {
			struct nfs4_record *rec = e->rec;

			if (!e->done && rec && e->sessions)
				nfs4_record_suspect(r, rec, true);
		}
	}
}

/* With the lock held. If there is no memory, the next tick tries again. */
static void nfs4_grace_end_locked(struct nfs4_recovery *r)
{
	const struct nfs4_db_row none = { .id_len = 0 };
	struct nfs4_record_job *job = nfs4_job_new(NFS4_JOB_END_GRACE, &none);

	if (!job)
		return;
	mark_suspects(r);
	nfs4_job_queue(r, job);
	atomic_store(&r->grace.phase, NFS4_GRACE_ENDING);
}

bool nfs4_grace_ended(struct nfs4_recovery *r)
{
	struct nfs4_grace *g = &r->grace;

	if (atomic_load(&g->phase) == NFS4_GRACE_OVER)
		return false;
	nfs4_expected_free(g);
	if (g->delegating > 0)
		vfs_deleg_reclaiming(r->srv->cfg.vfs, false);
	g->delegating = g->writing = 0;
	atomic_store(&g->phase, NFS4_GRACE_OVER);
	return true;
}

void nfs4_grace_begin(struct nfs4_recovery *r, unsigned seconds)
{
	struct nfs4_grace *g = &r->grace;

	pthread_mutex_lock(&r->lock);
	g->began_s = nfs4_now();
	g->ends_s = g->began_s + seconds;
	g->seconds = seconds;
	g->left += r->srv->cfg.other_clients;
	if (g->left + g->lapsed > 0) {
		atomic_store(&g->phase, NFS4_GRACE_RUNNING);
		if (g->delegating > 0)
			vfs_deleg_reclaiming(r->srv->cfg.vfs, true);
	} else {
		/* No client can reclaim the records that are still on disk, so others need not wait
		 * for their deletion. */
		nfs4_grace_end_locked(r);
		nfs4_grace_ended(r);
	}
	pthread_mutex_unlock(&r->lock);
	if (g->expected + g->lapsed > 0)
		rn_notice(
			r->log,
			"grace period: %u clients have up to %u s to reclaim their locks; %u that "
			"were away at the stop may reclaim, but nobody waits for them",
			g->expected, seconds, g->lapsed);
}

/* Counts a client that has come back, for the log. */
static void came_back(struct nfs4_grace *g, struct nfs4_expected *e)
{
	if (!e->back)
		g->back++;
	e->back = true;
}

/* With the lock held. */
static void set_done(struct nfs4_recovery *r, struct nfs4_expected *e)
{
	struct nfs4_grace *g = &r->grace;

	if (e->done)
		return;
	e->done = true;
	if (!e->lapsed)
		came_back(g, e);
	if (e->lapsed)
		g->lapsed--;
	else
		g->left--;
	g->denying -= (e->bits & NFS4_RECORD_DENY) != 0;
	g->writing -= e->writes;
	if (e->delegated && --g->delegating == 0)
		vfs_deleg_reclaiming(r->srv->cfg.vfs, false);
	if (g->left + g->lapsed == 0 && atomic_load(&g->phase) == NFS4_GRACE_RUNNING)
		nfs4_grace_end_locked(r);
}

/* True if the time is over. While reclaims keep coming, grace is extended up to twice its time, as
 * in the kernel's server. */
static bool nfs4_grace_is_over(const struct nfs4_recovery *r, uint64_t now)
{
	const struct nfs4_grace *g = &r->grace;
	const uint64_t apart = g->seconds / 4 < APART_S ? g->seconds / 4 + 1 : APART_S;

	if (now < g->ends_s)
		return false;
	return g->reclaimed_s == 0 || now >= g->reclaimed_s + apart ||
	       now >= g->ends_s + g->seconds;
}

void nfs4_grace_check(struct nfs4_recovery *r, uint64_t now)
{
	struct nfs4_grace *g = &r->grace;

	if (atomic_load(&g->phase) != NFS4_GRACE_RUNNING)
		return;
	pthread_mutex_lock(&r->lock);
	/* The time begins when clients can use it. */
	if (!nfs4_cluster_is_ready(r->srv))
		g->ends_s = now + g->seconds;
	if (atomic_load(&g->phase) == NFS4_GRACE_RUNNING &&
	    (g->left + g->lapsed == 0 || nfs4_grace_is_over(r, now)))
		nfs4_grace_end_locked(r);
	pthread_mutex_unlock(&r->lock);
}

bool nfs4_grace_forget(struct nfs4_recovery *r, struct nfs4_record *rec, bool done)
{
	struct nfs4_expected *e = nfs4_expected_find(&r->grace, rec);

	if (!e)
		return false;
	if (e->rec == rec)
		e->rec = NULL;
	if (done) {
		atomic_fetch_and(&rec->reclaim, ~(unsigned)(MAY | MAY_DENY | MAY_DELEG));
		set_done(r, e);
	}
	return true;
}

bool nfs4_in_grace(struct nfs4_server *srv)
{
	return atomic_load_explicit(&srv->recovery->grace.phase, memory_order_acquire) !=
	       NFS4_GRACE_OVER;
}

void nfs4_grace_status(struct nfs4_server *srv, struct nfs4_grace_status *out)
{
	struct nfs4_recovery *r = srv->recovery;
	const struct nfs4_grace *g = &r->grace;
	const uint64_t now = nfs4_now();

	*out = (struct nfs4_grace_status){ .active = nfs4_in_grace(srv) };
	if (!out->active)
		return;
	pthread_mutex_lock(&r->lock);
	out->seconds_left = g->ends_s > now ? g->ends_s - now : 0;
	out->expected = g->expected;
	out->waiting = g->left;
	pthread_mutex_unlock(&r->lock);
}

bool nfs4_grace_waiting(struct nfs4_server *srv, uint32_t *at,
			void (*each)(void *arg, const struct nfs4_grace_client *c), void *arg)
{
	struct nfs4_recovery *r = srv->recovery;
	const struct nfs4_grace *g = &r->grace;

	pthread_mutex_lock(&r->lock);
	for (unsigned i = 0; i < BUCKETS_AT_ONCE && *at < g->nbuckets; i++, ++*at) {
		for (const struct nfs4_expected *e = g->bucket[*at]; e; e = e->next) {
			const struct nfs4_grace_client c = {
				.name = e->id,
				.name_len = e->id_len,
				.sessions = e->sessions,
				.back = e->back,
				.address = e->origin.known ? e->origin.address : NULL,
			};

			if (!e->done && !e->lapsed)
				each(arg, &c);
		}
	}
	const bool more = *at < g->nbuckets;

	pthread_mutex_unlock(&r->lock);
	return more;
}

int nfs4_grace_end(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (atomic_load(&r->grace.phase) == NFS4_GRACE_RUNNING)
		nfs4_grace_end_locked(r);
	if (atomic_load(&r->grace.phase) == NFS4_GRACE_RUNNING)
		rc = -ENOMEM;
	else if (atomic_load(&r->grace.phase) == NFS4_GRACE_ENDING)
		rc = -RN_ESOON;
	pthread_mutex_unlock(&r->lock);
	return rc;
}

/* A lapsed client has come back in time. Grace waits for it like for the others from now on. */
static void nfs4_grace_wait_for(struct nfs4_grace *g, struct nfs4_expected *e)
{
	if (!e->lapsed || e->done)
		return;
	e->lapsed = false;
	g->lapsed--;
	g->left++;
	g->expected++;
}

/* True if rec is the expected client itself. The rule is that for registered clients:
 * nfs4/session/client_register.c. */
static bool is_itself(struct nfs4_expected *e, const struct nfs4_record *rec)
{
	const struct nfs4_record_origin *had = &e->origin, *has = &rec->origin;

	if (!had->known)
		return true;
	if (had->flavor != has->flavor || had->uid != has->uid)
		return false;
	if (memcmp(had->address, has->address, sizeof(had->address)) == 0 &&
	    (has->reserved || !had->reserved) && has->protection >= had->protection)
		return true;
	if (e->guesses >= GUESSES_MOST)
		return false;
	if (sodium_memcmp(e->verifier, rec->verifier, sizeof(e->verifier)) == 0)
		return true;
	e->guesses++;
	return false;
}

bool nfs4_record_may_register(struct nfs4_server *srv, const struct nfs4_record *rec,
			      uint8_t was[16])
{
	struct nfs4_recovery *r = srv->recovery;
	struct nfs4_expected *e;
	bool may;

	if (!nfs4_in_grace(srv))
		return true;
	pthread_mutex_lock(&r->lock);
	e = nfs4_expected_find(&r->grace, rec);
	may = !e || e->done || e->lapsed || e->revoked ||
	      atomic_load(&r->grace.phase) != NFS4_GRACE_RUNNING || is_itself(e, rec);
	if (!may)
		memcpy(was, e->origin.address, sizeof(e->origin.address));
	pthread_mutex_unlock(&r->lock);
	return may;
}

/* Kinds of state that a client with that record may reclaim. */
static unsigned nfs4_grace_reclaim_rights(const struct nfs4_expected *e)
{
	return MAY | (e->bits & NFS4_RECORD_DENY ? MAY_DENY : 0u) |
	       (e->delegated && !(e->bits & NFS4_RECORD_DELEG_LOST) ? MAY_DELEG : 0u);
}

void nfs4_record_confirmed(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;
	struct nfs4_expected *e;

	if (!nfs4_in_grace(srv))
		return;
	pthread_mutex_lock(&r->lock);
	e = nfs4_expected_find(&r->grace, rec);
	if (e && memcmp(e->verifier, rec->verifier, sizeof(e->verifier)) != 0) {
		set_done(r, e);
	} else if (e && !e->revoked && (!e->done || !e->sessions)) {
		nfs4_grace_wait_for(&r->grace, e);
		e->rec = rec;
		came_back(&r->grace, e);
		atomic_fetch_or(&rec->reclaim, nfs4_grace_reclaim_rights(e));
	}
	pthread_mutex_unlock(&r->lock);
}

/* Under the lock: true if reclaims are taken. */
static bool note_reclaim(struct nfs4_recovery *r)
{
	if (atomic_load(&r->grace.phase) != NFS4_GRACE_RUNNING)
		return false;
	r->grace.reclaimed_s = nfs4_now();
	return true;
}

bool nfs4_grace_takes_reclaim(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;
	bool takes;

	if (!nfs4_in_grace(srv) || !nfs4_cluster_is_ready(srv))
		return false;
	pthread_mutex_lock(&r->lock);
	takes = note_reclaim(r);
	pthread_mutex_unlock(&r->lock);
	return takes;
}

bool nfs4_grace_takes_later(struct nfs4_server *srv)
{
	return atomic_load(&srv->recovery->grace.phase) == NFS4_GRACE_RUNNING &&
	       !nfs4_cluster_is_ready(srv);
}

int nfs4_may_reclaim(struct nfs4_server *srv, struct nfs4_record *rec, bool denies)
{
	struct nfs4_recovery *r = srv->recovery;
	const unsigned may = atomic_load(&rec->reclaim);
	int status = NFS4ERR_NO_GRACE;

	if (!(may & MAY) || (may & COMPLETE) || !nfs4_in_grace(srv))
		return NFS4ERR_NO_GRACE;
	if (denies && !(may & MAY_DENY))
		return NFS4ERR_RECLAIM_BAD;
	if (!nfs4_cluster_is_ready(srv))
		return NFS4ERR_DELAY;
	pthread_mutex_lock(&r->lock);
	if (note_reclaim(r))
		status = NFS4_OK;
	pthread_mutex_unlock(&r->lock);
	return status;
}

bool nfs4_may_reclaim_deleg(const struct nfs4_record *rec)
{
	return atomic_load(&rec->reclaim) & MAY_DELEG;
}

/* With the lock held. A client wants state that could be reclaimed. It waits for the expected
 * clients, but not for lapsed ones: if only those are left, grace ends. */
static void nfs4_grace_is_wanted(struct nfs4_recovery *r)
{
	if (r->grace.left == 0 && atomic_load(&r->grace.phase) == NFS4_GRACE_RUNNING)
		nfs4_grace_end_locked(r);
}

/* True if no other client may still reclaim. rec NULL: the caller is no NFSv4 client. */
static bool nfs4_grace_is_alone(struct nfs4_grace *g, const struct nfs4_record *rec)
{
	const struct nfs4_expected *e = rec ? nfs4_expected_find(g, rec) : NULL;

	return e && e->rec == rec && !e->done && g->left + g->lapsed == 1 &&
	       atomic_load(&g->phase) == NFS4_GRACE_RUNNING;
}

/* True if even an open to read could be in the way of a reclaim: of a share that denies it, or of a
 * delegation to write. */
static bool forbids_reading(const struct nfs4_grace *g)
{
	return g->denying > 0 || g->writing > 0;
}

static int nfs4_grace_ask(struct nfs4_recovery *r, const struct nfs4_record *rec, bool conflicts)
{
	struct nfs4_grace *g = &r->grace;

	pthread_mutex_lock(&r->lock);
	conflicts = conflicts || forbids_reading(g);
	conflicts = conflicts && atomic_load(&g->phase) != NFS4_GRACE_OVER &&
		    !nfs4_grace_is_alone(g, rec);
	if (conflicts)
		nfs4_grace_is_wanted(r);
	pthread_mutex_unlock(&r->lock);
	return conflicts ? NFS4ERR_GRACE : NFS4_OK;
}

/*
 * True if the client must send RECLAIM_COMPLETE first. Linux's client does not send it if it loses
 * its lease while it is about to recover state without reclaiming (nfs4_reclaim_lease() in
 * fs/nfs/nfs4state.c, as of 6.12), and then repeats its request for ever. So a client that was
 * refused and asks again long after is granted its request, unless reclaims of others could still
 * conflict.
 */
static bool must_complete(struct nfs4_server *srv, struct nfs4_record *rec)
{
	const uint64_t now = nfs4_now();
	uint64_t asked = 0;

	if (!rec->sessions || nfs4_reclaim_is_done(rec))
		return false;
	if (atomic_compare_exchange_strong(&rec->asked_s, &asked, now) || nfs4_in_grace(srv))
		return true;
	return now < asked + QUIET_S;
}

static int may_get(struct nfs4_server *srv, struct nfs4_record *rec, bool conflicts)
{
	int status = NFS4_OK;

	if (must_complete(srv, rec))
		return NFS4ERR_GRACE;
	if (nfs4_in_grace(srv))
		status = nfs4_grace_ask(srv->recovery, rec, conflicts);
	return status == NFS4_OK && conflicts && nfs4_cluster_blocks(srv) ? NFS4ERR_GRACE : status;
}

int nfs4_may_open(struct nfs4_server *srv, struct nfs4_record *rec, bool denies)
{
	return may_get(srv, rec, denies);
}

int nfs4_may_write(struct nfs4_server *srv, const struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;
	bool conflicts;

	if (!nfs4_in_grace(srv))
		return NFS4_OK;
	pthread_mutex_lock(&r->lock);
	conflicts = r->grace.delegating > 0 && !nfs4_grace_is_alone(&r->grace, rec);
	pthread_mutex_unlock(&r->lock);
	return conflicts ? NFS4ERR_GRACE : NFS4_OK;
}

int nfs4_may_lock(struct nfs4_server *srv, struct nfs4_record *rec)
{
	return may_get(srv, rec, true);
}

bool nfs4_grace_blocks_locks(struct nfs4_server *srv)
{
	return (nfs4_in_grace(srv) && nfs4_grace_ask(srv->recovery, NULL, true) != NFS4_OK) ||
	       nfs4_cluster_blocks(srv);
}

bool nfs4_grace_blocks_io(struct nfs4_server *srv)
{
	struct nfs4_recovery *r = srv->recovery;
	bool blocks;

	if (!nfs4_in_grace(srv))
		return false;
	pthread_mutex_lock(&r->lock);
	blocks = forbids_reading(&r->grace);
	if (blocks)
		nfs4_grace_is_wanted(r);
	pthread_mutex_unlock(&r->lock);
	return blocks;
}

int nfs4_reclaim_done(struct nfs4_server *srv, struct nfs4_record *rec)
{
	struct nfs4_recovery *r = srv->recovery;
	int status = NFS4_OK;
	struct nfs4_expected *e;

	pthread_mutex_lock(&r->lock);
	if (atomic_load(&rec->reclaim) & COMPLETE) {
		status = NFS4ERR_COMPLETE_ALREADY;
	} else {
		atomic_fetch_or(&rec->reclaim, COMPLETE);
		e = nfs4_expected_find(&r->grace, rec);
		if (e)
			set_done(r, e);
		nfs4_record_suspect(r, rec, false);
	}
	pthread_mutex_unlock(&r->lock);
	return status;
}

bool nfs4_reclaim_is_done(const struct nfs4_record *rec)
{
	return atomic_load_explicit(&rec->reclaim, memory_order_acquire) & COMPLETE;
}

bool nfs4_reclaim_is_needed(const struct nfs4_record *rec)
{
	const unsigned bits = atomic_load_explicit(&rec->reclaim, memory_order_relaxed);

	return (bits & MAY) && !(bits & COMPLETE);
}
