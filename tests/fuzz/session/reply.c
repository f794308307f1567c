/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results are described by a letter for each item (RFC 1813 section 3.3 and appendix I):
 *
 *   u U b   32 bits, 64 bits, a boolean        a p w  attributes, optional ones, wcc_data
 *   H h     a handle, an optional one          o      any counted opaque that may go by a chunk
 *   r       READ's count, end mark and data    e E    directory entries, with attributes
 *   F       MOUNT's fixed handle               f      flavours
 *   O       NLM's opaques, which never do      l      an ACL of NFSACL
 *   d x     MOUNT's list of mounts, of exports *      anything
 */
#include "tests/fuzz/session/reply.h"

#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/nfs2_results.h"
#include "tests/fuzz/session/reader.h"
#include "tests/fuzz/session/results.h"
#include "tests/fuzz/session/sealed.h"

#define NFS_PROG 100003u
#define MOUNT_PROG 100005u
#define NLM_PROG 100021u
#define NSM_PROG 100024u
#define NLM_TEST 1u
#define NLM_TEST_MSG 6u
#define NLM_GRANTED_RES 15u
#define NLM_SHARE 20u
#define NLM_UNSHARE 21u
#define NLM_FREE_ALL 23u
#define NLM_DENIED 1u
#define NLM_OPAQUE_MAX 1024u
#define NLM_STAT_LAST 9u /* NLM4_FAILED */
#define NFSACL_PROG 100227u
#define NFSACL_GETACL 1u
#define NFSACL_SETACL 2u
#define NFSACL_ENTRIES_MAX 1024u
#define RQUOTA_PROG 100011u
#define RQUOTA_LAST 4u /* procedure */
#define RQUOTA_GETACTIVE 2u
#define RQUOTA_OK 1u
#define RQUOTA_EPERM 3u
#define LIST_MAX 100000u

static void get_attributes(struct ss_in *in)
{
	const uint8_t *p = ss_get(in, 84);

	if (!in->bad && (ss_word(p) < 1 || ss_word(p) > 7))
		ss_wrong(in, "an unknown file type");
	/* atime, mtime, ctime */
	for (unsigned at = 64; !in->bad && at < 84; at += 8)
		if (ss_word(p + at) > 999999999)
			ss_wrong(in, "a time of more than a second's nanoseconds");
}

static void get_post_op(struct ss_in *in)
{
	if (ss_get_bool(in))
		get_attributes(in);
}

static void get_wcc(struct ss_in *in)
{
	if (ss_get_bool(in))
		ss_get(in, 24);
	get_post_op(in);
}

static void get_read(struct ss_in *in)
{
	uint32_t count = ss_get_u32(in);

	ss_get_bool(in);
	if (ss_get_bulk(in) != count)
		ss_wrong(in, "READ: the count is not the data's length");
}

static void get_entries(struct ss_in *in, bool plus)
{
	unsigned n = 0;

	while (!in->bad && ss_get_bool(in)) {
		ss_get_u64(in);
		ss_get_name(in, 255);
		uint64_t cookie = ss_get_u64(in);
		if (!in->bad && in->learn)
			in->learn->cookie = cookie;
		if (plus) {
			get_post_op(in);
			if (ss_get_bool(in))
				ss_get_handle(in);
		}
		if (++n > LIST_MAX)
			ss_wrong(in, "too many entries");
	}
	ss_get_bool(in);
}

static void get_list(struct ss_in *in, bool exports)
{
	while (!in->bad && ss_get_bool(in)) {
		ss_get_name(in, exports ? 1024 : 255);
		if (!exports)
			ss_get_name(in, 1024);
		while (exports && !in->bad && ss_get_bool(in))
			ss_get_name(in, 255);
	}
}

static void get_flavours(struct ss_in *in)
{
	uint32_t n = ss_get_u32(in);

	if (n > 16)
		ss_wrong(in, "more than 16 flavours");
	else
		ss_get(in, 4 * n);
}

/* The number of entries, then all of them or none. */
void ss_get_acl(struct ss_in *in)
{
	uint32_t count = ss_get_u32(in), n = ss_get_u32(in);

	if (count > NFSACL_ENTRIES_MAX || (n != 0 && n != count))
		ss_wrong(in, "the numbers of an ACL");
	for (uint32_t i = 0; i < n && !in->bad; i++) {
		ss_get(in, 8);
		if (ss_get_u32(in) > 7)
			ss_wrong(in, "permissions of an ACL");
	}
}

static void get_packed(struct ss_in *in)
{
	const uint8_t *p = ss_get(in, SS_PACKED_SIZE);

	if (!in->bad && in->learn)
		ss_learn_packed(in->learn, p);
}

static void get_verifier(struct ss_in *in)
{
	uint64_t v = ss_get_u64(in);

	if (!in->bad && in->learn)
		in->learn->cookieverf = v;
}

static void get_item(struct ss_in *in, char c)
{
	uint32_t len;

	switch (c) {
	case 'u':
		ss_get_u32(in);
		break;
	case 'U':
		ss_get_u64(in);
		break;
	case 'b':
		ss_get_bool(in);
		break;
	case 'a':
		get_attributes(in);
		break;
	case 'p':
		get_post_op(in);
		break;
	case 'w':
		get_wcc(in);
		break;
	case 'H':
		ss_get_handle(in);
		break;
	case 'h':
		if (ss_get_bool(in))
			ss_get_handle(in);
		break;
	case 'o':
		ss_get_bulk(in);
		break;
	case 'O':
		ss_get_opaque(in, NLM_OPAQUE_MAX, &len);
		break;
	case 'r':
		get_read(in);
		break;
	case 'l':
		ss_get_acl(in);
		break;
	case 'v':
		get_verifier(in);
		break;
	case 'e':
	case 'E':
		get_entries(in, c == 'E');
		break;
	case 'F':
		get_packed(in);
		break;
	case 'f':
		get_flavours(in);
		break;
	case 'd':
	case 'x':
		get_list(in, c == 'x');
		break;
	default: /* '*' */
		ss_get(in, in->left);
		break;
	}
}

/*
 * Results of NFSv3's procedures by number: the letters behind status 0 and behind other statuses.
 */
static const struct {
	const char *ok, *fail;
} nfs3_results[] = {
	{ NULL, NULL },	    { "a", "" },    { "w", "w" },	 { "Hpp", "p" },
	{ "pu", "p" },	    { "po", "p" },  { "pr", "p" },	 { "wuuU", "w" },
	{ "hpw", "w" },	    { "hpw", "w" }, { "hpw", "w" },	 { "hpw", "w" },
	{ "w", "w" },	    { "w", "w" },   { "ww", "ww" },	 { "pw", "pw" },
	{ "pve", "p" },	    { "pvE", "p" }, { "pUUUUUUu", "p" }, { "puuuuuuuUuuu", "p" },
	{ "puubbbb", "p" }, { "wU", "w" },
};

static void get_items(struct ss_in *in, const char *items)
{
	for (; *items && !in->bad; items++)
		get_item(in, *items);
}

static bool nfs3_status_known(uint32_t s)
{
	static const uint16_t known[] = { 0,	 1,	2,     5,     6,    13,	   17,	  18,
					  19,	 20,	21,    22,    27,   28,	   30,	  31,
					  63,	 66,	69,    70,    71,   10001, 10002, 10003,
					  10004, 10005, 10006, 10007, 10008 };

	for (size_t i = 0; i < rn_array_size(known); i++)
		if (known[i] == s)
			return true;
	return false;
}

static void nfs3_results_check(struct ss_in *in, uint32_t proc)
{
	if (!nfs3_results[proc].ok)
		return;
	uint32_t status = ss_get_u32(in);
	if (!nfs3_status_known(status))
		ss_wrong(in, "an unknown NFS status");
	ss_claims_proc3(in, proc, status);
	get_items(in, status ? nfs3_results[proc].fail : nfs3_results[proc].ok);
}

static void mount_results_check(struct ss_in *in, uint32_t vers, uint32_t proc)
{
	static const char *const lists[] = { "", NULL, "d", "", "", "x", "x", "*" };

	if (proc == 1)
		get_items(in, ss_get_u32(in) ? "" : vers == 3 ? "Hf" : "F");
	else
		get_items(in, lists[proc]);
}

/* NULL, STAT, MON, UNMON, UNMON_ALL, SIMU_CRASH, NOTIFY. */
static const char *const nsm_results[] = { "", "uu", "uu", "u", "u", "", "" };

static bool nlm_has(uint32_t vers, uint32_t proc)
{
	switch (vers) {
	case 1:
		return proc <= NLM_GRANTED_RES;
	case 3:
	case 4:
		return proc <= NLM_GRANTED_RES || (proc >= NLM_SHARE && proc <= NLM_FREE_ALL);
	default:
		return false;
	}
}

/* A cookie and a status; for TEST also the lock's holder, for SHARE and UNSHARE a number. Messages have no results. */
static void nlm_results_check(struct ss_in *in, uint32_t vers, uint32_t proc)
{
	if (proc == 0 || proc == NLM_FREE_ALL || (proc >= NLM_TEST_MSG && proc <= NLM_GRANTED_RES))
		return;
	get_items(in, "O");
	uint32_t stat = ss_get_u32(in);
	if (stat > NLM_STAT_LAST)
		ss_wrong(in, "an unknown nlm4_stat");
	if (proc == NLM_TEST && stat == NLM_DENIED)
		get_items(in, vers == 4 ? "buOUU" : "buOuu");
	if (proc == NLM_SHARE || proc == NLM_UNSHARE)
		get_items(in, "u");
}

/* Only the owner may set an ACL, and everybody sees it. */
static void nfsacl_results_check(struct ss_in *in, uint32_t proc)
{
	uint32_t status;

	if (proc == 0)
		return;
	status = ss_get_u32(in);
	if (!nfs3_status_known(status))
		ss_wrong(in, "an unknown NFS status");
	if (proc == NFSACL_SETACL && status == 0 && in->call->from == SS_FROM_READ_ONLY)
		ss_wrong(in, "a host that may only read sets an ACL");
	get_items(in, proc == NFSACL_GETACL && status == 0 ? "pull" : "p");
}

/* Nobody may set a quota. */
static void rquota_results_check(struct ss_in *in, uint32_t proc)
{
	uint32_t status;

	if (proc == 0)
		return;
	status = ss_get_u32(in);
	if (status < RQUOTA_OK || status > RQUOTA_EPERM ||
	    (proc > RQUOTA_GETACTIVE && status != RQUOTA_EPERM))
		ss_wrong(in, "a status of RQUOTA that cannot be");
	if (status == RQUOTA_OK)
		get_items(in, "ubuuuuuuuu");
}

static void results_check(struct ss_in *in, const struct ss_call *call)
{
	if (call->prog == NFS_PROG && call->vers == 4 && call->datagram)
		ss_wrong(in, "NFSv4 by UDP");
	else if (call->prog == NFS_PROG && call->vers == 4 && call->proc <= 1)
		ss_compound_check(in, call->proc);
	else if (call->prog == NFS_PROG && call->vers == 2)
		ss_nfs2_check(in, call->proc);
	else if (call->prog == NFSACL_PROG && call->vers == 2)
		ss_nfsacl2_check(in, call->proc);
	else if (call->prog == NFS_PROG && call->vers == 3 &&
		 call->proc < rn_array_size(nfs3_results))
		nfs3_results_check(in, call->proc);
	else if (call->prog == MOUNT_PROG && call->vers >= 1 && call->vers <= 3 && call->proc <= 7)
		mount_results_check(in, call->vers, call->proc);
	else if (call->prog == NLM_PROG && nlm_has(call->vers, call->proc))
		nlm_results_check(in, call->vers, call->proc);
	else if (call->prog == NSM_PROG && call->vers == 1 &&
		 call->proc < rn_array_size(nsm_results))
		get_items(in, nsm_results[call->proc]);
	else if (call->prog == NFSACL_PROG && call->vers == 3 && call->proc <= NFSACL_SETACL)
		nfsacl_results_check(in, call->proc);
	else if (call->prog == RQUOTA_PROG && call->vers >= 1 && call->vers <= 2 &&
		 call->proc <= RQUOTA_LAST)
		rquota_results_check(in, call->proc);
	else
		ss_wrong(in, "success of a procedure that there is not");
}

static void accepted_check(struct ss_in *in, const struct ss_call *call)
{
	if (ss_get_u32(in) || ss_get_u32(in))
		ss_wrong(in, "a verifier other than AUTH_NONE");
	switch (ss_get_u32(in)) {
	case 0:
		if (!call->known)
			ss_wrong(in, "success of a call that says no procedure");
		else
			ss_claims_accepted(in);
		if (!in->bad)
			results_check(in, call);
		break;
	case 2: /* PROG_MISMATCH: lowest and highest */
		if (ss_get_u32(in) > ss_get_u32(in))
			ss_wrong(in, "a lowest version above the highest");
		break;
	case 1:
	case 3:
	case 4:
	case 5:
		break;
	default:
		ss_wrong(in, "an unknown accept_stat");
	}
}

static void denied_check(struct ss_in *in)
{
	uint32_t why = ss_get_u32(in);

	if (why == 0) {
		if (ss_get_u32(in) != 2 || ss_get_u32(in) != 2)
			ss_wrong(in, "RPC_MISMATCH of other versions than 2");
	} else if (why != 1) {
		ss_wrong(in, "an unknown reject_stat");
	} else if (ss_get_u32(in) > 14) {
		ss_wrong(in, "an unknown auth_stat");
	}
}

/* A reply in plain text. */
static const char *plain_check(const struct ss_call *call, const uint8_t *msg, size_t len,
			       const struct ss_bulks *bulks, struct ss_values *learn)
{
	struct ss_in in = { .p = msg, .left = len, .bulks = bulks, .learn = learn, .call = call };

	if (ss_get_u32(&in) != call->xid)
		ss_wrong(&in, "another xid");
	if (ss_get_u32(&in) != 1)
		ss_wrong(&in, "no reply");
	if (call->from == SS_FROM_READ_ONLY)
		ss_count(SS_N_READ_ONLY);
	if (call->from == SS_FROM_STRANGER)
		ss_count(SS_N_STRANGER);
	uint32_t stat = ss_get_u32(&in);
	if (stat == 0)
		accepted_check(&in, call);
	else if (stat == 1)
		denied_check(&in);
	else
		ss_wrong(&in, "an unknown reply_stat");
	if (!in.bad && in.left)
		in.bad = "bytes after its end";
	return in.bad ? in.bad : ss_claims_secret(call, msg, len);
}

/* RFC 8166 section 8.2.2: nothing of protected results goes by Write chunks. */
static bool has_written(const struct ss_bulks *bulks)
{
	for (unsigned i = 0; bulks && i < bulks->n; i++)
		if (bulks->written[i])
			return true;
	return false;
}

const char *ss_reply_check(const struct ss_call *call, const uint8_t *msg, size_t len,
			   const struct ss_bulks *bulks, struct ss_values *learn)
{
	struct ss_plain plain;

	if (!call->sealed)
		return plain_check(call, msg, len, bulks, learn);
	switch (ss_gss_open(call, msg, len, &plain)) {
	case SS_REFUSED:
		return plain.bad;
	case SS_JUDGED:
		return ss_claims_secret(call, msg, len);
	default:
		break;
	}
	if (plain.wrapped && has_written(bulks))
		return "protected results in a Write chunk";
	const char *bad = ss_claims_secret(call, msg, len);
	if (plain.wrapped && ss_gss_is_private(call->xid) && bad)
		return "private results in plain text";
	return plain_check(call, plain.msg, plain.len, plain.wrapped ? NULL : bulks, learn);
}

int64_t ss_reply_status(const uint8_t *msg, size_t len)
{
	if (len < 28 || ss_word(msg + 8) || ss_word(msg + 20))
		return -1;
	return ss_word(msg + 24);
}
