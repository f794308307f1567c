/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_model.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/state/holdings.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"

#define TRIES 20000 /* of 300 microseconds */

struct model model;

uint32_t chance(uint32_t n)
{
	return (uint32_t)rand_r(&model.seed) % n;
}

void drop_model(struct model_client *c)
{
	memset(c->open, 0, sizeof(c->open));
	memset(c->lock, 0, sizeof(c->lock));
	memset(c->deleg, 0, sizeof(c->deleg));
}

void register_client(struct model_client *c)
{
	int i = (int)(c - model.client);

	cr_assert_eq(op_client_new(model.f, &c->client, c->minor, c->name), NFS4_OK, "step %d",
		     model.step);
	for (int o = 0; o < OWNERS; o++) {
		snprintf(c->owner_name[o], sizeof(c->owner_name[o]), "open%d.%d", i, o);
		c->owner[o] = (struct op_owner){ &c->client, c->owner_name[o], chance(1000) };
	}
	for (int l = 0; l < LOCKERS; l++) {
		snprintf(c->locker_name[l], sizeof(c->locker_name[l]), "lock%d.%d", i, l);
		c->locker[l] = (struct op_owner){ &c->client, c->locker_name[l], chance(1000) };
	}
	c->lost = c->away = c->met = false;
	c->reclaim = MAY_RECLAIM;
	answer_calls();
}

void renew(struct model_client *c)
{
	if (c->minor == 0)
		cr_assert_eq(call_renew(model.f, c->client.clientid), NFS4_OK, "step %d",
			     model.step);
	else
		cr_assert_neq(cbs_sequence(model.f, &c->client.session), UINT32_MAX, "step %d",
			      model.step);
	c->away = c->met = false;
	answer_kept_calls();
	answer_calls();
}

/* True if the server keeps the state of a client that is away. Otherwise waits until it has gone, which
 * is after the client's record. */
static bool is_kept(const struct model_client *c)
{
	struct nfs4_client *cl =
		nfs4_client_by_number(model.f->server4, (uint32_t)c->client.clientid);
	bool kept = false;

	if (cl)
		kept = nfs4_client_status(cl) == NFS4_CLIENT_COURTESY ||
		       nfs4_client_status(cl) == NFS4_CLIENT_ACTIVE;
	for (int i = 0; i < TRIES && cl && !kept && nfs4_client_has_state(cl); i++)
		delayed(NFS4ERR_DELAY);
	nfs4_client_put(cl);
	return kept;
}

void see_who_lost(const bool hit[CLIENTS])
{
	for (int i = 0; i < CLIENTS; i++) {
		struct model_client *c = &model.client[i];

		if (!c->away || c->lost || is_kept(c))
			continue;
		cr_assert(hit[i] || c->met,
			  "step %d: client %d lost its state and was in nobody's way", model.step,
			  i);
		drop_model(c);
		c->lost = true;
		model.n.lost++;
	}
}

bool somebody_lives(const bool hit[CLIENTS])
{
	for (int i = 0; i < CLIENTS; i++) {
		if (hit[i] && !model.client[i].away)
			return true;
	}
	return false;
}

bool delayed(uint32_t status)
{
	if (status != NFS4ERR_DELAY)
		return false;
	usleep(300);
	nfs4_tick(model.f->server4);
	answer_calls();
	return true;
}

/* True if another client's delegation has to be returned before the use. */
static bool is_in_way(const struct meeting *m, int i)
{
	const struct model_deleg *d = &model.client[i].deleg[m->file];

	return i != m->c && d->is && !d->revoked && (m->writes || d->writes);
}

void meet_delegs(struct meeting *m, bool writes)
{
	m->writes = writes;
	m->waits = false;
	if (m->want != NFS4_OK)
		return;
	for (int i = 0; i < CLIENTS; i++) {
		struct model_client *c = &model.client[i];

		if (!is_in_way(m, i))
			continue;
		c->deleg[m->file].recalled = true;
		c->met |= c->away;
		m->hit[i] = true;
		m->waits |= !c->away;
	}
	if (m->waits)
		m->want = NFS4ERR_DELAY;
}

static bool all_are_told(const struct meeting *m)
{
	for (int i = 0; i < CLIENTS; i++) {
		const struct model_client *c = &model.client[i];

		if (!c->away && is_in_way(m, i) && !c->deleg[m->file].told)
			return false;
	}
	return true;
}

void go_through(struct meeting *m, uint32_t (*send)(void *arg), void *arg, const char *what)
{
	uint32_t status;
	int tries = 0;

	do {
		status = send(arg);
		answer_calls();
		cr_assert_lt(++tries, TRIES, "step %d: %s of file %d by %d waits for ever",
			     model.step, what, m->file, m->c);
	} while (!(m->waits && all_are_told(m)) && delayed(status));
	see_who_lost(m->hit);
	cr_assert_eq(status, m->want, "step %d: %s of file %d by %d: %u, not %u", model.step, what,
		     m->file, m->c, status, m->want);
}
