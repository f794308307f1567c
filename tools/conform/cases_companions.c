/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocols beside NFSv3: NLM, NSM, NFSACL and MOUNT 1 (RFC 8267 section 5; MOUNT 3 is in cases_ddp.c), and
 * RQUOTA, which has no binding. None of their items is DDP-eligible. So a Read chunk for one is refused, and a Write chunk stays unused. A server need
 * not answer them over RDMA.
 */
#include <string.h>

#include "lib/util.h"
#include "tools/conform/conform_check.h"
#include "tools/conform/nfs3.h"

#define NAME "companions"
#define NOBODY "nobody.invalid"

enum { PROG_RQUOTA = 100011, PROG_NLM = 100021, PROG_NSM = 100024, PROG_NFSACL = 100227 };
enum { MNT = 1, GETQUOTA = 1, NLM_TEST = 1, NSM_NOTIFY = 6, NFSACL_GETACL = 1, NFSACL_SETACL = 2 };
enum { NLM_LAST_STAT = 9 };
/* Items of TEST, and none. */
enum item { COOKIE, CALLER, HANDLE, OWNER, NONE, ITEMS };

/* t->arg of NLM's cases. */
#define NLM_CASE(vers, item) ((vers)*ITEMS + (item))

/* False with a verdict if the server does not answer the program over RDMA. */
static bool companion_is_there(struct cf_test *t, uint32_t prog, uint32_t vers)
{
	struct cf_reply *r = cf_ask_any(t, cf_call_new(t, prog, vers, 0));

	if (!r)
		return false;
	if (r->h.proc == CF_ERROR || !r->accepted || r->accept != CF_SUCCESS)
		return cf_skip(t, "the program is not answered over RDMA");
	return true;
}

static bool put_item(struct cf_test *t, struct cf_call *c, bool reduced, const void *data,
		     uint32_t len)
{
	if (!reduced) {
		xdr_put_opaque(&c->rpc, data, len);
		return true;
	}
	xdr_put_u32(&c->rpc, len);
	return cf_reduce(t, c, data, len, 1);
}

/* TEST of a lock of a new file, with one item in a chunk. NULL: verdict. */
static struct cf_call *nlm_test(struct cf_test *t, uint32_t vers, enum item item)
{
	struct cf_call *c = cf_call_new(t, PROG_NLM, vers, NLM_TEST);
	struct cf_fh fh;

	if (!companion_is_there(t, PROG_NLM, vers) || !cf3_make_file(t, NAME, 10, &fh) ||
	    !put_item(t, c, item == COOKIE, "cookie", 6))
		return NULL;
	xdr_put_u32(&c->rpc, 1); /* exclusive */
	if (!put_item(t, c, item == CALLER, NOBODY, strlen(NOBODY)) ||
	    !put_item(t, c, item == HANDLE, fh.data, fh.len) ||
	    !put_item(t, c, item == OWNER, "owner", 5))
		return NULL;
	xdr_put_u32(&c->rpc, 1);			     /* process */
	for (unsigned i = 0; i < (vers == 4 ? 4u : 2u); i++) /* the whole file */
		xdr_put_u32(&c->rpc, 0);
	return c;
}

static void companion_refused(struct cf_test *t, struct cf_call *c)
{
	struct cf_reply *r = c ? cf_ask_any(t, c) : NULL;

	if (r && cf_expect_violation(t, r))
		cf_alive(t);
}

static void nlm_item(struct cf_test *t)
{
	companion_refused(t, nlm_test(t, (uint32_t)(t->arg / ITEMS), (enum item)(t->arg % ITEMS)));
}

/* The result is nlm_testres: cookie and status. */
static void check_nlm(struct cf_test *t, struct cf_reply *r)
{
	uint32_t len, stat;
	const uint8_t *cookie = xdr_get_opaque(&r->x, 1024, &len);

	stat = xdr_get_u32(&r->x);
	if (r->x.err || len != 6 || memcmp(cookie, "cookie", 6) != 0 || stat > NLM_LAST_STAT)
		cf_fail(t, "the call's cookie and a status, in the stream", "something else");
}

static void nlm_write_list(struct cf_test *t)
{
	struct cf_call *c = nlm_test(t, (uint32_t)(t->arg / ITEMS), NONE);

	if (!c || !cf_offer_write(t, c, 1024, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf_writes_unused(t, r, 0))
		check_nlm(t, r);
}

/* All of the call in a position-zero Read chunk, which is no reduced item. */
static void nlm_long(struct cf_test *t)
{
	struct cf_call *c = nlm_test(t, (uint32_t)(t->arg / ITEMS), NONE);

	if (!c || !cf_make_long(t, c, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r)
		check_nlm(t, r);
}

static struct cf_call *nsm_notify(struct cf_test *t, bool reduced)
{
	struct cf_call *c = cf_call_new(t, PROG_NSM, 1, NSM_NOTIFY);

	if (!companion_is_there(t, PROG_NSM, 1) || !put_item(t, c, reduced, NOBODY, strlen(NOBODY)))
		return NULL;
	xdr_put_u32(&c->rpc, 1);
	return c;
}

static void nsm_name(struct cf_test *t)
{
	companion_refused(t, nsm_notify(t, true));
}

static void nsm_write_list(struct cf_test *t)
{
	struct cf_call *c = nsm_notify(t, false);

	if (!c || !cf_offer_write(t, c, 1024, 1))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r)
		cf_writes_unused(t, r, 0);
}

/* The attributes and the access ACL. */
static struct cf_call *getacl(struct cf_test *t, bool reduced)
{
	const struct cf_fh *fh = &t->run->scratch;
	struct cf_call *c = cf_call_new(t, PROG_NFSACL, 3, NFSACL_GETACL);

	if (!companion_is_there(t, PROG_NFSACL, 3) || !put_item(t, c, reduced, fh->data, fh->len))
		return NULL;
	xdr_put_u32(&c->rpc, 1);
	return c;
}

static void companion_acl_handle(struct cf_test *t)
{
	companion_refused(t, getacl(t, true));
}

static void companion_acl_write_list(struct cf_test *t)
{
	struct cf_call *c = getacl(t, false);

	if (!c || !cf_offer_write(t, c, 4096, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r && cf3_status(t, r, CF3_OK))
		cf_writes_unused(t, r, 0);
}

static void acl_long(struct cf_test *t)
{
	struct cf_call *c = getacl(t, false);

	if (!c || !cf_make_long(t, c, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r)
		cf3_status(t, r, CF3_OK);
}

/* SETACL whose only entry goes by a Read chunk. */
static void companion_acl_entries(struct cf_test *t)
{
	static const uint8_t entry[12] = { 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7 };
	struct cf_call *c = cf_call_new(t, PROG_NFSACL, 3, NFSACL_SETACL);

	if (!companion_is_there(t, PROG_NFSACL, 3))
		return;
	cf_put_fh(&c->rpc, &t->run->scratch);
	for (unsigned i = 0; i < 3; i++) /* mask, number, length of the array */
		xdr_put_u32(&c->rpc, 1);
	if (!cf_reduce(t, c, entry, sizeof(entry), 1))
		return;
	xdr_put_u32(&c->rpc, 0); /* no default ACL */
	xdr_put_u32(&c->rpc, 0);
	companion_refused(t, c);
}

/* A call whose argument is the export's path: MNT 1, or GETQUOTA, which has the user behind it. */
static struct cf_call *by_path(struct cf_test *t, bool reduced)
{
	const uint32_t prog = (uint32_t)t->arg;
	const char *path = t->run->export_path;
	struct cf_call *c = cf_call_new(t, prog, 1, prog == PROG_RQUOTA ? GETQUOTA : MNT);

	if (!companion_is_there(t, prog, 1) ||
	    !put_item(t, c, reduced, path, (uint32_t)strlen(path)))
		return NULL;
	if (prog == PROG_RQUOTA)
		xdr_put_u32(&c->rpc, t->run->uid);
	return c;
}

static void companion_mount_path(struct cf_test *t)
{
	companion_refused(t, by_path(t, true));
}

static void path_write_list(struct cf_test *t)
{
	struct cf_call *c = by_path(t, false);

	if (!c || !cf_offer_write(t, c, 1024, 2))
		return;
	struct cf_reply *r = cf_ask(t, c);
	if (r)
		cf_writes_unused(t, r, 0);
}

#define ROW(id, paragraph, title, run, arg)                                                        \
	{                                                                                          \
		"comp-" id, paragraph, title, run, arg, 0                                          \
	}
#define NLM_ROWS(v)                                                                                \
	ROW("nlm" #v "-cookie", "RFC 8267 5", "NLM " #v ": TEST's cookie by a chunk is refused",   \
	    nlm_item, NLM_CASE(v, COOKIE)),                                                        \
		ROW("nlm" #v "-caller", "RFC 8267 5",                                              \
		    "NLM " #v ": TEST's caller by a chunk is refused", nlm_item,                   \
		    NLM_CASE(v, CALLER)),                                                          \
		ROW("nlm" #v "-handle", "RFC 8267 5",                                              \
		    "NLM " #v ": TEST's handle by a chunk is refused", nlm_item,                   \
		    NLM_CASE(v, HANDLE)),                                                          \
		ROW("nlm" #v "-owner", "RFC 8267 5",                                               \
		    "NLM " #v ": TEST's owner by a chunk is refused", nlm_item,                    \
		    NLM_CASE(v, OWNER)),                                                           \
		ROW("nlm" #v "-write-list", "RFC 8166 4.3.2.2",                                    \
		    "NLM " #v ": TEST leaves a Write chunk unused", nlm_write_list,                \
		    NLM_CASE(v, NONE)),                                                            \
		ROW("nlm" #v "-long", "RFC 8166 3.5.3", "NLM " #v ": TEST as a Long Call",         \
		    nlm_long, NLM_CASE(v, NONE))

static const struct cf_case cases[] = {
	NLM_ROWS(1),
	NLM_ROWS(3),
	NLM_ROWS(4),
	ROW("nsm-name", "RFC 8267 5", "SM_NOTIFY's name by a chunk is refused", nsm_name, 0),
	ROW("nsm-write-list", "RFC 8166 4.3.2.2", "SM_NOTIFY leaves a Write chunk unused",
	    nsm_write_list, 0),
	ROW("acl-handle", "RFC 8267 5.2", "GETACL's handle by a chunk is refused",
	    companion_acl_handle, 0),
	ROW("acl-write-list", "RFC 8267 5.2", "GETACL leaves a Write chunk unused",
	    companion_acl_write_list, 0),
	ROW("acl-long", "RFC 8267 5.2", "GETACL as a Long Call", acl_long, 0),
	ROW("acl-entries", "RFC 8267 5.2", "SETACL's entries by a chunk are refused",
	    companion_acl_entries, 0),
	ROW("mount1-path", "RFC 8267 5.1", "MOUNT 1: MNT's path by a chunk is refused",
	    companion_mount_path, CF_PROG_MOUNT),
	ROW("mount1-write-list", "RFC 8267 5.1", "MOUNT 1: MNT leaves a Write chunk unused",
	    path_write_list, CF_PROG_MOUNT),
	ROW("rquota-path", "RFC 8166 6.1", "GETQUOTA's path by a chunk is refused",
	    companion_mount_path, PROG_RQUOTA),
	ROW("rquota-write-list", "RFC 8166 4.3.2.2", "GETQUOTA leaves a Write chunk unused",
	    path_write_list, PROG_RQUOTA),
};

const struct cf_group cf_group_companions = { "companions", 901, cases, rn_array_size(cases) };
