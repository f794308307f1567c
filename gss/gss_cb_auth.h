/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls to clients under RPCSEC_GSS: struct rpc_cb_auth. */
#ifndef RN_GSS_GSS_CB_AUTH_H
#define RN_GSS_GSS_CB_AUTH_H

#include "gss/gss_private.h"
#include "rpc/backchannel.h"
#include "rpc/security.h"

/* The security of calls by an established context, of which it takes a reference. ends_ns: the context's end, by CLOCK_MONOTONIC.
 * handle: the client's, for calls to it. NULL: there is no
 * such service, the handle is too long, or there is no memory. */
struct rpc_cb_auth *gss_cb_auth_new(struct gss_context *x, uint32_t service, uint64_t ends_ns,
				    const uint8_t *handle, uint32_t len);

/* For rpc_security.offered. */
struct rpc_cb_auth *gss_cb_auth_offered(void *ctx, const struct rpc_cb_auth_offer *o);

/* gss/cb_init.c: security whose first call establishes the context with `to`. Takes over mech, and the token that is first
 * sent. NULL: no memory. */
struct rpc_cb_auth *gss_cb_init_new(struct gss_mech_ctx *mech, struct gss_mech_step *first,
				    const struct rpc_principal *to, uint32_t service);

/* gss/initiate.c: for rpc_security.initiate. */
bool gss_initiate(void *ctx, struct rpc_cb_initiation *init);

#endif
