/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results are described by a letter for each item (RFC 1094 section 2.3):
 *
 *   A  attributes            P  a handle         u  a word
 *   D  data of READ          L  a path           E  directory entries and the end mark
 *   S  STATFS                a  an ACL of NFSACL
 */
#include "tests/fuzz/session/nfs2_results.h"

#include "lib/util.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/results.h"

#define HANDLE_SIZE 32u
#define DATA_MAX 8192u
#define PATH_MAX_LEN 1024u
#define LISTING_MAX 8192u /* octets */
#define MODIFIES 0x1cu	  /* bits of ACCESS: modify, extend, delete */
#define SETATTR 2u
#define WRITE 8u
#define RMDIR 15u
#define ACL_SETACL 2u
#define ACL_ACCESS 4u

static void get_attributes(struct ss_in *in)
{
	const uint8_t *p = ss_get(in, 68);

	if (!in->bad && (ss_word(p) < 1 || ss_word(p) > 6))
		ss_wrong(in, "an unknown file type");
	/* seconds and microseconds of atime, mtime, ctime */
	for (unsigned at = 48; !in->bad && at < 68; at += 8)
		if (ss_word(p + at) > 999999)
			ss_wrong(in, "a time of more than a second's microseconds");
}

/* The last entry's cookie must lead behind it: those of equal cookies stay together (doc/design/nfs2.md). */
static void get_entries(struct ss_in *in)
{
	const size_t begin = in->left;
	uint32_t cookie = 0, before = 0;
	unsigned n = 0;

	for (; !in->bad && ss_get_bool(in); n++) {
		ss_get_u32(in);
		ss_get_name(in, 255);
		before = cookie;
		cookie = ss_get_u32(in);
	}
	const bool eof = ss_get_bool(in);

	if (in->bad)
		return;
	if (!eof && (n == 0 || cookie == 0 || cookie == before))
		ss_wrong(in, "a listing that does not go on");
	else if (begin - in->left > LISTING_MAX)
		ss_wrong(in, "a listing of more than 8 KiB");
	else if (in->learn)
		in->learn->cookie2 = cookie;
}

static void get_item(struct ss_in *in, char c)
{
	const uint8_t *p;

	switch (c) {
	case 'A':
		get_attributes(in);
		break;
	case 'P':
		p = ss_get(in, HANDLE_SIZE);
		if (!in->bad && in->learn)
			ss_learn_packed(in->learn, p);
		break;
	case 'D':
		if (ss_get_bulk(in) > DATA_MAX)
			ss_wrong(in, "READ: more data than NFSv2 has");
		break;
	case 'L':
		if (ss_get_bulk(in) > PATH_MAX_LEN)
			ss_wrong(in, "READLINK: a path of more than 1024 octets");
		break;
	case 'E':
		get_entries(in);
		break;
	case 'S':
		ss_get(in, 20);
		break;
	case 'a':
		ss_get_acl(in);
		break;
	default:
		ss_get_u32(in);
	}
}

static bool is_known(uint32_t status, bool acl)
{
	static const uint8_t known[] = { 0,  1,	 2,  5,	 6,  13, 17, 19, 20,
					 21, 27, 28, 30, 63, 66, 69, 70 };

	for (size_t i = 0; i < rn_array_size(known); i++)
		if (known[i] == status)
			return true;
	return acl && (status == 22 || status == 10004);
}

/* A failure has a status and nothing else. */
static uint32_t get_result(struct ss_in *in, const char *items, bool acl)
{
	const uint32_t status = ss_get_u32(in);

	if (!is_known(status, acl))
		ss_wrong(in, "an unknown status of NFSv2");
	for (; status == 0 && *items && !in->bad; items++)
		get_item(in, *items);
	return status;
}

static void changes_nothing(struct ss_in *in, uint32_t status)
{
	if (in->call->from != SS_FROM_READ_ONLY || in->bad)
		return;
	if (status == 0)
		ss_wrong(in, "a host that may only read changes something by NFSv2");
	else
		ss_count(SS_N_NFS2_REFUSED);
}

void ss_nfs2_check(struct ss_in *in, uint32_t proc)
{
	static const char *const results[] = {
		NULL, "A", "A", NULL, "PA", "L",  "AD", NULL, "A",
		"PA", "",  "",	"",   "",   "PA", "",	"E",  "S",
	};

	if (proc == 0)
		return;
	if (proc >= rn_array_size(results) || !results[proc]) {
		ss_wrong(in, "success of a procedure that there is not");
		return;
	}
	const uint32_t status = get_result(in, results[proc], false);

	if (proc == SETATTR || (proc >= WRITE && proc <= RMDIR))
		changes_nothing(in, status);
	ss_count(SS_N_NFS2_RAN);
}

void ss_nfsacl2_check(struct ss_in *in, uint32_t proc)
{
	static const char *const results[] = { NULL, "Auaa", "A", "A", "A" };

	if (proc == 0)
		return;
	if (proc >= rn_array_size(results)) {
		ss_wrong(in, "success of a procedure that there is not");
		return;
	}
	const uint32_t status = get_result(in, results[proc], true);

	if (proc == ACL_SETACL)
		changes_nothing(in, status);
	if (proc == ACL_ACCESS && status == 0 && (ss_get_u32(in) & MODIFIES) &&
	    in->call->from == SS_FROM_READ_ONLY)
		ss_wrong(in, "a host that may only read is granted changes");
	ss_count(SS_N_NFS2_RAN);
}
