/* SPDX-License-Identifier: BSD-2-Clause */
/* MOUNT, all versions. */
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/fsuid.h>

#include "nfs3/nfs3_state.h"
#include "tests/unit/nfs3_suite.h"
#include "vfs/packed.h"

NFS3_SUITE(nfs3_mount);

static struct xdr_out *mcall(uint32_t vers, uint32_t proc)
{
	return fix_call(f, MOUNT_PROGRAM, vers, proc);
}

static uint32_t mnt(const char *path)
{
	fix_put_name(mcall(3, 1), path);
	return status();
}

static unsigned dump_rows(char *last_path)
{
	unsigned n = 0;

	mcall(3, 2);
	fix_send(f);
	cr_assert_eq(f->accept_stat, RPC_SUCCESS);
	while (xdr_get_bool(&f->in)) {
		uint32_t len;
		char *host = xdr_get_string(&f->in, 255, &len);
		char *path = xdr_get_string(&f->in, 1024, &len);

		cr_assert_not(f->in.err);
		cr_expect_str_eq(host, "192.0.2.1");
		if (last_path)
			strcpy(last_path, path);
		n++;
		f->arena.used = 0;
	}
	whole();
	return n;
}

Test(nfs3_mount, mnt_gives_handle_and_flavours)
{
	struct vfs_fh fh = { 0 };

	NEED_FIXTURE();
	vfs_access_accept(&f->access, VFS_SEC_KRB5P, 0);
	vfs_access_accept(&f->access, VFS_SEC_NONE, 0);
	cr_assert_eq(mnt(f->dir[0]), MNT3_OK);
	fix_get_fh(&f->in, &fh);
	cr_expect_eq(fh.len, f->root.len);
	cr_expect_eq(xdr_get_u32(&f->in), 3);
	cr_expect_eq(xdr_get_u32(&f->in), RPC_AUTH_SYS);
	cr_expect_eq(xdr_get_u32(&f->in), RPC_SEC_KRB5P);
	cr_expect_eq(xdr_get_u32(&f->in), RPC_AUTH_NONE);
	whole();
}

Test(nfs3_mount, mnt_below_an_export)
{
	struct vfs_fh fh = { 0 }, want;
	char path[200];

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "a"), 0700), 0);
	cr_assert_eq(mkdir(fix_path(f, "a/b"), 0700), 0);
	make_file("x", "", 0600);
	snprintf(path, sizeof(path), "%s//a/b/", f->dir[0]);
	cr_assert_eq(mnt(path), MNT3_OK);
	fix_get_fh(&f->in, &fh);
	want = handle("a");
	cr_assert_eq(fix_lookup(f, &want, "b", &want), NFS3_OK);
	cr_expect_eq(memcmp(fh.data, want.data, want.len), 0);
	cr_expect_eq(mnt(fix_path(f, "x")), MNT3_OK); /* the swap file of a machine without disks */
	cr_expect_eq(mnt(fix_path(f, "x/..")), MNT3ERR_NOTDIR);
	cr_expect_eq(mnt(fix_path(f, "nothing")), MNT3ERR_NOENT);
	cr_expect_eq(mnt(fix_path(f, "nothing/..")), MNT3ERR_NOENT);
}

/* True if MNT of that path gives the handle *want, of an export's root or of a name below. */
static bool leads_to(const char *path, const struct vfs_fh *want)
{
	struct vfs_fh fh = { 0 };

	if (mnt(path) != MNT3_OK)
		return false;
	fix_get_fh(&f->in, &fh);
	return fh.len == want->len && memcmp(fh.data, want->data, fh.len) == 0;
}

/* A caller without search permission gets no handle below the directory, and the same error for
 * names that exist and names that do not. */
Test(nfs3_mount, mnt_below_as_the_caller)
{
	static const char *const below[] = { "a/b", "a/nothing", "a/x", "a/l", "a/b/c" };
	struct vfs_fh want;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "a"), 0700), 0);
	cr_assert_eq(mkdir(fix_path(f, "a/b"), 0777), 0);
	cr_assert_eq(symlink("b", fix_path(f, "a/l")), 0);
	make_file("a/x", "", 0666);
	want = handle("a");
	f->access.flags |= VFS_ROOT_SQUASH;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		cr_expect_eq(mnt(fix_path(f, below[i])), MNT3ERR_ACCES, "%s", below[i]);
	/* The caller may get the directory itself, as by LOOKUP. */
	cr_expect(leads_to(fix_path(f, "a"), &want));
	f->access.flags = 0;
	f->uid = f->gid = 4321;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		cr_expect_eq(mnt(fix_path(f, below[i])), MNT3ERR_ACCES, "%s", below[i]);
	f->uid = f->gid = 0;
	cr_expect_eq(mnt(fix_path(f, "a/b")), MNT3_OK);
	/* Clients mount with a flavour that MNT does not come with: it looks as nobody. */
	f->flavor = RPC_AUTH_NONE;
	for (size_t i = 0; i < sizeof(below) / sizeof(below[0]); i++)
		cr_expect_eq(mnt(fix_path(f, below[i])), MNT3ERR_ACCES, "%s", below[i]);
	setfsuid(0); /* the thread still acts as the last caller */
	cr_assert_eq(chmod(fix_path(f, "a"), 0755), 0);
	cr_expect_eq(mnt(fix_path(f, "a/b")), MNT3_OK);
	cr_expect_eq(mnt(fix_path(f, "a/nothing")), MNT3ERR_NOENT);
	setfsuid(0);
	cr_assert_eq(chmod(fix_path(f, "a"), 0700), 0);
	cr_expect(leads_to(f->dir[0], &f->root));
	f->access.flags = 0;
	fix_accept(&f->access, VFS_SEC_NONE);
	cr_expect_eq(mnt(fix_path(f, "a/b")), MNT3_OK);
}

/* Symbolic links are followed as on the server, as long as the target is exported. */
Test(nfs3_mount, mnt_follows_links)
{
	char path[256];
	struct vfs_fh a, b;

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "a"), 0755), 0);
	cr_assert_eq(mkdir(fix_path(f, "a/b"), 0755), 0);
	a = handle("a");
	cr_assert_eq(fix_lookup(f, &a, "b", &b), NFS3_OK);
	cr_assert_eq(symlink("a", fix_path(f, "rel")), 0);
	cr_assert_eq(symlink("..//./b/", fix_path(f, "a/up")), 0);
	cr_assert_eq(symlink("../a/b", fix_path(f, "a/over")), 0);
	snprintf(path, sizeof(path), "%s/rel", f->dir[0]);
	cr_assert_eq(symlink(path, fix_path(f, "abs")), 0);
	snprintf(path, sizeof(path), "../%s/a", f->dir[0] + strlen("/tmp/"));
	cr_assert_eq(symlink(path, fix_path(f, "out-and-in")), 0);
	cr_expect(leads_to(fix_path(f, "rel"), &a));
	cr_expect(leads_to(fix_path(f, "rel/b"), &b));
	cr_expect(leads_to(fix_path(f, "abs/b"), &b));
	cr_expect(leads_to(fix_path(f, "a/over"), &b));
	cr_expect(leads_to(fix_path(f, "out-and-in/b"), &b));
	cr_expect(leads_to(fix_path(f, "rel/b/../../abs/.//over"), &b));
	cr_expect_eq(mnt(fix_path(f, "a/up")), MNT3ERR_NOENT);
	/* The target is the path of another export. */
	cr_assert_eq(symlink(f->dir[1], fix_path(f, "second")), 0);
	cr_expect_eq(mnt(fix_path(f, "second")), MNT3_OK);
	snprintf(path, sizeof(path), "/nowhere/../%s", f->dir[0]);
	cr_expect(leads_to(path, &f->root));
	snprintf(path, sizeof(path), "%s/..%s", f->dir[0], f->dir[0]);
	cr_expect_eq(mnt(path), MNT3ERR_NOENT); /* the path becomes /tmp/tmp/... */
}

Test(nfs3_mount, mnt_follows_no_link_out)
{
	static const char *const targets[] = { "/",	 "/etc",	"/proc/self/root",
					       "..",	 "../../../..", "../etc",
					       "/tmp",	 "loop",	"loop/x",
					       "nothing" };
	char name[16], deep[1024];

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		cr_assert_eq(symlink(targets[i], fix_path(f, name)), 0);
	}
	cr_assert_eq(symlink("loop", fix_path(f, "loop")), 0);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		snprintf(name, sizeof(name), "%zu", i);
		cr_expect_neq(mnt(fix_path(f, name)), MNT3_OK, "%s", targets[i]);
	}
	cr_expect_eq(mnt(fix_path(f, "loop")), MNT3ERR_NOTDIR);
	cr_expect_eq(mnt(fix_path(f, "..")), MNT3ERR_NOENT);
	cr_expect_eq(mnt(fix_path(f, "../..")), MNT3ERR_NOENT);
	/* The longest valid path, which the link's target makes too long. */
	memset(deep, 0, sizeof(deep));
	for (size_t i = 0; i + 2 < 900; i += 2)
		memcpy(deep + i, "d/", 2);
	cr_assert_eq(symlink(deep, fix_path(f, "deep")), 0);
	cr_expect_eq(mnt(fix_path(f, "deep")), MNT3ERR_NOENT);
	snprintf(deep, sizeof(deep), "deep/%0200d", 0);
	cr_expect_eq(mnt(fix_path(f, deep)), MNT3ERR_NAMETOOLONG);
}

Test(nfs3_mount, mnt_refusals)
{
	char path[1100];

	NEED_FIXTURE();
	cr_expect_eq(mnt("/nowhere"), MNT3ERR_NOENT);
	cr_expect_eq(mnt(""), MNT3ERR_NOENT);
	cr_expect_eq(mnt("relative"), MNT3ERR_INVAL);
	memset(path, '/', sizeof(path));
	path[1025] = '\0';
	cr_expect_eq(mnt(path), MNT3ERR_NAMETOOLONG);
	xdr_put_opaque(mcall(3, 1), "/tmp\0x", 6);
	cr_expect_eq(status(), MNT3ERR_INVAL);
	f->deny = true;
	cr_expect_eq(mnt(f->dir[0]), MNT3ERR_ACCES);
	f->deny = false;
	f->access.flags |= VFS_SECURE;
	((struct sockaddr_in *)&f->conn.peer)->sin_port = htons(40000);
	cr_expect_eq(mnt(f->dir[0]), MNT3ERR_ACCES);
}

/* Their handles are NFSv2's: without it a client learns from the answer that there is version 3. */
Test(nfs3_mount, versions_1_and_2_go_with_nfsv2)
{
	NEED_FIXTURE();
	f->server->cfg.packed_handles = false;
	nfs3_program(f->server, &f->rpc.programs[0], &f->rpc.programs[1]);
	for (uint32_t vers = 1; vers <= 2; vers++) {
		fix_put_name(mcall(vers, 1), f->dir[0]);
		fix_send(f);
		cr_expect_eq(f->accept_stat, RPC_PROG_MISMATCH);
		cr_expect_eq(xdr_get_u32(&f->in), 3);
		cr_expect_eq(xdr_get_u32(&f->in), 3);
	}
	cr_expect_eq(mnt(f->dir[0]), MNT3_OK);
}

Test(nfs3_mount, versions_1_and_2)
{
	uint8_t fh[VFS_PACKED_FH];

	NEED_FIXTURE();
	for (uint32_t vers = 1; vers <= 2; vers++) {
		mcall(vers, 0);
		fix_send(f);
		cr_expect_eq(f->accept_stat, RPC_SUCCESS);
		fix_put_name(mcall(vers, 1), f->dir[0]);
		cr_expect_eq(status(), MNT3_OK);
		xdr_get_fixed(&f->in, fh, sizeof(fh));
		whole();
		fix_put_name(mcall(vers, 3), f->dir[0]);
		fix_send(f);
		cr_expect_eq(f->accept_stat, RPC_SUCCESS);
		whole();
		mcall(vers, 6);
		fix_send(f);
		cr_expect_eq(f->accept_stat, RPC_SUCCESS);
	}
	mcall(1, 7);
	fix_send(f);
	cr_expect_eq(f->accept_stat, RPC_PROC_UNAVAIL);
	mcall(4, 0);
	fix_send(f);
	cr_expect_eq(f->accept_stat, RPC_PROG_MISMATCH);
	cr_expect_eq(xdr_get_u32(&f->in), 1);
	cr_expect_eq(xdr_get_u32(&f->in), 3);
}

Test(nfs3_mount, pathconf_of_version_2)
{
	NEED_FIXTURE();
	fix_put_name(mcall(2, 7), f->dir[0]);
	cr_expect_gt(status(), 1); /* link_max */
	for (int i = 0; i < 2; i++)
		xdr_get_u32(&f->in);
	cr_expect_eq(xdr_get_u32(&f->in), 255);
	for (int i = 0; i < 4; i++)
		xdr_get_u32(&f->in);
	cr_expect_eq(xdr_get_u32(&f->in), 0);
	xdr_get_u32(&f->in);
	whole();
	fix_put_name(mcall(2, 7), "/nowhere");
	status();
	for (int i = 0; i < 7; i++)
		xdr_get_u32(&f->in);
	cr_expect_eq(xdr_get_u32(&f->in), 0xffff);
}

Test(nfs3_mount, list_of_mounts)
{
	char last[1100];

	NEED_FIXTURE();
	cr_assert_eq(mkdir(fix_path(f, "a"), 0700), 0);
	cr_expect_eq(dump_rows(last), 1); /* the fixture's own mount */
	cr_expect_str_eq(last, f->dir[0]);
	cr_assert_eq(mnt(fix_path(f, "a/")), MNT3_OK);
	cr_assert_eq(mnt(fix_path(f, "a")), MNT3_OK);
	cr_expect_eq(dump_rows(last), 2);
	cr_expect_str_eq(last, fix_path(f, "a"));
	fix_put_name(mcall(3, 3), fix_path(f, "a"));
	fix_send(f);
	cr_expect_eq(dump_rows(last), 1);
	cr_assert_eq(mnt(fix_path(f, "a")), MNT3_OK);
	mcall(3, 4);
	fix_send(f);
	cr_expect_eq(dump_rows(NULL), 0);
}

static bool count_row(void *arg, const struct mnt_row *row)
{
	unsigned *n = arg;

	(void)row;
	++*n;
	return true;
}

Test(nfs3_mount_list, is_bounded_and_drops_the_oldest)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct mnt_list l;
	char path[32];
	unsigned n = 0;

	mnt_list_init(&l);
	for (unsigned i = 0; i < MNT_LIST_ROWS + 10; i++) {
		a.sin_addr.s_addr = htonl(0xc0000200 + i / 100);
		snprintf(path, sizeof(path), "/p%u", i);
		mnt_list_add(&l, (struct sockaddr *)&a, path);
	}
	mnt_list_walk(&l, count_row, &n);
	cr_expect_eq(n, MNT_LIST_ROWS);
	cr_expect_str_eq(TAILQ_FIRST(&l.rows)->path, "/p10");
	a.sin_addr.s_addr = htonl(0xc0000300);
	mnt_list_remove_all(&l, (struct sockaddr *)&a);
	cr_expect_eq(l.nrows, MNT_LIST_ROWS);
	a.sin_addr.s_addr = htonl(0xc0000201);
	mnt_list_remove_all(&l, (struct sockaddr *)&a);
	cr_expect_eq(l.nrows, MNT_LIST_ROWS - 100);
	mnt_list_fini(&l);
}

/* A client with very many mounts loses its own oldest rows, and others none. */
Test(nfs3_mount_list, one_client_does_not_push_others_out)
{
	struct sockaddr_in a = { .sin_family = AF_INET }, b = a;
	struct mnt_list l;
	char path[32];

	mnt_list_init(&l);
	a.sin_addr.s_addr = htonl(0xc0000202);
	b.sin_addr.s_addr = htonl(0xc0000203);
	mnt_list_add(&l, (struct sockaddr *)&a, "/first");
	for (unsigned i = 0; i < 2 * MNT_LIST_ROWS; i++) {
		snprintf(path, sizeof(path), "/p%u", i);
		mnt_list_add(&l, (struct sockaddr *)&b, path);
	}
	cr_expect_eq(l.nrows, 1 + MNT_HOST_ROWS);
	cr_expect_str_eq(TAILQ_FIRST(&l.rows)->path, "/first");
	mnt_list_remove_all(&l, (struct sockaddr *)&b);
	mnt_list_remove_all(&l, (struct sockaddr *)&a);
	cr_expect_eq(l.nrows, 0);
	mnt_list_fini(&l);
}

Test(nfs3_mount_list, one_client_by_both_families)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct mnt_list l;

	mnt_list_init(&l);
	v4.sin_addr.s_addr = htonl(0xc0000202);
	memcpy(v6.sin6_addr.s6_addr, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\2", 16);
	mnt_list_add(&l, (struct sockaddr *)&v4, "/a/");
	mnt_list_remove(&l, (struct sockaddr *)&v6, "/a");
	cr_expect_eq(l.nrows, 0);
	mnt_list_fini(&l);
}

/* More rows than fit into the reply's head, and than the client can take. */
Test(nfs3_mount, long_lists)
{
	char path[200];
	unsigned n;

	NEED_FIXTURE();
	for (int i = 0; i < 200; i++) {
		snprintf(path, sizeof(path), "d%0100d", i);
		cr_assert_eq(mkdir(fix_path(f, path), 0700), 0);
		cr_assert_eq(mnt(fix_path(f, path)), MNT3_OK);
	}
	cr_expect_eq(dump_rows(NULL), 201);
	f->reply_max = 2000;
	n = dump_rows(NULL);
	cr_expect(n > 5 && n < 20, "%u rows", n);
	f->reply_max = 24 + 3;
	mcall(3, 2);
	fix_send(f);
	cr_expect_eq(f->outcome, FIX_TOO_LONG);
}

Test(nfs3_mount, exports)
{
	uint32_t len;

	NEED_FIXTURE();
	mcall(3, 5);
	fix_send(f);
	cr_assert(xdr_get_bool(&f->in));
	cr_expect_str_eq(xdr_get_string(&f->in, 1024, &len), f->dir[0]);
	cr_assert(xdr_get_bool(&f->in));
	cr_expect_str_eq(xdr_get_string(&f->in, 255, &len), "192.0.2.0/24");
	cr_assert(xdr_get_bool(&f->in));
	cr_expect_str_eq(xdr_get_string(&f->in, 255, &len), "*.example.net");
	cr_expect_not(xdr_get_bool(&f->in));
	cr_assert(xdr_get_bool(&f->in));
	cr_expect_str_eq(xdr_get_string(&f->in, 1024, &len), f->dir[1]);
	cr_expect_not(xdr_get_bool(&f->in));
	cr_expect_not(xdr_get_bool(&f->in));
	whole();
}
