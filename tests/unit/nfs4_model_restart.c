/* SPDX-License-Identifier: BSD-2-Clause */
/* Restarts in the model: the clients that are there reclaim what they had. */
#include <criterion/criterion.h>
#include <string.h>
#include <unistd.h>

#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_model.h"

/* The clients as they were before the restart. */
static struct model_client was[CLIENTS];

/* Nobody waits any more for the answers of clients that are away. */
void stop_server(void)
{
	cbs_time_out(model.f);
	nfs4_server_free(model.f->server4);
	model.f->server4 = NULL;
}

void start_server(void)
{
	cr_assert_null(fix_start_nfs4(model.f));
	model.f->server4->cfg.delegations = true;
}

/* The holder of a write delegation still has what it has changed by itself. */
static void keep_changes(struct model_deleg *d, const struct model_deleg *old)
{
	if (!old->writes)
		return;
	d->changes = old->changes;
	d->size = old->size;
}

static void check_delegation(int c, int file, const struct model_deleg *old, uint32_t got)
{
	const bool given = got == OPEN_DELEGATE_READ || got == OPEN_DELEGATE_WRITE;
	const bool may = old->is && !old->revoked && deleg_may_be_given(c, file, old->writes);
	const enum model_reclaim reclaim = model.client[c].reclaim;

	if (given)
		cr_assert(may && reclaim != LOST_ONE, "step %d: client %d, file %d: one too many",
			  model.step, c, file);
	else
		cr_assert(!may || reclaim != MAY_RECLAIM, "step %d: client %d, file %d: none",
			  model.step, c, file);
	model.n.reclaimed += given;
	if (given)
		cr_assert_eq(got, old->writes ? OPEN_DELEGATE_WRITE : OPEN_DELEGATE_READ);
}

static void reclaim_open(int c, int o, int file)
{
	struct model_client *mc = &model.client[c];
	const struct model_deleg *old = &was[c].deleg[file];
	struct model_open *m = &mc->open[o][file];
	struct op_how how = {
		.fh = &model.file[file].fh,
		.claim = OP_RECLAIM,
		.delegation = OPEN_DELEGATE_NONE,
	};
	uint32_t status;

	*m = was[c].open[o][file];
	if (!m->is)
		return;
	how.access = m->access;
	how.deny = m->deny;
	if (old->is && !old->revoked)
		how.delegation = old->writes ? OPEN_DELEGATE_WRITE : OPEN_DELEGATE_READ;
	status = op_open(model.f, &mc->owner[o], &how, &m->file);
	cr_assert_eq(status, NFS4_OK, "step %d: reclaim of %d/%d/%d for %u/%u: %u", model.step, c,
		     o, file, m->access, m->deny, status);
	m->combinations = 1u << (m->access * 4 + m->deny);
	check_delegation(c, file, old, m->file.delegation);
	note_deleg(c, file, &m->file);
	if (m->file.delegation == OPEN_DELEGATE_WRITE)
		keep_changes(&mc->deleg[file], old);
}

static void reclaim_lock(struct model_client *mc, int l, int file)
{
	struct model_lock *m = &mc->lock[l][file];
	struct model_open *opened = &mc->open[m->opener][file];
	bool had = m->is;

	m->is = false;
	for (uint32_t b = 0; b < BYTES && had; b++) {
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
			status = op_lock(model.f, &mc->locker[l], &opened->file.fh, &r, &m->sid,
					 NULL);
		else
			status = op_lock_first(model.f, &mc->owner[m->opener], &mc->locker[l],
					       &opened->file, &r, &m->sid, NULL);
		cr_assert_eq(status, NFS4_OK, "step %d: reclaim of a lock: %u", model.step, status);
		m->is = true;
	}
}

/* A client without a path back gets no delegation, so the probe is answered first. */
static void come_back(struct model_client *mc)
{
	struct op_client *c = &mc->client;

	if (mc->minor == 0) {
		cr_assert_eq(fix4_clientid_new(model.f, mc->name, &c->clientid), NFS4_OK);
		return;
	}
	cr_assert_eq(fix4_session_new(model.f, &c->session, mc->minor, mc->name, false), NFS4_OK);
	c->clientid = c->session.clientid;
	cr_assert_neq(cbs_sequence(model.f, &c->session), UINT32_MAX);
	answer_calls();
}

/* A delegation without an open is not reclaimed. */
static void reclaim(int c)
{
	struct model_client *mc = &model.client[c];

	come_back(mc);
	for (int file = 0; file < FILES; file++) {
		for (int o = 0; o < OWNERS; o++)
			reclaim_open(c, o, file);
		for (int l = 0; l < LOCKERS; l++) {
			mc->lock[l][file] = was[c].lock[l][file];
			reclaim_lock(mc, l, file);
		}
	}
	if (mc->reclaim == LOST_ONE)
		mc->reclaim = UNKNOWN;
	if (mc->minor == 0)
		return;
	fix4_begin(model.f, &mc->client.session);
	fix4_op(model.f, OP_RECLAIM_COMPLETE);
	xdr_put_bool(&model.f->out, false);
	cr_assert_eq(fix4_send(model.f), NFS4_OK);
	answer_calls();
}

static void end_grace(void)
{
	for (int i = 0; i < 4000 && nfs4_in_grace(model.f->server4); i++) {
		nfs4_grace_check(model.f->server4->recovery, nfs4_now() + 1000);
		usleep(500);
	}
	cr_assert_not(nfs4_in_grace(model.f->server4), "step %d: grace does not end", model.step);
}

void do_restart(void)
{
	stop_server();
	start_server();
	memcpy(was, model.client, sizeof(was));
	for (int c = 0; c < CLIENTS; c++)
		drop_model(&model.client[c]);
	for (int c = 0; c < CLIENTS; c++) {
		if (model.client[c].lost || model.client[c].away)
			model.client[c].lost = model.client[c].away = true; /* not back in time */
		else
			reclaim(c);
	}
	end_grace();
}
