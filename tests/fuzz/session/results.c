/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results behind a status of NFS4_OK are described by a letter for each item:
 *
 *   u U b   32 bits, 64 bits, a boolean       o n    a counted opaque, a name
 *   c       change_info4                      m      bitmap4
 *   V       an extended attribute's value      N      names of extended attributes
 *   H       a handle                          v      8 octets, verifier
 *   a       fattr4                            s l    a stateid of an open, of a lock
 *   r R     READ's result, READLINK's         e      directory entries and the end mark
 *   P       READ_PLUS's result                W      write_response4
 *   D       GET_DIR_DELEGATION's              O      OFFLOAD_STATUS's
 *   G       open_delegation4                  f      flavours of SECINFO
 *   x S q   EXCHANGE_ID, CREATE_SESSION, SEQUENCE
 *   k       SETCLIENTID                       t      a list of statuses
 */
#include "tests/fuzz/session/results.h"

#include <string.h>

#include "lib/util.h"
#include "tests/fuzz/session/claims.h"
#include "tests/fuzz/session/counts.h"

#define OPS_MAX 1000u
#define ENTRIES_MAX 100000u
#define XATTR_VALUE_MAX 65536u
#define ELEMENTS_MAX 8u /* of READ_PLUS */
#define DATA_MAX (1u << 20)
#define XATTR_NAME_MAX 250u

enum {
	OP_DELEGRETURN = 8,
	OP_LOCK = 12,
	OP_LOCKT = 13,
	OP_SETATTR = 34,
	OP_SETCLIENTID = 35,
	OP_ILLEGAL = 10044,
	ERR_DENIED = 10010,
	ERR_CLID_INUSE = 10017,
	ERR_DELEG_REVOKED = 10087,
	ERR_LAST = 10096,
};

static const char *const results[] = {
	[3] = "uu", [4] = "s",	[5] = "v",    [6] = "cm",     [7] = "",	    [8] = "",
	[9] = "a",  [10] = "H", [11] = "c",   [12] = "l",     [13] = "",    [14] = "l",
	[15] = "",  [16] = "",	[17] = "",    [18] = "scumG", [19] = "",    [20] = "s",
	[21] = "s", [22] = "",	[23] = "",    [24] = "",      [25] = "r",   [26] = "ve",
	[27] = "R", [28] = "c", [29] = "cc",  [30] = "",      [31] = "",    [32] = "",
	[33] = "f", [34] = "m", [35] = "k",   [36] = "",      [37] = "",    [38] = "uuv",
	[39] = "",  [40] = "",	[41] = "duu", [42] = "x",     [43] = "S",   [44] = "",
	[45] = "",  [46] = "D", [52] = "f",   [53] = "q",     [54] = NULL,  [55] = "t",
	[56] = "G", [57] = "",	[58] = "",    [59] = "",      [60] = "Wbb", [62] = "",
	[66] = "",  [67] = "O", [63] = "m",   [68] = "P",     [69] = "bU",  [70] = "W",
	[71] = "",  [72] = "V", [73] = "c",   [74] = "UNb",   [75] = "c",
};

static void learn(struct ss_in *in, void *to, const uint8_t *from, size_t n)
{
	if (!in->bad && in->learn)
		memcpy(to, from, n);
}

static void get_stateid(struct ss_in *in, unsigned which)
{
	const uint8_t *p = ss_get(in, 16);

	if (in->learn)
		learn(in, in->learn->stateid[which], p, 16);
}

static void get_bitmap(struct ss_in *in)
{
	uint32_t n = ss_get_u32(in);

	if (n > 3)
		ss_wrong(in, "a bitmap of more than three words");
	else
		ss_get(in, (size_t)4 * n);
}

/* Change and size of a file, of which another client's claims may be among them. */
static void learn_file(struct ss_in *in, const uint8_t *p)
{
	struct ss_in values = { .p = p, .left = 16 };
	const uint64_t change = ss_get_u64(&values), size = ss_get_u64(&values);

	if (size > INT64_MAX)
		ss_wrong(in, "a file of more than 2^63 - 1 octets");
	if (in->bad || !in->learn)
		return;
	in->learn->change = change;
	in->learn->size = size;
}

static void get_attributes(struct ss_in *in)
{
	const uint32_t change_and_size = 1u << 3 | 1u << 4;
	struct ss_in ahead = *in;
	uint32_t len;

	const bool both = ss_get_u32(&ahead) == 1 && ss_get_u32(&ahead) == change_and_size;
	get_bitmap(in);
	const uint8_t *p = ss_get_opaque(in, 64u << 10, &len);
	if (len % 4)
		ss_wrong(in, "attributes of no whole words");
	else if (both && !in->bad && len != 16)
		ss_wrong(in, "change and size in another length than theirs");
	else if (both && !in->bad)
		learn_file(in, p);
}

static void get_entries(struct ss_in *in)
{
	unsigned n = 0;

	while (!in->bad && ss_get_bool(in)) {
		uint64_t cookie = ss_get_u64(in);

		if (cookie < 3)
			ss_wrong(in, "a cookie of 0, 1 or 2");
		if (!in->bad && in->learn)
			in->learn->cookie = cookie;
		ss_get_name(in, 255);
		get_attributes(in);
		if (++n > ENTRIES_MAX)
			ss_wrong(in, "too many entries");
	}
	ss_get_bool(in);
}

static void get_space_limit(struct ss_in *in)
{
	switch (ss_get_u32(in)) {
	case 1: /* NFS_LIMIT_SIZE */
	case 2: /* NFS_LIMIT_BLOCKS: two words */
		ss_get_u64(in);
		break;
	default:
		ss_wrong(in, "an unknown nfs_space_limit4");
	}
}

static void get_delegation(struct ss_in *in)
{
	uint32_t why;

	switch (ss_get_u32(in)) {
	case 0: /* OPEN_DELEGATE_NONE */
		return;
	case 3: /* OPEN_DELEGATE_NONE_EXT, with a reason */
		why = ss_get_u32(in);
		if (why == 1 || why == 2)
			ss_get_bool(in);
		return;
	case 1: /* OPEN_DELEGATE_READ */
		get_stateid(in, SS_DELEG);
		ss_get_bool(in);
		break;
	case 2: /* OPEN_DELEGATE_WRITE */
		get_stateid(in, SS_DELEG);
		ss_get_bool(in);
		get_space_limit(in);
		break;
	default:
		ss_wrong(in, "an unknown type of delegation");
	}
	ss_get(in, 12); /* ace */
	ss_get_name(in, 1024);
	ss_count(SS_N_DELEGATED);
}

static void get_dir_delegation(struct ss_in *in)
{
	switch (ss_get_u32(in)) {
	case 0: /* GDD4_OK */
		ss_get_u64(in);
		get_stateid(in, SS_DELEG);
		for (unsigned i = 0; i < 3; i++)
			get_bitmap(in);
		ss_count(SS_N_DIR_DELEGATED);
		break;
	case 1: /* GDD4_UNAVAIL */
		ss_get_bool(in);
		break;
	default:
		ss_wrong(in, "an unknown status of GET_DIR_DELEGATION");
	}
}

static void get_write_response(struct ss_in *in)
{
	const uint32_t ids = ss_get_u32(in);

	if (ids > 1)
		ss_wrong(in, "more than one wr_callback_id");
	if (ids == 1) {
		get_stateid(in, SS_COPY);
		ss_count(SS_N_COPYING);
	}
	ss_get_u64(in);
	if (ss_get_u32(in) > 2)
		ss_wrong(in, "an unknown stable_how4");
	ss_get_u64(in);
}

static void get_offload_status(struct ss_in *in)
{
	ss_get_u64(in);
	if (ss_get_bool(in))
		ss_get_u32(in);
}

/* rpcsec_gss_info of krb5, krb5i or krb5p. */
static void get_gss_info(struct ss_in *in)
{
	static const uint8_t krb5[] = { 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x12, 1, 2, 2 };
	uint32_t len;
	const uint8_t *oid = ss_get_opaque(in, 64, &len);
	const uint32_t qop = ss_get_u32(in), service = ss_get_u32(in);

	if (!in->bad &&
	    (len < sizeof(krb5) || memcmp(oid + len - sizeof(krb5), krb5, sizeof(krb5)) != 0 ||
	     qop || service < 1 || service > 3))
		ss_wrong(in, "another mechanism or service than those of Kerberos");
}

static void get_flavours(struct ss_in *in)
{
	uint32_t n = ss_get_u32(in);

	if (n > 16)
		ss_wrong(in, "more than 16 flavours");
	while (!in->bad && n-- > 0)
		if (ss_get_u32(in) == 6)
			get_gss_info(in);
}

static void get_exchange_id(struct ss_in *in)
{
	uint64_t id = ss_get_u64(in);
	uint32_t seqid = ss_get_u32(in), len;

	if (!in->bad && in->learn) {
		in->learn->clientid[1] = id;
		in->learn->create_seqid = seqid;
	}
	ss_get_u32(in);
	switch (ss_get_u32(in)) {
	case 0:
		break;
	case 1:
		get_bitmap(in);
		get_bitmap(in);
		break;
	default:
		ss_wrong(in, "a state protection that there is not");
	}
	ss_get_u64(in);
	ss_get_opaque(in, 1024, &len);
	ss_get_opaque(in, 1024, &len);
	uint32_t n = ss_get_u32(in);
	if (n > 1)
		ss_wrong(in, "more than one implementation id");
	if (n == 1) {
		ss_get_opaque(in, 1024, &len);
		ss_get_opaque(in, 1024, &len);
		ss_get(in, 12);
	}
}

static void get_channel(struct ss_in *in)
{
	ss_get(in, 6 * 4);
	uint32_t n = ss_get_u32(in);

	if (n > 1)
		ss_wrong(in, "more than one rdma_ird");
	else
		ss_get(in, (size_t)4 * n);
}

static void get_session(struct ss_in *in)
{
	const uint8_t *id = ss_get(in, 16);

	if (in->learn) {
		learn(in, in->learn->session, id, 16);
		if (!in->bad)
			memset(in->learn->slot_seqid, 0, sizeof(in->learn->slot_seqid));
	}
	uint32_t seqid = ss_get_u32(in);
	if (!in->bad && in->learn)
		in->learn->create_seqid = seqid + 1;
	ss_get_u32(in);
	get_channel(in);
	get_channel(in);
}

static void get_sequence(struct ss_in *in)
{
	ss_get(in, 16);
	ss_get_u32(in);
	uint32_t slot = ss_get_u32(in), highest = ss_get_u32(in);
	ss_get_u32(in);
	if (slot > highest)
		ss_wrong(in, "a slot above the highest");
	if (ss_get_u32(in) > 0xfff)
		ss_wrong(in, "unknown flags of SEQUENCE");
}

static void get_clientid(struct ss_in *in)
{
	uint64_t id = ss_get_u64(in);
	const uint8_t *confirm = ss_get(in, 8);

	if (in->learn) {
		learn(in, in->learn->confirm, confirm, 8);
		if (!in->bad)
			in->learn->clientid[0] = id;
	}
}

static void get_statuses(struct ss_in *in)
{
	uint32_t n = ss_get_u32(in);

	if (n > OPS_MAX)
		ss_wrong(in, "too many statuses");
	while (!in->bad && n-- > 0)
		ss_get_u32(in);
}

static void get_verifier(struct ss_in *in)
{
	uint64_t v = ss_get_u64(in);

	if (!in->bad && in->learn)
		in->learn->cookieverf = v;
}

static void get_xattr_names(struct ss_in *in)
{
	uint32_t n = ss_get_u32(in);

	if (n > ENTRIES_MAX)
		ss_wrong(in, "too many extended attributes");
	while (!in->bad && n-- > 0)
		ss_get_name(in, XATTR_NAME_MAX);
}

/* The elements follow each other in the file, none is empty, and the data are never in a chunk. */
static void get_contents(struct ss_in *in)
{
	uint64_t next = 0;

	ss_get_bool(in);
	uint32_t n = ss_get_u32(in), len = 0;
	if (n > ELEMENTS_MAX)
		ss_wrong(in, "too many elements");
	for (uint32_t i = 0; i < n && !in->bad; i++) {
		const uint32_t content = ss_get_u32(in);
		const uint64_t offset = ss_get_u64(in);
		uint64_t length;

		if (content > 1)
			ss_wrong(in, "an element that is neither data nor a hole");
		if (i > 0 && offset != next)
			ss_wrong(in, "a gap between elements");
		if (content == 0)
			ss_get_opaque(in, DATA_MAX, &len);
		length = content == 0 ? len : ss_get_u64(in);
		if (!in->bad && length == 0)
			ss_wrong(in, "an empty element");
		next = offset + length;
	}
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
	case 'c':
		ss_get_bool(in);
		ss_get(in, 16);
		break;
	case 'm':
		get_bitmap(in);
		break;
	case 'H':
		ss_get_handle(in);
		break;
	case 'v':
		get_verifier(in);
		break;
	case 'a':
		get_attributes(in);
		break;
	case 's':
	case 'l':
		get_stateid(in, c == 'l');
		break;
	case 'r':
		ss_get_bool(in);
		ss_get_bulk(in);
		break;
	case 'R':
		ss_get_bulk(in);
		break;
	case 'e':
		get_entries(in);
		break;
	case 'G':
		get_delegation(in);
		break;
	case 'f':
		get_flavours(in);
		break;
	case 'x':
		get_exchange_id(in);
		break;
	case 'S':
		get_session(in);
		break;
	case 'q':
		get_sequence(in);
		break;
	case 'k':
		get_clientid(in);
		break;
	case 't':
		get_statuses(in);
		break;
	case 'V':
		ss_get_opaque(in, XATTR_VALUE_MAX, &len);
		break;
	case 'N':
		get_xattr_names(in);
		break;
	case 'P':
		get_contents(in);
		break;
	case 'W':
		get_write_response(in);
		break;
	case 'D':
		get_dir_delegation(in);
		break;
	case 'O':
		get_offload_status(in);
		break;
	default: /* 'o', 'd' */
		if (c == 'd')
			ss_get(in, 16);
		else
			ss_get_opaque(in, 1024, &len);
	}
}

/* Results of failures that have some: LOCK4denied; SETCLIENTID's address of the client in use;
 * SETATTR's bitmap. */
static void get_failure(struct ss_in *in, uint32_t op, uint32_t status)
{
	uint32_t len;

	if ((op == OP_LOCK || op == OP_LOCKT) && status == ERR_DENIED) {
		ss_get(in, 8 + 8 + 4 + 8);
		ss_get_opaque(in, 1024, &len);
	} else if (op == OP_SETCLIENTID && status == ERR_CLID_INUSE) {
		ss_get_opaque(in, 1024, &len);
		ss_get_opaque(in, 1024, &len);
	} else if (op == OP_SETATTR) {
		get_bitmap(in);
	}
}

static uint32_t get_result(struct ss_in *in)
{
	uint32_t op = ss_get_u32(in), status = ss_get_u32(in);
	const char *items;

	if (op != OP_ILLEGAL && (op < 3 || op > 75))
		ss_wrong(in, "a result of an operation that there is not");
	if (status > ERR_LAST || (status > 100 && status < 10001))
		ss_wrong(in, "an unknown nfsstat4");
	if (status == ERR_DELEG_REVOKED)
		ss_count(SS_N_REVOKED);
	if (op == OP_DELEGRETURN && status == 0)
		ss_count(SS_N_RETURNED);
	if (status) {
		ss_claims_op4(in, op, status);
		get_failure(in, op, status);
		return status;
	}
	items = op < rn_array_size(results) ? results[op] : NULL;
	if (!items)
		ss_wrong(in, "success of an operation that is not done");
	for (; items && *items && !in->bad; items++)
		get_item(in, *items);
	ss_claims_op4(in, op, status);
	return status;
}

void ss_compound_check(struct ss_in *in, uint32_t proc)
{
	uint32_t status, n, len, last = 0;

	if (proc == 0)
		return;
	status = ss_get_u32(in);
	ss_get_opaque(in, 1024, &len);
	n = ss_get_u32(in);
	if (n > OPS_MAX)
		ss_wrong(in, "too many results");
	for (uint32_t i = 0; i < n && !in->bad; i++) {
		if (last)
			ss_wrong(in, "a result behind one that failed");
		last = get_result(in);
	}
	if (n > 0 && last != status)
		ss_wrong(in, "a status other than the last result's");
}
