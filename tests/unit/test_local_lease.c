/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A local process holds a lease of a file (fcntl(2), F_SETLEASE, as Samba's oplocks) and does not
 * give it up. Calls that need the file must answer JUKEBOX or DELAY at once, so that no worker
 * waits. The bound on a call is generous; a call that waits takes /proc/sys/fs/lease-break-time, 45
 * s.
 */
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(local_lease);

#define AT_ONCE_MS 5000

static pid_t holder;
static struct vfs_fh file;

static void hold(const char *path, int type, int told)
{
	int fd = open(path, type == F_WRLCK ? O_RDWR : O_RDONLY);

	signal(SIGIO, SIG_IGN);
	if (write(told, fcntl(fd, F_SETLEASE, type) == 0 ? "y" : "n", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

/* Starts a child that takes a lease of x. */
static void leased(int type)
{
	int told[2];
	char c = 0;

	make_file("x", "0123456789", 0666);
	make_file("y", "0123456789", 0666);
	file = handle("x");
	cr_assert_eq(pipe(told), 0);
	holder = fork();
	cr_assert_geq(holder, 0);
	if (holder == 0)
		hold(fix_path(f, "x"), type, told[1]);
	cr_assert_eq(read(told[0], &c, 1), 1);
	close(told[0]);
	close(told[1]);
	if (c != 'y') {
		kill(holder, SIGKILL);
		waitpid(holder, NULL, 0);
		cr_skip_test("no leases on the file system for temporary files");
	}
}

/* Kills the child, which ends the lease. */
static void freed(void)
{
	kill(holder, SIGKILL);
	cr_assert_eq(waitpid(holder, NULL, 0), holder);
}

static long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static uint32_t read3(const struct vfs_fh *fh)
{
	struct xdr_out *c = call(NFSPROC3_READ);

	fix_put_fh(c, fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 10);
	return status();
}

static uint32_t write3(const struct vfs_fh *fh)
{
	struct xdr_out *c = call(NFSPROC3_WRITE);

	fix_put_fh(c, fh);
	xdr_put_u64(c, 0);
	xdr_put_u32(c, 1);
	xdr_put_u32(c, VFS_UNSTABLE);
	xdr_put_opaque(c, "a", 1);
	return status();
}

static uint32_t truncate3(const struct vfs_fh *fh)
{
	struct xdr_out *c = call(NFSPROC3_SETATTR);

	fix_put_fh(c, fh);
	for (int i = 0; i < 3; i++)
		xdr_put_u32(c, 0); /* mode, owner, group */
	xdr_put_bool(c, true);
	xdr_put_u64(c, 4);
	for (int i = 0; i < 3; i++)
		xdr_put_u32(c, 0); /* times, guard */
	return status();
}

static void other_clients_are_served(void)
{
	const struct vfs_fh y = handle("y");

	fix_from(f, 2);
	cr_expect_eq(read3(&y), NFS3_OK);
	cr_expect_eq(write3(&y), NFS3_OK);
	fix_from(f, 1);
}

static void check3(uint32_t (*op)(const struct vfs_fh *fh), int type)
{
	long start;

	leased(type);
	start = now_ms();
	for (int i = 0; i < 3; i++)
		cr_expect_eq(op(&file), NFS3ERR_JUKEBOX);
	other_clients_are_served();
	cr_expect_lt(now_ms() - start, AT_ONCE_MS);
	freed();
	cr_expect_eq(op(&file), NFS3_OK);
}

Test(local_lease, v3_read_comes_again)
{
	NEED_FIXTURE();
	check3(read3, F_WRLCK);
}

Test(local_lease, v3_write_comes_again)
{
	NEED_FIXTURE();
	check3(write3, F_WRLCK);
}

Test(local_lease, v3_truncation_comes_again)
{
	NEED_FIXTURE();
	check3(truncate3, F_WRLCK);
}

Test(local_lease, v3_write_breaks_a_read_lease)
{
	NEED_FIXTURE();
	check3(write3, F_RDLCK);
}

Test(local_lease, v3_read_leaves_a_read_lease)
{
	NEED_FIXTURE();
	leased(F_RDLCK);
	cr_expect_eq(read3(&file), NFS3_OK);
	freed();
}

static uint32_t minor;

static struct op_client *client(void)
{
	static struct op_client c;

	cr_assert_eq(op_client_new(f, &c, minor, "lease"), NFS4_OK);
	return &c;
}

OP_MINORS_TEST(local_lease, open_comes_again)
{
	struct op_owner o = { .client = client(), .name = "o" };
	const struct op_how how = { .fh = &f->root, .name = "x", .access = 1 };
	struct op_file x;
	long start;

	leased(F_WRLCK);
	start = now_ms();
	for (int i = 0; i < 3; i++)
		cr_expect_eq(op_open_only(f, &o, &how, &x), NFS4ERR_DELAY);
	other_clients_are_served();
	cr_expect_lt(now_ms() - start, AT_ONCE_MS);
	freed();
	cr_expect_eq(op_open(f, &o, &how, &x), NFS4_OK);
	cr_expect_eq(op_read(f, o.client, &x.fh, &x.sid), NFS4_OK);
}

static uint32_t truncate4(struct op_client *c, const struct vfs_fh *fh)
{
	static const struct nfs4_stateid anonymous;
	uint32_t status;

	op_begin(f, c);
	fix4_putfh(f, fh);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, 1u << 4); /* FATTR4_SIZE */
	xdr_put_u32(&f->out, 8);
	xdr_put_u64(&f->out, 4);
	status = fix4_send(f);
	return status;
}

/* Data operations without an open, by the special stateids. */
OP_MINORS_TEST(local_lease, io_comes_again)
{
	static const struct nfs4_stateid anonymous;
	struct op_client *c = client();
	long start;

	leased(F_WRLCK);
	start = now_ms();
	cr_expect_eq(op_read(f, c, &file, &anonymous), NFS4ERR_DELAY);
	cr_expect_eq(op_write(f, c, &file, &anonymous), NFS4ERR_DELAY);
	cr_expect_eq(truncate4(c, &file), NFS4ERR_DELAY);
	other_clients_are_served();
	cr_expect_lt(now_ms() - start, AT_ONCE_MS);
	freed();
	cr_expect_eq(op_read(f, c, &file, &anonymous), NFS4_OK);
	cr_expect_eq(op_write(f, c, &file, &anonymous), NFS4_OK);
	cr_expect_eq(truncate4(c, &file), NFS4_OK);
}
