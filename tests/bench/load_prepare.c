/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls that are encrypted before the measurement, so that a WRITE under krb5p measures the server: encrypting a call takes
 * the load generator as long as decrypting it takes the server.
 */
#include <stdlib.h>
#include "load.h"

void load_prepare(struct load *l)
{
	struct xdr x;

	if (!l->o.prepare)
		return;
	l->prepared = calloc(l->o.prepare, sizeof(*l->prepared));
	if (!l->prepared)
		die("no memory for %u calls", l->o.prepare);
	for (l->nprepared = 0; l->nprepared < l->o.prepare; l->nprepared++) {
		struct call *c = &l->prepared[l->nprepared];

		c->conn = &l->conns[0];
		c->serial = l->nprepared;
		l->job->encode(l, c, &x);
		rpc_end(c, &x);
	}
}

bool load_prepared_left(const struct load *l)
{
	return !l->prepared || l->taken < l->nprepared;
}

bool load_take_prepared(struct load *l, struct call *c)
{
	const struct call *from;

	if (!l->prepared)
		return false;
	from = &l->prepared[l->taken++];
	memcpy(c->head, from->head, from->head_len);
	c->head_len = from->head_len;
	c->data = from->data;
	c->data_len = from->data_len;
	c->xid = from->xid;
	c->gss = from->gss;
	c->gss_seq = from->gss_seq;
	return true;
}

void load_prepared_free(struct load *l)
{
	for (uint32_t i = 0; i < l->nprepared; i++)
		free(l->prepared[i].cipher);
	free(l->prepared);
	l->prepared = NULL;
}
