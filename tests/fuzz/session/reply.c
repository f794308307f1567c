/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results are described by a letter for each item (RFC 1813 section 3.3 and appendix I):
 *
 *   u U b   32 bits, 64 bits, a boolean        a p w  attributes, optional ones, wcc_data
 *   H h     a handle, an optional one          o      any counted opaque that may go by a chunk
 *   r       READ's count, end mark and data    e E    directory entries, with attributes
 *   F       MOUNT's fixed handle               f      flavours
 *   d x     MOUNT's list of mounts, of exports *      anything
 */
#include "tests/fuzz/session/reply.h"

#include <string.h>

#include "lib/checked.h"

#define NFS_PROG 100003u
#define MOUNT_PROG 100005u
#define LIST_MAX 100000u

struct in {
	const uint8_t *p;
	size_t left;
	bool by_chunk;
	uint32_t bulk_len;
	struct ss_values *learn;
	const char *bad; /* sticky: the first that was wrong */
};

static void wrong(struct in *in, const char *what)
{
	if (!in->bad)
		in->bad = what;
	in->left = 0;
}

static const uint8_t *get(struct in *in, size_t n)
{
	static const uint8_t nothing[128];
	const uint8_t *p = in->p;

	if (n > in->left) {
		wrong(in, "cut short");
		return nothing; /* every fixed item is shorter */
	}
	in->p += n;
	in->left -= n;
	return p;
}

static uint32_t get_u32(struct in *in)
{
	return ss_word(get(in, 4));
}

static uint64_t get_u64(struct in *in)
{
	uint64_t high = get_u32(in);

	return high << 32 | get_u32(in);
}

static bool get_bool(struct in *in)
{
	uint32_t v = get_u32(in);

	if (v > 1)
		wrong(in, "a boolean of neither 0 nor 1");
	return v == 1;
}

static const uint8_t *get_opaque(struct in *in, uint32_t max, uint32_t *len)
{
	*len = get_u32(in);
	if (*len > max || *len > in->left) {
		wrong(in, "a counted item over its limit, or over the message");
		*len = 0;
	}
	const uint8_t *p = get(in, *len);
	const uint8_t *pad = get(in, rn_xdr_pad(*len));
	for (uint32_t i = 0; i < rn_xdr_pad(*len); i++)
		if (pad[i])
			wrong(in, "a pad that is not zero");
	return p;
}

static void get_name(struct in *in, uint32_t max)
{
	uint32_t len;
	const uint8_t *p = get_opaque(in, max, &len);

	if (!in->bad && (!len || memchr(p, 0, len)))
		wrong(in, "a name that is empty or has a NUL");
}

static void get_handle(struct in *in)
{
	uint32_t len;
	const uint8_t *p = get_opaque(in, SS_HANDLE_MAX, &len);

	if (!in->bad && !len)
		wrong(in, "an empty handle");
	if (!in->bad && in->learn)
		ss_learn_handle(in->learn, p, len);
}

static void get_attributes(struct in *in)
{
	const uint8_t *p = get(in, 84);

	if (!in->bad && (ss_word(p) < 1 || ss_word(p) > 7))
		wrong(in, "an unknown file type");
	/* atime, mtime, ctime */
	for (unsigned at = 64; !in->bad && at < 84; at += 8)
		if (ss_word(p + at) > 999999999)
			wrong(in, "a time of more than a second's nanoseconds");
}

static void get_post_op(struct in *in)
{
	if (get_bool(in))
		get_attributes(in);
}

static void get_wcc(struct in *in)
{
	if (get_bool(in))
		get(in, 24);
	get_post_op(in);
}

/* A counted opaque that may have gone by a Write chunk. */
static uint32_t get_bulk(struct in *in)
{
	uint32_t len;

	if (!in->by_chunk) {
		get_opaque(in, UINT32_MAX, &len);
		return len;
	}
	len = get_u32(in);
	if (len != in->bulk_len)
		wrong(in, "a length other than that of the Write chunk");
	return len;
}

static void get_read(struct in *in)
{
	uint32_t count = get_u32(in);

	get_bool(in);
	if (get_bulk(in) != count)
		wrong(in, "READ: the count is not the data's length");
}

static void get_entries(struct in *in, bool plus)
{
	unsigned n = 0;

	while (!in->bad && get_bool(in)) {
		get_u64(in);
		get_name(in, 255);
		uint64_t cookie = get_u64(in);
		if (!in->bad && in->learn)
			in->learn->cookie = cookie;
		if (plus) {
			get_post_op(in);
			if (get_bool(in))
				get_handle(in);
		}
		if (++n > LIST_MAX)
			wrong(in, "too many entries");
	}
	get_bool(in);
}

static void get_list(struct in *in, bool exports)
{
	while (!in->bad && get_bool(in)) {
		get_name(in, exports ? 1024 : 255);
		if (!exports)
			get_name(in, 1024);
		while (exports && !in->bad && get_bool(in))
			get_name(in, 255);
	}
}

static void get_flavours(struct in *in)
{
	uint32_t n = get_u32(in);

	if (n > 16)
		wrong(in, "more than 16 flavours");
	else
		get(in, 4 * n);
}

static void get_verifier(struct in *in)
{
	uint64_t v = get_u64(in);

	if (!in->bad && in->learn)
		in->learn->cookieverf = v;
}

static void get_item(struct in *in, char c)
{
	switch (c) {
	case 'u':
		get_u32(in);
		break;
	case 'U':
		get_u64(in);
		break;
	case 'b':
		get_bool(in);
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
		get_handle(in);
		break;
	case 'h':
		if (get_bool(in))
			get_handle(in);
		break;
	case 'o':
		get_bulk(in);
		break;
	case 'r':
		get_read(in);
		break;
	case 'v':
		get_verifier(in);
		break;
	case 'e':
	case 'E':
		get_entries(in, c == 'E');
		break;
	case 'F':
		get(in, 32);
		break;
	case 'f':
		get_flavours(in);
		break;
	case 'd':
	case 'x':
		get_list(in, c == 'x');
		break;
	default: /* '*' */
		get(in, in->left);
		break;
	}
}

/* Of NFSv3's procedures by number: results after the status, when it is 0 and when it is not. */
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

static void get_items(struct in *in, const char *items)
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

static void nfs3_results_check(struct in *in, uint32_t proc)
{
	if (!nfs3_results[proc].ok)
		return;
	uint32_t status = get_u32(in);
	if (!nfs3_status_known(status))
		wrong(in, "an unknown NFS status");
	get_items(in, status ? nfs3_results[proc].fail : nfs3_results[proc].ok);
}

static void mount_results_check(struct in *in, uint32_t vers, uint32_t proc)
{
	static const char *const lists[] = { "", NULL, "d", "", "", "x", "x", "*" };

	if (proc == 1)
		get_items(in, get_u32(in) ? "" : vers == 3 ? "Hf" : "F");
	else
		get_items(in, lists[proc]);
}

static void results_check(struct in *in, const struct ss_call *call)
{
	if (call->prog == NFS_PROG && call->vers == 3 && call->proc < rn_array_size(nfs3_results))
		nfs3_results_check(in, call->proc);
	else if (call->prog == MOUNT_PROG && call->vers >= 1 && call->vers <= 3 && call->proc <= 7)
		mount_results_check(in, call->vers, call->proc);
	else
		wrong(in, "success of a procedure that there is not");
}

static void accepted_check(struct in *in, const struct ss_call *call)
{
	if (get_u32(in) || get_u32(in))
		wrong(in, "a verifier other than AUTH_NONE");
	switch (get_u32(in)) {
	case 0:
		if (!call->known)
			wrong(in, "success of a call that says no procedure");
		else
			results_check(in, call);
		break;
	case 2: /* PROG_MISMATCH: lowest and highest */
		if (get_u32(in) > get_u32(in))
			wrong(in, "a lowest version above the highest");
		break;
	case 1:
	case 3:
	case 4:
	case 5:
		break;
	default:
		wrong(in, "an unknown accept_stat");
	}
}

static void denied_check(struct in *in)
{
	uint32_t why = get_u32(in);

	if (why == 0) {
		if (get_u32(in) != 2 || get_u32(in) != 2)
			wrong(in, "RPC_MISMATCH of other versions than 2");
	} else if (why != 1) {
		wrong(in, "an unknown reject_stat");
	} else if (get_u32(in) > 14) {
		wrong(in, "an unknown auth_stat");
	}
}

const char *ss_reply_check(const struct ss_call *call, const uint8_t *msg, size_t len,
			   bool by_chunk, uint32_t bulk_len, struct ss_values *learn)
{
	struct in in = {
		.p = msg, .left = len, .by_chunk = by_chunk, .bulk_len = bulk_len, .learn = learn
	};

	if (get_u32(&in) != call->xid)
		wrong(&in, "another xid");
	if (get_u32(&in) != 1)
		wrong(&in, "no reply");
	uint32_t stat = get_u32(&in);
	if (stat == 0)
		accepted_check(&in, call);
	else if (stat == 1)
		denied_check(&in);
	else
		wrong(&in, "an unknown reply_stat");
	if (!in.bad && in.left)
		in.bad = "bytes after its end";
	return in.bad;
}

int64_t ss_reply_status(const uint8_t *msg, size_t len)
{
	if (len < 28 || ss_word(msg + 8) || ss_word(msg + 20))
		return -1;
	return ss_word(msg + 24);
}
