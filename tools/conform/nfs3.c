/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of NFSv3 and MOUNT: RFC 1813 sections 3.3 and 5.2. */
#include "tools/conform/nfs3.h"

#include <stdio.h>
#include <string.h>

struct cf_call *cf3_new(struct cf_test *t, uint32_t proc)
{
	return cf_call_new(t, CF_PROG_NFS, 3, proc);
}

void cf_put_fh(struct xdr_out *x, const struct cf_fh *fh)
{
	xdr_put_opaque(x, fh->data, fh->len);
}

void cf_get_fh(struct xdr_in *x, struct cf_fh *fh)
{
	const uint8_t *p = xdr_get_opaque(x, CF_FH_MAX, &fh->len);

	if (p)
		memcpy(fh->data, p, fh->len);
}

static struct cf_call *with_fh(struct cf_test *t, uint32_t proc, const struct cf_fh *fh)
{
	struct cf_call *c = cf3_new(t, proc);

	cf_put_fh(&c->rpc, fh);
	return c;
}

static struct cf_call *with_name(struct cf_test *t, uint32_t proc, const struct cf_fh *dir,
				 const char *name)
{
	struct cf_call *c = with_fh(t, proc, dir);

	xdr_put_opaque(&c->rpc, name, strlen(name));
	return c;
}

/* sattr3: nothing but a mode. */
static void put_mode(struct xdr_out *x, uint32_t mode)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, mode);
	for (int i = 0; i < 5; i++)
		xdr_put_u32(x, 0); /* uid, gid, size, atime, mtime: not set */
}

struct cf_call *cf3_null(struct cf_test *t)
{
	return cf_call_new_none(t, CF_PROG_NFS, 3, CF3_NULL);
}

struct cf_call *cf3_getattr(struct cf_test *t, const struct cf_fh *fh)
{
	return with_fh(t, CF3_GETATTR, fh);
}

struct cf_call *cf3_setattr_mode(struct cf_test *t, const struct cf_fh *fh, uint32_t mode)
{
	struct cf_call *c = with_fh(t, CF3_SETATTR, fh);

	put_mode(&c->rpc, mode);
	xdr_put_u32(&c->rpc, 0); /* no guard */
	return c;
}

struct cf_call *cf3_lookup(struct cf_test *t, const struct cf_fh *dir, const char *name)
{
	return with_name(t, CF3_LOOKUP, dir, name);
}

struct cf_call *cf3_read(struct cf_test *t, const struct cf_fh *fh, uint64_t off, uint32_t count)
{
	struct cf_call *c = with_fh(t, CF3_READ, fh);

	xdr_put_u64(&c->rpc, off);
	xdr_put_u32(&c->rpc, count);
	return c;
}

struct cf_call *cf3_write(struct cf_test *t, const struct cf_fh *fh, uint64_t off, uint32_t count,
			  const void *data)
{
	struct cf_call *c = with_fh(t, CF3_WRITE, fh);

	xdr_put_u64(&c->rpc, off);
	xdr_put_u32(&c->rpc, count);
	xdr_put_u32(&c->rpc, CF3_FILE_SYNC);
	xdr_put_u32(&c->rpc, count); /* length of the opaque data */
	if (data) {
		cf_call_room(t, c, count);
		xdr_put_fixed(&c->rpc, data, count);
	}
	return c;
}

struct cf_call *cf3_create(struct cf_test *t, const struct cf_fh *dir, const char *name,
			   uint32_t how)
{
	struct cf_call *c = with_name(t, CF3_CREATE, dir, name);

	xdr_put_u32(&c->rpc, how);
	put_mode(&c->rpc, 0644);
	return c;
}

struct cf_call *cf3_remove(struct cf_test *t, const struct cf_fh *dir, const char *name)
{
	return with_name(t, CF3_REMOVE, dir, name);
}

struct cf_call *cf3_rmdir(struct cf_test *t, const struct cf_fh *dir, const char *name)
{
	return with_name(t, CF3_RMDIR, dir, name);
}

struct cf_call *cf3_rename(struct cf_test *t, const struct cf_fh *dir, const char *from,
			   const char *to)
{
	struct cf_call *c = with_name(t, CF3_RENAME, dir, from);

	cf_put_fh(&c->rpc, dir);
	xdr_put_opaque(&c->rpc, to, strlen(to));
	return c;
}

struct cf_call *cf3_mkdir(struct cf_test *t, const struct cf_fh *dir, const char *name)
{
	struct cf_call *c = with_name(t, CF3_MKDIR, dir, name);

	put_mode(&c->rpc, 0755);
	return c;
}

struct cf_call *cf3_readdir(struct cf_test *t, const struct cf_fh *dir, uint32_t count)
{
	struct cf_call *c = with_fh(t, CF3_READDIR, dir);

	xdr_put_u64(&c->rpc, 0); /* cookie */
	xdr_put_u64(&c->rpc, 0); /* verifier */
	xdr_put_u32(&c->rpc, count);
	return c;
}

struct cf_call *cf3_readdirplus(struct cf_test *t, const struct cf_fh *dir, uint32_t dircount,
				uint32_t maxcount)
{
	struct cf_call *c = with_fh(t, CF3_READDIRPLUS, dir);

	xdr_put_u64(&c->rpc, 0);
	xdr_put_u64(&c->rpc, 0);
	xdr_put_u32(&c->rpc, dircount);
	xdr_put_u32(&c->rpc, maxcount);
	return c;
}

struct cf_call *cf3_readlink(struct cf_test *t, const struct cf_fh *fh)
{
	return with_fh(t, CF3_READLINK, fh);
}

struct cf_call *cf3_symlink(struct cf_test *t, const struct cf_fh *dir, const char *name,
			    const char *text, uint32_t len)
{
	struct cf_call *c = with_name(t, CF3_SYMLINK, dir, name);

	put_mode(&c->rpc, 0777);
	xdr_put_u32(&c->rpc, len);
	if (text)
		xdr_put_fixed(&c->rpc, text, len);
	return c;
}

struct cf_call *cf3_fsinfo(struct cf_test *t, const struct cf_fh *fh)
{
	return with_fh(t, CF3_FSINFO, fh);
}

struct cf_call *cf_mount_null(struct cf_test *t)
{
	return cf_call_new_none(t, CF_PROG_MOUNT, 3, 0);
}

struct cf_call *cf_mount_mnt(struct cf_test *t, const char *path)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_MOUNT, 3, 1);

	xdr_put_opaque(&c->rpc, path, strlen(path));
	return c;
}

/* ---- results ----------------------------------------------------------------------------------
 */

bool cf3_status(struct cf_test *t, struct cf_reply *r, uint32_t want)
{
	uint32_t got = xdr_get_u32(&r->x);

	if (r->x.err)
		return cf_fail(t, "results with a status", "none");
	if (got != want) {
		char expected[64];
		snprintf(expected, sizeof(expected), "NFS status %u", want);
		return cf_fail(t, expected, "NFS status %u", got);
	}
	return true;
}

void cf3_skip_post_attr(struct xdr_in *x)
{
	if (xdr_get_bool(x))
		xdr_skip(x, 84);
}

void cf3_skip_wcc(struct xdr_in *x)
{
	if (xdr_get_bool(x))
		xdr_skip(x, 24);
	cf3_skip_post_attr(x);
}

bool cf3_read_result(struct cf_test *t, struct cf_reply *r, bool reduced,
		     struct cf3_read_result *out)
{
	uint32_t len;

	*out = (struct cf3_read_result){ 0 };
	if (!cf3_status(t, r, CF3_OK))
		return false;
	cf3_skip_post_attr(&r->x);
	out->count = xdr_get_u32(&r->x);
	out->eof = xdr_get_bool(&r->x);
	if (reduced) {
		out->data_len = xdr_get_u32(&r->x);
	} else {
		out->data = xdr_get_opaque(&r->x, UINT32_MAX, &len);
		out->data_len = len;
	}
	if (r->x.err || r->x.left)
		return cf_fail(t, "a READ reply that decodes to its end", "%s: %zu bytes are left",
			       r->x.err ? "it is too short" : "it is too long", r->x.left);
	if (out->data_len != out->count)
		return cf_fail(t, "the data's length is the count", "length %u, count %u",
			       out->data_len, out->count);
	return true;
}
