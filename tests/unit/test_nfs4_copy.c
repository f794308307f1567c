/* SPDX-License-Identifier: BSD-2-Clause */
/* COPY and CLONE: results, ranges, stateids of both files, and source servers. */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_copy);

#define UNSTABLE4 0u
#define NL4_NAME 1u
#define NL4_NETADDR 3u

static const struct nfs4_stateid anonymous;
static const struct nfs4_stateid current = { 1, { 0 } };
static struct op_client client;
static struct vfs_fh from, to;

struct range {
	uint64_t from, to, count;
};

/* Makes the file "from" of ten bytes and the empty file "to". */
static void start(void)
{
	cr_assert_eq(op_client_new(f, &client, 2, "copies"), NFS4_OK);
	make_file("from", "0123456789", 0600);
	make_file("to", "", 0600);
	from = handle("from");
	to = handle("to");
}

static void put_op(uint32_t op, const struct nfs4_stateid *from_sid,
		   const struct nfs4_stateid *to_sid, struct range r)
{
	op_begin(f, &client);
	fix4_putfh(f, &from);
	fix4_op(f, OP_SAVEFH);
	fix4_putfh(f, &to);
	fix4_op(f, op);
	fix4_stateid(f, from_sid);
	fix4_stateid(f, to_sid);
	xdr_put_u64(&f->out, r.from);
	xdr_put_u64(&f->out, r.to);
	xdr_put_u64(&f->out, r.count);
}

static uint32_t outcome(uint32_t op)
{
	uint32_t status = fix4_send(f);

	cr_assert_eq(f->answers, 1);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_SAVEFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, op), status);
	cr_expect(status == NFS4_OK || f->in.left == 0, "nothing behind a failure");
	return status;
}

static uint32_t run(uint32_t op, const struct nfs4_stateid *from_sid,
		    const struct nfs4_stateid *to_sid, struct range r)
{
	put_op(op, from_sid, to_sid, r);
	if (op == OP_COPY) {
		xdr_put_bool(&f->out, true);
		xdr_put_bool(&f->out, false);
		xdr_put_u32(&f->out, 0);
	}
	return outcome(op);
}

static uint32_t copy(uint64_t from_at, uint64_t to_at, uint64_t count)
{
	return run(OP_COPY, &anonymous, &anonymous, (struct range){ from_at, to_at, count });
}

static uint32_t clone_it(uint64_t from_at, uint64_t to_at, uint64_t count)
{
	return run(OP_CLONE, &anonymous, &anonymous, (struct range){ from_at, to_at, count });
}

static void copied(uint64_t count)
{
	cr_expect_eq(xdr_get_u32(&f->in), 0, "no stateid: it is synchronous");
	cr_expect_eq(xdr_get_u64(&f->in), count);
	cr_expect_eq(xdr_get_u32(&f->in), UNSTABLE4);
	cr_expect_eq(xdr_get_u64(&f->in), vfs_write_verifier(f->exp[0]));
	cr_expect(xdr_get_bool(&f->in), "consecutive");
	cr_expect(xdr_get_bool(&f->in), "synchronous");
	whole();
}

static void has(const char *name, const char *text)
{
	char got[64] = { 0 };
	int fd = open(fix_path(f, name), O_RDONLY);

	cr_assert_geq(read(fd, got, sizeof(got) - 1), 0);
	close(fd);
	cr_expect_str_eq(got, text);
}

Test(nfs4_copy, copies_a_range)
{
	NEED_FIXTURE();
	start();
	cr_assert_eq(copy(2, 0, 5), NFS4_OK);
	copied(5);
	has("to", "23456");
	cr_assert_eq(copy(8, 4, 0), NFS4_OK);
	copied(2);
	has("to", "234589");
	cr_assert_eq(copy(10, 20, 0), NFS4_OK);
	copied(0);
	has("to", "234589");
}

Test(nfs4_copy, ranges_that_cannot_be)
{
	NEED_FIXTURE();
	start();
	for (uint32_t op = OP_COPY; op <= OP_CLONE; op += OP_CLONE - OP_COPY) {
		const struct range beyond[] = { { 0, 0, 11 },
						{ 11, 0, 0 },
						{ 10, 0, 1 },
						{ UINT64_MAX, 0, 2 },
						{ 1, 0, UINT64_MAX } };

		for (unsigned i = 0; i < sizeof(beyond) / sizeof(*beyond); i++)
			cr_expect_eq(run(op, &anonymous, &anonymous, beyond[i]), NFS4ERR_INVAL,
				     "operation %u, %u", op, i);
		cr_expect_eq(run(op, &anonymous, &anonymous, (struct range){ 0, INT64_MAX, 1 }),
			     NFS4ERR_FBIG);
		cr_expect_eq(run(op, &anonymous, &anonymous, (struct range){ 0, UINT64_MAX, 0 }),
			     NFS4ERR_FBIG);
	}
	has("to", "");
	from = to;
	cr_expect_eq(copy(0, 0, 0), NFS4ERR_INVAL, "within one file");
	from = handle("from");
	to = from;
	cr_expect_eq(copy(0, 100, 5), NFS4ERR_INVAL, "within one file");
	cr_expect_eq(clone_it(0, 5, 6), NFS4ERR_INVAL, "ranges overlap");
}

/* A file system that cannot share blocks between files answers NFS4ERR_NOTSUPP to CLONE. */
Test(nfs4_copy, clone_is_done_or_not_supported)
{
	uint32_t status;

	NEED_FIXTURE();
	start();
	status = clone_it(0, 0, 0);
	if (status == NFS4ERR_NOTSUPP) {
		has("to", "");
	} else {
		cr_expect_eq(status, NFS4_OK);
		has("to", "0123456789");
	}
	whole();
}

Test(nfs4_copy, each_file_has_its_own_right)
{
	struct op_owner owner = { &client, "owner", 1 };
	struct op_file reads, writes;

	NEED_FIXTURE();
	start();
	cr_assert_eq(op_open(f, &owner,
			     &(struct op_how){ .fh = &f->root,
					       .name = "from",
					       .access = OPEN4_SHARE_ACCESS_READ },
			     &reads),
		     NFS4_OK);
	cr_assert_eq(op_open(f, &owner,
			     &(struct op_how){ .fh = &f->root,
					       .name = "to",
					       .access = OPEN4_SHARE_ACCESS_WRITE },
			     &writes),
		     NFS4_OK);
	for (uint32_t op = OP_COPY; op <= OP_CLONE; op += OP_CLONE - OP_COPY) {
		const struct range all = { 0, 0, 0 };
		uint32_t done = run(op, &reads.sid, &writes.sid, all);

		cr_expect(done == NFS4_OK || (op == OP_CLONE && done == NFS4ERR_NOTSUPP), "%u",
			  done);
		cr_expect_eq(run(op, &anonymous, &writes.sid, all), done);
		cr_expect_eq(run(op, &reads.sid, &anonymous, all), done);
		cr_expect_eq(run(op, &writes.sid, &writes.sid, all), NFS4ERR_BAD_STATEID);
		cr_expect_eq(run(op, &reads.sid, &reads.sid, all), NFS4ERR_BAD_STATEID);
		/* Nothing has set a current stateid. */
		cr_expect_eq(run(op, &current, &writes.sid, all), NFS4ERR_BAD_STATEID);
		cr_expect_eq(run(op, &reads.sid, &current, all), NFS4ERR_BAD_STATEID);
	}
	from = to;
	to = handle("from");
	cr_expect_eq(run(OP_COPY, &writes.sid, &reads.sid, (struct range){ 0, 0, 0 }),
		     NFS4ERR_OPENMODE);
	cr_expect_eq(run(OP_CLONE, &writes.sid, &reads.sid, (struct range){ 0, 0, 0 }),
		     NFS4ERR_OPENMODE);
}

/* Somebody denies the source to be read, or the destination to be written. */
Test(nfs4_copy, denying_opens_of_others)
{
	static const struct {
		const char *name;
		uint32_t deny, status;
	} rows[] = {
		{ "from", OPEN4_SHARE_DENY_READ, NFS4ERR_LOCKED },
		{ "from", OPEN4_SHARE_DENY_WRITE, NFS4_OK },
		{ "to", OPEN4_SHARE_DENY_READ, NFS4_OK },
		{ "to", OPEN4_SHARE_DENY_WRITE, NFS4ERR_LOCKED },
	};
	struct op_owner denier = { &client, "denier", 1 };
	struct op_file file;

	NEED_FIXTURE();
	start();
	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct op_how how = { .fh = &f->root,
					    .name = rows[i].name,
					    .deny = rows[i].deny };

		cr_assert_eq(op_open(f, &denier, &how, &file), NFS4_OK);
		cr_expect_eq(copy(0, 0, 0), rows[i].status, "%u", i);
		if (rows[i].status == NFS4ERR_LOCKED)
			cr_expect_eq(clone_it(0, 0, 0), NFS4ERR_ACCESS, "%u", i);
		cr_assert_eq(op_close(f, &denier, &file), NFS4_OK);
	}
}

static void put_servers(void)
{
	xdr_put_bool(&f->out, false);
	xdr_put_bool(&f->out, true);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, NL4_NETADDR);
	xdr_put_opaque(&f->out, "tcp", 3);
	xdr_put_opaque(&f->out, "192.0.2.1.8.1", 13);
	xdr_put_u32(&f->out, NL4_NAME);
	xdr_put_opaque(&f->out, "elsewhere", 9);
}

Test(nfs4_copy, from_another_server)
{
	const struct range all = { 0, 0, 0 };
	size_t len = 8;

	NEED_FIXTURE();
	start();
	put_op(OP_COPY, &anonymous, &anonymous, all);
	put_servers();
	cr_expect_eq(outcome(OP_COPY), NFS4ERR_OFFLOAD_DENIED);
	/* The list ends at each word; its union has other arms; there are more servers than bytes.
	 */
	for (size_t cut = 0; cut < len; cut += 4) {
		size_t at;

		put_op(OP_COPY, &anonymous, &anonymous, all);
		at = f->out.used;
		put_servers();
		len = f->out.used - at;
		f->out.used = at + cut;
		cr_expect_eq(outcome(OP_COPY), NFS4ERR_BADXDR, "%zu", cut);
	}
	for (uint32_t n = 1; n != 0; n = n == 1 ? UINT32_MAX : 0) {
		put_op(OP_COPY, &anonymous, &anonymous, all);
		xdr_put_bool(&f->out, true);
		xdr_put_bool(&f->out, true);
		xdr_put_u32(&f->out, n);
		xdr_put_u32(&f->out, n == 1 ? 4 : NL4_NAME);
		xdr_put_opaque(&f->out, "elsewhere", 9);
		cr_expect_eq(outcome(OP_COPY), NFS4ERR_BADXDR);
	}
	has("to", "");
}
