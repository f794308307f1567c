/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of operations: every number of every minor version has a row, each row has all members
 * that the server and the tests use, and the rows agree with the RFCs' tables and with the
 * decoders.
 */
#include "lib/util.h"
#include "nfs4/scan.h"
#include "nfs4/nfs4_status.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_samples.h"
#include "tests/unit/nfs4_text.h"
#include "tests/unit/nfs4_valid_errors.h"

NFS3_SUITE(nfs4_table);

/* Highest operation number of minor versions 0, 1 and 2 (RFC 7531, RFC 5662, RFC 8276). */
static const uint32_t last_op[] = { OP_RELEASE_LOCKOWNER, OP_RECLAIM_COMPLETE, OP_REMOVEXATTR };

/* Largest result that a row may reserve room for: it must fit the smallest reply that
 * CREATE_SESSION grants. */
#define REPLY_MAX 2048u

#define EACH_ROW(op, num, minor)                                                                   \
	for (uint32_t minor = 0; minor <= NFS4_MINOR_MAX; minor++)                                 \
		for (uint32_t num = 0; num < NFS4_OPS; num++)                                      \
			for (const struct nfs4_op *op = nfs4_op_find(num, minor); op; op = NULL)

Test(nfs4_table, every_number_has_a_row)
{
	for (uint32_t minor = 0; minor <= NFS4_MINOR_MAX; minor++) {
		for (uint32_t num = 0; num < NFS4_OPS + 100; num++) {
			const bool known = num >= OP_ACCESS && num <= last_op[minor];

			cr_expect_eq(nfs4_op_find(num, minor) != NULL, known,
				     "minor %u: operation %u (%s)", minor, num, nfs4_op_text(num));
		}
	}
	cr_expect_null(nfs4_op_find(OP_ACCESS, NFS4_MINOR_MAX + 1));
	cr_expect_null(nfs4_op_find(OP_ILLEGAL, 0));
	cr_expect_null(nfs4_op_find(UINT32_MAX, 0));
}

Test(nfs4_table, every_row_has_the_name_of_its_number)
{
#define IS_NAMED(NAME, name_)                                                                      \
	cr_expect_str_eq(nfs4_op_##name_.name, #NAME);                                             \
	cr_expect_eq(nfs4_op_find(OP_##NAME, NFS4_MINOR_MAX), &nfs4_op_##name_, "%s", #NAME);
	NFS4_OP_LIST(IS_NAMED)
}

Test(nfs4_table, every_row_is_complete)
{
	EACH_ROW(op, num, minor)
	{
		cr_expect(op->errors.minor_0 & NFS4_E_LISTED, "%s has no .errors", op->name);
		cr_expect(op->errors.later & NFS4_E_LISTED, "%s has no .errors", op->name);
		cr_expect_leq(op->minors.first, op->minors.last, "%s", op->name);
		cr_expect(op->gone_from == 0 || op->gone_from > op->minors.first, "%s", op->name);
		cr_expect_eq(op->decode != NULL, op->args_size > 0, "%s", op->name);
		cr_expect(op->run || !op->decode, "%s decodes for nothing", op->name);
		cr_expect(op->reply_max % 4 == 0 && op->reply_max <= REPLY_MAX, "%s: %u", op->name,
			  op->reply_max);
		cr_expect(!(op->needs & NFS4_NEEDS_SAVED_FH) || (op->needs & NFS4_NEEDS_FH), "%s",
			  op->name);
		cr_expect(!op->uses_fh || op->flavor == NFS4_FLAVOR_HERE, "%s", op->name);
		cr_expect(op->flavor != NFS4_FLAVOR_NEXT || !op->decode, "%s", op->name);
		cr_expect(!op->shape.known || !(op->flags & NFS4_OP_CHANGES),
			  "%s changes something", op->name);
	}
}

/* Statuses of the file system, each with a bit of enum nfs4_op_error. */
static const uint32_t statuses[] = {
	NFS4ERR_PERM,	NFS4ERR_NOENT,	   NFS4ERR_IO,		NFS4ERR_NXIO,	 NFS4ERR_ACCESS,
	NFS4ERR_EXIST,	NFS4ERR_XDEV,	   NFS4ERR_NOTDIR,	NFS4ERR_ISDIR,	 NFS4ERR_INVAL,
	NFS4ERR_FBIG,	NFS4ERR_NOSPC,	   NFS4ERR_DQUOT,	NFS4ERR_ROFS,	 NFS4ERR_MLINK,
	NFS4ERR_STALE,	NFS4ERR_NOTSUPP,   NFS4ERR_NOTEMPTY,	NFS4ERR_SYMLINK, NFS4ERR_FILE_OPEN,
	NFS4ERR_LOCKED, NFS4ERR_BADHANDLE, NFS4ERR_NAMETOOLONG,
};

static bool picks_its_own(const struct nfs4_op *op)
{
	return op->errors.minor_0 == UINT32_MAX;
}

Test(nfs4_table, errors_are_those_of_the_rfcs)
{
	EACH_ROW(op, num, minor)
	{
		if (picks_its_own(op) || !nfs4_op_is_done(op, minor))
			continue;
		for (unsigned i = 0; i < rn_array_size(statuses); i++) {
			const uint32_t s = statuses[i];
			const uint32_t got = (uint32_t)nfs4_status_for(op, minor, (int)s);

			cr_expect(nfs4_error_is_valid(num, minor, got), "minor %u, %s: %s gives %s",
				  minor, op->name, nfs4_status_text(s), nfs4_status_text(got));
			/* Minor version 0's tables list BADHANDLE where PUTFH has already checked
			 * the handle. */
			if (s == NFS4ERR_BADHANDLE && num != OP_PUTFH)
				continue;
			cr_expect_eq(got == s, nfs4_error_is_valid(num, minor, s),
				     "minor %u, %s: %s", minor, op->name, nfs4_status_text(s));
		}
	}
}

/* The shapes match the arguments that the decoder accepts in the samples. */
Test(nfs4_table, shapes_are_those_of_the_arguments)
{
	NEED_FIXTURE();
	sample_make(f);
	EACH_SAMPLE (s) {
		const struct nfs4_op *op = nfs4_op_find(s->num, NFS4_MINOR_MAX);
		struct rpc_seg seg;
		struct xdr_in in;
		size_t from;

		if (!op || !op->shape.known)
			continue;
		fix4_begin_bare(f, 2, "");
		from = f->out.used + 4;
		sample_put(f, s);
		seg = (struct rpc_seg){ .base = f->out.base + from,
					.len = (uint32_t)(f->out.used - from) };
		xdr_in_init(&in, &seg, 1, NULL);
		cr_expect(nfs4_scan_op(&in, s->num), "%s", op->name);
		cr_expect_eq(in.left, 0, "%s: %zu of %u bytes are left", op->name, in.left,
			     seg.len);
	}
}

/* The samples cover all operations. */
Test(nfs4_table, every_row_has_a_sample)
{
	for (uint32_t num = OP_ACCESS; num < NFS4_OPS; num++) {
		const struct nfs4_op *op = nfs4_op_find(num, NFS4_MINOR_MAX);
		const struct sample *found = NULL;

		EACH_SAMPLE (s) {
			if (s->num == num)
				found = s;
		}
		cr_expect_not_null(found, "%s", op->name);
		if (!found || num == OP_RESTOREFH) /* RESTOREFH has an error of its own */
			continue;
		cr_expect_eq(found->current != SAMPLE_NO_FH, (op->needs & NFS4_NEEDS_FH) != 0, "%s",
			     op->name);
		if (op->run)
			cr_expect_eq(found->saved != SAMPLE_NO_FH,
				     (op->needs & NFS4_NEEDS_SAVED_FH) != 0, "%s", op->name);
		cr_expect(!op->decode || found->put, "%s: a sample without arguments", op->name);
	}
}
