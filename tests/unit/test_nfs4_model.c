/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random opens, locks, closes, expirations and restarts of clients of all minor versions, compared
 * with a simple model: shares as bits, locks as one byte for each byte of the file. Every status
 * and every tested lock must match the model. MODEL_SEED repeats a run, MODEL_STEPS makes it
 * longer.
 */
#include <ftw.h>
#include <stdlib.h>

#include "nfs4/client/client.h"
#include "nfs4/client/registry.h"
#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/server.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_model);

#define CLIENTS 4
#define OWNERS 2
#define LOCKERS 2
#define FILES 3
#define BYTES 16u

/* One open-owner's open of a file. */
struct model_open {
	bool is;
	uint32_t access, deny;
	uint32_t combinations; /* set of bits access * 4 + deny */
	struct op_file file;
};

/* Locks of a lock-owner on a file. */
struct model_lock {
	bool is; /* the owner has a stateid */
	int opener;
	struct nfs4_stateid sid;
	uint8_t byte[BYTES]; /* 0: none, 1: read, 2: write */
};

static struct model_client {
	struct op_client client;
	uint32_t minor;
	bool lost; /* the lease ran out and a conflict ended the state */
	bool away; /* the lease ran out */
	char name[32], owner_name[OWNERS][32], locker_name[LOCKERS][32];
	struct op_owner owner[OWNERS], locker[LOCKERS];
	struct model_open open[OWNERS][FILES];
	struct model_lock lock[LOCKERS][FILES];
} clients[CLIENTS];

static struct vfs_fh file_fh[FILES];
static const char *const file_name[FILES] = { "a", "b", "c" };
static unsigned seed;
static int step;

static uint32_t chance(uint32_t n)
{
	return (uint32_t)rand_r(&seed) % n;
}

static void drop_model(struct model_client *c)
{
	memset(c->open, 0, sizeof(c->open));
	memset(c->lock, 0, sizeof(c->lock));
}

static void register_client(struct model_client *c)
{
	int i = (int)(c - clients);

	cr_assert_eq(op_client_new(f, &c->client, c->minor, c->name), NFS4_OK, "step %d", step);
	for (int o = 0; o < OWNERS; o++) {
		snprintf(c->owner_name[o], sizeof(c->owner_name[o]), "open%d.%d", i, o);
		c->owner[o] = (struct op_owner){ &c->client, c->owner_name[o], chance(1000) };
	}
	for (int l = 0; l < LOCKERS; l++) {
		snprintf(c->locker_name[l], sizeof(c->locker_name[l]), "lock%d.%d", i, l);
		c->locker[l] = (struct op_owner){ &c->client, c->locker_name[l], chance(1000) };
	}
	c->lost = c->away = false;
}

/* Marks clients that lost their state; each must have been in conflict, as hit[] says. */
static void see_who_lost(const bool hit[CLIENTS])
{
	struct nfs4_client *cl;

	for (int i = 0; i < CLIENTS; i++) {
		struct model_client *c = &clients[i];
		bool gone = true;

		if (!c->away || c->lost)
			continue;
		cl = nfs4_client_by_number(f->server4, (uint32_t)c->client.clientid);
		if (cl)
			gone = nfs4_client_status(cl) != NFS4_CLIENT_COURTESY &&
			       nfs4_client_status(cl) != NFS4_CLIENT_ACTIVE;
		nfs4_client_put(cl);
		if (!gone)
			continue;
		cr_assert(hit[i], "step %d: client %d lost its state and was in nobody's way", step,
			  i);
		drop_model(c);
		c->lost = true;
	}
}

static bool somebody_lives(const bool hit[CLIENTS])
{
	for (int i = 0; i < CLIENTS; i++) {
		if (hit[i] && !clients[i].away)
			return true;
	}
	return false;
}

/* Sets hit[] for clients with opens that conflict with an open by that owner. */
static void share_hits(int c, int o, int file, uint32_t access, uint32_t deny, bool hit[CLIENTS])
{
	(void)c;
	(void)o; /* the owner's own open counts, too */
	memset(hit, 0, CLIENTS * sizeof(*hit));
	for (int i = 0; i < CLIENTS; i++) {
		for (int k = 0; k < OWNERS; k++) {
			const struct model_open *m = &clients[i].open[k][file];

			hit[i] |= m->is && ((access & m->deny) || (deny & m->access));
		}
	}
}

/* True while the record of a client that loses its state is being removed from the disk. */
static bool delayed(uint32_t status)
{
	if (status == NFS4ERR_DELAY)
		usleep(300);
	return status == NFS4ERR_DELAY;
}

static void do_open(int c, int o, int file)
{
	struct model_client *mc = &clients[c];
	struct model_open *m = &mc->open[o][file];
	const uint32_t access = 1 + chance(3), deny = chance(3) ? 0 : chance(4);
	const struct op_how how = {
		.fh = &f->root, .name = file_name[file], .access = access, .deny = deny
	};
	struct op_file got;
	bool hit[CLIENTS];
	uint32_t status;

	share_hits(c, o, file, access, deny, hit);
	do {
		status = op_open(f, &mc->owner[o], &how, &got);
	} while (delayed(status));
	see_who_lost(hit);
	cr_assert_eq(status, somebody_lives(hit) ? NFS4ERR_SHARE_DENIED : NFS4_OK,
		     "step %d: open %d/%d/%d for %u/%u: %u", step, c, o, file, access, deny,
		     status);
	if (status != NFS4_OK)
		return;
	m->is = true;
	m->access |= access;
	m->deny |= deny;
	m->combinations |= 1u << (access * 4 + deny);
	m->file = got;
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
	struct model_client *mc = &clients[c];
	struct model_open *m = &mc->open[o][file];

	if (!m->is)
		return;
	cr_assert_eq(op_close(f, &mc->owner[o], &m->file), NFS4_OK, "step %d", step);
	memset(m, 0, sizeof(*m));
	forget_locks(mc, o, file);
}

static void do_downgrade(int c, int o, int file)
{
	struct model_client *mc = &clients[c];
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
		     "step %d: downgrade to %u/%u: %u", step, access, deny, status);
	if (status != NFS4_OK)
		return;
	m->access = access;
	m->deny = deny;
	m->combinations = left;
}

/* Sets hit[] for clients with locks that conflict with one by that lock-owner. *at: the lowest
 * byte. */
static void lock_hits(int c, int l, int file, const struct op_range *r, bool hit[CLIENTS])
{
	const uint64_t to = r->offset + r->length;

	memset(hit, 0, CLIENTS * sizeof(*hit));
	for (int i = 0; i < CLIENTS; i++) {
		for (int k = 0; k < LOCKERS; k++) {
			for (uint64_t b = r->offset; b < to && !(i == c && k == l); b++) {
				uint8_t has = clients[i].lock[k][file].byte[b];

				hit[i] |= has != 0 && (has == 2 || r->type == 2);
			}
		}
	}
}

static void do_lock(int c, int l, int file)
{
	struct model_client *mc = &clients[c];
	struct model_lock *m = &mc->lock[l][file];
	const uint32_t from = chance(BYTES), to = from + 1 + chance(BYTES - from);
	const struct op_range r = { .type = 1 + chance(2), .offset = from, .length = to - from };
	int o = m->is ? m->opener : (int)chance(OWNERS);
	struct model_open *opened = &mc->open[o][file];
	bool hit[CLIENTS];
	uint32_t status, want = NFS4_OK;

	if (!opened->is)
		return;
	lock_hits(c, l, file, &r, hit);
	do {
		if (m->is)
			status = op_lock(f, &mc->locker[l], &opened->file.fh, &r, &m->sid, NULL);
		else
			status = op_lock_first(f, &mc->owner[o], &mc->locker[l], &opened->file, &r,
					       &m->sid, NULL);
	} while (delayed(status));
	see_who_lost(hit);
	if (!(opened->access & r.type))
		want = NFS4ERR_OPENMODE;
	else if (somebody_lives(hit))
		want = NFS4ERR_DENIED;
	cr_assert_eq(status, want, "step %d: lock %d/%d/%d type %u of %u..%u: %u, not %u", step, c,
		     l, file, r.type, from, to, status, want);
	if (status != NFS4_OK)
		return;
	m->is = true;
	m->opener = o;
	memset(m->byte + from, (int)r.type, to - from);
}

static void do_unlock(int c, int l, int file)
{
	struct model_client *mc = &clients[c];
	struct model_lock *m = &mc->lock[l][file];
	const uint32_t from = chance(BYTES), to = from + 1 + chance(BYTES - from);
	const struct op_range r = { .type = 1, .offset = from, .length = to - from };

	if (!m->is)
		return;
	cr_assert_eq(op_unlock(f, &mc->locker[l], &file_fh[file], &r, &m->sid), NFS4_OK, "step %d",
		     step);
	memset(m->byte + from, 0, to - from);
}

static void do_test(int c, int l, int file)
{
	struct model_client *mc = &clients[c];
	const uint32_t from = chance(BYTES), to = from + 1 + chance(BYTES - from);
	const struct op_range r = { .type = 1 + chance(2), .offset = from, .length = to - from };
	bool hit[CLIENTS];
	uint32_t status;

	lock_hits(c, l, file, &r, hit);
	do {
		status = op_lockt(f, &mc->locker[l], &file_fh[file], &r, NULL);
	} while (delayed(status));
	see_who_lost(hit);
	cr_assert_eq(status, somebody_lives(hit) ? NFS4ERR_DENIED : NFS4_OK, "step %d: test: %u",
		     step, status);
}

static void do_io(int c, int o, int file)
{
	struct model_open *m = &clients[c].open[o][file];

	if (!m->is)
		return;
	cr_assert_eq(op_write(f, &clients[c].client, &m->file.fh, &m->file.sid),
		     m->access & 2 ? NFS4_OK : NFS4ERR_OPENMODE, "step %d", step);
}

/* Sends an operation that renews the lease. */
static void renew(struct model_client *c)
{
	const struct op_range r = { .type = 1, .offset = 1u << 20, .length = 1 };
	struct op_owner nobody = { &c->client, "nobody", 1 };

	cr_assert_eq(op_lockt(f, &nobody, &file_fh[0], &r, NULL), NFS4_OK, "step %d", step);
	c->away = false;
}

/* Lets one client's lease run out; the others renew theirs. */
static void do_expire(int gone)
{
	for (int round = 0; round < 2; round++) {
		nfs4_clients_skip_time(f->server4, 60);
		for (int i = 0; i < CLIENTS; i++) {
			if (i != gone && !clients[i].away)
				renew(&clients[i]);
		}
	}
	nfs4_tick(f->server4);
	clients[gone].away = true;
}

static void back(int c)
{
	struct model_client *mc = &clients[c];

	if (!mc->lost)
		renew(mc); /* without a conflict nothing has changed */
	else
		register_client(mc);
}

static void reclaim_open(struct model_client *mc, int o, int file)
{
	struct model_open *m = &mc->open[o][file];
	const struct op_how how = {
		.fh = &file_fh[file], .access = m->access, .deny = m->deny, .claim = OP_RECLAIM
	};
	uint32_t status;

	if (!m->is)
		return;
	status = op_open(f, &mc->owner[o], &how, &m->file);
	cr_assert_eq(status, NFS4_OK, "step %d: reclaim of %s's %d/%d for %u/%u: %u", step,
		     mc->name, o, file, m->access, m->deny, status);
	m->combinations = 1u << (m->access * 4 + m->deny);
}

static void reclaim_lock(struct model_client *mc, int l, int file)
{
	struct model_lock *m = &mc->lock[l][file];
	struct model_open *opened = &mc->open[m->opener][file];
	bool was = m->is;

	m->is = false;
	for (uint32_t b = 0; b < BYTES && was; b++) {
		const struct op_range r = {
			.type = m->byte[b], .offset = b, .length = 1, .reclaim = true
		};
		uint32_t status;

		/* After a downgrade of its open a client cannot reclaim the lock: it unlocks. */
		if (m->byte[b] == 0)
			continue;
		if (!(opened->access & m->byte[b])) {
			m->byte[b] = 0;
			continue;
		}
		if (m->is)
			status = op_lock(f, &mc->locker[l], &opened->file.fh, &r, &m->sid, NULL);
		else
			status = op_lock_first(f, &mc->owner[m->opener], &mc->locker[l],
					       &opened->file, &r, &m->sid, NULL);
		cr_assert_eq(status, NFS4_OK, "step %d: reclaim of a lock: %u", step, status);
		m->is = true;
	}
}

static void reclaim(struct model_client *mc)
{
	if (mc->minor > 0) {
		cr_assert_eq(fix4_session_new(f, &mc->client.session, mc->minor, mc->name, false),
			     NFS4_OK);
		mc->client.clientid = mc->client.session.clientid;
	} else {
		cr_assert_eq(fix4_clientid_new(f, mc->name, &mc->client.clientid), NFS4_OK);
	}
	for (int file = 0; file < FILES; file++) {
		for (int o = 0; o < OWNERS; o++)
			reclaim_open(mc, o, file);
		for (int l = 0; l < LOCKERS; l++)
			reclaim_lock(mc, l, file);
	}
	if (mc->minor == 0)
		return;
	fix4_begin(f, &mc->client.session);
	fix4_op(f, OP_RECLAIM_COMPLETE);
	xdr_put_bool(&f->out, false);
	cr_assert_eq(fix4_send(f), NFS4_OK);
}

static void end_grace(void)
{
	for (int i = 0; i < 400 && nfs4_in_grace(f->server4); i++) {
		nfs4_grace_check(f->server4->recovery, nfs4_now() + 1000);
		usleep(500);
	}
	cr_assert_not(nfs4_in_grace(f->server4), "step %d: grace does not end", step);
}

static void do_restart(void)
{
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
	for (int i = 0; i < CLIENTS; i++) {
		if (clients[i].lost || clients[i].away) {
			drop_model(&clients[i]); /* the client does not come back in time */
			clients[i].lost = clients[i].away = true;
		} else {
			reclaim(&clients[i]);
		}
	}
	end_grace();
}

static void one_step(void)
{
	const int c = (int)chance(CLIENTS), o = (int)chance(OWNERS), file = (int)chance(FILES);
	const uint32_t what = chance(1000);

	if (what < 8) {
		do_restart();
		return;
	}
	if (clients[c].away || clients[c].lost) {
		if (chance(4) == 0)
			back(c);
		return;
	}
	if (what < 16)
		do_expire(c);
	else if (what < 250)
		do_open(c, o, file);
	else if (what < 320)
		do_close(c, o, file);
	else if (what < 400)
		do_downgrade(c, o, file);
	else if (what < 650)
		do_lock(c, o, file);
	else if (what < 800)
		do_unlock(c, o, file);
	else if (what < 900)
		do_test(c, o, file);
	else
		do_io(c, o, file);
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
		if (clients[c].away || clients[c].lost)
			back(c);
		for (int file = 0; file < FILES; file++) {
			for (int o = 0; o < OWNERS; o++)
				do_close(c, o, file);
		}
	}
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.opens, 0);
	cr_expect_eq(held.locks, 0);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

Test(nfs4_model, what_clients_hold_is_what_the_model_says)
{
	const int steps = number("MODEL_STEPS", 500);

	NEED_FIXTURE();
	seed = (unsigned)number("MODEL_SEED", (int)getpid());
	printf("nfs4_model: MODEL_SEED=%u\n", seed);
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	snprintf(f->state_dir, sizeof(f->state_dir), "/dev/shm/ringnfs-model-XXXXXX");
	cr_assert(mkdtemp(f->state_dir));
	cr_assert_null(fix_start_nfs4(f));
	for (int i = 0; i < FILES; i++) {
		make_file(file_name[i], "0123456789abcdef", 0666);
		file_fh[i] = handle(file_name[i]);
	}
	for (int i = 0; i < CLIENTS; i++) {
		clients[i].minor = (uint32_t)i % 3;
		snprintf(clients[i].name, sizeof(clients[i].name), "client%d", i);
		register_client(&clients[i]);
	}
	for (step = 0; step < steps; step++)
		one_step();
	end_all();
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_expect_eq(nftw(f->state_dir, remove_one, 4, FTW_DEPTH | FTW_PHYS), 0);
}
