/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/attr/source.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/util.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/attr/nfs4_acl.h"
#include "nfs4/attr/held_attrs.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/pseudo/pseudo.h"
#include "vfs/space.h"
#include "vfs/vfs_worker.h"
#include "vfs/xattr.h"

/* Removes the lowest attribute from *word and returns its number. */
static unsigned take_lowest(uint32_t *word, unsigned i)
{
	unsigned bit = (unsigned)__builtin_ctz(*word);

	*word &= *word - 1;
	return i * 32 + bit;
}

int nfs4_attr_readable(struct nfs4_bitmap *want, uint32_t level)
{
	for (unsigned i = 0; i < NFS4_ATTR_WORDS; i++) {
		uint32_t word = want->word[i];

		while (word) {
			unsigned n = take_lowest(&word, i);
			const struct nfs4_attr_row *row = nfs4_attr_find(n, level);

			if (!row)
				nfs4_bitmap_remove(want, n);
			else if (!row->get)
				return NFS4ERR_INVAL;
		}
	}
	return NFS4_OK;
}

unsigned nfs4_attr_needs(const struct nfs4_bitmap *want)
{
	unsigned needs = 0;

	for (unsigned i = 0; i < NFS4_ATTR_WORDS; i++) {
		for (uint32_t word = want->word[i]; word;)
			needs |= nfs4_attr_find(take_lowest(&word, i), NFS4_LEVEL_MAX)->needs;
	}
	return needs;
}

/* Objects cannot be created in the pseudo file system. */
static const struct vfs_statfs no_fs = {
	.name_max = VFS_NAME_MAX, .link_max = 1, .block = 1, .time_ns = 1, .links = true
};

static int attr_source_get_attr(struct nfs4_compound *c, struct nfs4_object *p,
				struct nfs4_attr_source *src)
{
	if (p->kind == NFS4_PSEUDO)
		return nfs4_pseudo_attr(c, p, &src->attr);
	if (p == &c->current && c->last_attr_index > 0 && c->last_attr_index == c->index) {
		src->attr = c->last_attr;
		return NFS4_OK;
	}
	return nfs4_status(c->minor, vfs_getattr(&p->ctx, p->node, &src->attr));
}

/* True if the holder of a write delegation knows better. */
static bool wants_held(const struct nfs4_bitmap *want)
{
	return nfs4_bitmap_has(want, FATTR4_SIZE) || nfs4_bitmap_has(want, FATTR4_CHANGE) ||
	       nfs4_bitmap_has(want, FATTR4_TIME_MODIFY) ||
	       nfs4_bitmap_has(want, FATTR4_TIME_METADATA);
}

static int attr_source_get_fs(struct nfs4_compound *c, struct nfs4_object *p,
			      const struct nfs4_bitmap *want, struct vfs_statfs *out)
{
	int rc;

	if (p->kind == NFS4_PSEUDO) {
		*out = no_fs;
		return NFS4_OK;
	}
	rc = vfs_statfs(&p->ctx, p->node, out);
	if (rc == 0 && nfs4_bitmap_has(want, FATTR4_CASE_INSENSITIVE))
		out->case_insensitive = vfs_folds_case(&p->ctx, p->node);
	return nfs4_status(c->minor, rc);
}

void nfs4_attr_source_init(struct nfs4_compound *c, struct nfs4_attr_source *src)
{
	src->c = c;
	src->server = c->server;
	src->minor = c->minor;
	src->object = NULL;
	src->rdattr_error = NFS4_OK;
	src->has_acl = src->has_quota = src->has_xattrs = src->has_label = false;
	src->label_len = 0;
	src->space_freed = 0;
}

void nfs4_attr_drop_missing(const struct nfs4_attr_source *src, struct nfs4_bitmap *b)
{
	const struct nfs4_cluster *cluster = src->server->cfg.cluster;

	if (!cluster || !cluster->layouts) {
		nfs4_bitmap_remove(b, FATTR4_FS_LAYOUT_TYPES);
		nfs4_bitmap_remove(b, FATTR4_LAYOUT_TYPES);
		nfs4_bitmap_remove(b, FATTR4_LAYOUT_BLKSIZE);
	}
	if (!src->attr.has_btime)
		nfs4_bitmap_remove(b, FATTR4_TIME_CREATE);
	if (!src->has_acl) {
		nfs4_bitmap_remove(b, FATTR4_ACL);
		nfs4_bitmap_remove(b, FATTR4_POSIX_DEFAULT_ACL);
		nfs4_bitmap_remove(b, FATTR4_POSIX_ACCESS_ACL);
	}
	if (!src->has_label)
		nfs4_bitmap_remove(b, FATTR4_SEC_LABEL);
	if (!src->has_quota) {
		nfs4_bitmap_remove(b, FATTR4_QUOTA_AVAIL_HARD);
		nfs4_bitmap_remove(b, FATTR4_QUOTA_AVAIL_SOFT);
		nfs4_bitmap_remove(b, FATTR4_QUOTA_USED);
	}
}

/* A symbolic link has no ACL, even if the file system supports them. Its access ACL as POSIX has it is that of its mode,
 * as of any object without one. */
static int attr_source_get_acls(struct vfs_node *n, struct nfs4_bitmap *want,
				struct nfs4_attr_source *src)
{
	int rc = vfs_acl_get(n, src->attr.mode, &src->acl_buffer, &src->acls);

	if (rc != -EOPNOTSUPP)
		return rc;
	nfs4_bitmap_remove(want, FATTR4_ACL);
	vfs_acl_from_mode(src->attr.mode, src->acl_buffer.access, &src->acls.access);
	return 0;
}

/*
 * An object without a label goes without the attribute, as with the kernel's server. An empty label
 * would be an error to Linux's client, which logs it for each object.
 */
static int get_label(struct vfs_ctx *ctx, struct vfs_node *n, struct nfs4_bitmap *want,
		     struct nfs4_attr_source *src)
{
	int rc = vfs_label_get(ctx, n, src->label_buffer);

	if (rc == -ENODATA)
		nfs4_bitmap_remove(want, FATTR4_SEC_LABEL);
	src->label_len = rc > 0 ? (uint32_t)rc : 0;
	return rc == -ENODATA || rc > 0 ? 0 : rc;
}

int nfs4_attr_source_node(struct vfs_ctx *ctx, struct vfs_node *n, struct nfs4_bitmap *want,
			  struct nfs4_attr_source *src)
{
	const unsigned needs = nfs4_attr_needs(want);
	int rc = 0;

	if (needs != 0) /* ACLs and the like may be on disk only */
		rn_fiber_move(ctx->fiber);
	if (needs & NFS4_ATTR_ABLE) {
		src->has_acl = vfs_acl_supported(ctx, n);
		src->has_quota = vfs_quota_supported(n);
	}
	if (needs & (NFS4_ATTR_ABLE | NFS4_ATTR_LABEL))
		src->has_label = vfs_label_supported(ctx, n);
	if (needs & NFS4_ATTR_XATTRS)
		src->has_xattrs = vfs_xattr_supported(ctx, n);
	if ((needs & NFS4_ATTR_ACLS) && src->has_acl)
		rc = attr_source_get_acls(n, want, src);
	if (rc == 0 && (needs & NFS4_ATTR_QUOTA) && src->has_quota)
		rc = vfs_quota_get(ctx, n, src->attr.uid, &src->quota);
	if (rc == 0 && (needs & NFS4_ATTR_LABEL) && src->has_label)
		rc = get_label(ctx, n, want, src);
	if (rc == 0 && (needs & NFS4_ATTR_FREED))
		rc = vfs_space_freed(ctx, n, &src->attr, &src->space_freed);
	return nfs4_status(src->minor, rc);
}

void nfs4_attr_source_names(struct nfs4_compound *c, struct nfs4_bitmap *want,
			    struct nfs4_attr_source *src)
{
	nfs4_attr_drop_missing(src, want);
	if (nfs4_bitmap_has(want, FATTR4_OWNER))
		nfs4_user_name(c, src->attr.uid, &src->owner);
	if (nfs4_bitmap_has(want, FATTR4_OWNER_GROUP))
		nfs4_group_name(c, src->attr.gid, &src->group);
}

/* The attributes of a file system that is absent. A request for others is an error, unless it is for rdattr_error or
 * fs_locations, too (RFC 8881 section 11.4.1). */
static int limit_to_absent(struct nfs4_bitmap *want, struct nfs4_attr_source *src)
{
	static const unsigned known[] = { FATTR4_FSID, FATTR4_RDATTR_ERROR, FATTR4_FS_LOCATIONS,
					  FATTR4_MOUNTED_ON_FILEID };
	const struct nfs4_bitmap all = *want;

	*want = (struct nfs4_bitmap){ 0 };
	for (unsigned i = 0; i < rn_array_size(known); i++) {
		if (nfs4_bitmap_has(&all, known[i]))
			nfs4_bitmap_add(want, known[i]);
	}
	if (memcmp(want, &all, sizeof(all)) == 0)
		return NFS4_OK;
	src->rdattr_error = NFS4ERR_MOVED;
	return nfs4_bitmap_has(want, FATTR4_RDATTR_ERROR) ||
			       nfs4_bitmap_has(want, FATTR4_FS_LOCATIONS)
		       ? NFS4_OK
		       : NFS4ERR_MOVED;
}

int nfs4_attr_source_of(struct nfs4_compound *c, struct nfs4_object *p, struct nfs4_bitmap *want,
			struct nfs4_attr_source *src)
{
	unsigned needs;
	int status = NFS4_OK;

	nfs4_attr_source_init(c, src);
	src->object = p;
	if (nfs4_object_is_absent(p))
		status = limit_to_absent(want, src);
	needs = nfs4_attr_needs(want);
	if (status == NFS4_OK)
		status = attr_source_get_attr(c, p, src);
	if (status == NFS4_OK && p->kind == NFS4_FILE && wants_held(want))
		status = nfs4_held_attrs(c, p, &src->attr);
	if (status == NFS4_OK && (needs & NFS4_ATTR_FS))
		status = attr_source_get_fs(c, p, want, &src->fs);
	if (status == NFS4_OK && (needs & NFS4_ATTR_OF_NODE) && p->kind == NFS4_FILE)
		status = nfs4_attr_source_node(&p->ctx, p->node, want, src);
	if (status != NFS4_OK)
		return status;
	src->fh = p->fh;
	src->mounted_on = src->attr.fileid;
	if (p->kind == NFS4_FILE && nfs4_bitmap_has(want, FATTR4_MOUNTED_ON_FILEID))
		src->mounted_on = nfs4_mounted_on(c, p, src->attr.fileid);
	nfs4_attr_source_names(c, want, src);
	return NFS4_OK;
}

uint32_t nfs4_fattr_size(const struct nfs4_bitmap *b, const struct nfs4_attr_source *src)
{
	uint32_t size = nfs4_bitmap_size(b) + 4;

	for (unsigned i = 0; i < NFS4_ATTR_WORDS; i++) {
		for (uint32_t word = b->word[i]; word;)
			size += nfs4_attr_find(take_lowest(&word, i), NFS4_LEVEL_MAX)->size;
	}
	if (nfs4_bitmap_has(b, FATTR4_OWNER))
		size += src->owner.len + rn_xdr_pad(src->owner.len);
	if (nfs4_bitmap_has(b, FATTR4_OWNER_GROUP))
		size += src->group.len + rn_xdr_pad(src->group.len);
	if (nfs4_bitmap_has(b, FATTR4_FS_LOCATIONS))
		size += nfs4_locations_size(src);
	if (nfs4_bitmap_has(b, FATTR4_SEC_LABEL))
		size += src->label_len + rn_xdr_pad(src->label_len);
	if (nfs4_bitmap_has(b, FATTR4_ACL))
		size += nfs4_acl_size(src->c, &src->acls, S_ISDIR(src->attr.mode));
	if (nfs4_bitmap_has(b, FATTR4_POSIX_DEFAULT_ACL))
		size += nfs4_posix_acl_size(src->c, &src->acls.inherited);
	if (nfs4_bitmap_has(b, FATTR4_POSIX_ACCESS_ACL))
		size += nfs4_posix_acl_size(src->c, &src->acls.access);
	return size;
}

void nfs4_put_fattr(struct xdr_out *x, const struct nfs4_bitmap *b,
		    const struct nfs4_attr_source *src)
{
	size_t len_at;

	nfs4_put_bitmap(x, b);
	len_at = xdr_out_pos(x);
	xdr_put_u32(x, 0);
	for (unsigned i = 0; i < NFS4_ATTR_WORDS; i++) {
		for (uint32_t word = b->word[i]; word;)
			nfs4_attr_find(take_lowest(&word, i), NFS4_LEVEL_MAX)->get(x, src);
	}
	if (!x->overflow)
		xdr_patch_u32(x, len_at, (uint32_t)(xdr_out_pos(x) - len_at - 4));
}

void nfs4_put_notification_attrs(struct xdr_out *x, const uint32_t mask[NFS4_ATTR_WORDS],
				 const struct vfs_fh *fh, const struct vfs_attr *attr)
{
	struct nfs4_attr_source src;
	struct nfs4_bitmap b;

	memset(&src, 0, sizeof(src));
	src.attr = *attr;
	if (fh)
		src.fh = *fh;
	memcpy(b.word, mask, sizeof(b.word));
	nfs4_put_fattr(x, &b, &src);
}
