/* SPDX-License-Identifier: BSD-2-Clause */
/* Locks in the model. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/nfs4_model.h"

/* Sets m->hit for clients with locks that conflict with one by that lock-owner. */
static void lock_hits(struct meeting *m, int l, const struct op_range *r)
{
	const uint64_t to = r->offset + r->length;

	if (m->want != NFS4_OK)
		return;
	for (int i = 0; i < CLIENTS; i++) {
		for (int k = 0; k < LOCKERS; k++) {
			for (uint64_t b = r->offset; b < to && !(i == m->c && k == l); b++) {
				uint8_t has = model.client[i].lock[k][m->file].byte[b];

				m->hit[i] |= has != 0 && (has == 2 || r->type == 2);
			}
		}
	}
	if (somebody_lives(m->hit))
		m->want = NFS4ERR_DENIED;
}

static struct op_range random_range(void)
{
	const uint32_t from = chance(BYTES), to = from + 1 + chance(BYTES - from);

	return (struct op_range){ .type = 1 + chance(2), .offset = from, .length = to - from };
}

struct locking {
	struct model_client *mc;
	int l, o, file;
	struct op_range range;
};

static uint32_t send_lock(void *arg)
{
	const struct locking *k = arg;
	struct model_lock *m = &k->mc->lock[k->l][k->file];
	struct op_file *opened = &k->mc->open[k->o][k->file].file;
	struct op_owner *locker = &k->mc->locker[k->l];

	if (m->is)
		return op_lock(model.f, locker, &opened->fh, &k->range, &m->sid, NULL);
	return op_lock_first(model.f, &k->mc->owner[k->o], locker, opened, &k->range, &m->sid,
			     NULL);
}

/* Delegations of others are in nobody's way: their holders would have had to return them before the
 * file was opened. */
void do_lock(int c, int l, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_lock *m = &mc->lock[l][file];
	struct meeting meeting = { .c = c, .file = file };
	struct locking k = { .mc = mc, .l = l, .file = file, .range = random_range() };
	const struct model_open *opened;

	k.o = m->is ? m->opener : (int)chance(OWNERS);
	opened = &mc->open[k.o][file];
	if (!opened->is)
		return;
	if (!(opened->access & k.range.type))
		meeting.want = NFS4ERR_OPENMODE;
	lock_hits(&meeting, l, &k.range);
	go_through(&meeting, send_lock, &k, "LOCK");
	if (meeting.want != NFS4_OK)
		return;
	m->is = true;
	m->opener = k.o;
	memset(m->byte + k.range.offset, (int)k.range.type, k.range.length);
}

void do_unlock(int c, int l, int file)
{
	struct model_client *mc = &model.client[c];
	struct model_lock *m = &mc->lock[l][file];
	struct op_range r = random_range();

	r.type = 1;
	if (!m->is)
		return;
	cr_assert_eq(op_unlock(model.f, &mc->locker[l], &model.file[file].fh, &r, &m->sid), NFS4_OK,
		     "step %d", model.step);
	memset(m->byte + r.offset, 0, r.length);
}

static uint32_t send_lockt(void *arg)
{
	const struct locking *k = arg;

	return op_lockt(model.f, &k->mc->locker[k->l], &model.file[k->file].fh, &k->range, NULL);
}

/* The holder of a delegation may have locked the file by itself, so that is asked before. */
void do_test(int c, int l, int file)
{
	struct meeting meeting = { .c = c, .file = file };
	struct locking k = {
		.mc = &model.client[c], .l = l, .file = file, .range = random_range()
	};

	meet_delegs(&meeting, k.range.type == 2);
	lock_hits(&meeting, l, &k.range);
	go_through(&meeting, send_lockt, &k, "LOCKT");
}
