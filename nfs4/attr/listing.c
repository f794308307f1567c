/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of a READDIR. If an entry's attributes cannot be read, the entry has rdattr_error if the
 * client asked for that; otherwise the whole READDIR fails. A name that was removed in the meantime
 * is left out.
 */
#include "nfs4/attr/listing.h"

#include <errno.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/attr_table.h"
#include "nfs4/pseudo/cross.h"

/* Bytes of an entry, a guess before the first: of the whole, and of what dircount counts. */
#define ENTRY_FILE 220u
#define ENTRY 64u
#define ENTRY_DIR 24u

/* Name and cookie of an entry. */
struct entry {
	const struct vfs_dirent *de; /* NULL: an entry of the pseudo file system */
	const char *name;
	uint32_t len;
	uint64_t cookie;
	uint64_t mounted_on;
};

void nfs4_listing_init(struct nfs4_listing *l, struct nfs4_compound *c,
		       const struct nfs4_bitmap *want)
{
	struct nfs4_bitmap rest = *want;

	nfs4_bitmap_remove(&rest, FATTR4_RDATTR_ERROR);
	nfs4_bitmap_remove(&rest, FATTR4_MOUNTED_ON_FILEID);
	memset(l, 0, sizeof(*l));
	l->c = c;
	l->want = *want;
	l->wants_error = nfs4_bitmap_has(want, FATTR4_RDATTR_ERROR);
	l->wants_file = !nfs4_bitmap_empty(&rest);
	l->wants_fs = nfs4_attr_needs(want) & NFS4_ATTR_FS;
	l->wants_node = nfs4_attr_needs(want) & NFS4_ATTR_OF_NODE;
}

/* Puts an entry. False: no room; nothing is put. */
static bool nfs4_listing_put_entry(struct nfs4_listing *l, const struct entry *e,
				   const struct nfs4_bitmap *have,
				   const struct nfs4_attr_source *src)
{
	struct xdr_out *x = l->c->out;
	size_t start = xdr_out_pos(x);
	uint32_t dir_size = 8u + 4u + e->len + rn_xdr_pad(e->len);

	if (dir_size > l->dir_left && l->entries > 0)
		return false;
	xdr_put_bool(x, true);
	xdr_put_u64(x, e->cookie);
	xdr_put_opaque(x, e->name, e->len);
	nfs4_put_fattr(x, have, src);
	if (x->overflow || xdr_out_pos(x) > l->end) {
		xdr_out_rewind(x, start);
		return false;
	}
	l->dir_left -= (uint32_t)rn_min(dir_size, l->dir_left);
	l->entries++;
	return true;
}

/* Puts an entry with rdattr_error as its only attribute. */
static bool put_failed(struct nfs4_listing *l, const struct entry *e, int status)
{
	struct nfs4_attr_source src;
	struct nfs4_bitmap have = { 0 };

	if (!l->wants_error) {
		l->status = status;
		return false;
	}
	nfs4_attr_source_init(l->c, &src);
	src.rdattr_error = (uint32_t)status;
	src.mounted_on = e->mounted_on;
	nfs4_bitmap_add(&have, FATTR4_RDATTR_ERROR);
	if (nfs4_bitmap_has(&l->want, FATTR4_MOUNTED_ON_FILEID))
		nfs4_bitmap_add(&have, FATTR4_MOUNTED_ON_FILEID);
	return nfs4_listing_put_entry(l, e, &have, &src);
}

/* Puts an entry that has a filehandle of its own; p is borrowed. */
static bool put_place(struct nfs4_listing *l, const struct entry *e, struct nfs4_place *p)
{
	struct nfs4_bitmap want = l->want;
	struct nfs4_attr_source src;
	int status = nfs4_place_usable(p);

	if (status == NFS4_OK)
		status = nfs4_attr_source_of(l->c, p, &want, &src);
	if (status != NFS4_OK)
		return put_failed(l, e, status);
	src.mounted_on = e->mounted_on;
	return nfs4_listing_put_entry(l, e, &want, &src);
}

/* Reads the file system attributes of an entry. Its file system is nearly always the directory's,
 * which is read once. */
static int nfs4_listing_get_fs(struct nfs4_listing *l, const struct entry *e,
			       struct nfs4_attr_source *src)
{
	struct nfs4_place *dir = &l->c->current;
	struct vfs_node *n;
	int rc;

	if (!l->fs_known || l->fs_of != src->attr.fsid) {
		rc = vfs_lookup(&dir->ctx, dir->node, e->name, e->len, &n, NULL);
		if (rc == 0) {
			rc = vfs_statfs(&dir->ctx, n, &l->fs);
			vfs_node_put(n);
		}
		if (rc != 0)
			return rc;
		l->fs_of = src->attr.fsid;
		l->fs_known = true;
	}
	src->fs = l->fs;
	return 0;
}

static int nfs4_listing_get_file(struct nfs4_listing *l, const struct entry *e,
				 struct nfs4_attr_source *src)
{
	struct nfs4_place *dir = &l->c->current;
	int rc = vfs_peek_entry(&dir->ctx, dir->node, e->de, &src->fh, &src->attr);

	if (rc == 0 && l->wants_fs)
		rc = nfs4_listing_get_fs(l, e, src);
	return rc;
}

/* Reads the attributes that require an open node. */
static int get_node(struct nfs4_listing *l, const struct entry *e, struct nfs4_bitmap *want,
		    struct nfs4_attr_source *src)
{
	struct nfs4_place *dir = &l->c->current;
	struct vfs_node *n;
	int rc, status;

	if (!l->wants_node)
		return NFS4_OK;
	rc = vfs_lookup(&dir->ctx, dir->node, e->name, e->len, &n, NULL);
	if (rc != 0)
		return nfs4_status(l->c->minor, rc);
	status = nfs4_attr_source_node(&dir->ctx, n, want, src);
	vfs_node_put(n);
	return status;
}

static bool nfs4_listing_put_file(struct nfs4_listing *l, const struct entry *e)
{
	struct nfs4_compound *c = l->c;
	struct nfs4_bitmap want = l->want;
	struct nfs4_attr_source src;
	struct nfs4_place other = { .kind = NFS4_NOWHERE };
	struct nfs_entry step = { .name = e->name, .len = e->len, .found = &src.fh };
	int rc, status;
	bool ok;

	nfs4_attr_source_init(c, &src);
	rc = nfs4_listing_get_file(l, e, &src);
	if (rc == -ENOENT)
		return true;
	if (rc != 0)
		return put_failed(l, e, nfs4_status(c->minor, rc));
	if (nfs4_cross_down(c, &step, &other, &status)) {
		if (status != NFS4_OK)
			return put_failed(l, e, status);
		ok = put_place(l, e, &other);
		nfs4_place_clear(&other);
		return ok;
	}
	src.place = &c->current;
	status = get_node(l, e, &want, &src);
	if (status != NFS4_OK)
		return put_failed(l, e, status);
	src.mounted_on = e->mounted_on;
	nfs4_attr_source_names(c, &want, &src);
	return nfs4_listing_put_entry(l, e, &want, &src);
}

unsigned nfs4_list_expect(const struct nfs4_listing *l)
{
	const size_t pos = xdr_out_pos(l->c->out);
	size_t whole = l->wants_file ? ENTRY_FILE : ENTRY, dir = ENTRY_DIR, n;

	if (l->status != NFS4_OK)
		return 0;
	if (l->entries > 0) {
		whole = (pos - l->start) / l->entries;
		dir = rn_max((l->dircount - l->dir_left) / l->entries, 1);
	}
	n = pos < l->end ? rn_min((l->end - pos) / whole, l->dir_left / dir) : 0;
	return n == 0 && l->entries == 0 ? 1 : (unsigned)n;
}

bool nfs4_list_dirent(struct nfs4_listing *l, const struct vfs_dirent *de, uint64_t cookie)
{
	struct entry e = {
		.de = de,
		.name = de->name,
		.len = de->len,
		.cookie = cookie,
		.mounted_on = de->fileid,
	};
	struct nfs4_attr_source src;

	if (l->wants_file)
		return nfs4_listing_put_file(l, &e);
	nfs4_attr_source_init(l->c, &src);
	src.mounted_on = e.mounted_on;
	return nfs4_listing_put_entry(l, &e, &l->want, &src);
}

bool nfs4_list_pseudo(struct nfs4_listing *l, const struct nfs4_pseudo_entry *pe)
{
	struct entry e = {
		.name = pe->name, .len = pe->len, .cookie = pe->cookie, .mounted_on = pe->mounted_on
	};
	struct nfs4_place p;

	if (pe->status != NFS4_OK)
		return put_failed(l, &e, pe->status);
	p = *pe->place; /* a borrowed copy, since vfs/ changes its context */
	return put_place(l, &e, &p);
}
