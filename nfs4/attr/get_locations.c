/* SPDX-License-Identifier: BSD-2-Clause */
/* The attribute fs_locations (RFC 7530 section 8.1, RFC 8881 section 11.16): where the files of an export are. */
#include <limits.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/attr/get.h"
#include "nfs4/pseudo/pseudo.h"
#include "nfs4/nfs4_private.h"

struct sink {
	struct xdr_out *x; /* NULL: only size is wanted */
	uint32_t size;	   /* bytes of XDR so far */
	uint32_t count;	   /* locations */
};

/* Puts a number that is known later, and returns its place. */
static size_t put_count(struct sink *to)
{
	const size_t at = to->x ? xdr_out_pos(to->x) : 0;

	to->size += 4;
	if (to->x)
		xdr_put_u32(to->x, 0);
	return at;
}

static void patch_count(const struct sink *to, size_t at, uint32_t count)
{
	if (to->x && !to->x->overflow)
		xdr_patch_u32(to->x, at, count);
}

static void nfs4_locations_put_text(struct sink *to, const char *text, size_t len)
{
	to->size += 4 + (uint32_t)len + rn_xdr_pad((uint32_t)len);
	if (to->x)
		xdr_put_opaque(to->x, text, (uint32_t)len);
}

/* Parts of a text between separators, as an array; empty parts are none. */
static void put_parts(struct sink *to, const char *text, size_t len, char separator)
{
	const size_t at = put_count(to);
	const char *end = text + len;
	uint32_t count = 0;

	for (const char *part = text, *stop; part < end; part = stop + 1) {
		size_t n;

		stop = memchr(part, separator, (size_t)(end - part));
		if (!stop)
			stop = end;
		n = (size_t)(stop - part);
		if (n > 2 && separator == '+' &&
		    *part == '[') /* clients want it without brackets */
			nfs4_locations_put_text(to, part + 1, n - 2);
		else if (n > 0)
			nfs4_locations_put_text(to, part, n);
		count += n > 0;
	}
	patch_count(to, at, count);
}

static void put_location(void *arg, const struct vfs_location *l)
{
	struct sink *to = arg;

	put_parts(to, l->hosts, l->hosts_len, '+');
	put_parts(to, l->path, l->path_len, '/');
	to->count++;
}

/* A pseudo directory has no other locations, and the root as its path. */
static void put_all(struct sink *to, const struct nfs4_attr_source *src)
{
	const struct vfs_exports *exports = &src->server->cfg.exports;
	const struct nfs4_place *p = src->place;
	const bool known = p && p->kind == NFS4_FILE;
	char root[PATH_MAX] = "";
	size_t at;

	if (known)
		nfs4_pseudo_path_of(src->c, p->export_id, root, sizeof(root));
	put_parts(to, root, strlen(root), '/');
	at = put_count(to);
	if (known && exports->locations)
		exports->locations(exports->ctx, p->export_id,
				   (const struct sockaddr *)&src->c->req->conn->peer, put_location,
				   to);
	patch_count(to, at, to->count);
}

uint32_t nfs4_locations_size(const struct nfs4_attr_source *src)
{
	struct sink to = { .x = NULL };

	put_all(&to, src);
	return to.size;
}

NFS4_ATTR_GETTER(fs_locations)
{
	struct sink to = { .x = x };

	put_all(&to, src);
}
