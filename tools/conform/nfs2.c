/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/conform/nfs2.h"

#include <string.h>

#include "tools/conform/nfs3.h"

#define KEEP 0xffffffffu /* a field of sattr that is not to be set */

struct cf_call *cf2_new(struct cf_test *t, uint32_t proc, const struct cf2_fh *fh)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_NFS, 2, proc);

	xdr_put_fixed(&c->rpc, fh->data, CF2_FH);
	return c;
}

void cf2_put_name(struct cf_call *c, const char *name)
{
	xdr_put_opaque(&c->rpc, name, strlen(name));
}

void cf2_put_sattr(struct cf_call *c, uint32_t mode)
{
	xdr_put_u32(&c->rpc, mode);
	for (int i = 0; i < 7; i++) /* uid, gid, size, atime, mtime */
		xdr_put_u32(&c->rpc, KEEP);
}

static bool get_fh(struct cf_test *t, struct cf_reply *r, struct cf2_fh *fh)
{
	if (!cf3_status(t, r, CF3_OK))
		return false;
	xdr_get_fixed(&r->x, fh->data, CF2_FH);
	return !r->x.err || cf_fail(t, "a file handle of 32 bytes", "none");
}

bool cf2_lookup(struct cf_test *t, const struct cf2_fh *dir, const char *name, struct cf2_fh *fh)
{
	struct cf_call *c = cf2_new(t, CF2_LOOKUP, dir);

	cf2_put_name(c, name);
	struct cf_reply *r = cf_ask(t, c);
	return r && get_fh(t, r, fh);
}

static bool cf2_is_there(struct cf_test *t, uint32_t prog, uint32_t vers)
{
	struct cf_reply *r = cf_ask_any(t, cf_call_new_none(t, prog, vers, 0));

	return r && r->h.proc != CF_ERROR && r->accepted && r->accept == CF_SUCCESS;
}

bool cf2_scratch(struct cf_test *t, struct cf2_fh *fh)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_MOUNT, 1, 1);
	struct cf2_fh root;

	if (!cf2_is_there(t, CF_PROG_NFS, 2) || !cf2_is_there(t, CF_PROG_MOUNT, 1))
		return t->verdict == CF_PASS &&
		       cf_skip(t, "NFSv2 and MOUNT 1 are not served over RDMA");
	xdr_put_opaque(&c->rpc, t->run->export_path, strlen(t->run->export_path));
	struct cf_reply *r = cf_ask(t, c);
	return r && get_fh(t, r, &root) && cf2_lookup(t, &root, t->run->scratch_name, fh);
}
