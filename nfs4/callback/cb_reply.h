/* SPDX-License-Identifier: BSD-2-Clause */
/* The results of a CB_COMPOUND. */
#ifndef RN_NFS4_CALLBACK_CB_REPLY_H
#define RN_NFS4_CALLBACK_CB_REPLY_H

#include "nfs4/callback/cb_slots.h"

struct nfs4_cb_answer {
	int rc;		 /* as for nfs4_cb_op.done */
	uint32_t status; /* status of the operation, or of CB_SEQUENCE alone */
	enum nfs4_cb_fate fate;
	enum nfs4_cb_news news;
	bool has_highest; /* the client has said which slots it accepts */
	uint32_t highest;
};

/* Reads x up to the body of the operation's result. */
void nfs4_cb_read_answer(const struct nfs4_cb *cb, struct xdr_in *x, struct nfs4_cb_answer *out);
/* The same in minor version 0, where there is no slot: sets rc and status only. */
void nfs4_cb_read_answer_v40(const struct nfs4_cb *cb, struct xdr_in *x,
			     struct nfs4_cb_answer *out);

#endif
