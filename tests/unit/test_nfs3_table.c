/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of NFSv3, MOUNT, NLM, NFSACL and RQUOTA: each number has a row with what the server and the tests draw
 * on, and NFSv3's rows have the errors of RFC 1813.
 */
#include <criterion/criterion.h>
#include <string.h>

#include "lib/util.h"
#include "nfs3/nfs3_server.h"
#include "nfs3/nlm/nlm.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/nfs3_proto.h"
#include "tests/unit/nfs3_samples.h"

/* The smallest reply that a client offers room for has to hold the result of what changes
 * something. */
#define REPLY_MAX 2048u

static struct rpc_program nfs, mount, nlm, nfsacl, rquota;

static void start(void)
{
	static struct nfs3_server server = { .cfg.packed_handles = true };
	nfs3_program(&server, &nfs, &mount);
	nlm_program(NULL, &nlm);
	nfsacl_program(NULL, &nfsacl);
	rquota_program(NULL, &rquota);
}

TestSuite(nfs3_table, .init = start);

static void check_row(const struct rpc_program *p, uint32_t vers, const struct rpc_proc *row)
{
	cr_assert_not_null(row->name, "%s %u", p->name, vers);
	cr_expect_eq(row->decode != NULL, row->args_size > 0, "%s", row->name);
	cr_expect(row->run || !row->decode, "%s decodes for nothing", row->name);
	cr_expect_eq(row->flags & RPC_NONIDEMPOTENT ? row->reply_size > 0 : row->reply_size == 0,
		     true, "%s: %u", row->name, row->reply_size);
	cr_expect(row->reply_size % 4 == 0 && row->reply_size <= REPLY_MAX, "%s: %u", row->name,
		  row->reply_size);
}

static void check_program(const struct rpc_program *p)
{
	for (unsigned i = 0; i < p->nversions; i++) {
		const struct rpc_version *v = &p->versions[i];

		for (uint32_t proc = 0; proc < v->nprocs; proc++) {
			if (v->procs[proc])
				check_row(p, v->vers, v->procs[proc]);
		}
		cr_expect_str_eq(v->procs[0]->name, "NULL");
	}
}

Test(nfs3_table, every_row_is_complete)
{
	check_program(&nfs);
	check_program(&mount);
	check_program(&nlm);
	check_program(&nfsacl);
	check_program(&rquota);
}

/* RFC 1813 section 6.3; version 1 ends with GRANTED_RES. */
static void check_nlm(void)
{
	static const char *const names[] = {
		"NULL",	    "TEST",	  "LOCK",	"CANCEL",      "UNLOCK",      "GRANTED",
		"TEST_MSG", "LOCK_MSG",	  "CANCEL_MSG", "UNLOCK_MSG",  "GRANTED_MSG", "TEST_RES",
		"LOCK_RES", "CANCEL_RES", "UNLOCK_RES", "GRANTED_RES", NULL,	      NULL,
		NULL,	    NULL,	  "SHARE",	"UNSHARE",     "NM_LOCK",     "FREE_ALL",
	};
	static const struct {
		uint32_t vers, n;
	} versions[] = { { 1, 16 }, { 3, 24 }, { 4, 24 } };

	cr_assert_eq(nlm.nversions, 3);
	for (unsigned i = 0; i < 3; i++) {
		const struct rpc_version *v = &nlm.versions[i];

		cr_expect_eq(v->vers, versions[i].vers);
		cr_assert_eq(v->nprocs, versions[i].n);
		for (uint32_t proc = 0; proc < v->nprocs; proc++) {
			cr_assert_eq(!v->procs[proc], !names[proc], "%u", proc);
			if (names[proc])
				cr_expect_str_eq(v->procs[proc]->name, names[proc]);
		}
	}
}

/* RFC 1813 sections 3.3, 5.2 (MOUNT; versions 1 and 2: RFC 1094 appendix A) and 6.3 (NLM). */
Test(nfs3_table, every_number_has_a_row)
{
	static const uint32_t mount_procs[] = { 7, 8, 6 };

	cr_assert_eq(nfs.versions[0].nprocs, NFSPROC3_COUNT);
	for (uint32_t proc = 0; proc < NFSPROC3_COUNT; proc++)
		cr_expect_not_null(nfs.versions[0].procs[proc], "procedure %u", proc);
	for (unsigned i = 0; i < rn_array_size(mount_procs); i++) {
		cr_assert_eq(mount.versions[i].nprocs, mount_procs[i], "version %u", i + 1);
		for (uint32_t proc = 0; proc < mount_procs[i]; proc++)
			cr_expect_not_null(mount.versions[i].procs[proc], "%u", proc);
	}
#define IS_NAMED(NAME, name_)                                                                      \
	cr_expect_str_eq(nfs3_proc_##name_.rpc.name, #NAME);                                       \
	cr_expect_eq(nfs.versions[0].procs[NFSPROC3_##NAME], &nfs3_proc_##name_.rpc, "%s", #NAME);
	NFS3_PROC_LIST(IS_NAMED)
	check_nlm();
	cr_assert_eq(nfsacl.nversions, 1, "version 2 is NFSv2's: tests/unit/test_nfs2.c");
	cr_expect_eq(nfsacl.versions[0].vers, 3);
	cr_assert_eq(nfsacl.versions[0].nprocs, 3);
	cr_expect_str_eq(nfsacl.versions[0].procs[1]->name, "GETACL");
	cr_expect_str_eq(nfsacl.versions[0].procs[2]->name, "SETACL");
	cr_assert_eq(rquota.nversions, 2);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(rquota.versions[i].vers, i + 1);
		cr_assert_eq(rquota.versions[i].nprocs, 5);
		cr_expect_str_eq(rquota.versions[i].procs[1]->name, "GETQUOTA");
		cr_expect_str_eq(rquota.versions[i].procs[2]->name, "GETACTIVEQUOTA");
		cr_expect_str_eq(rquota.versions[i].procs[3]->name, "SETQUOTA");
		cr_expect_str_eq(rquota.versions[i].procs[4]->name, "SETACTIVEQUOTA");
	}
}

#define E(name) NFS3_E_##name
/* MKDIR, SYMLINK, and with more CREATE and MKNOD. */
#define MADE (E(EXIST) | E(NOTDIR) | E(SPACE) | E(ROFS) | E(NAMETOOLONG) | E(NOTSUPP))
#define MADE_MORE (E(PERM) | E(INVAL) | E(NOENT) | E(MLINK))
/* clang-format off */
static const struct {
	const struct nfs3_proc *proc;
	uint32_t listed; /* in the ERRORS section, without those of all procedures */
	uint32_t more;	 /* what the file system may also say, and clients know what to do with */
} errors[] = {
	{ &nfs3_proc_getattr, 0, 0 },
	{ &nfs3_proc_setattr, E(PERM) | E(INVAL) | E(SPACE) | E(ROFS) | E(NOT_SYNC), E(FBIG) },
	{ &nfs3_proc_lookup, E(NOENT) | E(NOTDIR) | E(NAMETOOLONG), 0 },
	{ &nfs3_proc_access, 0, 0 },
	{ &nfs3_proc_readlink, E(INVAL) | E(NOTSUPP), 0 },
	{ &nfs3_proc_read, E(NXIO) | E(INVAL), E(ISDIR) },
	{ &nfs3_proc_write, E(FBIG) | E(SPACE) | E(ROFS) | E(INVAL), E(PERM) | E(NXIO) | E(ISDIR) },
	{ &nfs3_proc_create, MADE, MADE_MORE | E(ISDIR) | E(FBIG) },
	{ &nfs3_proc_mkdir, MADE, MADE_MORE },
	{ &nfs3_proc_symlink, MADE, MADE_MORE },
	{ &nfs3_proc_mknod, MADE | E(BADTYPE), MADE_MORE },
	{ &nfs3_proc_remove, E(NOENT) | E(NOTDIR) | E(NAMETOOLONG) | E(ROFS),
	  E(PERM) | E(ISDIR) | E(INVAL) | E(NOTEMPTY) },
	{ &nfs3_proc_rmdir, E(NOENT) | E(INVAL) | E(EXIST) | E(NOTDIR) | E(NAMETOOLONG) | E(ROFS) |
	  E(NOTEMPTY) | E(NOTSUPP), E(PERM) },
	{ &nfs3_proc_rename, E(NOENT) | E(EXIST) | E(XDEV) | E(NOTDIR) | E(ISDIR) | E(INVAL) |
	  E(SPACE) | E(ROFS) | E(MLINK) | E(NAMETOOLONG) | E(NOTEMPTY) | E(NOTSUPP), E(PERM) },
	{ &nfs3_proc_link, E(EXIST) | E(XDEV) | E(NOTDIR) | E(INVAL) | E(SPACE) | E(ROFS) |
	  E(MLINK) | E(NAMETOOLONG) | E(NOTSUPP), E(PERM) | E(NOENT) | E(ISDIR) },
	{ &nfs3_proc_readdir, E(NOTDIR) | E(BAD_COOKIE) | E(TOOSMALL), 0 },
	{ &nfs3_proc_readdirplus, E(NOTDIR) | E(BAD_COOKIE) | E(TOOSMALL) | E(NOTSUPP), 0 },
	{ &nfs3_proc_fsstat, 0, 0 },
	{ &nfs3_proc_fsinfo, 0, 0 },
	{ &nfs3_proc_pathconf, 0, 0 },
	{ &nfs3_proc_commit, 0, E(SPACE) | E(FBIG) | E(INVAL) | E(ISDIR) | E(ROFS) },
};
/* clang-format on */

Test(nfs3_table, errors_are_those_of_the_rfc)
{
	cr_assert_eq(rn_array_size(errors), NFSPROC3_COUNT - 1);
	for (unsigned i = 0; i < rn_array_size(errors); i++) {
		const struct nfs3_proc *p = errors[i].proc;

		cr_expect_eq(p, rn_container_of(nfs.versions[0].procs[i + 1],
						const struct nfs3_proc, rpc));
		cr_expect(p->errors & NFS3_E_ANY, "%s has no .errors", p->rpc.name);
		cr_expect_eq(p->errors, NFS3_ERRORS(errors[i].listed | errors[i].more), "%s: %x",
			     p->rpc.name,
			     p->errors ^ NFS3_ERRORS(errors[i].listed | errors[i].more));
	}
}

/* A test that walks the samples walks all procedures of NFSv3. */
Test(nfs3_table, every_row_has_a_sample)
{
	for (uint32_t proc = 0; proc < NFSPROC3_COUNT; proc++) {
		const struct rpc_proc *row = nfs.versions[0].procs[proc];
		const struct sample *found = NULL;

		for (unsigned i = 0; i < nfs3_sample_count; i++) {
			if (nfs3_samples[i].prog == NFS_PROGRAM && nfs3_samples[i].proc == proc)
				found = &nfs3_samples[i];
		}
		cr_assert_not_null(found, "%s", row->name);
		cr_expect_str_eq(found->name, row->name);
		cr_expect_eq(found->args != NULL, row->decode != NULL, "%s", row->name);
	}
}

static void note_handle(void *ctx, struct xdr_out *c, enum sample_object object)
{
	bool *noted = ctx;

	(void)c;
	(void)object;
	*noted = true;
}

static const struct rpc_proc *row_of(const struct sample *s)
{
	const struct rpc_program *const all[] = { &nfs, &mount, &nlm, &nfsacl, &rquota };

	for (unsigned i = 0; i < rn_array_size(all); i++)
		for (unsigned k = 0; all[i]->prog == s->prog && k < all[i]->nversions; k++)
			if (all[i]->versions[k].vers == s->vers)
				return all[i]->versions[k].procs[s->proc];
	return NULL;
}

/* Answers to datagrams that show no handle are rationed by these flags. Those of NLM, and of what ends something, are
 * no longer than the call. */
Test(nfs3_table, rows_without_a_handle_say_so)
{
	bool noted;
	const struct sample_world w = { .put_fh = note_handle, .path = "/x", .ctx = &noted };
	uint8_t buf[2048];

	for (unsigned i = 0; i < nfs3_sample_count; i++) {
		const struct sample *s = &nfs3_samples[i];
		const struct rpc_proc *row = row_of(s);
		struct xdr_out c;

		cr_assert_not_null(row, "%s", s->name);
		noted = false;
		xdr_out_init(&c, buf, sizeof(buf));
		nfs3_sample_put(s, &c, &w);
		if (noted || s->proc == 0 || s->prog == NLM_PROGRAM ||
		    (row->flags & RPC_FOR_RECENT))
			continue;
		cr_expect(row->flags & (RPC_FOR_ALL | RPC_NO_EXPORT | RPC_BY_PATH), "%s %u",
			  s->name, s->vers);
	}
}
