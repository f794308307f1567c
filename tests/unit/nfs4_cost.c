/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cost of COMPOUNDs as Linux's client sends them, over the fixture's server: without a transport
 * and in one thread, so that counts of instructions and system calls are repeatable.
 *
 *	nfs4_cost WHAT N [UID [event] [counted | pairs]]
 *
 * does WHAT N times between two getppid() calls, which mark the range in a trace of system calls.
 * With "counted" the daemon's counters see each call, as in the daemon. With "pairs" it does WHAT N times with them and
 * N times without, in turn, and prints how much processor time they take. With "event" each call begins on an event thread's worker,
 * as on an event thread. `nfs4_cost list` prints
 * the possible WHAT. tests/cost runs the program under strace and callgrind.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/counters/counters.h"
#include "lib/clock.h"
#include "nfs4/nfs4_private.h"
#include "tests/unit/nfs4_opens.h"

#define NAMES 10000
#define DATA 4096
#define PAIRS 200u

static struct fixture *f;
static struct op_client client;
static struct op_owner owner;
static struct op_file file;	 /* opened before counting starts */
static struct vfs_fh plain, big; /* a regular file, and a directory of NAMES files */
static struct nfs4_stateid lock;
static unsigned round_nr;

static void fail(const char *what)
{
	fprintf(stderr, "nfs4_cost: %s\n", what);
	exit(1);
}

static void send_ok(void)
{
	if (fix4_send(f) != NFS4_OK)
		fail("a COMPOUND failed");
}

static void begin(const struct vfs_fh *fh)
{
	op_begin(f, &client);
	fix4_putfh(f, fh);
}

/* Bitmap of Linux's GETATTR, or of its READDIR entries. */
static void put_attrs(bool entry)
{
	uint32_t first = 1u << FATTR4_TYPE | 1u << FATTR4_CHANGE | 1u << FATTR4_SIZE |
			 1u << FATTR4_FSID | 1u << FATTR4_FILEID;
	static const uint32_t second[] = { FATTR4_MODE,	       FATTR4_NUMLINKS,
					   FATTR4_OWNER,       FATTR4_OWNER_GROUP,
					   FATTR4_RAWDEV,      FATTR4_SPACE_USED,
					   FATTR4_TIME_ACCESS, FATTR4_TIME_METADATA,
					   FATTR4_TIME_MODIFY, FATTR4_MOUNTED_ON_FILEID };
	uint32_t word = 0;

	for (size_t i = 0; i < sizeof(second) / sizeof(second[0]); i++)
		word |= 1u << (second[i] - 32);
	if (entry)
		first |= 1u << FATTR4_RDATTR_ERROR | 1u << FATTR4_FILEHANDLE;
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, first);
	xdr_put_u32(&f->out, word);
}

static void op_getattr(void)
{
	fix4_op(f, OP_GETATTR);
	put_attrs(false);
}

static void put_access(void)
{
	fix4_op(f, OP_ACCESS);
	xdr_put_u32(&f->out, 0x2d); /* read, modify, extend, execute */
}

static void do_getattr(void)
{
	begin(&plain);
	op_getattr();
	send_ok();
}

static void do_access(void)
{
	begin(&plain);
	put_access();
	op_getattr();
	send_ok();
}

static void do_lookup(void)
{
	begin(&f->root);
	fix4_lookup(f, "plain");
	fix4_op(f, OP_GETFH);
	op_getattr();
	send_ok();
}

/* LOOKUP of a name that is not in the server's cache. */
static void do_lookup_new(void)
{
	char name[32];

	snprintf(name, sizeof(name), "gone%u", round_nr++);
	begin(&f->root);
	fix4_lookup(f, name);
	fix4_op(f, OP_GETFH);
	op_getattr();
	send_ok();
}

/* OPEN by name in the COMPOUND that Linux sends; *out gets the open's stateid. */
static void open_with(const struct op_how *how, struct op_file *out)
{
	begin(how->fh);
	op_put_open(f, &owner, how);
	fix4_op(f, OP_GETFH);
	put_access();
	op_getattr();
	send_ok();
	if (fix4_result(f, OP_PUTFH) != NFS4_OK || fix4_result(f, OP_OPEN) != NFS4_OK)
		fail("OPEN failed");
	op_get_open(f, out);
	if (fix4_result(f, OP_GETFH) != NFS4_OK)
		fail("GETFH failed");
	fix4_get_fh(f, &out->fh);
}

static void close_with(struct op_file *of)
{
	begin(&of->fh);
	fix4_op(f, OP_CLOSE);
	xdr_put_u32(&f->out, 0);
	fix4_stateid(f, &of->sid);
	send_ok();
}

static void do_open(void)
{
	struct op_file of;

	open_with(&(struct op_how){ .fh = &f->root, .name = "plain", .access = 1 }, &of);
	close_with(&of);
}

static void do_create(void)
{
	const struct op_how how = {
		.fh = &f->root, .access = 2, .create = OP_UNCHECKED, .set_mode = true, .mode = 0644
	};
	struct op_how named = how;
	struct op_file of;
	char name[32];

	snprintf(name, sizeof(name), "new%u", round_nr++);
	named.name = name;
	open_with(&named, &of);
	close_with(&of);
}

static void do_remove(void)
{
	char name[32];

	snprintf(name, sizeof(name), "gone%u", round_nr++);
	begin(&f->root);
	fix4_op(f, OP_REMOVE);
	fix4_name(f, name);
	send_ok();
}

static void do_rename(void)
{
	char from[32], to[32];

	snprintf(from, sizeof(from), "gone%u", round_nr);
	snprintf(to, sizeof(to), "moved%u", round_nr++);
	begin(&f->root);
	fix4_op(f, OP_SAVEFH);
	fix4_putfh(f, &f->root);
	fix4_op(f, OP_RENAME);
	fix4_name(f, from);
	fix4_name(f, to);
	send_ok();
}

static void do_mkdir(void)
{
	char name[32];

	snprintf(name, sizeof(name), "dir%u", round_nr++);
	begin(&f->root);
	fix4_op(f, OP_CREATE);
	xdr_put_u32(&f->out, 2); /* NF4DIR */
	fix4_name(f, name);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 1u << (FATTR4_MODE - 32));
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, 0755);
	fix4_op(f, OP_GETFH);
	op_getattr();
	send_ok();
}

static void do_chmod(void)
{
	static const struct nfs4_stateid anonymous;

	begin(&plain);
	fix4_op(f, OP_SETATTR);
	fix4_stateid(f, &anonymous);
	xdr_put_u32(&f->out, 2);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 1u << (FATTR4_MODE - 32));
	xdr_put_u32(&f->out, 4);
	xdr_put_u32(&f->out, 0640);
	op_getattr();
	send_ok();
}

static void prepare_names(unsigned n)
{
	char name[32];

	for (unsigned i = 0; i < n; i++) {
		snprintf(name, sizeof(name), "gone%u", i);
		close(open(fix_path(f, name), O_CREAT | O_WRONLY, 0666));
	}
}

static void do_read(void)
{
	begin(&file.fh);
	fix4_op(f, OP_READ);
	fix4_stateid(f, &file.sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, DATA);
	send_ok();
}

static void do_write(void)
{
	static char data[DATA];

	begin(&file.fh);
	fix4_op(f, OP_WRITE);
	fix4_stateid(f, &file.sid);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 0); /* UNSTABLE4 */
	xdr_put_opaque(&f->out, data, sizeof(data));
	op_getattr();
	send_ok();
}

static void do_lock(void)
{
	const struct op_range r = { .type = 2, .offset = 0, .length = 10 };
	struct op_owner locker = { &client, "locker", 1 };
	uint32_t status;

	if (round_nr++ == 0)
		status = op_lock_first(f, &owner, &locker, &file, &r, &lock, NULL);
	else
		status = op_lock(f, &locker, &file.fh, &r, &lock, NULL);
	if (status != NFS4_OK || op_unlock(f, &owner, &file.fh, &r, &lock) != NFS4_OK)
		fail("LOCK or LOCKU failed");
}

/* One READDIR. Returns the cookie of the last entry, 0 at the end. */
static uint64_t list_from(uint64_t cookie)
{
	struct xdr_in *in = &f->in;
	uint32_t len;

	begin(&big);
	fix4_op(f, OP_READDIR);
	xdr_put_u64(&f->out, cookie);
	xdr_put_u64(&f->out, 0);
	xdr_put_u32(&f->out, 1u << 17);
	xdr_put_u32(&f->out, 1u << 18);
	put_attrs(true);
	send_ok();
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_READDIR);
	xdr_get_u64(in);
	while (xdr_get_u32(in)) {
		cookie = xdr_get_u64(in);
		xdr_get_opaque(in, 255, &len);
		xdr_skip(in, 4 * xdr_get_u32(in));
		xdr_get_opaque(in, 4096, &len);
	}
	return xdr_get_u32(in) || in->err ? 0 : cookie;
}

static void do_readdir(void)
{
	uint64_t cookie = 0;

	do
		cookie = list_from(cookie);
	while (cookie);
}

static void prepare_readdir(unsigned n)
{
	char name[32];

	(void)n;
	mkdir(fix_path(f, "big"), 0777);
	for (unsigned i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "big/f%u", i);
		close(open(fix_path(f, name), O_CREAT | O_WRONLY, 0644));
	}
	if (fix4_handle(f, &client.session, &f->root, "big", &big) != NFS4_OK)
		fail("no directory");
}

/* NFSv3. */

static struct xdr_out *begin3(uint32_t proc, const struct vfs_fh *fh)
{
	struct xdr_out *c = fix_call(f, NFS_PROGRAM, NFS3_VERSION, proc);

	fix_put_fh(c, fh);
	return c;
}

static void send3(void)
{
	struct xdr_in *r = fix_send(f);

	if (f->outcome != FIX_REPLY || xdr_get_u32(r) != NFS3_OK)
		fail("a call of NFSv3 failed");
}

static void do_getattr3(void)
{
	begin3(NFSPROC3_GETATTR, &plain);
	send3();
}

static void do_access3(void)
{
	xdr_put_u32(begin3(NFSPROC3_ACCESS, &plain), 0x1f);
	send3();
}

static void do_lookup3(void)
{
	fix_put_name(begin3(NFSPROC3_LOOKUP, &f->root), "plain");
	send3();
}

static void do_lookup3_new(void)
{
	char name[32];

	snprintf(name, sizeof(name), "gone%u", round_nr++);
	fix_put_name(begin3(NFSPROC3_LOOKUP, &f->root), name);
	send3();
}

static void do_getacl3(void)
{
	struct xdr_out *c = fix_call(f, NFSACL_PROGRAM, NFSACL_VERSION, 1);

	fix_put_fh(c, &plain);
	xdr_put_u32(c, 0xf);
	send3();
}

static void do_read3(void)
{
	struct xdr_out *c = begin3(NFSPROC3_READ, &plain);

	xdr_put_u64(c, 0);
	xdr_put_u32(c, DATA);
	send3();
}

static void write3(uint32_t stable)
{
	static char data[DATA];
	struct xdr_out *c = begin3(NFSPROC3_WRITE, &plain);

	xdr_put_u64(c, 0);
	xdr_put_u32(c, DATA);
	xdr_put_u32(c, stable);
	xdr_put_opaque(c, data, sizeof(data));
	send3();
}

static void do_write3(void)
{
	write3(0);
}

static void do_write3_sync(void)
{
	write3(2);
}

static void do_create3(void)
{
	struct xdr_out *c = begin3(NFSPROC3_CREATE, &f->root);
	char name[32];

	snprintf(name, sizeof(name), "new%u", round_nr++);
	fix_put_name(c, name);
	xdr_put_u32(c, 0); /* UNCHECKED */
	fix_put_sattr_mode(c, 0644);
	send3();
}

static const struct {
	const char *name;
	void (*run)(void);
	void (*prepare)(unsigned n);
} costs[] = {
	{ "getattr", do_getattr, NULL },
	{ "access", do_access, NULL },
	{ "lookup", do_lookup, NULL },
	{ "lookup-new", do_lookup_new, prepare_names },
	{ "open+close", do_open, NULL },
	{ "create+close", do_create, NULL },
	{ "rename", do_rename, prepare_names },
	{ "mkdir", do_mkdir, NULL },
	{ "chmod", do_chmod, NULL },
	{ "remove", do_remove, prepare_names },
	{ "read4k", do_read, NULL },
	{ "write4k", do_write, NULL },
	{ "lock+unlock", do_lock, NULL },
	{ "readdir10000", do_readdir, prepare_readdir },
	{ "v3-getattr", do_getattr3, NULL },
	{ "v3-access", do_access3, NULL },
	{ "v3-lookup", do_lookup3, NULL },
	{ "v3-lookup-new", do_lookup3_new, prepare_names },
	{ "v3-getacl", do_getacl3, NULL },
	{ "v3-read4k", do_read3, NULL },
	{ "v3-write4k", do_write3, NULL },
	{ "v3-write4k-sync", do_write3_sync, NULL },
	{ "v3-create", do_create3, NULL },
};

static void make_file(const char *name, unsigned uid)
{
	char data[DATA] = { 1 };
	int fd = open(fix_path(f, name), O_CREAT | O_WRONLY, 0644);

	if (fd < 0 || write(fd, data, sizeof(data)) != DATA || fchown(fd, uid, uid) < 0)
		fail("no file");
	close(fd);
}

static void start(unsigned uid)
{
	const char *why = fix_start(&f);

	if (why)
		fail(why);
	f->uid = f->gid = uid;
	chmod(f->dir[0], 0777);
	make_file("plain", uid);
	make_file("data", uid);
	if (op_client_new(f, &client, 2, "client") != NFS4_OK)
		fail("no client");
	owner = (struct op_owner){ &client, "owner", 1 };
	open_with(&(struct op_how){ .fh = &f->root, .name = "data", .access = 3 }, &file);
	if (fix4_handle(f, &client.session, &f->root, "plain", &plain) != NFS4_OK)
		fail("no file");
}

static bool has_word(int argc, char **argv, const char *word)
{
	for (int i = 4; i < argc; i++)
		if (strcmp(argv[i], word) == 0)
			return true;
	return false;
}

static void count_calls(void)
{
	static struct counters counters;

	if (!counters.server && counters_init(&counters, &f->rpc) < 0)
		fail("no counters");
	f->rpc.observe = counters_observe;
	f->rpc.observe_ctx = &counters;
	f->server4->cfg.observe_op = counters_observe_op;
	f->server4->cfg.observe_ctx = &counters;
}

static void stop_counting(void)
{
	f->rpc.observe = NULL;
	f->server4->cfg.observe_op = NULL;
}

/* Nanoseconds that this thread ran for n calls. */
static uint64_t time_of(void (*run)(void), unsigned n)
{
	const uint64_t from = rn_clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned k = 0; k < n; k++)
		run();
	return rn_clock_ns(CLOCK_THREAD_CPUTIME_ID) - from;
}

static int by_value(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Pairs of n calls with and n without counters, whose order changes from pair to pair, as the machine changes its speed. The
 * median of the ratios is not moved by some pairs that were disturbed. */
static void compare(void (*run)(void), unsigned n)
{
	static double ratio[PAIRS], plain_ns[PAIRS];
	uint64_t ns[2];

	count_calls();
	time_of(run, n);
	for (unsigned i = 0; i < PAIRS; i++) {
		for (unsigned half = 0; half < 2; half++) {
			const bool counted = (i + half) % 2;

			if (counted)
				count_calls();
			else
				stop_counting();
			ns[counted] = time_of(run, n);
		}
		ratio[i] = (double)ns[1] / (double)ns[0];
		plain_ns[i] = (double)ns[0] / n;
	}
	qsort(ratio, PAIRS, sizeof(ratio[0]), by_value);
	qsort(plain_ns, PAIRS, sizeof(plain_ns[0]), by_value);
	printf("%u pairs of 2 x %u: %.0f ns without counters; with them %+.2f %% (quarter %+.2f, "
	       "three quarters %+.2f)\n",
	       PAIRS, n, plain_ns[PAIRS / 2], 100 * (ratio[PAIRS / 2] - 1),
	       100 * (ratio[PAIRS / 4] - 1), 100 * (ratio[PAIRS * 3 / 4] - 1));
}

int main(int argc, char **argv)
{
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;

	for (size_t i = 0; argc > 1 && i < sizeof(costs) / sizeof(costs[0]); i++) {
		if (strcmp(argv[1], "list") == 0)
			puts(costs[i].name);
		if (strcmp(argv[1], costs[i].name) != 0)
			continue;
		start(argc > 3 ? (unsigned)atoi(argv[3]) : 0);
		if (costs[i].prepare)
			costs[i].prepare(n);
		f->on_event_thread = has_word(argc, argv, "event");
		if (has_word(argc, argv, "counted"))
			count_calls();
		/* Handles are remembered, and that there is no ACL, once the ctime is over (vfs/fs/change.h). */
		nanosleep(&(struct timespec){ .tv_nsec = 50 * 1000 * 1000 }, NULL);
		if (has_word(argc, argv, "pairs")) {
			compare(costs[i].run, n);
			fix_stop(f);
			continue;
		}
		syscall(SYS_getppid);
		for (unsigned k = 0; k < n; k++)
			costs[i].run();
		syscall(SYS_getppid);
		fix_stop(f);
	}
	return 0;
}
