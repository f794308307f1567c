/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors that all operations have in common, each with each operation: truncated arguments, no
 * filehandle, no session, a reply that is too long, a retry of a reply that was not cached. The
 * fixture checks other statuses against the RFCs' tables; tests/nfs4-errors lists the errors that
 * no test sees.
 */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_minors.h"
#include "tests/unit/nfs4_samples.h"
#include "tests/unit/nfs4_text.h"

NFS3_SUITE(nfs4_errors);

#define IS(s, minor, got, want)                                                                    \
	cr_expect_eq(got, want, "minor %u, %s: %s, not %s", minor, nfs4_op_text((s)->num),         \
		     nfs4_status_text(got), nfs4_status_text(want))

static void of_cut(struct fix4_session *in, uint32_t minor)
{
	EACH_SAMPLE (s) {
		size_t from, len = 4;

		if (!s->put || !sample_runs(s, minor))
			continue;
		for (size_t cut = 0; cut < len; cut += 4) {
			bool first = s->num == OP_SEQUENCE;

			if (in && !first && s->num != OP_BIND_CONN_TO_SESSION)
				fix4_begin(f, in);
			else
				fix4_begin_bare(f, minor, "");
			sample_put_places(f, s);
			fix4_op(f, s->num);
			from = f->out.used;
			s->put(f);
			len = f->out.used - from;
			f->out.used = from + cut;
			IS(s, minor, fix4_send(f), NFS4ERR_BADXDR);
		}
	}
}

Test(nfs4_errors, arguments_that_are_cut)
{
	NEED_FIXTURE();
	sample_make(f);
	FOR_MINORS(of_cut);
}

static void of_no_fh(struct fix4_session *in, uint32_t minor)
{
	EACH_SAMPLE (s) {
		if (s->current == SAMPLE_NO_FH || !sample_runs(s, minor) || s->num == OP_RESTOREFH)
			continue;
		fix4_begin(f, in);
		sample_put(f, s);
		IS(s, minor, fix4_send(f), NFS4ERR_NOFILEHANDLE);
		if (s->saved == SAMPLE_NO_FH)
			continue;
		fix4_begin(f, in);
		fix4_putfh(f, &f->root);
		sample_put(f, s);
		IS(s, minor, fix4_send(f), NFS4ERR_NOFILEHANDLE);
	}
	fix4_begin(f, in);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_RESTOREFH);
	cr_expect_eq(fix4_send(f), minor == 0 ? NFS4ERR_RESTOREFH : NFS4ERR_NOFILEHANDLE);
}

Test(nfs4_errors, no_filehandle)
{
	NEED_FIXTURE();
	FOR_MINORS(of_no_fh);
}

/* An operation that the minor version lacks gets another error than one that this server does not
 * implement. */
static void of_unsupported(struct fix4_session *in, uint32_t minor)
{
	EACH_SAMPLE (s) {
		if (sample_runs(s, minor))
			continue;
		fix4_begin(f, in);
		sample_put_places(f, s);
		sample_put(f, s);
		IS(s, minor, fix4_send(f),
		   sample_row(s, minor) ? NFS4ERR_NOTSUPP : NFS4ERR_OP_ILLEGAL);
	}
}

Test(nfs4_errors, unsupported)
{
	NEED_FIXTURE();
	sample_make(f);
	FOR_MINORS(of_unsupported);
}

Test(nfs4_errors, not_in_a_session)
{
	NEED_FIXTURE();
	for (uint32_t minor = 1; minor <= 2; minor++) {
		EACH_SAMPLE (s) {
			const struct nfs4_op *op = sample_row(s, minor);
			uint32_t want = NFS4ERR_OP_NOT_IN_SESSION;

			if (!op || s->num == OP_SEQUENCE)
				continue;
			fix4_begin_bare(f, minor, "");
			sample_put(f, s);
			fix4_op(f, OP_PUTROOTFH);
			if (op->gone_from > 0)
				want = NFS4ERR_NOTSUPP;
			else if (op->flags & NFS4_OP_ALONE)
				want = NFS4ERR_NOT_ONLY_OP;
			IS(s, minor, fix4_send(f), want);
		}
	}
}

/* SEQUENCE and the operation without cache_this, then a retry. */
Test(nfs4_errors, a_retry_of_what_was_not_kept)
{
	NEED_FIXTURE();
	for (uint32_t minor = 1; minor <= 2; minor++) {
		struct fix4_session in;

		EACH_SAMPLE (s) {
			if (!sample_runs(s, minor) || s->num == OP_SEQUENCE)
				continue;
			cr_assert_eq(fix4_session_new(f, &in, minor, "retry", false), NFS4_OK);
			fix4_begin(f, &in);
			sample_put(f, s);
			fix4_send(f);
			IS(s, minor, fix4_resend(f), NFS4ERR_RETRY_UNCACHED_REP);
		}
	}
}

#define LONGEST_TAG 1020
/* Reply size with room for the longest tag, SEQUENCE's result and one operation's failure. */
#define ROOM (24u + 12u + LONGEST_TAG + 44u + 12u)

/* Makes a session with small replies, or with small cached replies. */
static void small_session(uint32_t minor, bool cached, uint32_t room, struct fix4_session *out)
{
	const struct eid_args who = { .owner = "small", .verifier = "verifier" };
	struct cs_args cs = { .fore = usual_channel, .back = usual_channel };
	struct eid_result eid;
	struct cs_result r;

	cr_assert_eq(call_exchange_id(f, NULL, &who, &eid), NFS4_OK);
	cs.clientid = eid.clientid;
	cs.seqid = eid.seqid;
	if (!cached)
		cs.fore.max_reply = room;
	cs.fore.max_cached = room;
	cr_assert_eq(call_create_session(f, NULL, &cs, &r), NFS4_OK);
	use_session(out, eid.clientid, &r);
	out->minor = minor;
	out->cache_this = cached;
}

/*
 * The reply repeats the tag, so shorter and shorter tags leave more and more room for results,
 * until the operation is reached: there is just room for its failure. A second operation follows,
 * whose failure needs room, too. Returns the COMPOUND's status.
 */
static uint32_t in_little_room(struct fix4_session *in, const struct sample *s)
{
	static char tag[LONGEST_TAG + 1];
	uint32_t before = (s->saved ? 2 : 0) + (s->current ? 1 : 0);
	uint32_t status = NFS4_OK;

	for (int len = LONGEST_TAG; len >= 0; len -= 4) {
		memset(tag, 't', (size_t)len);
		tag[len] = '\0';
		fix4_begin_tag(f, in, tag);
		sample_put_places(f, s);
		sample_put(f, s);
		fix4_op(f, OP_PUTROOTFH);
		status = fix4_send(f);
		cr_expect_leq(f->reply_len, in ? ROOM : f->reply_max, "%s: %zu",
			      nfs4_op_text(s->num), f->reply_len);
		if (fix4_results_left(f) > before)
			break;
	}
	return status;
}

static void of_little_room(uint32_t minor, bool cached, uint32_t want)
{
	struct fix4_session in;

	if (minor > 0)
		small_session(minor, cached, ROOM, &in);
	EACH_SAMPLE (s) {
		if (!sample_runs(s, minor) || s->num == OP_SEQUENCE ||
		    s->num == OP_BIND_CONN_TO_SESSION)
			continue;
		IS(s, minor, in_little_room(minor > 0 ? &in : NULL, s), want);
	}
}

Test(nfs4_errors, replies_that_are_too_long)
{
	NEED_FIXTURE();
	sample_make(f);
	of_little_room(1, false, NFS4ERR_REP_TOO_BIG);
	of_little_room(2, false, NFS4ERR_REP_TOO_BIG);
	of_little_room(1, true, NFS4ERR_REP_TOO_BIG_TO_CACHE);
	of_little_room(2, true, NFS4ERR_REP_TOO_BIG_TO_CACHE);
	f->reply_max = ROOM - 44;
	of_little_room(0, false, NFS4ERR_RESOURCE);
}

/* An operation without results beside its status must have no effect, either, if its reply is too
 * long. */
Test(nfs4_errors, what_is_too_long_is_not_done)
{
	const struct sample complete = { .num = OP_RECLAIM_COMPLETE };
	struct fix4_session in;

	NEED_FIXTURE();
	EACH_SAMPLE (s) {
		if (s->num != complete.num)
			continue;
		small_session(1, false, ROOM, &in);
		cr_assert_eq(in_little_room(&in, s), NFS4ERR_REP_TOO_BIG);
		cr_expect_eq(call_reclaim_complete(f, &in, false), NFS4_OK);
	}
}

/*
 * Encodes attributes of a new object: one that the server lacks, or an owner that cannot be mapped.
 */
static void put_attrs(uint32_t minor, bool unsupported)
{
	struct xdr_out *x = &f->out;

	(void)minor;
	if (unsupported) {
		xdr_put_u32(x, 1);
		xdr_put_u32(x, 1u << FATTR4_ARCHIVE);
		xdr_put_u32(x, 4);
		xdr_put_u32(x, 1);
		return;
	}
	xdr_put_u32(x, 2);
	xdr_put_u32(x, 0);
	xdr_put_u32(x, 1u << (FATTR4_OWNER - 32));
	xdr_put_u32(x, 16);
	fix4_name(f, "a@nowhere.no");
}

static void of_attrs(struct fix4_session *in, uint32_t minor)
{
	uint64_t clientid = 0;

	if (minor == 0)
		cr_assert_eq(fix4_clientid_new(f, "attrs", &clientid), NFS4_OK);
	for (int unsupported = 0; unsupported < 2; unsupported++) {
		const uint32_t want = unsupported ? NFS4ERR_ATTRNOTSUPP : NFS4ERR_BADOWNER;

		fix4_begin(f, in);
		fix4_op(f, OP_DELEGPURGE);
		xdr_put_u64(&f->out, clientid);
		cr_expect_eq(fix4_send(f), NFS4ERR_NOTSUPP, "minor %u", minor);
		fix4_begin(f, in);
		fix4_putfh(f, &f->root);
		fix4_op(f, OP_CREATE);
		xdr_put_u32(&f->out, NF4DIR);
		fix4_name(f, "made");
		put_attrs(minor, unsupported);
		cr_expect_eq(fix4_send(f), want, "minor %u", minor);
		fix4_begin(f, in);
		fix4_putfh(f, &f->root);
		fix4_op(f, OP_OPEN);
		xdr_put_u32(&f->out, (uint32_t)unsupported);
		xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
		xdr_put_u32(&f->out, 0);
		xdr_put_u64(&f->out, clientid);
		fix4_name(f, "attrs");
		xdr_put_u32(&f->out, 1); /* OPEN4_CREATE */
		xdr_put_u32(&f->out, 1); /* GUARDED4 */
		put_attrs(minor, unsupported);
		xdr_put_u32(&f->out, 0); /* CLAIM_NULL */
		fix4_name(f, "made");
		cr_expect_eq(fix4_send(f), want, "minor %u", minor);
		cr_expect_not(exists("made"));
	}
}

Test(nfs4_errors, attributes_of_new_objects)
{
	NEED_FIXTURE();
	FOR_MINORS(of_attrs);
}

/* An export with another flavour than the call's, reached by a name in it, or by LOOKUPP from
 * below. */
static void of_flavor(struct fix4_session *in, uint32_t minor)
{
	struct vfs_fh dir;
	uint64_t clientid = 0;

	cr_assert_eq(fix4_handle(f, in, &f->root, "dir", &dir), NFS4_OK);
	if (minor == 0)
		cr_assert_eq(fix4_clientid_new(f, "flavor", &clientid), NFS4_OK);
	fix_accept(&f->access, VFS_SEC_NONE);
	fix4_begin(f, in);
	fix4_putfh(f, &dir);
	fix4_op(f, OP_LOOKUPP);
	cr_expect_eq(fix4_send(f), NFS4ERR_WRONGSEC, "minor %u", minor);
	fix4_begin(f, in);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_OPEN);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_READ);
	xdr_put_u32(&f->out, 0);
	xdr_put_u64(&f->out, clientid);
	fix4_name(f, "flavor");
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0); /* CLAIM_NULL */
	fix4_name(f, "file");
	cr_expect_eq(fix4_send(f), NFS4ERR_WRONGSEC, "minor %u", minor);
	vfs_access_accept(&f->access, VFS_SEC_SYS, 0);
}

Test(nfs4_errors, another_flavor_is_wanted)
{
	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "dir"), 0755), 0);
	make_file("file", "", 0644);
	FOR_MINORS(of_flavor);
}

/* The tag leaves no room for SEQUENCE's result; a call ends before an operation's number. */
Test(nfs4_errors, no_room_for_sequence_and_no_operation)
{
	char tag[LONGEST_TAG + 1];
	struct fix4_session in;

	NEED_FIXTURE();
	memset(tag, 't', LONGEST_TAG);
	tag[LONGEST_TAG] = '\0';
	for (int cached = 0; cached < 2; cached++) {
		small_session(1, cached, ROOM - 44, &in);
		fix4_begin_tag(f, &in, tag);
		fix4_op(f, OP_PUTROOTFH);
		cr_expect_eq(fix4_send(f),
			     cached ? NFS4ERR_REP_TOO_BIG_TO_CACHE : NFS4ERR_REP_TOO_BIG);
	}
	small_session(1, false, ROOM, &in);
	fix4_begin(f, &in);
	fix4_count(f);
	cr_expect_eq(fix4_send(f), NFS4ERR_BADXDR);
	cr_expect_eq(fix4_result(f, OP_ILLEGAL), NFS4ERR_BADXDR);
}
