/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of NFSv4 calls. The first byte cuts the rest into two segments, the second gives the
 * minor version and the use; then comes a fattr4. Attributes that decode are encoded again and must
 * decode to the same values, within the size computed before. An ACL that is decoded, encoded and
 * decoded again must stay the same, a POSIX ACL, too. A bit of the second byte turns those on.
 */
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/nfs4_attr.h"
#include "nfs4/attr/owner_name.h"
#include "nfs4/attr/source.h"
#include "nfs4/nfs4_private.h"
#include "vfs/base/instance.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct vfs vfs; /* refuses no open */
static struct nfs4_server server;
static struct rpc_request *req;

struct decoding {
	char mem[8192];
	struct rn_arena arena;
	struct xdr_in in;
	struct nfs4_compound c;
	struct nfs4_sattr sa;
};

static bool decode(struct decoding *d, const struct rpc_seg *seg, unsigned n, uint32_t minor)
{
	rn_arena_init(&d->arena, d->mem, sizeof(d->mem));
	xdr_in_init(&d->in, seg, n, &d->arena);
	memset(&d->c, 0, sizeof(d->c));
	d->c.in = &d->in;
	d->c.minor = minor;
	d->c.server = &server;
	d->c.req = req;
	nfs4_get_sattr(&d->c, &d->sa);
	return !d->in.err;
}

/* Fills src as for an object that has the decoded attributes. */
static void to_source(const struct decoding *d, struct nfs4_attr_source *src)
{
	const struct vfs_setattr *set = &d->sa.set;

	memset(src, 0, sizeof(*src));
	src->server = &server;
	src->minor = d->c.minor;
	src->attr.size = set->size;
	src->attr.mode = set->mode;
	if (d->sa.owner) {
		src->owner.len = d->sa.owner_len;
		memcpy(src->owner.s, d->sa.owner, d->sa.owner_len);
	}
	if (d->sa.group) {
		src->group.len = d->sa.group_len;
		memcpy(src->group.s, d->sa.group, d->sa.group_len);
	}
}

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void round_trip(const struct decoding *d)
{
	static struct decoding again;
	uint8_t buf[4096];
	struct nfs4_bitmap b = d->sa.given;
	struct nfs4_attr_source src;
	struct rpc_seg seg = { .base = buf };
	struct xdr_out x;

	nfs4_bitmap_remove(&b, FATTR4_TIME_ACCESS_SET);
	nfs4_bitmap_remove(&b, FATTR4_TIME_MODIFY_SET);
	nfs4_bitmap_remove(&b, FATTR4_MODE_SET_MASKED);
	nfs4_bitmap_remove(&b, FATTR4_MODE_UMASK);
	to_source(d, &src);
	xdr_out_init(&x, buf, sizeof(buf));
	nfs4_put_fattr(&x, &b, &src);
	must(!x.overflow && x.used <= nfs4_fattr_size(&b, &src));
	seg.len = (uint32_t)x.used;
	must(decode(&again, &seg, 1, d->c.minor) && again.in.left == 0);
	must(again.sa.status == NFS4_OK);
	must(again.sa.set.set_size == d->sa.set.set_size && again.sa.set.size == d->sa.set.size);
	must(!again.sa.set.set_mode || again.sa.set.mode == d->sa.set.mode);
	must(again.sa.owner_len == d->sa.owner_len && again.sa.group_len == d->sa.group_len);
}

static bool same_acl(const struct vfs_acl *a, const struct vfs_acl *b)
{
	return a->count == b->count &&
	       (a->count == 0 || memcmp(a->entry, b->entry, a->count * sizeof(*a->entry)) == 0);
}

static void acl_round_trip(struct decoding *d, bool is_dir)
{
	static uint8_t buf[256 * 1024];
	const struct vfs_acls *acls, *again;
	struct xdr_in in = d->sa.acl;
	struct rpc_seg seg = { .base = buf };
	struct xdr_out x;
	bool same;

	rn_arena_init(&req->arena, req->arena_mem, sizeof(req->arena_mem));
	if (nfs4_take_acl(&d->c, &in, is_dir, &acls) != NFS4_OK)
		return;
	xdr_out_init(&x, buf, sizeof(buf));
	nfs4_put_acl(&d->c, &x, acls, is_dir);
	must(!x.overflow && x.used == nfs4_acl_size(&d->c, acls, is_dir));
	seg.len = (uint32_t)x.used;
	xdr_in_init(&in, &seg, 1, NULL);
	must(nfs4_same_acl(&d->c, &in, acls, is_dir, &same) == NFS4_OK && same && in.left == 0);
	xdr_in_init(&in, &seg, 1, NULL);
	if (nfs4_take_acl(&d->c, &in, is_dir, &again) != NFS4_OK)
		must(req->arena.overflowed);
	else
		must(same_acl(&acls->access, &again->access) &&
		     same_acl(&acls->inherited, &again->inherited));
	/* The client's own ACL may differ from the encoded one, so only memory errors are looked
	 * for. */
	in = d->sa.acl;
	nfs4_same_acl(&d->c, &in, acls, is_dir, &same);
}

static void posix_acl_round_trip(struct decoding *d, const struct xdr_in *from)
{
	static uint8_t buf[256 * 1024];
	struct xdr_in in = *from;
	struct rpc_seg seg = { .base = buf };
	struct vfs_acl acl, again;
	struct xdr_out x;

	rn_arena_init(&req->arena, req->arena_mem, sizeof(req->arena_mem));
	if (nfs4_take_posix_acl(&d->c, &in, &acl) != NFS4_OK)
		return;
	xdr_out_init(&x, buf, sizeof(buf));
	nfs4_put_posix_acl(&d->c, &x, &acl);
	must(!x.overflow && x.used == nfs4_posix_acl_size(&d->c, &acl));
	seg.len = (uint32_t)x.used;
	xdr_in_init(&in, &seg, 1, NULL);
	nfs4_pass_posix_acl(&in);
	must(!in.err && in.left == 0);
	xdr_in_init(&in, &seg, 1, NULL);
	if (nfs4_take_posix_acl(&d->c, &in, &again) != NFS4_OK)
		must(req->arena.overflowed);
	else
		must(same_acl(&acl, &again));
}

/* Encodes the readable attributes of a GETATTR bitmap. */
static void ask_for(struct nfs4_bitmap want, uint32_t minor)
{
	static uint8_t buf[4096];
	struct nfs4_attr_source src = { .server = &server, .minor = minor };
	struct xdr_out x;

	if (nfs4_attr_readable(&want, nfs4_attr_level(&server, minor)) != NFS4_OK)
		return;
	src.fh.len = VFS_FH_MAX;
	src.owner.len = src.group.len = NFS4_OWNER_MAX;
	xdr_out_init(&x, buf, sizeof(buf));
	nfs4_put_fattr(&x, &want, &src);
	must(!x.overflow && x.used <= nfs4_fattr_size(&want, &src));
	nfs4_attr_needs(&want);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct decoding d;
	struct rpc_seg seg[2];
	uint32_t minor;
	size_t cut;
	int status;

	if (!req)
		req = calloc(1, sizeof(*req));
	if (size < 2 || !req)
		return 0;
	req->call.cred.flavor = RPC_AUTH_SYS;
	minor = data[1] % 3;
	server.cfg.posix_acls = data[1] & 128;
	server.cfg.vfs = &vfs;
	cut = rn_min((data[0] & 0x7f) * 4, size - 2);
	seg[0] = (struct rpc_seg){ .base = (uint8_t *)data + 2, .len = (uint32_t)cut };
	seg[1] = (struct rpc_seg){ .base = (uint8_t *)data + 2 + cut,
				   .len = (uint32_t)(size - 2 - cut),
				   .placed = data[0] & 0x80 };
	nfs4_utf8_valid((const char *)data, (uint32_t)size);
	if (!decode(&d, seg, 2, minor))
		return 0;
	ask_for(d.sa.given, minor);
	if (d.sa.has_acl && d.sa.status == NFS4_OK)
		acl_round_trip(&d, data[1] & 64);
	if (nfs4_bitmap_has(&d.sa.given, FATTR4_POSIX_DEFAULT_ACL) && d.sa.status == NFS4_OK)
		posix_acl_round_trip(&d, &d.sa.posix_default);
	if (nfs4_bitmap_has(&d.sa.given, FATTR4_POSIX_ACCESS_ACL) && d.sa.status == NFS4_OK)
		posix_acl_round_trip(&d, &d.sa.posix_access);
	status = nfs4_sattr_check(&d.c, &d.sa, (enum nfs4_sattr_use)(data[1] / 3 % 4));
	must(status != NFS4_OK ||
	     (d.sa.owner_len <= NFS4_OWNER_MAX && d.sa.group_len <= NFS4_OWNER_MAX));
	if (status == NFS4_OK)
		round_trip(&d);
	return 0;
}
