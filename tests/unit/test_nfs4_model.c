/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random opens, locks, delegations, closes, expirations and restarts of clients of all minor versions,
 * compared with a simple model (nfs4_model.h). Every status, every tested lock, every delegation that
 * is given, recalled or revoked, and size and change of the files must match the model. MODEL_SEED
 * repeats a run, MODEL_STEPS makes it longer.
 */
#include <ftw.h>
#include <stdlib.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_model.h"
#include "vfs/base/instance.h"

NFS3_SUITE(nfs4_model);

static const char *const file_name[FILES] = { "a", "b", "c", "d" };

/* Sets m->hit for clients with opens that conflict with an open; the owner's own counts, too. */
static void share_hits(struct meeting *m, uint32_t access, uint32_t deny)
{
	for (int i = 0; i < CLIENTS; i++) {
		for (int o = 0; o < OWNERS; o++) {
			const struct model_open *open = &model.client[i].open[o][m->file];

			m->hit[i] |= open->is && ((access & open->deny) || (deny & open->access));
		}
	}
	if (somebody_lives(m->hit))
		m->want = NFS4ERR_SHARE_DENIED;
}

static void note_open(struct model_open *m, const struct op_how *how, const struct op_file *got)
{
	const uint32_t access = how->access & OPEN4_SHARE_ACCESS_BOTH;

	m->is = true;
	m->access |= access;
	m->deny |= how->deny;
	m->combinations |= 1u << (access * 4 + how->deny);
	m->file = *got;
}

struct opening {
	struct op_owner *owner;
	struct op_how how;
	struct op_file got;
};

static uint32_t send_open(void *arg)
{
	struct opening *op = arg;

	return op_open(model.f, op->owner, &op->how, &op->got);
}

/* Sends an OPEN, which fails if m->want says so. */
static void open_file(struct meeting *m, int o, struct opening *op)
{
	const uint32_t access = op->how.access & OPEN4_SHARE_ACCESS_BOTH;

	op->owner = &model.client[m->c].owner[o];
	if (m->want == NFS4_OK)
		share_hits(m, access, op->how.deny);
	meet_delegs(m, (access & OPEN4_SHARE_ACCESS_WRITE) ||
			       (op->how.deny & OPEN4_SHARE_ACCESS_READ));
	go_through(m, send_open, op, "OPEN");
	model.n.met_by_open += m->waits;
}

/* The bits of access that ask for a delegation. */
static uint32_t wants(const struct model_client *mc)
{
	static const uint32_t bits[] = { OPEN4_SHARE_ACCESS_WANT_ANY_DELEG,
					 OPEN4_SHARE_ACCESS_WANT_READ_DELEG,
					 OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG,
					 OPEN4_SHARE_ACCESS_WANT_NO_DELEG };
	uint32_t want = 0;

	if (mc->minor > 0 && chance(3) == 0)
		want = bits[chance(4)];
	if (mc->minor > 1 && chance(3) == 0)
		want |= OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION;
	return want;
}

static void do_open(int c, int o, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_open *m = &mc->open[o][file];
	struct meeting meeting = { .c = c, .file = file };
	struct opening op = { .how = { .fh = &f->root,
				       .name = file_name[file],
				       .access = (1 + chance(3)) | wants(mc),
				       .deny = chance(6) ? 0 : chance(4) } };
	const bool had = m->is;
	uint32_t want;
	bool alone;

	open_file(&meeting, o, &op);
	if (meeting.want != NFS4_OK)
		return;
	note_open(m, &op.how, &op.got);
	want = deleg_expected(c, file, op.how.access);
	cr_assert_eq(op.got.delegation, want,
		     "step %d: client %d, file %d, access %x: delegation %u (%u), not %u",
		     model.step, c, file, op.how.access, op.got.delegation, op.got.why, want);
	alone = (op.how.access & OPEN4_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION) && !had &&
		(want == OPEN_DELEGATE_READ || want == OPEN_DELEGATE_WRITE);
	cr_assert_eq((op.got.rflags & OPEN4_RESULT_NO_OPEN_STATEID) != 0, alone, "step %d",
		     model.step);
	model.n.alone += alone;
	if (alone)
		memset(m, 0, sizeof(*m));
	note_deleg(c, file, &op.got);
}

/* An open that the holder of a delegation has made by itself. */
static void do_claim(int c, int o, int file)
{
	const struct model_deleg *d = &model.client[c].deleg[file];
	struct meeting meeting = { .c = c, .file = file };
	struct opening op = { .how = { .fh = &model.file[file].fh,
				       .access = 1 + chance(3),
				       .claim = OP_DCUR_FH,
				       .delegated = &d->sid } };

	if (!d->is)
		return;
	meeting.want = d->revoked ? NFS4ERR_DELEG_REVOKED : NFS4_OK;
	open_file(&meeting, o, &op);
	if (meeting.want != NFS4_OK)
		return;
	cr_assert_eq(op.got.delegation, OPEN_DELEGATE_NONE, "step %d: a second one", model.step);
	model.n.claimed++;
	note_open(&model.client[c].open[o][file], &op.how, &op.got);
}

static void forget_locks(struct model_client *mc, int o, int file)
{
	for (int l = 0; l < LOCKERS; l++) {
		if (mc->lock[l][file].is && mc->lock[l][file].opener == o)
			memset(&mc->lock[l][file], 0, sizeof(mc->lock[l][file]));
	}
}

static void do_close(int c, int o, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_open *m = &mc->open[o][file];

	if (!m->is)
		return;
	cr_assert_eq(op_close(f, &mc->owner[o], &m->file), NFS4_OK, "step %d", model.step);
	memset(m, 0, sizeof(*m));
	forget_locks(mc, o, file);
}

static void do_downgrade(int c, int o, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_open *m = &mc->open[o][file];
	const uint32_t access = 1 + chance(3), deny = chance(4);
	uint32_t a = 0, d = 0, left = 0, status;

	if (!m->is)
		return;
	for (uint32_t i = 4; i < 16; i++) {
		if ((m->combinations >> i & 1) && !(i / 4 & ~access) && !(i % 4 & ~deny)) {
			a |= i / 4;
			d |= i % 4;
			left |= 1u << i;
		}
	}
	status = op_downgrade(f, &mc->owner[o], &m->file, access, deny);
	cr_assert_eq(status, a == access && d == deny ? NFS4_OK : NFS4ERR_INVAL,
		     "step %d: downgrade to %u/%u: %u", model.step, access, deny, status);
	if (status != NFS4_OK)
		return;
	m->access = access;
	m->deny = deny;
	m->combinations = left;
}

static void do_io(int c, int o, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_open *m = &mc->open[o][file];

	if (!m->is)
		return;
	cr_assert_eq(op_write(f, &mc->client, &m->file.fh, &m->file.sid),
		     m->access & 2 ? NFS4_OK : NFS4ERR_OPENMODE, "step %d", model.step);
	model.file[file].touched |= m->access & 2;
}

/* Lets one client's lease run out; the others renew theirs. */
static void do_expire(int gone)
{
	static const bool none[CLIENTS];

	model.client[gone].away = true;
	for (int round = 0; round < 2; round++) {
		nfs4_skip_lease_time(f->server4, 60);
		for (int i = 0; i < CLIENTS; i++) {
			if (!model.client[i].away)
				renew(&model.client[i]);
		}
	}
	nfs4_tick(f->server4);
	answer_calls();
	for (int i = 0; i < CLIENTS; i++) {
		for (int file = 0; file < FILES; file++)
			expect_revoked(&model.client[i], &model.client[i].deleg[file]);
	}
	see_who_lost(none);
}

static void back(int c)
{
	static const bool none[CLIENTS];

	see_who_lost(none);
	if (!model.client[c].lost)
		renew(&model.client[c]); /* without a conflict nothing has changed */
	else
		register_client(&model.client[c]);
}

static bool holds_something(const struct model_client *mc)
{
	bool holds = false;

	for (int file = 0; file < FILES; file++) {
		holds |= mc->deleg[file].is;
		for (int o = 0; o < OWNERS; o++)
			holds |= mc->open[o][file].is;
	}
	return holds;
}

/* The server forgets what it knows of a client that has nothing. */
static void forget_losses(void)
{
	for (int c = 0; c < CLIENTS; c++) {
		if (model.client[c].reclaim == LOST_ONE && !holds_something(&model.client[c]))
			model.client[c].reclaim = UNKNOWN;
	}
}

/* An application ends: all opens of the file, and with them the locks. */
static void do_leave(int c, int file)
{
	for (int o = 0; o < OWNERS; o++)
		do_close(c, o, file);
}

/* Where a step is made: anywhere; by the holder of some delegation; on a file that is delegated. */
enum where { ANY, HELD, MET };

/* Weights of the steps, out of 1000. */
static const struct {
	uint32_t weight;
	enum where where;
	void (*step)(int c, int o, int file);
	void (*file_step)(int c, int file);
} steps[] = {
	{ 250, ANY, do_open, NULL },  { 40, HELD, do_claim, NULL },
	{ 80, ANY, do_close, NULL },  { 50, ANY, do_downgrade, NULL },
	{ 70, ANY, do_lock, NULL },   { 60, ANY, do_unlock, NULL },
	{ 40, MET, do_test, NULL },   { 50, ANY, do_io, NULL },
	{ 180, ANY, NULL, do_leave }, { 30, HELD, NULL, do_return },
	{ 50, MET, NULL, do_look },   { 60, HELD, NULL, do_use_delegated },
	{ 20, MET, NULL, do_change }, { 20, MET, NULL, do_peek },
};

/* Looks for a delegation; changes nothing if there is none. */
static void find_delegated(enum where where, int *c, int *file)
{
	const int from = (int)chance(CLIENTS * FILES);

	for (int i = 0; i < CLIENTS * FILES; i++) {
		const int at = (from + i) % (CLIENTS * FILES);

		if (!model.client[at / FILES].deleg[at % FILES].is)
			continue;
		*file = at % FILES;
		if (where == HELD)
			*c = at / FILES;
		return;
	}
}

static void one_step(void)
{
	int c = (int)chance(CLIENTS), file = (int)chance(FILES);
	const int o = (int)chance(OWNERS);
	uint32_t what = chance(1000);
	unsigned i = 0;

	if (what < 4) {
		do_restart();
		return;
	}
	for (what = chance(1000); what >= steps[i].weight; i++)
		what -= steps[i].weight;
	if (steps[i].where != ANY)
		find_delegated(steps[i].where, &c, &file);
	if (model.client[c].away || model.client[c].lost) {
		if (chance(4) == 0)
			back(c);
	} else if (chance(200) == 0) {
		do_expire(c);
	} else if (steps[i].step) {
		steps[i].step(c, o, file);
	} else {
		steps[i].file_step(c, file);
	}
	forget_losses();
}

static int number(const char *name, int otherwise)
{
	const char *s = getenv(name);

	return s ? atoi(s) : otherwise;
}

/* Ends all clients; no state may be left. */
static void end_all(void)
{
	struct nfs4_held held;

	for (int c = 0; c < CLIENTS; c++) {
		if (model.client[c].away || model.client[c].lost)
			back(c);
		for (int file = 0; file < FILES; file++) {
			for (int o = 0; o < OWNERS; o++)
				do_close(c, o, file);
			while (model.client[c].deleg[file].is)
				do_return(c, file);
		}
	}
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.opens, 0);
	cr_expect_eq(held.locks, 0);
	cr_expect_eq(held.delegations, 0);
}

static void print_counts(void)
{
	const struct model_counts *n = &model.n;

	printf("nfs4_model: delegations: %u to read, %u to write, %u without an open, %u claimed, "
	       "%u reclaimed, %u recalled, %u revoked; %u clients lost their state\n",
	       n->to_read, n->to_write, n->alone, n->claimed, n->reclaimed, n->recalls, n->revoked,
	       n->lost);
	printf("nfs4_model: met by %u opens, %u changes, %u looks; asked %u times, modified %u, "
	       "refused %u\n",
	       n->met_by_open, n->met_by_change, n->met_by_look, n->asked, n->modified, n->refused);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void answer_meanwhile(struct fixture *fx)
{
	(void)fx;
	answer_calls();
}

/* A server whose records survive restarts. No file is kept from a delegation after a recall. */
static void begin(void)
{
	model.f = f;
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	snprintf(f->state_dir, sizeof(f->state_dir), "/dev/shm/ringnfs-model-XXXXXX");
	cr_assert(mkdtemp(f->state_dir));
	start_server();
	cbs_on(f);
	f->on_wait = answer_meanwhile;
	vfs_export_set_nfs_only(f->exp[0], true);
	f->vfs->cfg.deleg_quiet_seconds = 0;
	for (int i = 0; i < FILES; i++) {
		make_file(file_name[i], "0123456789abcdef", 0666);
		model.file[i] = (struct model_file){ .name = file_name[i],
						     .fh = handle(file_name[i]),
						     .size = BYTES };
	}
	for (int i = 0; i < CLIENTS; i++) {
		struct model_client *mc = &model.client[i];

		mc->minor = (uint32_t)(i + 1) % 3;
		snprintf(mc->name, sizeof(mc->name), "client%d", i);
		register_client(mc);
	}
}

Test(nfs4_model, what_clients_hold_is_what_the_model_says)
{
	const int most = number("MODEL_STEPS", 10000);

	NEED_FIXTURE();
	model.seed = (unsigned)number("MODEL_SEED", (int)getpid());
	printf("nfs4_model: MODEL_SEED=%u\n", model.seed);
	begin();
	for (model.step = 0; model.step < most; model.step++)
		one_step();
	end_all();
	print_counts();
	stop_server();
	cr_expect_eq(nftw(f->state_dir, remove_one, 4, FTW_DEPTH | FTW_PHYS), 0);
}
