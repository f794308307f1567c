/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sequences of opens, locks and operations that end them, by clients of the three minor versions on
 * real directories. A step is eight bytes: operation, client and owner, slot, and arguments.
 * Stateids and sequence numbers are those that a client would use, unless a step spoils them. The
 * fixture's must() ends the run when a reply is malformed, or when the RFCs do not allow a status
 * for the operation. At the end of a sequence all leases run out, and no open and no lock must be
 * left.
 *
 * With FUZZ_RECORDS, as fuzz_nfs4_reclaim, the server keeps records of its clients. It restarts,
 * and the clients reclaim. Each first OPEN of a client waits until its record is written.
 *
 * Without root inputs are ignored.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "nfs4/nfs4_private.h"
#include "tests/fuzz/real_dirs.h"
#include "tests/unit/nfs4_opens.h"

#define CLIENTS 3
#define OWNERS 2
#define SLOTS 8 /* opens and locks that the driver remembers */
#define STEPS_MAX 64
/* high half of the client byte: another user sends the call with the client's state */
#define BY_OTHER 5
#define OTHER_UID 1001
#define STEP_SIZE 8
#define A_DAY 86400u
#define RECORDS_WAIT_MS 20000
#define RESTARTS_MOST 3 /* in one sequence, because restarts take time */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fixture *f;
static unsigned inputs, restarts;
static const char *const names[] = { "a", "b", "c", "dir", "link", "none", "", ".." };
static const char *const open_names[OWNERS] = { "open0", "open1" };
static const char *const lock_names[OWNERS] = { "lock0", "lock1" };

static struct state {
	struct op_client client[CLIENTS];
	struct op_owner opener[CLIENTS][OWNERS], locker[CLIENTS][OWNERS];
	struct op_file file[SLOTS];
	struct nfs4_stateid lock[SLOTS];
} st;

/* One decoded step. */
struct step {
	uint8_t what;
	int client, owner, slot;
	uint8_t x, y, z, w;
};

#ifdef FUZZ_RECORDS
static char records[] = "/dev/shm/ringnfs-fuzz-XXXXXX";

static int remove_one(const char *path, const struct stat *sb, int type, struct FTW *ftw)
{
	(void)sb;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void remove_records(void)
{
	nftw(records, remove_one, 4, FTW_DEPTH | FTW_PHYS);
}
#endif

static void restart_server(void)
{
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	if (fix_start_nfs4(f) != NULL)
		abort();
}

/* Restarts the server with a fresh directory for client records. */
static void keep_records(void)
{
#ifdef FUZZ_RECORDS
	static bool made;

	if (!made && !mkdtemp(records))
		abort();
	if (!made)
		atexit(remove_records);
	made = true;
	snprintf(f->state_dir, sizeof(f->state_dir), "%s", records);
	restart_server();
#endif
}

static void make_files(void)
{
	for (int i = 0; i < 3; i++)
		close(open(fix_path(f, names[i]), O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK,
			   0666));
	if (mkdir(fix_path(f, "dir"), 0777) < 0 || symlink("a", fix_path(f, "link")) < 0)
		return; /* an earlier input has made them */
}

/* done: the client sends RECLAIM_COMPLETE at once. */
static void register_client(int c, bool done)
{
	struct op_client fresh = { .minor = (uint32_t)c };
	char name[32];
	uint32_t status;

	snprintf(name, sizeof(name), "fuzz%d.%u", c, inputs);
	if (c == 0 || done)
		status = op_client_new(f, &fresh, (uint32_t)c, name);
	else
		status = fix4_session_new(f, &fresh.session, (uint32_t)c, name, false);
	if (c > 0)
		fresh.clientid = fresh.session.clientid;
	/* A client that registers again under the same name keeps its state. */
	if (status != NFS4_OK && status != NFS4ERR_COMPLETE_ALREADY)
		return;
	st.client[c] = fresh;
	for (int o = 0; o < OWNERS; o++) {
		st.opener[c][o] = (struct op_owner){ &st.client[c], open_names[o], 1 };
		st.locker[c][o] = (struct op_owner){ &st.client[c], lock_names[o], 1 };
	}
}

static struct op_range range_of(const struct step *s)
{
	static const uint64_t ends[] = { 0, 1, 8, UINT64_MAX >> 1, UINT64_MAX - 1, UINT64_MAX };
	struct op_range r = { .type = s->x % 5, .offset = s->y, .length = s->z };

	r.reclaim = s->x >= 0xf0;
	if (s->y >= 0xf0)
		r.offset = ends[s->y % 6];
	if (s->z >= 0xf0)
		r.length = ends[s->z % 6];
	return r;
}

static void do_open(const struct step *s)
{
	static const uint32_t wants[] = { 0, 0x100, 0x400, 0x500, 0x600, 0x10000, 4, 0x80000000 };
	struct op_owner *o = &st.opener[s->client][s->owner];
	struct op_file got;
	struct op_how how = { .fh = &f->root, .name = names[s->x % 8] };
	uint32_t status;

	how.access = (s->y % 4) | wants[s->y / 32];
	how.deny = s->y / 4 % 5;
	how.create = (enum op_create)(s->z % 5);
	how.claim = s->z < 0xc0 ? OP_BY_NAME : (enum op_claim)(s->z % 7);
	how.set_size = s->w & 1;
	how.size = s->w & 2 ? 0 : 5;
	how.set_mode = s->w & 4;
	how.mode = 0666;
	if (how.claim == OP_BY_FH || how.claim == OP_RECLAIM)
		how.fh = &st.file[s->w % SLOTS].fh;
	status = s->w & 0x80 ? op_open_only(f, o, &how, &got) : op_open(f, o, &how, &got);
	if (status == NFS4_OK)
		st.file[s->slot] = got;
}

static void do_lock(const struct step *s)
{
	const struct op_range r = range_of(s);
	struct op_owner *o = &st.opener[s->client][s->w & 1];
	struct op_owner *l = &st.locker[s->client][s->owner];
	struct op_file *file = &st.file[s->w / 2 % SLOTS];

	if (s->w & 0x80)
		op_lock(f, l, &file->fh, &r, &st.lock[s->slot], NULL);
	else
		op_lock_first(f, o, l, file, &r, &st.lock[s->slot], NULL);
}

/* Changes state or a sequence number in a way that no proper client does. */
static void spoil(const struct step *s)
{
	struct nfs4_stateid *sid = s->x & 1 ? &st.lock[s->slot] : &st.file[s->slot].sid;

	switch (s->x / 2 % 6) {
	case 0:
		sid->other[s->y % NFS4_OTHER_SIZE] ^= s->z;
		break;
	case 1:
		sid->seqid += (uint32_t)(int8_t)s->z;
		break;
	case 2:
		memset(sid, s->z & 1 ? 0xff : 0, sizeof(*sid));
		break;
	case 3:
		*sid = (struct nfs4_stateid){ .seqid = 1 };
		break;
	case 4:
		st.opener[s->client][s->owner].seqid += (uint32_t)(int8_t)s->z;
		break;
	default:
		st.locker[s->client][s->owner].seqid += (uint32_t)(int8_t)s->z;
	}
}

static void do_stateid(const struct step *s)
{
	struct op_client *c = &st.client[s->client];
	const struct nfs4_stateid *sid = s->x & 1 ? &st.lock[s->slot] : &st.file[s->slot].sid;
	const struct vfs_fh *fh = &st.file[s->y % SLOTS].fh;

	switch (s->x / 2 % 4) {
	case 0:
		op_read(f, c, fh, sid);
		break;
	case 1:
		op_write(f, c, fh, sid);
		break;
	case 2:
		if (c->minor > 0)
			op_free_stateid(f, c, sid);
		else
			op_release_lockowner(f, &st.locker[s->client][s->owner]);
		break;
	default:
		if (c->minor > 0)
			op_test_stateid(f, c, sid);
	}
}

/* Restarts the server; the clients that the step chooses register again and may reclaim their
 * state. */
static void restart(const struct step *s)
{
	if (++restarts > RESTARTS_MOST)
		return;
	restart_server();
	for (int c = 0; c < CLIENTS; c++)
		if (!(s->y & 1 << c))
			register_client(c, s->z & 1 << c);
}

static void end_reclaim(const struct step *s)
{
	struct op_client *c = &st.client[s->client];

	if (c->minor == 0)
		return;
	fix4_begin(f, &c->session);
	if (s->y & 1)
		fix4_putfh(f, &f->root);
	fix4_op(f, OP_RECLAIM_COMPLETE);
	xdr_put_bool(&f->out, s->y & 1);
	fix4_send(f);
}

/* Events outside the clients' calls: time passes, a client restarts, files change. */
static void befall(const struct step *s)
{
	switch (s->x % 9) {
	case 0:
		nfs4_clients_skip_time(f->server4, s->y);
		nfs4_tick(f->server4);
		break;
	case 1:
		register_client(s->client, !(s->y & 1));
		break;
	case 2:
		unlink(fix_path(f, names[s->y % 3]));
		break;
	case 3:
		rename(fix_path(f, names[s->y % 3]), fix_path(f, names[s->z % 3]));
		break;
	case 4:
		make_files();
		break;
	case 5:
		restart(s);
		break;
	case 6:
		end_reclaim(s);
		break;
	case 7:
		nfs4_grace_check(f->server4->recovery, nfs4_now() + s->y);
		break;
	default:
		for (int i = 0; i < s->y % 100; i++)
			nfs4_tick(f->server4);
	}
}

static void run_step(const struct step *s)
{
	struct op_owner *o = &st.opener[s->client][s->owner];
	struct op_owner *l = &st.locker[s->client][s->owner];
	struct op_file *file = &st.file[s->slot];
	const struct op_range r = range_of(s);

	switch (s->what % 16) {
	case 0 ... 3:
		do_open(s);
		break;
	case 4:
		op_close(f, o, file);
		break;
	case 5:
		op_downgrade(f, o, file, s->x, s->y % 5);
		break;
	case 6:
		op_confirm(f, o, file);
		break;
	case 7 ... 9:
		do_lock(s);
		break;
	case 10:
		op_unlock(f, l, &st.file[s->w % SLOTS].fh, &r, &st.lock[s->slot]);
		break;
	case 11:
		op_lockt(f, l, &file->fh, &r, NULL);
		break;
	case 12:
		do_stateid(s);
		break;
	case 13:
	case 14:
		spoil(s);
		break;
	default:
		befall(s);
	}
}

static void begin(void)
{
	restarts = 0;
	make_files();
	for (int i = 0; i < CLIENTS; i++) {
		st.client[i].clientid = 0;
		register_client(i, true);
		if (st.client[i].clientid == 0)
			abort();
	}
	memset(st.lock, 0, sizeof(st.lock));
	for (int i = 0; i < SLOTS; i++)
		st.file[i] = (struct op_file){ .fh = f->root };
}

static bool all_gone(struct nfs4_held *held)
{
	nfs4_held(f->server4, held);
	return held->opens == 0 && held->locks == 0 && held->owners == 0;
}

/* All leases and the courtesy after them run out. State that waits for a client record ends once
 * the record is written. */
static void end(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	struct nfs4_held held;

	nfs4_grace_check(f->server4->recovery, nfs4_now() + A_DAY);
	for (int i = 0; i < 4; i++) {
		nfs4_clients_skip_time(f->server4, A_DAY);
		for (int k = 0; k < 3; k++)
			nfs4_tick(f->server4);
	}
	for (int i = 0; i < RECORDS_WAIT_MS && !all_gone(&held); i++) {
		nanosleep(&pause, NULL);
		nfs4_tick(f->server4);
	}
	if (!all_gone(&held)) {
		fprintf(stderr, "left: %d opens, %d locks, %d owners\n", (int)held.opens,
			(int)held.locks, (int)held.owners);
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool fresh;

	f = fuzz_real_dirs(&fresh);
	if (!f)
		return 0;
	if (fresh)
		keep_records();
	inputs++;
	begin();
	for (size_t at = 0; at + STEP_SIZE <= size && at < STEPS_MAX * STEP_SIZE; at += STEP_SIZE) {
		const uint8_t *p = data + at;
		const struct step s = { .what = p[0],
					.client = p[1] % CLIENTS,
					.owner = p[2] % OWNERS,
					.slot = p[3] % SLOTS,
					.x = p[4],
					.y = p[5],
					.z = p[6],
					.w = p[7] };

		f->uid = p[2] >> 4 == BY_OTHER ? OTHER_UID : 0;
		run_step(&s);
	}
	f->uid = 0;
	end();
	return 0;
}
