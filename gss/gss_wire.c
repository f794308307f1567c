/* SPDX-License-Identifier: BSD-2-Clause */
#include "gss/gss_wire.h"

#include "rpc/xdr_in.h"

bool gss_get_cred(const uint8_t *body, uint32_t len, struct gss_cred *out)
{
	/* The reader does not write to what it reads. */
	const struct rpc_seg seg = { .base = (uint8_t *)(uintptr_t)body, .len = len };
	struct xdr_in x;

	xdr_in_init(&x, &seg, 1, NULL);
	out->version = xdr_get_u32(&x);
	if (x.err || out->version != GSS_VERSION)
		return false;
	out->proc = xdr_get_u32(&x);
	out->seq = xdr_get_u32(&x);
	out->service = xdr_get_u32(&x);
	out->handle = xdr_get_opaque(&x, len, &out->handle_len);
	return !x.err && x.left == 0 && out->proc <= GSS_DESTROY && out->service >= GSS_NONE &&
	       out->service <= GSS_PRIVACY;
}
