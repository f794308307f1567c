/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One COMPOUND of any bytes behind its count of operations, on real directories. The first byte
 * gives the minor version, and whether SEQUENCE comes first. The second gives the number of
 * operations that the call announces. Each call must be answered or refused exactly once, and
 * within the size that the client can take.
 *
 * A corpus cannot hold values of this run, so marks of four bytes stand for them: 0xf1 'F' 'H'
 * '0'..'2': the opaque handle of the root, the open file, a directory; 0xf1 'S' 'I' '0'..'2': the
 * stateid of the open, of the lock, of the file's layout; 0xf1 'C' 'I' '0': the client id; 0xf1 'S' 'S' '0': the session
 * id; 0xf1 'D' 'V' '0': the id of the layout's device. Without root inputs are ignored.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "nfs4/client/nfs4_client.h"
#include "nfs4/nfs4_private.h"
#include "tests/fuzz/real_dirs.h"
#include "tests/unit/nfs4_opens.h"

#define A_DAY 86400u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct fixture *f;
static unsigned inputs;
static struct op_client client[3];
static struct op_file file[3];
static struct nfs4_stateid lock[3];
static struct vfs_fh dir;
static struct nfs4_stateid layout;
static uint8_t device[NFS4_DEVICEID_SIZE];

/* A cluster with one other member, which is the data server of all files. */
static bool blocks_nothing(void *ctx)
{
	(void)ctx;
	return false;
}

static bool takes_reclaims(void *ctx)
{
	(void)ctx;
	return true;
}

static unsigned other_member(void *ctx, struct nfs4_member *out, unsigned max)
{
	(void)ctx;
	if (max == 0)
		return 0;
	*out = (struct nfs4_member){ .name = "other", .run = 2, .naddresses = 1, .tcp_port = 2049 };
	out->address[0][15] = 1;
	return 1;
}

static const struct nfs4_cluster cluster = {
	.blocks_locks = blocks_nothing,
	.takes_reclaims = takes_reclaims,
	.members = other_member,
	.layouts = true,
	.data_io = 1 << 20,
};

/* Has the client get a layout of the file. */
static bool get_layout(uint32_t minor)
{
	op_begin(f, &client[minor]);
	fix4_putfh(f, &file[minor].fh);
	fix4_op(f, OP_LAYOUTGET);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, LAYOUTIOMODE4_RW);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u64(&f->out, 0);
	fix4_stateid(f, &file[minor].sid);
	xdr_put_u32(&f->out, 4096);
	if (fix4_send(f) != NFS4_OK || fix4_result(f, OP_PUTFH) != NFS4_OK ||
	    fix4_result(f, OP_LAYOUTGET) != NFS4_OK)
		return false;
	xdr_skip(&f->in, 4);
	nfs4_get_stateid(&f->in, &layout);
	xdr_skip(&f->in, 4 + 8 + 8 + 4 + 4 + 4 + 8 + 4 + 4);
	xdr_get_fixed(&f->in, device, sizeof(device));
	return true;
}

/* Drops all earlier clients, and makes one client of that version with an open and a lock. */
static bool begin(uint32_t minor)
{
	const struct op_how how = { .fh = &f->root, .name = "file", .create = OP_UNCHECKED };
	const struct op_range r = { .type = 2, .offset = 10, .length = 10 };
	struct op_owner o = { &client[minor], "owner", 1 }, l = { &client[minor], "locker", 1 };
	char path[80], name[32];

	f->server4->cfg.cluster = &cluster;
	snprintf(path, sizeof(path), "%s", fix_path(f, "dir"));
	if (mkdir(path, 0777) < 0 && access(path, F_OK) < 0)
		return false;
	for (int i = 0; i < 4; i++) {
		nfs4_clients_skip_time(f->server4, A_DAY);
		nfs4_tick(f->server4);
	}
	snprintf(name, sizeof(name), "client%u", inputs++);
	return op_client_new(f, &client[minor], minor, name) == NFS4_OK &&
	       op_open(f, &o, &how, &file[minor]) == NFS4_OK &&
	       op_lock_first(f, &o, &l, &file[minor], &r, &lock[minor], NULL) == NFS4_OK &&
	       (minor == 0 || get_layout(minor)) &&
	       fix4_handle(f, minor > 0 ? &client[minor].session : NULL, &f->root, "dir", &dir) ==
		       NFS4_OK;
}

/* Encodes the value that a mark stands for; false if the bytes are no mark. */
static bool put_mark(struct xdr_out *x, const uint8_t *mark, uint32_t minor)
{
	const struct vfs_fh *const fh[] = { &f->root, &file[minor].fh, &dir };
	const struct nfs4_stateid *const sid[] = { &file[minor].sid, &lock[minor], &layout };
	const unsigned n = mark[3] - '0';

	if (mark[0] != 0xf1)
		return false;
	if (!memcmp(mark + 1, "FH", 2) && n < 3)
		xdr_put_opaque(x, fh[n]->data, fh[n]->len);
	else if (!memcmp(mark + 1, "SI", 2) && n < 3)
		nfs4_put_stateid(x, sid[n]);
	else if (!memcmp(mark + 1, "CI", 2) && n == 0)
		xdr_put_u64(x, client[minor].clientid);
	else if (!memcmp(mark + 1, "DV", 2) && n == 0)
		xdr_put_fixed(x, device, sizeof(device));
	else if (!memcmp(mark + 1, "SS", 2) && n == 0)
		xdr_put_fixed(x, client[minor].session.id, NFS4_SESSIONID_SIZE);
	else
		return false;
	return true;
}

static void put_ops(struct xdr_out *x, const uint8_t *p, size_t size, uint32_t minor)
{
	while (size >= 4 && x->used + 256 < FUZZ_MESSAGE_MAX) {
		if (!put_mark(x, p, minor))
			xdr_put_fixed(x, p, 4);
		p += 4;
		size -= 4;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t minor;
	bool fresh;

	if (size < 2)
		return 0;
	f = fuzz_real_dirs(&fresh);
	if (!f)
		return 0;
	minor = data[0] % 3;
	f->reply_max = FIX_REPLY_SIZE;
	if (!begin(minor))
		abort();
	if (data[0] & 0x80)
		fix4_begin_bare(f, minor, "fuzz");
	else
		fix4_begin(f, minor > 0 ? &client[minor].session : NULL);
	if (data[0] & 0x40)
		f->reply_max = 64u + data[1] * 32u;
	for (unsigned i = 0; i < data[1] % 16u; i++)
		fix4_count(f);
	put_ops(&f->out, data + 2, size - 2, minor);
	fix4_send_any(f);
	fuzz_must_be_answered(f);
	return 0;
}
