/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor of NFS over RDMA: verbsfloor ADDRESS PORT FILE
 *
 * Answers nfsload's calls with the same verbs and system calls on the file as a server would need,
 * and with nothing else: a Receive, statx or pread, an RDMA Write, a Send. It looks at nothing but
 * the procedure and, of a READ, offset and count, and believes both.
 */
#include <err.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include "floor.h"

#define NFSPROC3_READ 6u

/* Makes the system call of a GETATTR, and puts a reply of the same length. */
static void put_attributes(int file, struct xdr *x)
{
	static const uint8_t rest[80];
	struct statx st;

	if (statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &st))
		err(1, "statx");
	put32(x, 1);
	put_bytes(x, rest, sizeof(rest));
}

static void serve(struct floor *f, unsigned slot, uint32_t len)
{
	struct xdr call = { .p = floor_call(f, slot), .end = floor_call(f, slot) + len };
	struct xdr tail = { .p = call.end - 12, .end = call.end };
	struct xdr x = { .p = floor_reply(f, slot), .end = floor_reply(f, slot) + FLOOR_MESSAGE };
	struct chunk chunk = { 0 };
	uint32_t xid = floor_get_header(&call, &chunk), proc;
	const int file = *(const int *)f->server;
	uint64_t offset;

	xdr_take(&call, 20);
	proc = get32(&call);
	if (proc == NFSPROC3_READ) {
		offset = get64(&tail);
		chunk.len = get32(&tail);
		if (chunk.len > FLOOR_DATA || pread(file, floor_data(f, slot), chunk.len,
						    (off_t)offset) != (ssize_t)chunk.len)
			err(1, "pread");
	}
	floor_receive(f, slot);
	floor_put_header(&x, xid, &chunk);
	put32(&x, 0);
	if (proc == NFSPROC3_READ) {
		put32(&x, 1);
		put_attributes(file, &x);
		put32(&x, chunk.len);
		put32(&x, 0);
		put32(&x, chunk.len);
	} else {
		put_attributes(file, &x);
	}
	floor_send(f, slot, (size_t)(x.p - floor_reply(f, slot)), &chunk);
}

int main(int argc, char **argv)
{
	int file;

	if (argc != 4)
		errx(2, "usage: verbsfloor ADDRESS PORT FILE");
	file = open(argv[3], O_RDONLY | O_CLOEXEC);
	if (file < 0)
		err(1, "%s", argv[3]);
	floor_run(argv[1], argv[2], serve, &file);
}
