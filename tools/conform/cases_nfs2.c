/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSv2's binding (RFC 8267 section 4) and that of NFSACL version 2 (section 5.2). Eligible are the data of READ and
 * WRITE, and the pathnames of READLINK and SYMLINK. A chunk for anything else is refused, and nothing is done.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs2.h"
#include "tools/conform/nfs3.h"

#define FILE_SIZE 5001u
#define TEXT_LEN 701u
/* Without a pad, so that a server that does not look at chunks takes a name that came by one. */
#define MADE "nfs2-new"
#define OLD "nfs2-old"

enum { PROG_NFSACL = 100227, ACL_GETACL = 1, ACL_SETACL = 2, ACL_ACCESS = 4 };

/* A file of FILE_SIZE bytes of the pattern, and its directory. */
static bool cf2_make_file(struct cf_test *t, struct cf2_fh *dir, struct cf_fh *v3,
			  struct cf2_fh *fh)
{
	return cf2_scratch(t, dir) && cf3_make_file(t, OLD, FILE_SIZE, v3) &&
	       cf2_lookup(t, dir, OLD, fh);
}

static struct cf_call *read_call(struct cf_test *t, const struct cf2_fh *fh, uint32_t count)
{
	struct cf_call *c = cf2_new(t, CF2_READ, fh);

	xdr_put_u32(&c->rpc, 0); /* offset */
	xdr_put_u32(&c->rpc, count);
	xdr_put_u32(&c->rpc, 0); /* totalcount, which nobody uses */
	return c;
}

/* Status, attributes and the item's length, which must be len; then nothing: the item is in the Write chunk. */
static bool reduced_result(struct cf_test *t, struct cf_reply *r, bool has_attr, uint32_t len)
{
	uint32_t got;

	if (!cf3_status(t, r, CF3_OK))
		return false;
	if (has_attr)
		xdr_skip(&r->x, CF2_FATTR);
	got = xdr_get_u32(&r->x);
	if (r->x.err || got != len || r->x.left)
		return cf_fail(t, "the length of the item, and nothing behind it",
			       "length %u instead of %u, %zu bytes behind it", got, len, r->x.left);
	return true;
}

/* t->arg: bytes to read. */
static void read_chunk(struct cf_test *t)
{
	const uint32_t len = (uint32_t)t->arg;
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_make_file(t, &dir, &v3, &fh))
		return;
	struct cf_call *c = read_call(t, &fh, len);
	if (!cf_offer_write(t, c, len, 4))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && reduced_result(t, r, true, len))
		cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, len);
}

static void read_long(struct cf_test *t)
{
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_make_file(t, &dir, &v3, &fh))
		return;
	struct cf_call *c = read_call(t, &fh, FILE_SIZE);
	if (!cf_make_long(t, c, 2) || !cf_offer_write(t, c, FILE_SIZE, 1))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && reduced_result(t, r, true, FILE_SIZE))
		cf_chunk_has_pattern(t, &c->lists.write[0], &r->h.lists.write[0], 0, FILE_SIZE);
}

static void cf2_read_inline(struct cf_test *t)
{
	struct cf2_fh dir, fh;
	uint8_t want[501];
	struct cf_fh v3;
	uint32_t len;

	if (!cf2_make_file(t, &dir, &v3, &fh))
		return;
	struct cf_reply *r = cf_ask(t, read_call(t, &fh, sizeof(want)));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	xdr_skip(&r->x, CF2_FATTR);
	const uint8_t *data = xdr_get_opaque(&r->x, sizeof(want), &len);
	cf_fill_pattern(want, 0, sizeof(want));
	if (!data || len != sizeof(want) || memcmp(data, want, len) != 0)
		cf_fail(t, "the file's bytes in the stream", "something else");
}

static const char *cf2_link_text(struct cf_test *t)
{
	char *s = cf_alloc(t, TEXT_LEN + 1);

	memset(s, 't', TEXT_LEN);
	return s;
}

static void readlink_chunk(struct cf_test *t)
{
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_scratch(t, &dir) || !cf3_make_symlink(t, "nfs2-link", cf2_link_text(t), &v3) ||
	    !cf2_lookup(t, &dir, "nfs2-link", &fh))
		return;
	struct cf_call *c = cf2_new(t, CF2_READLINK, &fh);
	if (!cf_offer_write(t, c, 1024, 3))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && reduced_result(t, r, false, TEXT_LEN))
		cf_chunk_has(t, &c->lists.write[0], &r->h.lists.write[0], cf2_link_text(t),
			     TEXT_LEN);
}

/* ---- arguments -------------------------------------------------------------------------------- */

static struct cf_call *write_call(struct cf_test *t, const struct cf2_fh *fh, uint32_t len)
{
	struct cf_call *c = cf2_new(t, CF2_WRITE, fh);

	xdr_put_u32(&c->rpc, 0); /* beginoffset, which nobody uses */
	xdr_put_u32(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 0); /* totalcount, likewise */
	xdr_put_u32(&c->rpc, len);
	return c;
}

/* t->arg: bytes to write. */
static void write_chunk(struct cf_test *t)
{
	const uint32_t len = (uint32_t)t->arg;
	uint8_t *data = cf_alloc(t, FILE_SIZE);
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_make_file(t, &dir, &v3, &fh))
		return;
	cf_fill_pattern(data, 0, FILE_SIZE);
	memset(data, 'w', len);
	struct cf_call *c = write_call(t, &fh, len);
	if (!cf_reduce(t, c, data, len, 3))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf3_file_is(t, &v3, data, FILE_SIZE);
}

static void symlink_chunk(struct cf_test *t)
{
	struct cf2_fh dir, fh;

	if (!cf2_scratch(t, &dir))
		return;
	struct cf_call *c = cf2_new(t, CF2_SYMLINK, &dir);
	cf2_put_name(c, "nfs2-sym");
	xdr_put_u32(&c->rpc, TEXT_LEN);
	if (!cf_reduce(t, c, cf2_link_text(t), TEXT_LEN, 2))
		return;
	cf2_put_sattr(c, 0777);
	struct cf_reply *r = cf_ask(t, c);
	if (!r || !cf3_status(t, r, CF3_OK) || !cf2_lookup(t, &dir, "nfs2-sym", &fh))
		return;
	r = cf_ask(t, cf2_new(t, CF2_READLINK, &fh));
	if (!r || !cf3_status(t, r, CF3_OK))
		return;
	uint32_t len;
	const uint8_t *got = xdr_get_opaque(&r->x, 1024, &len);
	if (!got || len != TEXT_LEN || memcmp(got, cf2_link_text(t), len) != 0)
		cf_fail(t, "the text of the chunk in the link", "%u other bytes", len);
}

/* ---- chunks that may not be ------------------------------------------------------------------- */

static bool cf2_refused(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	return r && cf_expect_violation(t, r) && cf_alive(t);
}

/* A call of prog whose handle goes by a Read chunk; words follow it. */
static void handle_by_chunk(struct cf_test *t, uint32_t prog, uint32_t proc, unsigned words)
{
	struct cf_call *c = cf_call_new(t, prog, 2, proc);
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_make_file(t, &dir, &v3, &fh) || !cf_reduce(t, c, fh.data, CF2_FH, 1))
		return;
	for (unsigned i = 0; i < words; i++)
		xdr_put_u32(&c->rpc, 1);
	cf2_refused(t, c);
}

static void cf2_handle_chunk(struct cf_test *t)
{
	handle_by_chunk(t, CF_PROG_NFS, (uint32_t)t->arg, t->arg == CF2_READ ? 3 : 0);
}

static void cf2_acl_handle_chunk(struct cf_test *t)
{
	handle_by_chunk(t, PROG_NFSACL, (uint32_t)t->arg, 1);
}

/* The arguments behind the name. */
static void put_rest(struct cf_call *c, uint32_t proc, const struct cf2_fh *dir)
{
	if (proc == CF2_RENAME) {
		xdr_put_fixed(&c->rpc, dir->data, CF2_FH);
		cf2_put_name(c, MADE);
	} else if (proc == CF2_SYMLINK) {
		cf2_put_name(c, "target");
	}
	if (proc == CF2_CREATE || proc == CF2_MKDIR || proc == CF2_SYMLINK)
		cf2_put_sattr(c, 0644);
}

/* t->arg: a procedure. Its name goes by a Read chunk, and then there are the same names as before. */
static void name_by_chunk(struct cf_test *t)
{
	const uint32_t proc = (uint32_t)t->arg;
	const char *name =
		proc == CF2_REMOVE || proc == CF2_RENAME || proc == CF2_LOOKUP ? OLD : MADE;
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_make_file(t, &dir, &v3, &fh))
		return;
	struct cf_call *c = cf2_new(t, proc, proc == CF2_LINK ? &fh : &dir);
	if (proc == CF2_LINK)
		xdr_put_fixed(&c->rpc, dir.data, CF2_FH);
	xdr_put_u32(&c->rpc, (uint32_t)strlen(name));
	if (!cf_reduce(t, c, name, (uint32_t)strlen(name), 1))
		return;
	put_rest(c, proc, &dir);
	if (!cf2_refused(t, c) || !cf2_lookup(t, &dir, OLD, &fh))
		return;
	struct cf_reply *r = cf_ask(t, cf3_lookup(t, &t->run->scratch, MADE));
	if (r)
		cf3_status(t, r, CF3ERR_NOENT);
}

/* ---- results that may not be reduced ---------------------------------------------------------- */

static struct cf_call *cf2_other_call(struct cf_test *t, const struct cf2_fh *dir)
{
	struct cf_call *c = cf2_new(t, (uint32_t)t->arg, dir);

	if (t->arg == CF2_LOOKUP)
		cf2_put_name(c, OLD);
	if (t->arg == CF2_READDIR) {
		xdr_put_u32(&c->rpc, 0); /* cookie */
		xdr_put_u32(&c->rpc, 512);
	}
	return c;
}

static void write_list(struct cf_test *t)
{
	struct cf2_fh dir, fh;
	struct cf_fh v3;

	if (!cf2_make_file(t, &dir, &v3, &fh))
		return;
	struct cf_call *c = cf2_other_call(t, &dir);
	if (!cf_offer_write(t, c, 4096, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_writes_unused(t, r, 0);
}

static struct cf_call *acl_call(struct cf_test *t, uint32_t proc)
{
	struct cf_call *c = cf_call_new(t, PROG_NFSACL, 2, proc);
	struct cf2_fh dir;

	if (!cf2_scratch(t, &dir))
		return NULL;
	xdr_put_fixed(&c->rpc, dir.data, CF2_FH);
	xdr_put_u32(&c->rpc, 1); /* the access ACL; ACCESS: to read */
	return c;
}

static void cf2_acl_write_list(struct cf_test *t)
{
	struct cf_call *c = acl_call(t, (uint32_t)t->arg);

	if (!c || !cf_offer_write(t, c, 4096, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_writes_unused(t, r, 0);
}

/* SETACL whose entries, all of the owner's, go by a Read chunk. */
static void cf2_acl_entries(struct cf_test *t)
{
	static const uint8_t entry[12] = { 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7 };
	struct cf_call *c = acl_call(t, ACL_SETACL);

	if (!c)
		return;
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, 1);
	if (!cf_reduce(t, c, entry, sizeof(entry), 1))
		return;
	xdr_put_u32(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 0);
	cf2_refused(t, c);
}

#define ROW(id, paragraph, title, run, arg)                                                        \
	{                                                                                          \
		"nfs2-" id, paragraph, title, run, arg, 0                                          \
	}
#define NAME_ROW(id, NAME)                                                                         \
	ROW(id "-name", "RFC 8267 4", #NAME "'s name by a chunk is refused", name_by_chunk,        \
	    CF2_##NAME)
#define UNUSED_ROW(id, NAME)                                                                       \
	ROW(id "-write-list", "RFC 8267 4", #NAME " leaves a Write chunk unused", write_list,      \
	    CF2_##NAME)
#define HANDLE_ROW(id, NAME)                                                                       \
	ROW(id "-handle", "RFC 8267 4", #NAME "'s handle by a chunk is refused", cf2_handle_chunk, \
	    CF2_##NAME)

static const struct cf_case cases[] = {
	ROW("read", "RFC 8267 4", "READ's data by a Write chunk", read_chunk, 4096),
	ROW("read-odd", "RFC 8267 4", "READ's data by a Write chunk, an odd number", read_chunk,
	    FILE_SIZE),
	ROW("read-long-call", "RFC 8166 3.5.3", "READ as a Long Call with a Write chunk", read_long,
	    0),
	ROW("read-inline", "RFC 8166 4.3.2.3", "READ without a chunk", cf2_read_inline, 0),
	ROW("readlink", "RFC 8267 4", "READLINK's path by a Write chunk", readlink_chunk, 0),
	ROW("write", "RFC 8267 4", "WRITE's data by a Read chunk", write_chunk, 4096),
	ROW("write-odd", "RFC 8267 4", "WRITE's data by a Read chunk, an odd number", write_chunk,
	    777),
	ROW("symlink", "RFC 8267 4", "SYMLINK's path by a Read chunk", symlink_chunk, 0),
	HANDLE_ROW("getattr", GETATTR),
	HANDLE_ROW("read", READ),
	HANDLE_ROW("readlink", READLINK),
	HANDLE_ROW("statfs", STATFS),
	NAME_ROW("lookup", LOOKUP),
	NAME_ROW("create", CREATE),
	NAME_ROW("remove", REMOVE),
	NAME_ROW("rename", RENAME),
	NAME_ROW("link", LINK),
	NAME_ROW("symlink", SYMLINK),
	NAME_ROW("mkdir", MKDIR),
	UNUSED_ROW("getattr", GETATTR),
	UNUSED_ROW("lookup", LOOKUP),
	UNUSED_ROW("readdir", READDIR),
	UNUSED_ROW("statfs", STATFS),
	ROW("getacl-handle", "RFC 8267 5.2", "NFSACL 2: GETACL's handle by a chunk is refused",
	    cf2_acl_handle_chunk, ACL_GETACL),
	ROW("access-handle", "RFC 8267 5.2", "NFSACL 2: ACCESS's handle by a chunk is refused",
	    cf2_acl_handle_chunk, ACL_ACCESS),
	ROW("setacl-entries", "RFC 8267 5.2", "NFSACL 2: SETACL's entries by a chunk are refused",
	    cf2_acl_entries, 0),
	ROW("getacl-write-list", "RFC 8267 5.2", "NFSACL 2: GETACL leaves a Write chunk unused",
	    cf2_acl_write_list, ACL_GETACL),
	ROW("access-write-list", "RFC 8267 5.2", "NFSACL 2: ACCESS leaves a Write chunk unused",
	    cf2_acl_write_list, ACL_ACCESS),
};

const struct cf_group cf_group_nfs2 = { "nfs2", 2701, cases, rn_array_size(cases) };
