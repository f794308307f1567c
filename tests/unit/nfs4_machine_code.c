/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The server does what the machine's events say. Recalls are answered at once by clients that are
 * there; those to others are kept until they are back. What the server does by itself, at the next
 * tick or when something is on disk, is waited for after each event.
 */
#include <criterion/criterion.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_machine.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/base/instance.h"

#define TRIES 20000 /* of 300 microseconds */
#define KEPT_MOST 64u
#define LEASE_S 900u

/* What a client knows of a file. */
struct known {
	struct op_file opened;
	struct nfs4_stateid lock, deleg;
	bool has_lock; /* the lock-owner has a stateid */
	bool told;     /* CB_RECALL was sent */
};

static struct {
	struct fixture *f;
	const struct mach_state *s; /* before the event */
	struct vfs_fh fh[MACH_FILES];
	struct op_client client[MACH_CLIENTS];
	struct op_owner owner[MACH_CLIENTS], locker[MACH_CLIENTS];
	char name[MACH_CLIENTS][16], verifier[MACH_CLIENTS][9];
	struct known known[MACH_CLIENTS][MACH_FILES];
	struct cb_call kept[KEPT_MOST];
	unsigned nkept, boots;
	const char *wrong; /* a call of the server for which there is no reason */
} code;

static const char *const file_name[MACH_FILES] = { "a", "b" };

static struct known *known_deleg(const struct nfs4_stateid *sid)
{
	for (int c = 0; c < MACH_CLIENTS; c++) {
		for (int f = 0; f < MACH_FILES; f++) {
			struct known *k = &code.known[c][f];

			if (memcmp(k->deleg.other, sid->other, NFS4_OTHER_SIZE) == 0)
				return k;
		}
	}
	return NULL;
}

static bool is_away(const struct cb_call *call)
{
	for (int c = 1; c < MACH_CLIENTS; c++) {
		if (memcmp(code.client[c].session.id, call->session, sizeof(call->session)) == 0)
			return code.s && code.s->life[c] == MACH_AWAY;
	}
	return false;
}

static void answer(const struct cb_call *call)
{
	struct known *k = call->op == OP_CB_RECALL ? known_deleg(&call->stateid) : NULL;

	if (k)
		k->told = true;
	else if (call->op == OP_CB_RECALL)
		code.wrong = "a recall of no delegation";
	else if (call->nops > 1)
		code.wrong = "a callback that is no recall";
	cbs_answer(code.f, call, NFS4_OK, NFS4_OK);
}

static void answer_calls(void)
{
	struct cb_call call;

	while (cbs_take(&call)) {
		if (!is_away(&call))
			answer(&call);
		else if (code.nkept < KEPT_MOST)
			code.kept[code.nkept++] = call;
	}
}

/* A client is back, and answers what it was asked meanwhile. */
static void answer_kept(int c)
{
	const unsigned n = code.nkept;

	code.nkept = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct cb_call *call = &code.kept[i];

		if (memcmp(code.client[c].session.id, call->session, sizeof(call->session)) == 0)
			answer(call);
		else
			code.kept[code.nkept++] = *call;
	}
	answer_calls();
}

static void answer_meanwhile(struct fixture *f)
{
	(void)f;
	answer_calls();
}

static void wait_a_little(void)
{
	usleep(300);
	nfs4_tick(code.f->server4);
	answer_calls();
}

static uint32_t registers(int c, bool complete)
{
	struct op_client *cl = &code.client[c];
	uint32_t status;

	for (int f = 0; f < MACH_FILES; f++)
		code.known[c][f].has_lock = code.known[c][f].told = false;
	memset(cl, 0, sizeof(*cl));
	cl->minor = (uint32_t)c;
	fix4_verifier = code.verifier[c];
	if (!mach_has_sessions(c))
		return fix4_clientid_new(code.f, code.name[c], &cl->clientid);
	status = fix4_session_new(code.f, &cl->session, cl->minor, code.name[c], complete);
	cl->clientid = cl->session.clientid;
	if (status == NFS4_OK && cbs_sequence(code.f, &cl->session) == UINT32_MAX)
		status = NFS4ERR_IO;
	answer_calls(); /* the probe: without it there are no delegations */
	return status;
}

/* SEQUENCE of an expired client succeeds, and its flags tell. */
static uint32_t renews(int c)
{
	struct op_client *cl = &code.client[c];
	uint32_t status;

	if (!mach_has_sessions(c))
		return call_renew(code.f, cl->clientid);
	status = call_sequence(code.f, &cl->session);
	if (status == NFS4_OK && (cl->session.status_flags & SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED))
		status = NFS4ERR_EXPIRED;
	return status;
}

static void start_server(void)
{
	cr_assert_null(fix_start_nfs4(code.f));
	code.f->server4->cfg.delegations = true;
	/* Neither a lease nor grace ends because the test is slow. */
	code.f->server4->cfg.lease_seconds = LEASE_S;
	code.f->server4->recovery->grace.ends_s += LEASE_S;
	code.nkept = 0;
}

static void stop_server(void)
{
	cbs_time_out(code.f);
	nfs4_server_free(code.f->server4);
	code.f->server4 = NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	return ftw->level > 0 ? remove(path) : 0;
}

void mach_code_anew(void)
{
	code.s = NULL;
	stop_server();
	nftw(code.f->state_dir, remove_one, 4, FTW_DEPTH | FTW_PHYS);
	memset(code.known, 0, sizeof(code.known));
	start_server();
	for (int c = 0; c < MACH_CLIENTS; c++)
		cr_assert_eq(registers(c, true), NFS4_OK, "client %d", c);
}

void mach_code_begin(struct fixture *f)
{
	code.f = f;
	snprintf(f->state_dir, sizeof(f->state_dir), "/dev/shm/ringnfs-machine-XXXXXX");
	cr_assert(mkdtemp(f->state_dir));
	cbs_on(f);
	f->on_wait = answer_meanwhile;
	vfs_export_set_nfs_only(f->exp[0], true);
	f->vfs->cfg.deleg_quiet_seconds = 0;
	for (int i = 0; i < MACH_FILES; i++)
		cr_assert_eq(fix_lookup(f, &f->root, file_name[i], &code.fh[i]), NFS3_OK);
	for (int c = 0; c < MACH_CLIENTS; c++) {
		snprintf(code.name[c], sizeof(code.name[c]), "client%d", c);
		snprintf(code.verifier[c], sizeof(code.verifier[c]), "boot0000");
		code.owner[c] = (struct op_owner){ &code.client[c], "open", 1 };
		code.locker[c] = (struct op_owner){ &code.client[c], "lock", 1 };
	}
	mach_code_anew();
}

void mach_code_end(void)
{
	stop_server();
	nftw(code.f->state_dir, remove_one, 4, FTW_DEPTH | FTW_PHYS);
	rmdir(code.f->state_dir);
	fix4_verifier = "verifier";
}

static uint32_t opens(struct mach_event e, struct op_file *got)
{
	static const struct {
		uint32_t access, deny, wants;
	} how[] = {
		[MACH_OPEN_R] = { 1, 0, OPEN4_SHARE_ACCESS_WANT_NO_DELEG },
		[MACH_OPEN_W] = { 2, 0, OPEN4_SHARE_ACCESS_WANT_NO_DELEG },
		[MACH_OPEN_D] = { 1, 2, OPEN4_SHARE_ACCESS_WANT_NO_DELEG },
		[MACH_OPEN_R_DELEG] = { 1, 0, OPEN4_SHARE_ACCESS_WANT_READ_DELEG },
		[MACH_OPEN_W_DELEG] = { 2, 0, OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG },
		[MACH_CLAIM] = { 1, 0, OPEN4_SHARE_ACCESS_WANT_NO_DELEG },
	};
	struct known *k = &code.known[e.c][e.f];
	const bool claims = e.kind == MACH_CLAIM;
	const struct op_how h = {
		.fh = claims ? &code.fh[e.f] : &code.f->root,
		.name = file_name[e.f],
		.access = how[e.kind].access | (mach_has_sessions(e.c) ? how[e.kind].wants : 0),
		.deny = how[e.kind].deny,
		.claim = claims ? OP_DCUR_FH : OP_BY_NAME,
		.delegated = &k->deleg,
	};
	const uint32_t status = op_open(code.f, &code.owner[e.c], &h, got);

	if (status == NFS4_OK)
		k->opened = *got;
	return status;
}

/* One CLAIM_PREVIOUS for each mode, the first with the delegation. */
static uint32_t reclaims(struct mach_event e, struct op_file *got)
{
	static const uint32_t access[MACH_MODES] = { 1, 2, 1 }, deny[MACH_MODES] = { 0, 0, 2 };
	const struct mach_hold *had = &code.s->hold[e.c][e.f];
	const bool late = e.kind == MACH_RECLAIM_LATE;
	const unsigned modes = late ? 1u << MACH_R : had->modes;
	struct op_how h = { .fh = &code.fh[e.f], .claim = OP_RECLAIM };
	uint32_t status = NFS4_OK;
	bool first = true;
	struct op_file file;

	if (had->deleg && !late)
		h.delegation = had->deleg & MACH_DELEG_W ? OPEN_DELEGATE_WRITE : OPEN_DELEGATE_READ;
	for (int m = 0; m < MACH_MODES && status == NFS4_OK; m++) {
		if (!(modes >> m & 1))
			continue;
		h.access = access[m];
		h.deny = deny[m];
		status = op_open(code.f, &code.owner[e.c], &h, &file);
		if (status == NFS4_OK)
			code.known[e.c][e.f].opened = file;
		if (status == NFS4_OK && first)
			*got = file;
		else if (status != NFS4_OK && !first)
			code.wrong = "the second part of a reclaim is refused";
		first = false;
		h.delegation = OPEN_DELEGATE_NONE;
	}
	return status;
}

static uint32_t locks(struct mach_event e)
{
	struct known *k = &code.known[e.c][e.f];
	const bool reclaim = e.kind == MACH_RECLAIM_LOCK;
	const bool writes =
		reclaim ? code.s->hold[e.c][e.f].lock == MACH_LOCK_W : e.kind == MACH_LOCK_WRITE;
	const struct op_range r = { .type = writes ? 2 : 1, .length = 1, .reclaim = reclaim };
	uint32_t status;

	if (k->has_lock)
		return op_lock(code.f, &code.locker[e.c], &code.fh[e.f], &r, &k->lock, NULL);
	status = op_lock_first(code.f, &code.owner[e.c], &code.locker[e.c], &k->opened, &r,
			       &k->lock, NULL);
	k->has_lock = status == NFS4_OK;
	return status;
}

static uint32_t closes(struct mach_event e)
{
	struct known *k = &code.known[e.c][e.f];

	k->has_lock = false;
	return op_close(code.f, &code.owner[e.c], &k->opened);
}

static uint32_t returns(struct mach_event e)
{
	struct known *k = &code.known[e.c][e.f];
	struct op_client *cl = &code.client[e.c];
	const bool revoked = code.s->hold[e.c][e.f].deleg & MACH_REVOKED;
	const uint32_t status = op_delegreturn(code.f, cl, &code.fh[e.f], &k->deleg);

	k->told = false;
	if (!revoked)
		return status;
	if (status != NFS4ERR_DELEG_REVOKED)
		code.wrong = "a revoked delegation can be returned";
	return op_free_stateid(code.f, cl, &k->deleg);
}

/* A delegation that was revoked is told by each SEQUENCE; so is that there is none. */
static void check_told(int c)
{
	const uint32_t flags = code.client[c].session.status_flags;
	bool revoked = false;

	for (int f = 0; f < MACH_FILES; f++)
		revoked |= (mach_held(code.s, c, f).deleg & MACH_REVOKED) != 0;
	if (mach_has_sessions(c) && code.s->life[c] == MACH_LIVE &&
	    revoked != ((flags & SEQ4_STATUS_RECALLABLE_STATE_REVOKED) != 0))
		code.wrong = revoked ? "SEQUENCE does not tell of a revoked delegation"
				     : "SEQUENCE tells of a revoked delegation";
}

static uint32_t uses(struct mach_event e)
{
	const bool deleg = e.kind == MACH_USE_DELEG;
	const struct known *k = &code.known[e.c][e.f];
	const struct nfs4_stateid *sid = deleg ? &k->deleg : &k->opened.sid;
	uint32_t status;

	if (deleg || (mach_access(code.s->hold[e.c][e.f].modes) & 1))
		status = op_read(code.f, &code.client[e.c], &code.fh[e.f], sid);
	else
		status = op_write(code.f, &code.client[e.c], &code.fh[e.f], sid);
	check_told(e.c);
	return status;
}

/* The server has forgotten the client, and says so; then the client registers again. */
static uint32_t comes_back(int c)
{
	const uint32_t status = renews(c);

	if (status != NFS4ERR_STALE_CLIENTID && status != NFS4ERR_BADSESSION)
		code.wrong = "a client is not told that the server has restarted";
	return registers(c, false);
}

static uint32_t boots(int c)
{
	snprintf(code.verifier[c], sizeof(code.verifier[c]), "b%07u", ++code.boots % 10000000);
	memset(code.known[c], 0, sizeof(code.known[c]));
	return registers(c, true);
}

static uint32_t renews_away(int c)
{
	const uint32_t status = renews(c);

	if (status == NFS4_OK)
		answer_kept(c);
	return status;
}

/* Waits until a recall that was not answered for a lease has become a revocation. */
static void wait_revoked(int c, int f)
{
	const struct known *k = &code.known[c][f];

	for (int i = 0; i < TRIES; i++) {
		nfs4_tick(code.f->server4);
		answer_calls();
		if (op_test_stateid(code.f, &code.client[c], &k->deleg) != NFS4_OK)
			return;
		usleep(300);
	}
	code.wrong = "a recall does not time out";
}

static uint32_t lets_time_pass(int gone)
{
	uint32_t status = NFS4_OK;

	for (int round = 0; round < 2; round++) {
		nfs4_skip_lease_time(code.f->server4, LEASE_S * 2 / 3);
		for (int c = 0; c < MACH_CLIENTS && status == NFS4_OK; c++) {
			if (code.s->life[c] == MACH_LIVE && c != gone)
				status = renews(c);
		}
	}
	nfs4_tick(code.f->server4);
	answer_calls();
	for (int c = 0; c < MACH_CLIENTS; c++) {
		for (int f = 0; f < MACH_FILES; f++) {
			if (code.s->life[c] == MACH_LIVE && c != gone &&
			    (code.s->hold[c][f].deleg & MACH_RECALLED))
				wait_revoked(c, f);
		}
	}
	return status;
}

static uint32_t restarts(void)
{
	stop_server();
	start_server();
	return NFS4_OK;
}

static uint32_t ends_grace(void)
{
	for (int i = 0; i < TRIES && nfs4_in_grace(code.f->server4); i++) {
		nfs4_grace_check(code.f->server4->recovery, nfs4_now() + 10 * LEASE_S);
		usleep(100);
	}
	return NFS4_OK;
}

static uint32_t completes(int c)
{
	return mach_has_sessions(c) ? call_reclaim_complete(code.f, &code.client[c].session, false)
				    : NFS4_OK;
}

static uint32_t does(struct mach_event e, struct op_file *got)
{
	static const struct op_range byte = { .type = 1, .length = 1 };
	struct known *k = &code.known[e.c][e.f];

	switch (e.kind) {
	case MACH_CLOSE:
		return closes(e);
	case MACH_DOWNGRADE:
		return op_downgrade(code.f, &code.owner[e.c], &k->opened, 1, 0);
	case MACH_LOCK_READ:
	case MACH_LOCK_WRITE:
	case MACH_RECLAIM_LOCK:
		return locks(e);
	case MACH_UNLOCK:
		return op_unlock(code.f, &code.locker[e.c], &code.fh[e.f], &byte, &k->lock);
	case MACH_RETURN:
		return returns(e);
	case MACH_USE:
	case MACH_USE_DELEG:
		return uses(e);
	case MACH_RECLAIM_OPEN:
	case MACH_RECLAIM_LATE:
		return reclaims(e, got);
	case MACH_REGISTER:
		return registers(e.c, true);
	case MACH_RENEW:
		return renews_away(e.c);
	case MACH_REBOOT:
		return boots(e.c);
	case MACH_COME_BACK:
		return comes_back(e.c);
	case MACH_COMPLETE:
		return completes(e.c);
	case MACH_LEASE_ENDS:
		return lets_time_pass(e.c);
	case MACH_TIME:
		return lets_time_pass(-1);
	case MACH_RESTART:
		return restarts();
	case MACH_GRACE_ENDS:
		return ends_grace();
	default:
		return opens(e, got);
	}
}

static uint32_t says(uint32_t status)
{
	switch (status) {
	case NFS4_OK:
		return MACH_SAYS_OK;
	case NFS4ERR_SHARE_DENIED:
		return MACH_SAYS_SHARE_DENIED;
	case NFS4ERR_DENIED:
		return MACH_SAYS_DENIED;
	case NFS4ERR_DELAY:
		return MACH_SAYS_DELAY;
	case NFS4ERR_GRACE:
		return MACH_SAYS_GRACE;
	case NFS4ERR_OPENMODE:
		return MACH_SAYS_OPENMODE;
	case NFS4ERR_DELEG_REVOKED:
		return MACH_SAYS_REVOKED;
	case NFS4ERR_NO_GRACE:
	case NFS4ERR_RECLAIM_BAD:
	case NFS4ERR_RECLAIM_CONFLICT:
		return MACH_SAYS_NO_RECLAIM;
	case NFS4ERR_EXPIRED:
	case NFS4ERR_BAD_STATEID:
	case NFS4ERR_STALE_STATEID:
	case NFS4ERR_STALE_CLIENTID:
	case NFS4ERR_BADSESSION:
	case NFS4ERR_DEADSESSION:
		return MACH_SAYS_UNKNOWN;
	default:
		return 0;
	}
}

/* True if an outcome with that answer has every holder told of the recall. */
static bool all_are_told(const struct mach_outcome *out, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (out[i].says != MACH_SAYS_DELAY)
			continue;
		for (int c = 0; c < MACH_CLIENTS; c++) {
			for (int f = 0; f < MACH_FILES; f++) {
				if (code.s->life[c] == MACH_LIVE &&
				    (out[i].next.hold[c][f].deleg & MACH_RECALLED) &&
				    !code.known[c][f].told)
					return false;
			}
		}
		return true;
	}
	return false;
}

/* True if the server keeps the state of a client that is away. Otherwise waits until it has gone. */
static bool is_kept(int c)
{
	struct nfs4_client *cl =
		nfs4_client_by_number(code.f->server4, (uint32_t)code.client[c].clientid);
	bool kept = false;

	if (cl)
		kept = nfs4_client_status(cl) == NFS4_CLIENT_COURTESY ||
		       nfs4_client_status(cl) == NFS4_CLIENT_ACTIVE;
	for (int i = 0; i < TRIES && cl && !kept && nfs4_client_has_state(cl); i++)
		wait_a_little();
	nfs4_client_put(cl);
	return kept;
}

/* What the server has done, apart from the answer. */
struct seen {
	uint32_t says;
	bool deleg, grace, kept[MACH_CLIENTS];
};

static void look(struct seen *seen)
{
	struct nfs4_grace *g = &code.f->server4->recovery->grace;

	for (int i = 0; i < TRIES && atomic_load(&g->phase) == NFS4_GRACE_ENDING; i++)
		usleep(100);
	seen->grace = nfs4_in_grace(code.f->server4);
	for (int c = 0; c < MACH_CLIENTS; c++)
		seen->kept[c] = is_kept(c);
}

static bool fits(const struct mach_outcome *o, const struct seen *seen)
{
	bool fit =
		(o->says & seen->says) && o->deleg == seen->deleg && o->next.grace == seen->grace;

	for (int c = 0; c < MACH_CLIENTS; c++) {
		if (o->next.life[c] == MACH_AWAY || o->next.life[c] == MACH_GONE)
			fit &= seen->kept[c] == (o->next.life[c] == MACH_AWAY);
	}
	return fit;
}

/* What the server counts must be what the clients hold. A lock-owner may keep its stateid without a
 * lock. A delegation that was revoked counts until it is freed. */
static bool counts_fit(const struct mach_state *s, char why[256])
{
	uint64_t opens_n = 0, locks_n = 0, locks_most = 0, delegs_n = 0;
	struct nfs4_held held;

	nfs4_held(code.f->server4, &held);
	for (int c = 0; c < MACH_CLIENTS; c++) {
		for (int f = 0; f < MACH_FILES; f++) {
			const struct mach_hold h = mach_held(s, c, f);

			opens_n += h.modes != 0;
			locks_n += h.lock != 0;
			locks_most += h.modes != 0 && code.known[c][f].has_lock;
			delegs_n += h.deleg != 0;
		}
	}
	if (held.opens == opens_n && held.locks >= locks_n && held.locks <= locks_most &&
	    held.delegations == delegs_n)
		return true;
	snprintf(why, 256, "the server has %u opens, %u locks, %u delegations, not %u, %u, %u",
		 (unsigned)held.opens, (unsigned)held.locks, (unsigned)held.delegations,
		 (unsigned)opens_n, (unsigned)locks_n, (unsigned)delegs_n);
	return false;
}

static void say_permitted(const struct mach_outcome *out, unsigned n, uint32_t status,
			  const struct seen *seen, char why[256])
{
	char text[128];
	uint32_t may = 0;

	for (unsigned i = 0; i < n; i++)
		may |= out[i].says;
	mach_tell_says(text, sizeof(text), may);
	snprintf(why, 256, "status %u%s, %s, kept %d%d%d; permitted: %s", status,
		 seen->deleg ? " with a delegation" : "", seen->grace ? "grace" : "no grace",
		 seen->kept[0], seen->kept[1], seen->kept[2], text);
}

int mach_code_step(const struct mach_state *s, struct mach_event e, const struct mach_outcome *out,
		   unsigned n, char why[256])
{
	struct op_file got = { .delegation = OPEN_DELEGATE_NONE };
	struct seen seen;
	uint32_t status;
	int tries = 0;

	code.s = s;
	code.wrong = NULL;
	do {
		status = does(e, &got);
		answer_calls();
		if (status == NFS4ERR_DELAY && !all_are_told(out, n))
			wait_a_little();
		else
			break;
	} while (++tries < TRIES);
	seen.says = says(status);
	seen.deleg = status == NFS4_OK && (got.delegation == OPEN_DELEGATE_READ ||
					   got.delegation == OPEN_DELEGATE_WRITE);
	if (seen.deleg)
		code.known[e.c][e.f].deleg = got.deleg, code.known[e.c][e.f].told = false;
	look(&seen);
	for (unsigned i = 0; i < n && !code.wrong; i++) {
		if (fits(&out[i], &seen))
			return counts_fit(&out[i].next, why) ? (int)i : -1;
	}
	if (code.wrong)
		snprintf(why, 256, "%s", code.wrong);
	else
		say_permitted(out, n, status, &seen, why);
	return -1;
}
