/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/ask.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "nfs2/nfs2_server.h"
#include "nfs3/nfs3_proto.h"
#include "nfs3/nfs3_server.h"
#include "rpc/xdr_out.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/reply.h"
#include "tests/fuzz/session/tree.h"

#define CALL_MAX 2048u
#define MARK_SIZE 4u
#define ROOT_UID 0u

struct asker {
	int fd;
	uint32_t xid;
	uint8_t call[CALL_MAX + SS_ASK_DATA], reply[CALL_MAX + SS_ASK_DATA];
	size_t reply_len;
	struct xdr_out x;
	struct ss_call what;
};

static void open_asker(struct asker *a, uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

	static uint32_t asked;

	a->xid = 0xa5000000 | asked++ << 8; /* no xid is a retransmission of another call's */
	a->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (a->fd < 0 || connect(a->fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		ss_finding("a new connection is refused: %s", strerror(errno));
}

static void begin_version(struct asker *a, uint32_t prog, uint32_t vers, uint32_t proc)
{
	xdr_out_init(&a->x, a->call + MARK_SIZE, sizeof(a->call) - MARK_SIZE);
	a->what = (struct ss_call){
		.xid = ++a->xid, .known = true, .prog = prog, .vers = vers, .proc = proc
	};
	xdr_put_u32(&a->x, a->xid);
	xdr_put_u32(&a->x, 0);
	xdr_put_u32(&a->x, 2);
	xdr_put_u32(&a->x, prog);
	xdr_put_u32(&a->x, vers);
	xdr_put_u32(&a->x, proc);
	xdr_put_u32(&a->x, 1); /* AUTH_SYS: stamp, name, root's ids, no groups */
	xdr_put_u32(&a->x, 20);
	for (unsigned i = 0; i < 5; i++)
		xdr_put_u32(&a->x, ROOT_UID);
	xdr_put_u64(&a->x, 0);
}

static void begin(struct asker *a, uint32_t prog, uint32_t proc)
{
	begin_version(a, prog, 3, proc);
}

static void receive(struct asker *a, uint8_t *to, size_t n)
{
	struct pollfd p = { .fd = a->fd, .events = POLLIN };

	while (n) {
		int ready = poll(&p, 1, SS_HANG_MS);
		ssize_t got = ready > 0 ? recv(a->fd, to, n, 0) : -2;

		if (ready < 0 && errno == EINTR)
			continue; /* the fuzzer's timer interrupts calls */
		if (got == -2)
			ss_finding("procedure %u: no answer", a->what.proc);
		if (got <= 0)
			ss_finding("procedure %u: the server closed a good connection",
				   a->what.proc);
		to += got;
		n -= (size_t)got;
	}
}

/* Sends the call and takes its reply, which must be well-formed. Returns the results' status, or -1
 * for a reply without results. */
static int64_t ask_status(struct asker *a, struct ss_values *learn)
{
	uint8_t mark[MARK_SIZE];
	size_t n = a->x.used + MARK_SIZE;

	ss_set_word(a->call, (uint32_t)a->x.used | 0x80000000u);
	if (send(a->fd, a->call, n, MSG_NOSIGNAL) != (ssize_t)n)
		ss_finding("procedure %u: the server does not take it", a->what.proc);
	receive(a, mark, sizeof(mark));
	n = ss_word(mark) & 0x7fffffff;
	if (n > sizeof(a->reply))
		ss_finding("procedure %u: a reply of %zu octets", a->what.proc, n);
	receive(a, a->reply, n);
	a->reply_len = n;
	const char *bad = ss_reply_check(&a->what, a->reply, n, NULL, learn);
	if (bad)
		ss_finding("procedure %u: its reply: %s", a->what.proc, bad);
	return n > 24 ? ss_reply_status(a->reply, n) : 0;
}

/* Sends the call as ask_status() does; any status but 0 is a finding. */
static void ask(struct asker *a, struct ss_values *learn)
{
	int64_t status = ask_status(a, learn);

	if (status != 0)
		ss_finding("procedure %u fails for the driver: %lld", a->what.proc,
			   (long long)status);
}

/* Sends a call that must succeed, and returns the handle in its reply. */
static struct ss_fh ask_handle(struct asker *a)
{
	struct ss_values got = { .next_new = 0 };

	ask(a, &got);
	return got.fh[SS_FH_NEW];
}

static struct ss_fh mount_path(struct asker *a, const char *path)
{
	begin(a, MOUNT_PROGRAM, 1);
	xdr_put_opaque(&a->x, path, (uint32_t)strlen(path));
	return ask_handle(a);
}

static struct ss_fh look_up(struct asker *a, const struct ss_fh *dir, const char *name)
{
	begin(a, NFS_PROGRAM, NFSPROC3_LOOKUP);
	xdr_put_opaque(&a->x, dir->bytes, dir->len);
	xdr_put_opaque(&a->x, name, (uint32_t)strlen(name));
	return ask_handle(a);
}

static void mount_packed(struct asker *a, const char *path, uint8_t out[SS_PACKED_SIZE])
{
	struct ss_values got = { .next_new = 0 };

	begin_version(a, MOUNT_PROGRAM, 1, 1);
	xdr_put_opaque(&a->x, path, (uint32_t)strlen(path));
	ask(a, &got);
	memcpy(out, got.packed[SS_FH_NEW], SS_PACKED_SIZE);
}

static void look_up_packed(struct asker *a, const uint8_t dir[SS_PACKED_SIZE], const char *name,
			   uint8_t out[SS_PACKED_SIZE])
{
	struct ss_values got = { .next_new = 0 };

	begin_version(a, NFS_PROGRAM, NFS2_VERSION, NFSPROC2_LOOKUP);
	xdr_put_fixed(&a->x, dir, SS_PACKED_SIZE);
	xdr_put_opaque(&a->x, name, (uint32_t)strlen(name));
	ask(a, &got);
	memcpy(out, got.packed[SS_FH_NEW], SS_PACKED_SIZE);
}

/* The same objects, as NFSv2 names them. */
static void ask_packed(struct asker *a, struct ss_values *v)
{
	static const struct {
		enum ss_handle handle, dir; /* dir SS_FH_COUNT: mounted by its path */
		const char *name;
	} objects[] = {
		{ SS_FH_ROOT, SS_FH_COUNT, SS_BASE "/rw" },
		{ SS_FH_RO_ROOT, SS_FH_COUNT, SS_BASE "/ro" },
		{ SS_FH_SQUASHED, SS_FH_COUNT, SS_BASE "/sq" },
		{ SS_FH_LATE, SS_FH_COUNT, SS_LATE_DIR },
		{ SS_FH_CROSS, SS_FH_COUNT, SS_CROSS_DIR },
		{ SS_FH_DISK, SS_FH_COUNT, SS_DISK_DIR },
		{ SS_FH_KRB, SS_FH_COUNT, SS_KRB_DIR },
		{ SS_FH_TLS, SS_FH_COUNT, SS_TLS_DIR },
		{ SS_FH_FILE, SS_FH_ROOT, "file" },
		{ SS_FH_LINK, SS_FH_ROOT, "link" },
		{ SS_FH_DIR, SS_FH_ROOT, "dir" },
		{ SS_FH_BIG, SS_FH_ROOT, "big" },
		{ SS_FH_FIFO, SS_FH_ROOT, "fifo" },
		{ SS_FH_SECRET, SS_FH_ROOT, "secret" },
		{ SS_FH_PRIVATE, SS_FH_ROOT, "private" },
		{ SS_FH_RO_FILE, SS_FH_RO_ROOT, "file" },
		{ SS_FH_RO_MANY, SS_FH_RO_ROOT, "many" },
	};

	memcpy(v->packed[SS_FH_STALE], v->packed[SS_FH_FILE], SS_PACKED_SIZE);
	for (unsigned i = 0; i < rn_array_size(objects); i++) {
		uint8_t *out = v->packed[objects[i].handle];

		if (objects[i].dir == SS_FH_COUNT)
			mount_packed(a, objects[i].name, out);
		else
			look_up_packed(a, v->packed[objects[i].dir], objects[i].name, out);
	}
}

void ss_ask_handles(uint16_t port, struct ss_values *v)
{
	struct asker a;

	open_asker(&a, port);
	v->fh[SS_FH_STALE] = v->fh[SS_FH_FILE];
	v->fh[SS_FH_ROOT] = mount_path(&a, SS_BASE "/rw");
	v->fh[SS_FH_RO_ROOT] = mount_path(&a, SS_BASE "/ro");
	v->fh[SS_FH_SQUASHED] = mount_path(&a, SS_BASE "/sq");
	v->fh[SS_FH_FILE] = look_up(&a, &v->fh[SS_FH_ROOT], "file");
	v->fh[SS_FH_LINK] = look_up(&a, &v->fh[SS_FH_ROOT], "link");
	v->fh[SS_FH_DIR] = look_up(&a, &v->fh[SS_FH_ROOT], "dir");
	v->fh[SS_FH_BIG] = look_up(&a, &v->fh[SS_FH_ROOT], "big");
	v->fh[SS_FH_FIFO] = look_up(&a, &v->fh[SS_FH_ROOT], "fifo");
	v->fh[SS_FH_RO_FILE] = look_up(&a, &v->fh[SS_FH_RO_ROOT], "file");
	v->fh[SS_FH_SECRET] = look_up(&a, &v->fh[SS_FH_ROOT], "secret");
	v->fh[SS_FH_PRIVATE] = look_up(&a, &v->fh[SS_FH_ROOT], "private");
	v->fh[SS_FH_LATE] = mount_path(&a, SS_LATE_DIR);
	v->fh[SS_FH_CROSS] = mount_path(&a, SS_CROSS_DIR);
	v->fh[SS_FH_DISK] = mount_path(&a, SS_DISK_DIR);
	v->fh[SS_FH_KRB] = mount_path(&a, SS_KRB_DIR);
	v->fh[SS_FH_TLS] = mount_path(&a, SS_TLS_DIR);
	v->fh[SS_FH_RO_MANY] = look_up(&a, &v->fh[SS_FH_RO_ROOT], "many");
	ask_packed(&a, v);
	close(a.fd);
	/* A disk that has failed may have lost this file. */
	ss_ask_look_up(port, &v->fh[SS_FH_DISK], "file", &v->fh[SS_FH_DISK_FILE]);
}

void ss_ask_alive(uint16_t port)
{
	struct asker a;

	open_asker(&a, port);
	begin(&a, NFS_PROGRAM, NFSPROC3_NULL);
	ask(&a, NULL);
	close(a.fd);
}

int64_t ss_ask_mount(uint16_t port, const char *path, struct ss_fh *out)
{
	struct ss_values got = { .next_new = 0 };
	struct asker a;

	open_asker(&a, port);
	begin(&a, MOUNT_PROGRAM, 1);
	xdr_put_opaque(&a.x, path, (uint32_t)strlen(path));
	int64_t status = ask_status(&a, &got);
	*out = got.fh[SS_FH_NEW];
	close(a.fd);
	return status;
}

int64_t ss_ask_look_up(uint16_t port, const struct ss_fh *dir, const char *name, struct ss_fh *out)
{
	struct ss_values got = { .next_new = 0 };
	struct asker a;

	open_asker(&a, port);
	begin(&a, NFS_PROGRAM, NFSPROC3_LOOKUP);
	xdr_put_opaque(&a.x, dir->bytes, dir->len);
	xdr_put_opaque(&a.x, name, (uint32_t)strlen(name));
	int64_t status = ask_status(&a, &got);
	*out = got.fh[SS_FH_NEW];
	close(a.fd);
	return status;
}

int64_t ss_ask_read(uint16_t port, const struct ss_fh *fh)
{
	struct asker a;

	open_asker(&a, port);
	begin(&a, NFS_PROGRAM, NFSPROC3_READ);
	xdr_put_opaque(&a.x, fh->bytes, fh->len);
	xdr_put_u64(&a.x, 0);
	xdr_put_u32(&a.x, 100);
	int64_t status = ask_status(&a, NULL);
	close(a.fd);
	return status;
}

/* Write verifier: the last 8 octets of a WRITE's or COMMIT's reply. */
static uint64_t verifier_of(const struct asker *a)
{
	const uint8_t *p = a->reply + a->reply_len - 8;

	return (uint64_t)ss_word(p) << 32 | ss_word(p + 4);
}

int64_t ss_ask_write(uint16_t port, const struct ss_fh *fh, const struct ss_ask_write *w,
		     uint64_t *verifier)
{
	struct asker a;

	open_asker(&a, port);
	begin(&a, NFS_PROGRAM, NFSPROC3_WRITE);
	xdr_put_opaque(&a.x, fh->bytes, fh->len);
	xdr_put_u64(&a.x, w->offset);
	xdr_put_u32(&a.x, SS_ASK_DATA);
	xdr_put_u32(&a.x, w->stable ? 2 : 0);
	xdr_put_opaque(&a.x, w->data, SS_ASK_DATA);
	int64_t status = ask_status(&a, NULL);
	*verifier = verifier_of(&a);
	close(a.fd);
	return status;
}

int64_t ss_ask_commit(uint16_t port, const struct ss_fh *fh, uint64_t *verifier)
{
	struct asker a;

	open_asker(&a, port);
	begin(&a, NFS_PROGRAM, NFSPROC3_COMMIT);
	xdr_put_opaque(&a.x, fh->bytes, fh->len);
	xdr_put_u64(&a.x, 0);
	xdr_put_u32(&a.x, 0);
	int64_t status = ask_status(&a, NULL);
	*verifier = verifier_of(&a);
	close(a.fd);
	return status;
}
