/* SPDX-License-Identifier: BSD-2-Clause */
/* NFSv3 (RFC 1813) of the load generator. */
#include <stdio.h>
#include <unistd.h>
#include "load.h"

enum {
	GETATTR = 1,
	LOOKUP = 3,
	ACCESS,
	READ = 6,
	WRITE,
	CREATE,
	REMOVE = 12,
	READDIRPLUS = 17,
	COMMIT = 21
};
enum { FATTR = 84, ERR_JUKEBOX = 10008 };

static void begin(struct load *l, struct call *c, struct xdr *x, uint32_t proc, const struct fh *fh)
{
	rpc_begin(l, c, x, PROG_NFS, proc);
	put_opaque(x, fh->data, fh->len);
}

static void get_fh(struct xdr *x, struct fh *fh)
{
	const uint8_t *data = get_opaque(x, &fh->len);

	if (!data || fh->len > FH_MAX) {
		x->bad = true;
		fh->len = 0;
		return;
	}
	memcpy(fh->data, data, fh->len);
}

static bool post_op_attr(struct xdr *x)
{
	bool there = get32(x);

	if (there)
		xdr_take(x, FATTR);
	return there;
}

static void wcc_data(struct xdr *x)
{
	if (get32(x))
		xdr_take(x, 24);
	post_op_attr(x);
}

static const struct file *file_of(const struct load *l, const struct call *c)
{
	return &l->files[c->file];
}

/* ---- jobs ------------------------------------------------------------------------------------- */
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
	begin(l, c, x, GETATTR, &file_of(l, c)->fh);
}

static const char *check_getattr(struct load *l, struct call *c, struct xdr *x)
{
	(void)l, (void)c;
	if (get32(x))
		return "GETATTR failed";
	return get32(x) == 1 && xdr_take(x, FATTR - 4) ? NULL : "GETATTR: not a regular file";
}

static void encode_lookup(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, LOOKUP, &l->dir);
	put_string(x, file_of(l, c)->name);
}

static const char *check_lookup(struct load *l, struct call *c, struct xdr *x)
{
	const struct fh *want = &file_of(l, c)->fh;
	struct fh fh;

	if (get32(x))
		return "LOOKUP failed";
	get_fh(x, &fh);
	if (fh.len != want->len || memcmp(fh.data, want->data, fh.len) != 0)
		return "LOOKUP: another handle";
	return post_op_attr(x) ? NULL : "LOOKUP: no attributes";
}

static void encode_access(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, ACCESS, &file_of(l, c)->fh);
	put32(x, 0x1f);
}

static const char *check_access(struct load *l, struct call *c, struct xdr *x)
{
	(void)l, (void)c;
	if (get32(x))
		return "ACCESS failed";
	post_op_attr(x);
	return get32(x) & 1 ? NULL : "ACCESS: the file may not be read";
}

static void encode_read(struct load *l, struct call *c, struct xdr *x)
{
	c->offset = data_offset(l, c);
	begin(l, c, x, READ, &file_of(l, c)->fh);
	put64(x, c->offset);
	put32(x, l->o.size);
}

static const char *check_read(struct load *l, struct call *c, struct xdr *x)
{
	const uint8_t *data;
	uint32_t n;

	if (get32(x))
		return "READ failed";
	post_op_attr(x);
	n = get32(x);
	get32(x); /* eof */
	if (c->placed) {
		n = get32(x) == l->placed_len ? l->placed_len : 0;
		data = c->placed;
	} else {
		data = get_opaque(x, &n);
	}
	if (!data || n != l->o.size)
		return "READ: too short";
	return data_good(data, n, c->file, c->offset, l->warming) ? NULL : "READ: other data";
}

static void put_write(struct call *c, struct xdr *x, uint64_t offset, uint32_t size,
		      uint32_t stable)
{
	put64(x, offset);
	put32(x, size);
	put32(x, stable);
	put32(x, size);
	c->data = data_at(c->file, offset);
	c->data_len = size; /* a multiple of four */
}

static void encode_write(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, WRITE, &file_of(l, c)->fh);
	put_write(c, x, data_offset(l, c), l->o.size, l->o.stable);
}

static const char *check_write(struct load *l, struct call *c, struct xdr *x)
{
	(void)c;
	if (get32(x))
		return "WRITE failed";
	wcc_data(x);
	if (get32(x) != l->o.size)
		return "WRITE: not all was written";
	return get32(x) >= l->o.stable ? NULL : "WRITE: not as stable as asked for";
}

/* CREATE and REMOVE by turns. */
static void encode_create(struct load *l, struct call *c, struct xdr *x)
{
	char name[48];

	snprintf(name, sizeof(name), "new.%d.%u.%u", getpid(), c->conn->index, c->index);
	begin(l, c, x, c->step ? REMOVE : CREATE, &l->dir);
	put_string(x, name);
	if (c->step)
		return;
	put32(x, 1); /* GUARDED */
	put32(x, 1);
	put32(x, 0644);
	put32(x, 0), put32(x, 0), put32(x, 0), put32(x, 0), put32(x, 0);
}

static const char *check_create(struct load *l, struct call *c, struct xdr *x)
{
	(void)l;
	c->step = !c->step;
	if (get32(x))
		return c->step ? "CREATE failed" : "REMOVE failed";
	if (c->step && get32(x))
		get_fh(x, &c->fh);
	return NULL;
}

static void encode_readdir(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, READDIRPLUS, &l->dir);
	put64(x, c->cookie);
	put_bytes(x, c->verifier, 8);
	put32(x, l->o.size);
	put32(x, l->o.size);
}

static const char *check_readdir(struct load *l, struct call *c, struct xdr *x)
{
	struct fh fh;
	uint32_t n;

	if (get32(x))
		return "READDIRPLUS failed";
	post_op_attr(x);
	get_bytes(x, c->verifier, 8);
	while (get32(x)) {
		get64(x);
		get_opaque(x, &n);
		c->cookie = get64(x);
		post_op_attr(x);
		if (get32(x))
			get_fh(x, &fh);
		c->entries++;
		l->entries += l->measuring;
	}
	if (!get32(x))
		return NULL;
	/* "." and ".." may be there. */
	if (l->o.entries && c->entries != l->o.entries && c->entries != l->o.entries + 2)
		return "READDIRPLUS: the directory has another number of entries";
	c->cookie = c->entries = 0;
	memset(c->verifier, 0, 8);
	return NULL;
}

/* ---- setting up ------------------------------------------------------------------------------- */
static void mount_path(struct load *l)
{
	struct load m = *l;
	struct conn *k = &(struct conn){ 0 };
	struct xdr x, reply;

	m.o.port = l->o.mount_port;
	m.o.calls = 1;
	m.epoll = -1;
	conn_init(&m, k, 0);
	rpc_begin(&m, &k->calls[0], &x, PROG_MOUNT, 1);
	put_string(&x, l->o.path);
	rpc_wait(&m, &k->calls[0], &x, &reply);
	if (get32(&reply))
		die("MNT of %s is refused", l->o.path);
	get_fh(&reply, &l->dir);
	conn_release(k);
}

/* do_call: again while the server asks for patience. Returns the status. */
static uint32_t do_call(struct load *l, struct call *c,
			void (*encode)(struct load *, struct call *, struct xdr *),
			struct xdr *reply)
{
	uint32_t status;
	struct xdr x;

	for (;;) {
		encode(l, c, &x);
		rpc_wait(l, c, &x, reply);
		status = get32(reply);
		if (status != ERR_JUKEBOX)
			return status;
		usleep(100000);
	}
}

static void encode_make(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, CREATE, &l->dir);
	put_string(x, file_of(l, c)->name);
	put32(x, 0); /* UNCHECKED */
	put32(x, 1);
	put32(x, 0666);
	put32(x, 0), put32(x, 0), put32(x, 0), put32(x, 0), put32(x, 0);
}

static void encode_fill(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, WRITE, &file_of(l, c)->fh);
	put_write(c, x, c->offset, SIZE_MAX_IO, 0);
}

static void encode_commit(struct load *l, struct call *c, struct xdr *x)
{
	begin(l, c, x, COMMIT, &file_of(l, c)->fh);
	put64(x, 0);
	put32(x, 0);
}

static void make_file(struct load *l, struct call *c, struct file *f)
{
	struct xdr reply;

	if (do_call(l, c, encode_make, &reply))
		die("CREATE of %s failed", f->name);
	if (!get32(&reply))
		die("CREATE returns no handle");
	get_fh(&reply, &f->fh);
	if (!l->job->data)
		return;
	for (c->offset = 0; c->offset < l->o.file_size; c->offset += SIZE_MAX_IO) {
		uint32_t status = do_call(l, c, encode_fill, &reply);

		wcc_data(&reply);
		if (status || get32(&reply) != SIZE_MAX_IO)
			die("filling %s failed: %u", f->name, status);
	}
	if (do_call(l, c, encode_commit, &reply))
		die("COMMIT of %s failed", f->name);
}

static void prepare(struct load *l, struct call *c)
{
	if (l->job->encode == encode_null)
		return;
	mount_path(l);
	for (c->file = 0; l->job->files && c->file < l->o.files; c->file++)
		make_file(l, c, &l->files[c->file]);
}

static const struct job jobs[] = {
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

const struct protocol protocol_nfs3 = { .version = 3, .jobs = jobs, .prepare = prepare };
