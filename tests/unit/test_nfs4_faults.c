/* SPDX-License-Identifier: BSD-2-Clause */
/* Replies of operations when the file system fails, or memory: each function that they call fails
 * in each way. The fixture compares the statuses with the RFCs' tables. */
#include <errno.h>

#include "lib/util.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_faults.h"
#include "tests/unit/nfs4_minors.h"
#include "tests/unit/nfs4_opens.h"
#include "tests/unit/nfs4_samples.h"
#include "tests/unit/nfs4_text.h"
#include "tests/unit/nfs4_valid_errors.h"
#include "tests/unit/nfs4_view.h"

NFS3_SUITE(nfs4_faults);

/* ENOTRECOVERABLE stands for any unexpected errno. */
static const struct {
	int errnum;
	uint32_t status; /* expected if the tables allow it; NFS4_OK: any that they allow */
} failures[] = {
	{ EIO, NFS4ERR_IO },	    { ENOSPC, NFS4ERR_NOSPC },
	{ EDQUOT, NFS4ERR_DQUOT },  { EROFS, NFS4ERR_ROFS },
	{ ESTALE, NFS4ERR_STALE },  { ENOMEM, NFS4ERR_DELAY },
	{ EACCES, NFS4ERR_ACCESS }, { ENOTRECOVERABLE, NFS4ERR_SERVERFAULT },
	{ EPERM, NFS4_OK },	    { ENOENT, NFS4_OK },
	{ ENXIO, NFS4_OK },	    { EEXIST, NFS4_OK },
	{ EXDEV, NFS4_OK },	    { ENOTDIR, NFS4_OK },
	{ EISDIR, NFS4_OK },	    { EINVAL, NFS4_OK },
	{ EFBIG, NFS4_OK },	    { EOVERFLOW, NFS4_OK },
	{ EMLINK, NFS4_OK },	    { ENAMETOOLONG, NFS4_OK },
	{ ENOTEMPTY, NFS4_OK },	    { EBADF, NFS4_OK },
	{ EOPNOTSUPP, NFS4_OK },    { ELOOP, NFS4_OK },
	{ ETXTBSY, NFS4_OK },	    { EBUSY, NFS4_OK },
	{ ENOLCK, NFS4_OK },	    { EDEADLK, NFS4_OK },
};

static void put_size(uint64_t size)
{
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << FATTR4_SIZE);
	xdr_put_u32(&f->out, 8);
	xdr_put_u64(&f->out, size);
}

static void put_open(const char *name, uint32_t how)
{
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, OPEN4_SHARE_ACCESS_BOTH);
	xdr_put_u32(&f->out, 0);
	sample_put_owner(f);
	xdr_put_u32(&f->out, 1); /* OPEN4_CREATE */
	xdr_put_u32(&f->out, how);
	if (how == 2) /* EXCLUSIVE4 */
		xdr_put_u64(&f->out, 1);
	else
		put_size(0);
	xdr_put_u32(&f->out, 0); /* CLAIM_NULL */
	fix4_name(f, name);
}

static void put_truncate(struct fixture *x)
{
	(void)x;
	put_open("file", 0);
}

static void put_guarded(struct fixture *x)
{
	(void)x;
	put_open("made", 1);
}

static void put_exclusive(struct fixture *x)
{
	(void)x;
	put_open("made", 2);
}

static void put_symlink(struct fixture *x)
{
	xdr_put_u32(&x->out, NF4LNK);
	fix4_name(x, "text");
	fix4_name(x, "made");
	xdr_put_u64(&x->out, 0);
}

static void put_fifo(struct fixture *x)
{
	xdr_put_u32(&x->out, NF4FIFO);
	fix4_name(x, "made");
	xdr_put_u64(&x->out, 0);
}

static void put_dir_name(struct fixture *x)
{
	fix4_name(x, "dir");
}

static void put_space_free(struct fixture *x)
{
	xdr_put_u32(&x->out, 2);
	xdr_put_u32(&x->out, 0);
	xdr_put_u32(&x->out, 1u << (FATTR4_SPACE_FREE - 32));
}

/* Attributes of minor version 2: the others drop them. */
static void put_4_2(struct fixture *x)
{
	xdr_put_u32(&x->out, 3);
	xdr_put_u64(&x->out, 0);
	xdr_put_u32(&x->out, 1u << (FATTR4_SPACE_FREED - 64) | 1u << (FATTR4_SEC_LABEL - 64));
}

static void put_set_label(struct fixture *x)
{
	static const struct nfs4_stateid anonymous;

	fix4_stateid(x, &anonymous);
	xdr_put_u32(&x->out, 3);
	xdr_put_u64(&x->out, 0);
	xdr_put_u32(&x->out, 1u << (FATTR4_SEC_LABEL - 64));
	xdr_put_u32(&x->out, 16);
	xdr_put_u64(&x->out, 0);
	xdr_put_opaque(&x->out, "text", 4);
}

static void put_set_size(struct fixture *x)
{
	static const struct nfs4_stateid anonymous;

	fix4_stateid(x, &anonymous);
	put_size(5);
}

static void put_list(struct fixture *x)
{
	xdr_put_u64(&x->out, 0);
	xdr_put_u64(&x->out, 0);
	xdr_put_u32(&x->out, 1000);
	xdr_put_u32(&x->out, 1000);
	xdr_put_u32(&x->out, 1);
	xdr_put_u32(&x->out, 1u << FATTR4_SIZE);
}

/* Variants of operations that take other paths than the samples. */
static const struct sample more[] = {
	{ OP_OPEN, SAMPLE_DIR, 0, put_truncate },
	{ OP_OPEN, SAMPLE_DIR, 0, put_guarded },
	{ OP_OPEN, SAMPLE_DIR, 0, put_exclusive },
	{ OP_CREATE, SAMPLE_DIR, 0, put_symlink },
	{ OP_CREATE, SAMPLE_DIR, 0, put_fifo },
	{ OP_REMOVE, SAMPLE_DIR, 0, put_dir_name },
	{ OP_SETATTR, SAMPLE_FILE, 0, put_set_size },
	{ OP_GETATTR, SAMPLE_DIR, 0, put_space_free },
	{ OP_READDIR, SAMPLE_DIR, 0, put_list },
	{ OP_GETATTR, SAMPLE_FILE, 0, put_4_2 },
	{ OP_SETATTR, SAMPLE_FILE, 0, put_set_label },
};

static void clean_up(void)
{
	fault_at = FAULT_NONE;
	fault_spared = 0;
	rmdir(fix_path(f, "made"));
	unlink(fix_path(f, "made"));
	unlink(fix_path(f, "other"));
	make_file("nothing", "", 0644);
	mkdir(fix_path(f, "dir"), 0755);
}

/* Status of the operation, or FIX4_NO_STATUS if one before it failed, because the client has
 * expired for example. */
static uint32_t run(struct fix4_session *in, const struct sample *s, enum fault at, int result)
{
	uint32_t before = (s->saved ? 2 : 0) + (s->current ? 1 : 0), status;

	fix4_begin(f, in);
	sample_put_places(f, s);
	sample_put(f, s);
	fault_at = at;
	fault_result = result;
	fault_hits = 0;
	status = fix4_send(f);
	if (status != NFS4_OK && fix4_results_left(f) <= before)
		status = FIX4_NO_STATUS;
	clean_up();
	return status;
}

static void each_failure(struct fix4_session *in, uint32_t minor, const struct sample *s,
			 enum fault at)
{
	for (unsigned i = 0; i < rn_array_size(failures); i++) {
		uint32_t got = run(in, s, at, -failures[i].errnum), want = failures[i].status;

		if (got == NFS4_OK || got == FIX4_NO_STATUS || want == NFS4_OK)
			/* The operation succeeds without the function, or PUTFH has failed */
			continue;
		if (nfs4_error_is_valid(s->num, minor, want))
			cr_expect_eq(got, want, "minor %u, %s, function %d: %s gives %s", minor,
				     nfs4_op_text(s->num), at, strerror(failures[i].errnum),
				     nfs4_status_text(got));
	}
}

static void each_function(struct fix4_session *in, uint32_t minor, const struct sample *s)
{
	if (!sample_runs(s, minor) || s->num == OP_SEQUENCE || s->num == OP_BIND_CONN_TO_SESSION)
		return;
	for (enum fault at = FAULT_NONE + 1; at < FAULT_NFS4_GROW_REPLY; at++) {
		run(in, s, at, -EIO);
		if (fault_hits > 0)
			each_failure(in, minor, s, at);
	}
}

static void of_functions(struct fix4_session *in, uint32_t minor)
{
	if (minor == 0)
		cr_assert_eq(fix4_clientid_new(f, "faults", &sample_clientid), NFS4_OK);
	EACH_SAMPLE (s) {
		/* Operations on clients and sessions call none of these functions, and would end
		 * the client in use. */
		if (s->current != SAMPLE_NO_FH || s->num == OP_PUTFH || s->num == OP_PUTROOTFH)
			each_function(in, minor, s);
	}
	for (unsigned i = 0; i < rn_array_size(more); i++)
		each_function(in, minor, &more[i]);
}

Test(nfs4_faults, each_function_fails_in_each_way)
{
	NEED_FIXTURE();
	sample_make(f);
	clean_up();
	f->access.flags |= VFS_SECURITY_LABEL;
	FOR_MINORS(of_functions);
}

/* Changes of extended attributes are answered when they are on disk, but for an async export. */
Test(nfs4_faults, xattrs_are_durable)
{
	struct fix4_session in;

	NEED_FIXTURE();
	sample_make(f);
	clean_up();
	cr_assert_eq(fix4_session_new(f, &in, 2, "durable", true), NFS4_OK);
	for (int async = 0; async < 2; async++) {
		const uint32_t want = async ? NFS4_OK : NFS4ERR_IO;

		f->access.flags |= async ? VFS_ASYNC : 0;
		EACH_SAMPLE (s) {
			if (s->num != OP_SETXATTR && s->num != OP_REMOVEXATTR)
				continue;
			cr_expect_eq(run(&in, s, FAULT_VFS_SYNC, -EIO), want, "%s, async %d",
				     nfs4_op_text(s->num), async);
			cr_expect_eq(fault_hits, !async);
		}
	}
}

/* No memory for the reply, or for the decoded arguments. */
static void of_memory(struct fix4_session *in, uint32_t minor)
{
	EACH_SAMPLE (s) {
		enum fault at;

		if (!sample_runs(s, minor) || s->num == OP_SEQUENCE ||
		    s->num == OP_BIND_CONN_TO_SESSION)
			continue;
		/* The tables allow no error there that means out of memory. */
		if (!nfs4_error_is_valid(s->num, minor, NFS4ERR_DELAY))
			continue;
		at = sample_row(s, minor)->flags & NFS4_OP_CHANGES ? FAULT_NFS4_RESERVE_REPLY
								   : FAULT_NFS4_GROW_REPLY;
		/* SEQUENCE and the filehandle operations reserve memory first. */
		fault_spared = at == FAULT_NFS4_RESERVE_REPLY
				       ? 0
				       : (in != NULL) + (s->saved ? 2 : 0) + (s->current ? 1 : 0);
		cr_expect_eq(run(in, s, at, NFS4ERR_DELAY), NFS4ERR_DELAY, "minor %u, %s", minor,
			     nfs4_op_text(s->num));
	}
}

Test(nfs4_faults, no_memory)
{
	NEED_FIXTURE();
	sample_make(f);
	clean_up();
	FOR_MINORS(of_memory);
}

/* The root of NFSv4 is an export that cannot be opened, or not by this flavour. */
static void of_root(struct fix4_session *in, uint32_t minor)
{
	for (uint32_t op = OP_PUTPUBFH; op <= OP_PUTROOTFH; op++) {
		for (int wants = 0; wants < 2; wants++) {
			fix4_begin(f, in);
			fix4_op(f, op);
			if (wants)
				fix4_op(f, OP_GETFH);
			fault_at = wants ? FAULT_NONE : FAULT_VFS_ROOT;
			fault_result = -EIO;
			cr_expect_eq(fix4_send(f), wants ? NFS4ERR_WRONGSEC : NFS4ERR_SERVERFAULT,
				     "minor %u", minor);
			fault_at = FAULT_NONE;
		}
	}
}

Test(nfs4_faults, the_root)
{
	struct view v;
	int e;

	NEED_FIXTURE();
	cr_assert_null(view_start(&v, f));
	view_mkdir(&v, "a");
	e = view_export(&v, "a", 0);
	cr_assert_geq(e, 0);
	cr_assert_eq(view_changed(&v), 0);
	fix_accept(&v.e[e].access, VFS_SEC_NONE);
	FOR_MINORS(of_root);
	view_stop(&v);
}

static uint32_t minor;

static struct op_client client;
static struct op_owner owner = { &client, "owner", 1 }, locker = { &client, "locker", 1 };
static struct op_owner tester = { &client, "tester", 1 };

/* Failures of an operation on a client's opens and locks, whose state must stay usable. */
static void each_lock_failure(int errnum)
{
	const struct op_range one = { .type = 2, .length = 1 };
	const struct op_how how = { .fh = &f->root, .name = "file" };
	struct nfs4_stateid lock;
	struct op_file file;

	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
	cr_assert_eq(op_lock_first(f, &owner, &locker, &file, &one, &lock, NULL), NFS4_OK);
	fault_result = -errnum;
	fault_at = FAULT_VFS_LOCK;
	cr_expect_neq(op_lock(f, &locker, &file.fh, &one, &lock, NULL), NFS4_OK);
	fault_at = FAULT_VFS_LOCK_TEST;
	cr_expect_neq(op_lockt(f, &tester, &file.fh, &one, NULL), NFS4_OK);
	fault_at = FAULT_VFS_UNLOCK;
	cr_expect_neq(op_unlock(f, &locker, &file.fh, &one, &lock), NFS4_OK);
	fault_at = FAULT_NONE;
	cr_expect_eq(op_unlock(f, &locker, &file.fh, &one, &lock), NFS4_OK);
	cr_expect_eq(op_close(f, &owner, &file), NFS4_OK);
}

OP_MINORS_TEST(nfs4_faults, locks)
{
	sample_make(f);
	cr_assert_eq(op_client_new(f, &client, minor, "locks"), NFS4_OK);
	for (unsigned i = 0; i < rn_array_size(failures); i++)
		each_lock_failure(failures[i].errnum);
}
