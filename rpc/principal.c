/* SPDX-License-Identifier: BSD-2-Clause */
#include "rpc/principal.h"

#include <stdlib.h>
#include <string.h>

struct rpc_principal *rpc_principal_new(const char *name, size_t len)
{
	struct rpc_principal *p;

	if (len == 0 || len > RPC_PRINCIPAL_MAX || memchr(name, 0, len))
		return NULL;
	p = malloc(sizeof(*p) + len + 1);
	if (!p)
		return NULL;
	atomic_init(&p->refs, 1);
	p->len = len;
	memcpy(p->name, name, len);
	p->name[len] = 0;
	return p;
}

const struct rpc_principal *rpc_principal_ref(const struct rpc_principal *p)
{
	if (p)
		atomic_fetch_add_explicit(&((struct rpc_principal *)p)->refs, 1,
					  memory_order_relaxed);
	return p;
}

void rpc_principal_put(const struct rpc_principal *p)
{
	if (p && atomic_fetch_sub(&((struct rpc_principal *)p)->refs, 1) == 1)
		free((void *)p);
}

bool rpc_principal_is(const struct rpc_principal *a, const struct rpc_principal *b)
{
	if (!a || !b)
		return a == b;
	return a->len == b->len && memcmp(a->name, b->name, a->len) == 0;
}
