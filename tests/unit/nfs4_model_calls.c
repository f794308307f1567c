/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks in the model, and attributes: the holder of a write delegation is asked for them. */
#include <criterion/criterion.h>
#include <string.h>

#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_model.h"

#define KEPT_MOST 64u

/* The client that is asked for attributes of this file; -1: nobody is. */
static int asked = -1, asked_of;
static bool refuses, was_asked;

static bool somebody_is_lost(void)
{
	for (int i = 0; i < CLIENTS; i++) {
		if (model.client[i].lost)
			return true;
	}
	return false;
}

static struct model_deleg *deleg_of(const struct nfs4_stateid *sid)
{
	for (int i = 0; i < CLIENTS; i++) {
		for (int file = 0; file < FILES; file++) {
			struct model_deleg *d = &model.client[i].deleg[file];

			if (d->is && memcmp(d->sid.other, sid->other, NFS4_OTHER_SIZE) == 0)
				return d;
		}
	}
	return NULL;
}

static void answer_recall(const struct cb_call *call)
{
	struct model_deleg *d = deleg_of(&call->stateid);
	const bool ready = chance(4) > 0;

	cr_assert(d || somebody_is_lost(), "step %d: a recall of no delegation", model.step);
	cr_assert(!d || (d->recalled && !d->revoked), "step %d: no reason to recall", model.step);
	cr_assert(!d || !d->knows, "step %d: recalled again", model.step);
	model.n.recalls += d && !d->told;
	if (d)
		d->told = true;
	if (d && ready)
		d->knows = true;
	cbs_answer(model.f, call, NFS4_OK, ready ? NFS4_OK : NFS4ERR_DELAY);
}

static void answer_question(const struct cb_call *call)
{
	const struct model_client *c = &model.client[asked < 0 ? 0 : asked];
	const struct model_deleg *d = &c->deleg[asked_of];

	cr_assert(asked >= 0 && !was_asked, "step %d: no reason to ask", model.step);
	cr_expect_arr_eq(call->session, c->client.session.id, sizeof(call->session));
	cr_expect_arr_eq(call->fh.data, model.file[asked_of].fh.data, call->fh.len);
	was_asked = true;
	if (refuses)
		cbs_answer(model.f, call, NFS4_OK, NFS4ERR_BADHANDLE);
	else
		cbs_answer_attrs(model.f, call, d->change + d->changes, d->size);
}

static struct model_client *called(const struct cb_call *call)
{
	for (int i = 0; i < CLIENTS; i++) {
		struct model_client *c = &model.client[i];

		if (c->minor > 0 && !c->lost &&
		    memcmp(c->client.session.id, call->session, sizeof(call->session)) == 0)
			return c;
	}
	return NULL;
}

static void answer(const struct cb_call *call)
{
	if (call->nops == 1)
		cbs_answer(model.f, call, NFS4_OK, NFS4_OK);
	else if (call->op == OP_CB_RECALL)
		answer_recall(call);
	else if (call->op == OP_CB_GETATTR)
		answer_question(call);
	else
		cr_assert_fail("step %d: callback %u", model.step, call->op);
}

/* Calls to clients that are away: an answer would renew the lease. */
static struct cb_call kept[KEPT_MOST];
static unsigned nkept;

static void keep(const struct cb_call *call)
{
	cr_assert_lt(nkept, KEPT_MOST);
	kept[nkept++] = *call;
}

void answer_kept_calls(void)
{
	const unsigned n = nkept;

	nkept = 0;
	for (unsigned i = 0; i < n; i++) {
		const struct model_client *c = called(&kept[i]);

		if (c && c->away)
			kept[nkept++] = kept[i];
		else if (c)
			answer(&kept[i]);
	}
}

void answer_calls(void)
{
	const struct model_client *c;
	struct cb_call call;

	while (cbs_take(&call)) {
		c = called(&call);
		if (c && c->away)
			keep(&call);
		else
			answer(&call);
	}
}

/* Attributes that somebody has got, of a file that no holder has modified. */
void check_attrs(int file, const struct fix4_attrs *got)
{
	struct model_file *mf = &model.file[file];

	cr_assert_eq(got->size, mf->size, "step %d: file %d: %zu, not %zu bytes", model.step, file,
		     (size_t)got->size, (size_t)mf->size);
	if (mf->seen && !mf->touched)
		cr_assert_eq(got->change, mf->change, "step %d: file %d: change", model.step, file);
	cr_assert_geq(got->change, mf->change, "step %d: file %d: change", model.step, file);
	mf->change = got->change;
	mf->seen = true;
	mf->touched = false;
}

struct look {
	struct meeting m;
	struct fix4_attrs got;
};

static uint32_t send_getattr(void *arg)
{
	struct look *l = arg;
	struct model_client *mc = &model.client[l->m.c];

	return fix4_getattr(model.f, mc->minor > 0 ? &mc->client.session : NULL,
			    &model.file[l->m.file].fh, &l->got);
}

/* Another client that has the file to write; -1: there is none. */
static int writer(int c, int file)
{
	for (int i = 0; i < CLIENTS; i++) {
		const struct model_deleg *d = &model.client[i].deleg[file];

		if (i != c && d->is && d->writes && !d->revoked)
			return i;
	}
	return -1;
}

/* The holder's answer says whether the file is modified, and stays so. */
static void check_modified(struct model_deleg *d, int file, const struct fix4_attrs *got)
{
	struct model_file *mf = &model.file[file];

	d->modified |= d->changes > 0 || d->size != mf->size;
	if (!d->modified) {
		check_attrs(file, got);
		return;
	}
	model.n.modified++;
	cr_assert_eq(got->size, d->size, "step %d: file %d", model.step, file);
	cr_assert(!mf->seen || got->change > mf->change, "step %d: file %d: change", model.step,
		  file);
	mf->change = got->change;
	mf->seen = true;
	mf->touched = got->size != mf->size; /* behind a size that is not the file's */
}

/* GETATTR: the holder of a write delegation is asked, or is to return it. */
void do_look(int c, int file)
{
	const int by = writer(c, file);
	struct model_deleg *d = by < 0 ? NULL : &model.client[by].deleg[file];
	const bool asks = d && !model.client[by].away && !d->silent;
	struct look l = { .m = { .c = c, .file = file } };

	refuses = asks && chance(8) == 0;
	was_asked = false;
	asked = asks ? by : -1;
	asked_of = file;
	if (d && (refuses || !asks))
		meet_delegs(&l.m, false);
	go_through(&l.m, send_getattr, &l, "GETATTR");
	asked = -1;
	cr_assert_eq(was_asked, asks, "step %d: file %d: asked: %d", model.step, file, was_asked);
	model.n.asked += asks;
	model.n.refused += refuses;
	model.n.met_by_look += l.m.waits;
	if (refuses)
		d->silent = true;
	if (l.m.want != NFS4_OK)
		return;
	if (asks)
		check_modified(d, file, &l.got);
	else
		check_attrs(file, &l.got);
}
