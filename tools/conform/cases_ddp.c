/* SPDX-License-Identifier: BSD-2-Clause */
/* Arguments that may not be reduced, and chunks that do not fit theirs: RFC 8166 sections 6.1 and
 * 4.5.2, RFC 8267 sections 4, 5 and 6.1. The server must refuse the call and must not carry it out.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/nfs3.h"
#include "tools/conform/nfs4.h"

#define NAME "ddp"

/* True if the call is refused and the connection goes on. */
static bool ddp_refused(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	return r && cf_expect_violation(t, r) && cf_alive(t);
}

/* Encodes a counted item: its length stays in the stream, its bytes go into a chunk. */
static bool put_reduced(struct cf_test *t, struct cf_call *c, const void *data, uint32_t len)
{
	xdr_put_u32(&c->rpc, len);
	return cf_reduce(t, c, data, len, 1);
}

static void ddp_handle(struct cf_test *t)
{
	const struct cf_fh *fh = &t->run->scratch;
	struct cf_call *c = cf3_new(t, t->arg);

	if (!put_reduced(t, c, fh->data, fh->len))
		return;
	if (t->arg == CF3_READ) {
		xdr_put_u64(&c->rpc, 0);
		xdr_put_u32(&c->rpc, 100);
	} else if (t->arg == CF3_LOOKUP) {
		xdr_put_opaque(&c->rpc, "x", 1);
	}
	ddp_refused(t, c);
}

static void lookup_name(struct cf_test *t)
{
	struct cf_call *c = cf3_new(t, CF3_LOOKUP);

	cf_put_fh(&c->rpc, &t->run->scratch);
	if (put_reduced(t, c, "some-name", 9))
		ddp_refused(t, c);
}

/* True if the scratch directory has no such name. */
static bool not_made(struct cf_test *t, const char *name)
{
	struct cf_reply *r = cf_ask(t, cf3_lookup(t, &t->run->scratch, name));

	return r && cf3_status(t, r, CF3ERR_NOENT);
}

/* CREATE or MKDIR with the name in a chunk and the rest inline. */
static void create_name(struct cf_test *t)
{
	static const char name[] = "ddp-made";
	struct cf_call *c = cf3_new(t, t->arg);

	cf_put_fh(&c->rpc, &t->run->scratch);
	if (!put_reduced(t, c, name, strlen(name)))
		return;
	if (t->arg == CF3_CREATE)
		xdr_put_u32(&c->rpc, CF3_UNCHECKED);
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&c->rpc, 0);
	if (ddp_refused(t, c))
		not_made(t, name);
}

static void symlink_name(struct cf_test *t)
{
	static const char name[] = "ddp-link";
	struct cf_call *c = cf3_new(t, CF3_SYMLINK);

	cf_put_fh(&c->rpc, &t->run->scratch);
	if (!put_reduced(t, c, name, strlen(name)))
		return;
	for (int i = 0; i < 6; i++)
		xdr_put_u32(&c->rpc, 0);
	xdr_put_opaque(&c->rpc, "text", 4);
	if (ddp_refused(t, c))
		not_made(t, name);
}

static void ddp_remove_name(struct cf_test *t)
{
	struct cf_call *c = cf3_new(t, CF3_REMOVE);
	struct cf_fh fh;

	if (!cf3_make_file(t, "ddp-kept", 0, &fh))
		return;
	cf_put_fh(&c->rpc, &t->run->scratch);
	if (!put_reduced(t, c, "ddp-kept", 8) || !ddp_refused(t, c))
		return;
	struct cf_reply *r = cf_ask(t, cf3_lookup(t, &t->run->scratch, "ddp-kept"));
	if (r)
		cf3_status(t, r, CF3_OK);
}

/* Puts all of GETATTR's arguments but their first word into a chunk, which thus holds no whole
 * item. */
static void part_of_handle(struct cf_test *t)
{
	const struct cf_fh *fh = &t->run->scratch;
	struct cf_call *c = cf3_new(t, CF3_GETATTR);

	xdr_put_u32(&c->rpc, fh->len);
	xdr_put_fixed(&c->rpc, fh->data, 4);
	if (cf_reduce(t, c, fh->data + 4, fh->len - 4, 1))
		ddp_refused(t, c);
}

static void file_unchanged(struct cf_test *t, struct cf_call *c, const struct cf_fh *fh)
{
	uint64_t size;

	if (!ddp_refused(t, c) || !cf3_file_size(t, fh, &size))
		return;
	if (size != 10)
		cf_fail(t, "a refused WRITE does nothing", "the file has %llu bytes, not 10",
			(unsigned long long)size);
}

static void write_handle(struct cf_test *t)
{
	struct cf_call *c = cf3_new(t, CF3_WRITE);
	struct cf_fh fh;

	if (!cf3_make_file(t, NAME, 10, &fh) || !put_reduced(t, c, fh.data, fh.len))
		return;
	xdr_put_u64(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 100);
	xdr_put_u32(&c->rpc, CF3_FILE_SYNC);
	xdr_put_opaque(&c->rpc, cf_alloc(t, 100), 100);
	file_unchanged(t, c, &fh);
}

/*
 * Data with their length word in the chunk, though section 3.4.4.1 keeps the length in the stream.
 */
static void count_in_chunk(struct cf_test *t)
{
	struct cf_call *c = cf3_new(t, CF3_WRITE);
	struct cf_fh fh;
	uint8_t item[104] = { 0, 0, 0, 100 };

	if (!cf3_make_file(t, NAME, 10, &fh))
		return;
	cf_put_fh(&c->rpc, &fh);
	xdr_put_u64(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 100);
	xdr_put_u32(&c->rpc, CF3_FILE_SYNC);
	if (cf_reduce(t, c, item, sizeof(item), 1))
		file_unchanged(t, c, &fh);
}

/* Chunk whose length differs from the data's by t->arg, more than padding explains. */
static void wrong_length(struct cf_test *t)
{
	struct cf_fh fh;
	uint8_t data[2048] = { 1 };

	if (!cf3_make_file(t, NAME, 10, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, 1024, NULL);
	if (cf_reduce(t, c, data, 1024 + t->arg, 1))
		file_unchanged(t, c, &fh);
}

/* Data inline and in a chunk. The chunk is the argument, so the inline bytes follow the arguments.
 * A server may refuse them; if it does not, it must have written the chunk. */
static void both(struct cf_test *t)
{
	struct cf_fh fh;
	uint8_t data[256] = { 1 };

	if (!cf3_make_file(t, NAME, 10, &fh))
		return;
	struct cf_call *c = cf3_write(t, &fh, 0, sizeof(data), NULL);
	uint32_t position = cf_position(c);
	xdr_put_fixed(&c->rpc, data, sizeof(data));
	struct cf_window *w = cf_window_new(t->conn, sizeof(data));
	if (!w)
		return;
	cf_add_read(&c->lists, position, cf_window_seg(w, 0, sizeof(data)));
	struct cf_reply *r = cf_ask_any(t, c);
	if (!r)
		return;
	if (r->h.proc != CF_ERROR && r->accepted && r->accept == CF_SUCCESS)
		cf3_file_is(t, &fh, w->data, sizeof(data));
	else
		cf_expect_violation(t, r);
}

/* Read chunk at the end of a call whose procedure has no argument for it. */
static void no_argument(struct cf_test *t)
{
	static const uint8_t data[100];
	struct cf_call *c = t->arg ? cf3_read(t, &t->run->scratch, 0, 100) : cf3_null(t);

	if (cf_reduce(t, c, data, sizeof(data), 1))
		ddp_refused(t, c);
}

static bool mount_over_rdma(struct cf_test *t)
{
	struct cf_reply *r = cf_ask_any(t, cf_mount_null(t));

	if (!r)
		return false;
	if (r->h.proc == CF_ERROR || !r->accepted || r->accept != CF_SUCCESS)
		return cf_skip(t, "MOUNT is not answered over RDMA");
	return true;
}

static void mount_path(struct cf_test *t)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_MOUNT, 3, 1);

	if (!mount_over_rdma(t))
		return;
	if (put_reduced(t, c, t->run->export_path, strlen(t->run->export_path)))
		ddp_refused(t, c);
}

/* No result of MOUNT is DDP-eligible, so an offered Write list must stay unused. */
static void mount_write_list(struct cf_test *t)
{
	struct cf_call *c = cf_mount_mnt(t, t->run->export_path);

	if (!mount_over_rdma(t) || !cf_offer_write(t, c, 4096, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf_chunk_len(&r->h.lists.write[0]))
		cf_fail(t, "an unused Write chunk", "%llu bytes in it",
			(unsigned long long)cf_chunk_len(&r->h.lists.write[0]));
}

/* ---- NFSv4 ------------------------------------------------------------------------------------
 */

/* Like ddp_refused(), but also accepts an NFSv4 status as a refusal. */
static bool refused4(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = cf_ask_any(t, c);

	if (!r)
		return false;
	if (r->h.proc != CF_ERROR && r->accepted && r->accept == CF_SUCCESS &&
	    xdr_get_u32(&r->x) == CF4ERR_BADXDR)
		return cf_alive(t);
	return cf_expect_violation(t, r) && cf_alive(t);
}

enum item4 { PUTFH4, LOOKUP4, LINK_NAME4, STATEID4 };

static bool put_item4(struct cf_test *t, struct cf_call *c, enum item4 item, const struct cf_fh *fh)
{
	if (item == PUTFH4) {
		cf4_op(c, CF4_PUTFH);
		return put_reduced(t, c, fh->data, fh->len);
	}
	cf4_putfh(c, fh);
	if (item == LOOKUP4) {
		cf4_op(c, CF4_LOOKUP);
		return put_reduced(t, c, NAME, strlen(NAME));
	}
	if (item == LINK_NAME4) {
		cf4_create_link(c, 4);
		xdr_put_fixed(&c->rpc, "text", 4);
		if (!put_reduced(t, c, "ddp-link4", 9))
			return false;
		xdr_put_u32(&c->rpc, 0);
		xdr_put_u32(&c->rpc, 0);
		return true;
	}
	cf4_op(c, CF4_READ);
	static const uint8_t anonymous[16];
	if (!cf_reduce(t, c, anonymous, sizeof(anonymous), 1))
		return false;
	xdr_put_u64(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 100);
	return true;
}

static void item4(struct cf_test *t)
{
	struct cf4_session *s = cf4_begin(t, 0);
	struct cf_fh fh3, fh;

	if (!s || !cf3_make_file(t, NAME, 10, &fh3) ||
	    !cf4_handle(t, s, t->arg == STATEID4 ? NAME : NULL, &fh))
		return;
	struct cf_call *c = cf4_new(t, s, NULL);
	if (put_item4(t, c, t->arg, &fh) && refused4(t, c) && t->arg == LINK_NAME4)
		not_made(t, "ddp-link4");
}

static void tag4(struct cf_test *t)
{
	struct cf_call *c = cf_call_new(t, CF_PROG_NFS, 4, 1);

	if (!put_reduced(t, c, "a tag in a chunk", 16))
		return;
	xdr_put_u32(&c->rpc, 0);
	xdr_put_u32(&c->rpc, 1);
	xdr_put_u32(&c->rpc, CF4_PUTROOTFH);
	refused4(t, c);
}

#define DDP(id, paragraph, title, run, arg)                                                        \
	{                                                                                          \
		"ddp-" id, paragraph, title, run, arg, 0                                           \
	}
#define DDP_SHOULD(id, paragraph, title, run, arg)                                                 \
	{                                                                                          \
		"ddp-" id, paragraph, title, run, arg, CF_SHOULD                                   \
	}
#define DDP4(id, title, run, arg)                                                                  \
	{                                                                                          \
		"ddp-" id, "RFC 8267 6.1", title, run, arg, CF_NFS4                                \
	}

static const struct cf_case cases[] = {
	DDP("getattr-handle", "RFC 8267 4", "GETATTR's handle by a chunk is refused", ddp_handle,
	    CF3_GETATTR),
	DDP("read-handle", "RFC 8267 4", "READ's handle by a chunk is refused", ddp_handle,
	    CF3_READ),
	DDP("lookup-handle", "RFC 8267 4", "LOOKUP's handle by a chunk is refused", ddp_handle,
	    CF3_LOOKUP),
	DDP("lookup-name", "RFC 8267 4", "LOOKUP's name by a chunk is refused", lookup_name, 0),
	DDP("create-name", "RFC 8166 6.1", "CREATE's name by a chunk: refused and nothing made",
	    create_name, CF3_CREATE),
	DDP("mkdir-name", "RFC 8166 6.1", "MKDIR's name by a chunk: refused and nothing made",
	    create_name, CF3_MKDIR),
	DDP("symlink-name", "RFC 8267 4", "SYMLINK's name by a chunk: refused and nothing made",
	    symlink_name, 0),
	DDP("remove-name", "RFC 8166 6.1", "REMOVE's name by a chunk: refused and nothing removed",
	    ddp_remove_name, 0),
	DDP("part", "RFC 8166 3.4.4", "a chunk that is part of an item is refused", part_of_handle,
	    0),
	DDP("write-handle", "RFC 8166 6.1",
	    "WRITE's handle by a chunk: refused and nothing written", write_handle, 0),
	DDP("count", "RFC 8166 3.4.4.1", "WRITE's count in the chunk: refused", count_in_chunk, 0),
	DDP("short-1", "RFC 8166 4.5.2", "WRITE's chunk one byte short: refused", wrong_length, -1),
	DDP("short-512", "RFC 8166 4.5.2", "WRITE's chunk 512 bytes short: refused", wrong_length,
	    -512),
	DDP_SHOULD("long-4", "RFC 8166 4.5.2", "WRITE's chunk four bytes too long: refused",
		   wrong_length, 4),
	DDP_SHOULD("long-1024", "RFC 8166 4.5.2", "WRITE's chunk twice as long: refused",
		   wrong_length, 1024),
	DDP("both", "RFC 8166 3.4.1",
	    "WRITE's data inline and by a chunk: refused, or the chunk's written", both, 0),
	DDP("null", "RFC 8166 6.1", "NULL with a Read chunk: refused", no_argument, 0),
	DDP("read", "RFC 8166 6.1", "READ with a Read chunk behind its arguments: refused",
	    no_argument, 1),
	DDP("mount-path", "RFC 8267 5.1", "MNT's path by a chunk is refused", mount_path, 0),
	DDP("mount-write-list", "RFC 8166 4.3.2.2", "MNT leaves a Write chunk unused",
	    mount_write_list, 0),
	DDP4("v4-tag", "COMPOUND's tag by a chunk is refused", tag4, 0),
	DDP4("v4-putfh", "PUTFH's handle by a chunk is refused", item4, PUTFH4),
	DDP4("v4-lookup", "LOOKUP's name by a chunk is refused", item4, LOOKUP4),
	DDP4("v4-link-name", "CREATE's name by a chunk is refused, though linkdata may be", item4,
	     LINK_NAME4),
	DDP4("v4-stateid", "READ's stateid by a chunk is refused", item4, STATEID4),
};

const struct cf_group cf_group_ddp = { "ddp", 701, cases, rn_array_size(cases) };
