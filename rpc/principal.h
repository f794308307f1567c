/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The name that a caller has proved under RPCSEC_GSS: the display name of a Kerberos principal,
 * "user@REALM" or "host/name@REALM". Constant and reference-counted; any thread.
 */
#ifndef RN_RPC_PRINCIPAL_H
#define RN_RPC_PRINCIPAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#define RPC_PRINCIPAL_MAX 1024u /* bytes of a name; longer ones are refused */

struct rpc_principal {
	_Atomic unsigned refs;
	size_t len;  /* of the name, without the NUL */
	char name[]; /* no byte of it is 0 */
};

/* One reference. NULL: no memory, or the name is empty, too long or has a byte 0. */
struct rpc_principal *rpc_principal_new(const char *name, size_t len);
/* One more reference to p, which is returned; NULL is allowed. */
const struct rpc_principal *rpc_principal_ref(const struct rpc_principal *p);
void rpc_principal_put(const struct rpc_principal *p); /* NULL is allowed */

/* True if both are the same name, or both NULL. */
bool rpc_principal_is(const struct rpc_principal *a, const struct rpc_principal *b);

#endif
