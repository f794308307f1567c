/* SPDX-License-Identifier: BSD-2-Clause */
/* The jobs by NFSv4.1 and 4.2: COMPOUNDs as Linux's client sends them. */
#include <stdio.h>
#include <unistd.h>
#include "load.h"
#include "nfs4_numbers.h"

static const struct fh *fh_of(const struct load *l, const struct call *c)
{
	return &l->files[c->file].fh;
}

static void put_getattr(struct xdr *x)
{
	put32(x, OP_GETATTR);
	put32(x, 2);
	put32(x, ATTRS_0);
	put32(x, ATTRS_1);
}

/* Passes over an attribute mask and the attributes; false if there are none. */
static bool get_attrs(struct xdr *x)
{
	uint32_t n;

	for (n = get32(x); n && !x->bad; n--)
		get32(x);
	return get_opaque(x, &n) && n > 0;
}

static void encode_null(struct load *l, struct call *c, struct xdr *x)
{
	rpc_begin(l, c, x, PROG_NFS, 0);
}

static const char *check_null(struct load *l, struct call *c, struct xdr *x)
{
	(void)l, (void)c, (void)x;
	return NULL;
}

static void encode_getattr(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, fh_of(l, c));
	put_getattr(x);
}

static const char *check_getattr(struct load *l, struct call *c, struct xdr *x)
{
	const char *wrong = nfs4_reply(x);

	(void)l, (void)c;
	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH) || !nfs4_op(x, OP_GETATTR))
		return "GETATTR failed";
	return get_attrs(x) ? NULL : "GETATTR: no attributes";
}

static void encode_lookup(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 4);
	nfs4_putfh(x, &l->dir);
	put32(x, OP_LOOKUP);
	put_string(x, l->files[c->file].name);
	put32(x, OP_GETFH);
	put_getattr(x);
}

static const char *check_lookup(struct load *l, struct call *c, struct xdr *x)
{
	const struct fh *want = fh_of(l, c);
	const char *wrong = nfs4_reply(x);
	struct fh fh;

	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH) || !nfs4_op(x, OP_LOOKUP) || !nfs4_op(x, OP_GETFH))
		return "LOOKUP failed";
	nfs4_get_fh(x, &fh);
	if (fh.len != want->len || memcmp(fh.data, want->data, fh.len) != 0)
		return "LOOKUP: another handle";
	return nfs4_op(x, OP_GETATTR) && get_attrs(x) ? NULL : "LOOKUP: no attributes";
}

static void encode_access(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 3);
	nfs4_putfh(x, fh_of(l, c));
	put32(x, OP_ACCESS);
	put32(x, 0x1f);
	put_getattr(x);
}

static const char *check_access(struct load *l, struct call *c, struct xdr *x)
{
	const char *wrong = nfs4_reply(x);

	(void)l, (void)c;
	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH) || !nfs4_op(x, OP_ACCESS))
		return "ACCESS failed";
	get32(x);
	if (!(get32(x) & 1))
		return "ACCESS: the file may not be read";
	return nfs4_op(x, OP_GETATTR) && get_attrs(x) ? NULL : "ACCESS: no attributes";
}

static void encode_read(struct load *l, struct call *c, struct xdr *x)
{
	c->offset = data_offset(l, c);
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, fh_of(l, c));
	put32(x, OP_READ);
	put_bytes(x, c->conn->stateid, 16);
	put64(x, c->offset);
	put32(x, l->o.size);
}

static const char *check_read(struct load *l, struct call *c, struct xdr *x)
{
	const char *wrong = nfs4_reply(x);
	const uint8_t *data;
	uint32_t n;

	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH) || !nfs4_op(x, OP_READ))
		return "READ failed";
	get32(x); /* eof */
	data = get_opaque(x, &n);
	if (!data || n != l->o.size)
		return "READ: too short";
	return data_good(data, n, c->file, c->offset, l->warming) ? NULL : "READ: other data";
}

/* Linux asks for a few attributes behind a WRITE; they cannot follow the data here, which are the request's end. */
static void encode_write(struct load *l, struct call *c, struct xdr *x)
{
	c->offset = data_offset(l, c);
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, fh_of(l, c));
	put32(x, OP_WRITE);
	put_bytes(x, c->conn->stateid, 16);
	put64(x, c->offset);
	put32(x, l->o.stable);
	put32(x, l->o.size);
	c->data = data_at(c->file, c->offset);
	c->data_len = l->o.size;
}

static const char *check_write(struct load *l, struct call *c, struct xdr *x)
{
	const char *wrong = nfs4_reply(x);

	(void)c;
	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH) || !nfs4_op(x, OP_WRITE))
		return "WRITE failed";
	if (get32(x) != l->o.size)
		return "WRITE: not all was written";
	return get32(x) >= l->o.stable ? NULL : "WRITE: not as stable as asked for";
}

/* OPEN, CLOSE and REMOVE by turns. */
enum { STEP_OPEN, STEP_CLOSE, STEP_REMOVE, STEPS };

static void encode_create(struct load *l, struct call *c, struct xdr *x)
{
	char name[48];

	snprintf(name, sizeof(name), "new.%d.%u.%u", getpid(), c->conn->index, c->index);
	nfs4_begin(l, c, x, c->step == STEP_OPEN ? 4 : 2);
	nfs4_putfh(x, c->step == STEP_CLOSE ? &c->fh : &l->dir);
	switch (c->step) {
	case STEP_OPEN:
		nfs4_put_open(x, c->conn, name, true);
		put32(x, OP_GETFH);
		put_getattr(x);
		break;
	case STEP_CLOSE:
		nfs4_put_close(x, c->stateid);
		break;
	default:
		put32(x, OP_REMOVE);
		put_string(x, name);
	}
}

static const char *check_create(struct load *l, struct call *c, struct xdr *x)
{
	const char *wrong = nfs4_reply(x);

	(void)l;
	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH))
		return "PUTFH failed";
	switch (c->step) {
	case STEP_OPEN:
		if (!nfs4_op(x, OP_OPEN))
			return "OPEN failed";
		nfs4_get_open(x, c->stateid);
		if (!nfs4_op(x, OP_GETFH))
			return "OPEN: no handle";
		nfs4_get_fh(x, &c->fh);
		if (!nfs4_op(x, OP_GETATTR) || !get_attrs(x))
			return "OPEN: no attributes";
		break;
	case STEP_CLOSE:
		if (!nfs4_op(x, OP_CLOSE))
			return "CLOSE failed";
		break;
	default:
		if (!nfs4_op(x, OP_REMOVE))
			return "REMOVE failed";
	}
	c->step = (c->step + 1) % STEPS;
	return NULL;
}

static void encode_readdir(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, &l->dir);
	put32(x, OP_READDIR);
	put64(x, c->cookie);
	put_bytes(x, c->verifier, 8);
	put32(x, l->o.size);
	put32(x, l->o.size);
	put32(x, 2);
	put32(x, ATTRS_READDIR_0);
	put32(x, ATTRS_1);
}

static const char *check_readdir(struct load *l, struct call *c, struct xdr *x)
{
	const char *wrong = nfs4_reply(x);
	uint32_t n;

	if (wrong)
		return wrong;
	if (!nfs4_op(x, OP_PUTFH) || !nfs4_op(x, OP_READDIR))
		return "READDIR failed";
	get_bytes(x, c->verifier, 8);
	while (get32(x)) {
		c->cookie = get64(x);
		get_opaque(x, &n);
		if (!get_attrs(x))
			return "READDIR: an entry without attributes";
		c->entries++;
		l->entries += l->measuring;
	}
	if (!get32(x))
		return NULL;
	if (l->o.entries && c->entries != l->o.entries)
		return "READDIR: the directory has another number of entries";
	c->cookie = c->entries = 0;
	memset(c->verifier, 0, 8);
	return NULL;
}

const struct job nfs4_jobs[] = {
	{ .name = "null", .encode = encode_null, .check = check_null },
	{ .name = "getattr", .encode = encode_getattr, .check = check_getattr, .files = true },
	{ .name = "lookup", .encode = encode_lookup, .check = check_lookup, .files = true },
	{ .name = "access", .encode = encode_access, .check = check_access, .files = true },
	{ .name = "read", .encode = encode_read, .check = check_read, .files = true, .data = true },
	{ .name = "write",
	  .encode = encode_write,
	  .check = check_write,
	  .files = true,
	  .data = true },
	{ .name = "create", .encode = encode_create, .check = check_create },
	{ .name = "readdir", .encode = encode_readdir, .check = check_readdir },
	{ 0 },
};
