/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/callback/cb_recall_slot.h"

#include <stdlib.h>

#include "lib/util.h"
#include "nfs4/callback/callback.h"
#include "nfs4/client/session.h"
#include "nfs4/nfs4_proto.h"

struct slot_recall {
	struct nfs4_cb cb;
	uint32_t highest;
};

static void cb_recall_slot_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	xdr_put_u32(x, rn_container_of(cb, const struct slot_recall, cb)->highest);
}

/* Nothing depends on the answer: the slots are free when the client's next requests show that it knows. */
static void cb_recall_slot_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	(void)rc;
	(void)status;
	(void)results;
	free(rn_container_of(cb, struct slot_recall, cb));
}

static const struct nfs4_cb_op recall_slot_op = {
	.name = "CB_RECALL_SLOT",
	.opnum = OP_CB_RECALL_SLOT,
	.encode = cb_recall_slot_encode,
	.done = cb_recall_slot_done,
};

void nfs4_recall_slots(struct nfs4_session *s, uint32_t highest)
{
	struct slot_recall *r = calloc(1, sizeof(*r));

	if (!r)
		return; /* SEQUENCE's replies say it, too */
	r->highest = highest;
	nfs4_session_ref(s);
	nfs4_cb_start(&r->cb, &recall_slot_op, s);
}
