/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/debts.h"

static struct ss_debt *find(struct ss_debts *d, uint32_t xid)
{
	for (unsigned i = d->n; i-- > 0;)
		if (d->list[i].call.xid == xid)
			return &d->list[i];
	return NULL;
}

struct ss_debt *ss_debts_add(struct ss_debts *d, const struct ss_call *call)
{
	struct ss_debt *debt = find(d, call->xid);

	if (!debt) {
		if (d->n == SS_DEBTS_MAX)
			return NULL;
		debt = &d->list[d->n++];
		*debt = (struct ss_debt){ .call = *call };
		d->open++;
	} else if (debt->call.prog != call->prog || debt->call.vers != call->vers ||
		   debt->call.proc != call->proc || debt->call.known != call->known) {
		/* the reply may be to either call, so only its header is checked */
		debt->call.known = false;
		debt->call.prog = UINT32_MAX;
	}
	if (debt->sent) {
		/* The reply may be to either call: only claims of both hold. */
		debt->call.claims &= call->claims;
		if (!ss_who_same(&debt->call.who, &call->who))
			debt->call.who.known = false;
	}
	debt->sent++;
	return debt;
}

struct ss_debt *ss_debts_pay(struct ss_debts *d, uint32_t xid)
{
	struct ss_debt *debt = find(d, xid);

	if (!debt || debt->answered == debt->sent)
		return NULL;
	if (!debt->answered++ && !debt->optional)
		d->open--;
	return debt;
}

void ss_debts_forgive(struct ss_debts *d, struct ss_debt *debt)
{
	if (!debt->optional && !debt->answered)
		d->open--;
	debt->optional = true;
}
