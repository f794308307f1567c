/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attribute open_arguments (RFC 9754) against OPEN itself: what it lists is accepted, and what it
 * does not list is refused. Wants for later are the exception: RFC 8881 has them accepted, and no
 * client is told later.
 */
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_attrs.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/base/instance.h"

NFS3_SUITE(nfs4_open_arguments);

enum { ACCESS_BITS, DENY_BITS, WANT_BITS, CLAIM_BITS, CREATE_BITS };

static struct op_client client;
static struct op_owner owner;
static struct fix4_attrs attrs;

static void begin(void)
{
	cr_assert_eq(op_client_new(f, &client, 2, "client"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	make_file("a", "text", 0666);
	cr_assert_eq(fix4_getattr(f, &client.session, &f->root, &attrs), NFS4_OK);
	cr_assert(nfs4_bitmap_has(&attrs.supported, FATTR4_OPEN_ARGUMENTS));
	cr_assert(nfs4_bitmap_has(&attrs.have, FATTR4_OPEN_ARGUMENTS));
}

static bool listed(unsigned bitmap, unsigned bit)
{
	return attrs.open_args[bitmap] >> bit & 1;
}

/* Opens, and closes what was opened. */
static uint32_t attempt(const struct op_how *how)
{
	struct op_file file;
	uint32_t status = op_open(f, &owner, how, &file);

	if (status == NFS4_OK)
		cr_assert_eq(op_close(f, &owner, &file), NFS4_OK);
	return status;
}

static uint32_t open_access(uint32_t access, uint32_t deny)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = access, .deny = deny };

	return attempt(&how);
}

Test(nfs4_open_arguments, access_and_deny)
{
	NEED_FIXTURE();
	begin();
	cr_expect_eq(attrs.open_args[ACCESS_BITS], 1u << 1 | 1u << 2 | 1u << 3);
	cr_expect_eq(attrs.open_args[DENY_BITS], 0xf);
	for (uint32_t i = 1; i < 8; i++)
		cr_expect_eq(open_access(i, 0), listed(ACCESS_BITS, i) ? NFS4_OK : NFS4ERR_INVAL,
			     "access %u", i);
	for (uint32_t i = 0; i < 8; i++)
		cr_expect_eq(open_access(OPEN4_SHARE_ACCESS_READ, i),
			     listed(DENY_BITS, i) ? NFS4_OK : NFS4ERR_INVAL, "deny %u", i);
}

/* Other members of a cluster would not see what is denied. */
Test(nfs4_open_arguments, deny_in_a_cluster)
{
	const struct op_how make = { .fh = NULL,
				     .name = "new",
				     .access = OPEN4_SHARE_ACCESS_BOTH,
				     .deny = OPEN4_SHARE_DENY_WRITE,
				     .create = OP_UNCHECKED };
	struct op_how how = make;

	NEED_FIXTURE();
	f->vfs->cfg.shared = true;
	begin();
	cr_expect_eq(attrs.open_args[DENY_BITS], 1u << OPEN_ARGS_SHARE_DENY_NONE);
	for (uint32_t i = 0; i < 8; i++)
		cr_expect_eq(open_access(OPEN4_SHARE_ACCESS_READ, i),
			     i == 0  ? NFS4_OK
			     : i < 4 ? NFS4ERR_SHARE_DENIED
				     : NFS4ERR_INVAL,
			     "deny %u", i);
	how.fh = &f->root;
	cr_expect_eq(attempt(&how), NFS4ERR_SHARE_DENIED);
	how.create = OP_NOCREATE;
	how.deny = OPEN4_SHARE_DENY_NONE;
	cr_expect_eq(attempt(&how), NFS4ERR_NOENT, "it was not made");
	f->vfs->cfg.shared = false;
}

Test(nfs4_open_arguments, wants)
{
	static const struct {
		unsigned bit;
		uint32_t flag;
	} wants[] = {
		{ OPEN_ARGS_SHARE_ACCESS_WANT_ANY_DELEG, 0x300 },
		{ OPEN_ARGS_SHARE_ACCESS_WANT_NO_DELEG, 0x400 },
		{ OPEN_ARGS_SHARE_ACCESS_WANT_CANCEL, 0x500 },
		{ OPEN_ARGS_SHARE_ACCESS_WANT_DELEG_TIMESTAMPS, 0x100000 },
		{ OPEN_ARGS_SHARE_ACCESS_WANT_OPEN_XOR_DELEGATION, 0x200000 },
	};
	uint32_t known = 0;

	NEED_FIXTURE();
	begin();
	for (unsigned i = 0; i < sizeof(wants) / sizeof(*wants); i++) {
		known |= 1u << wants[i].bit;
		cr_expect_eq(open_access(OPEN4_SHARE_ACCESS_READ | wants[i].flag, 0),
			     listed(WANT_BITS, wants[i].bit) ? NFS4_OK : NFS4ERR_INVAL, "want %#x",
			     wants[i].flag);
	}
	cr_expect_eq(attrs.open_args[WANT_BITS] & ~known, 0);
}

/* A claim that is listed gets as far as to the file, or to the state that the client claims. */
Test(nfs4_open_arguments, claims)
{
	struct vfs_fh file;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(fix4_handle(f, &client.session, &f->root, "a", &file), NFS4_OK);
	for (unsigned i = 0; i <= OP_DPREV_FH; i++) {
		const bool by_fh = i == OP_RECLAIM || i >= OP_BY_FH;
		const struct op_how how = { .fh = by_fh ? &file : &f->root,
					    .name = "a",
					    .access = OPEN4_SHARE_ACCESS_READ,
					    .claim = (enum op_claim)i };
		const uint32_t status = attempt(&how);

		if (!listed(CLAIM_BITS, i))
			cr_expect_eq(status, NFS4ERR_RECLAIM_BAD, "claim %u: %u", i, status);
		else if (i == OP_RECLAIM) /* no longer, or not yet */
			cr_expect_eq(status, NFS4ERR_NO_GRACE, "%u", status);
		else if (i == OP_DELEG_CUR || i == OP_DCUR_FH) /* of no delegation */
			cr_expect_eq(status, NFS4ERR_BAD_STATEID, "claim %u: %u", i, status);
		else
			cr_expect_eq(status, NFS4_OK, "claim %u: %u", i, status);
	}
	cr_expect_eq(attrs.open_args[CLAIM_BITS] >> (OP_DPREV_FH + 1), 0);
}

Test(nfs4_open_arguments, create_modes)
{
	static const char *const names[] = { "n0", "n1", "n2", "n3" };

	NEED_FIXTURE();
	begin();
	cr_expect_eq(attrs.open_args[CREATE_BITS], 0xf);
	for (unsigned i = 0; i < 4; i++) {
		const struct op_how how = { .fh = &f->root,
					    .name = names[i],
					    .create = (enum op_create)(OP_UNCHECKED + i) };

		cr_expect_eq(attempt(&how), NFS4_OK, "create mode %u", i);
	}
}
