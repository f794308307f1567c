/* SPDX-License-Identifier: BSD-2-Clause */
/* Results of another server's file, as copies read it: good ones, cut ones, and wrong ones. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nfs4/remote/remote_wire.h"

#define ROOM 64u
#define GUARD 0xa5
#define MUTATIONS 50000u

static uint8_t msg[1024], to[2 * ROOM];
static struct xdr_out out;
static struct nfs4_remote_session session = { .id = "0123456789abcde",
					      .seqid = 5,
					      .max_response = 4096 };

static void begin(uint32_t status, uint32_t nops)
{
	xdr_out_init(&out, msg, sizeof(msg));
	xdr_put_u32(&out, status);
	xdr_put_opaque(&out, "tag", 3);
	xdr_put_u32(&out, nops);
}

static void put_op(uint32_t opnum, uint32_t status)
{
	xdr_put_u32(&out, opnum);
	xdr_put_u32(&out, status);
}

static void put_sequence(void)
{
	put_op(OP_SEQUENCE, NFS4_OK);
	xdr_put_fixed(&out, session.id, sizeof(session.id));
	xdr_put_u32(&out, session.seqid);
	for (unsigned i = 0; i < 4; i++)
		xdr_put_u32(&out, 0);
}

static void put_read(bool eof, uint32_t len)
{
	uint8_t data[2 * ROOM];

	memset(data, 'd', sizeof(data));
	begin(NFS4_OK, 3);
	put_sequence();
	put_op(OP_PUTFH, NFS4_OK);
	put_op(OP_READ, NFS4_OK);
	xdr_put_bool(&out, eof);
	xdr_put_opaque(&out, data, len);
}

/* The first len bytes, in two pieces. Nothing may be written behind the room. */
static int get_read(uint32_t len, uint32_t split, uint32_t *got, bool *eof)
{
	/* Memory of that size, so that a read beyond it is noticed. */
	uint8_t *first = malloc(split + 1), *second = malloc(len - split + 1);
	const struct rpc_seg seg[] = { { .base = first, .len = split },
				       { .base = second, .len = len - split } };
	struct xdr_in x;
	int status;

	memcpy(first, msg, split);
	memcpy(second, msg + split, len - split);
	memset(to, GUARD, sizeof(to));
	xdr_in_init(&x, seg, 2, NULL);
	status = nfs4_remote_get_read(&x, &session, to, ROOM, got, eof);
	cr_assert_leq(*got, ROOM);
	for (unsigned i = ROOM; i < sizeof(to); i++)
		cr_assert_eq(to[i], GUARD);
	free(first);
	free(second);
	return status;
}

static int get_all(uint32_t *got, bool *eof)
{
	return get_read((uint32_t)out.used, 8, got, eof);
}

Test(nfs4_remote, read)
{
	uint32_t got;
	bool eof;

	put_read(true, 10);
	for (uint32_t split = 0; split < out.used; split += 4) {
		cr_assert_eq(get_read((uint32_t)out.used, split, &got, &eof), NFS4_OK);
		cr_expect(eof && got == 10 && memcmp(to, "dddddddddd", 10) == 0);
		cr_expect_eq(to[10], GUARD);
	}
	put_read(false, ROOM);
	cr_expect_eq(get_all(&got, &eof), NFS4_OK);
	cr_expect(!eof && got == ROOM);
	put_read(true, 0);
	cr_expect_eq(get_all(&got, &eof), NFS4_OK);
	cr_expect(eof && got == 0);
}

Test(nfs4_remote, read_that_is_wrong)
{
	uint32_t got;
	bool eof;

	put_read(false, 0);
	cr_expect_eq(get_all(&got, &eof), -EPROTO, "neither data nor the end");
	put_read(false, ROOM + 1);
	cr_expect_eq(get_all(&got, &eof), -EPROTO, "more than was asked for");
	put_read(true, 10);
	session.seqid++;
	cr_expect_eq(get_all(&got, &eof), -EPROTO, "another call's");
	session.seqid--;
	session.id[3] ^= 1;
	cr_expect_eq(get_all(&got, &eof), -EPROTO, "another session's");
	session.id[3] ^= 1;
	for (uint32_t len = 0; len < out.used; len++)
		cr_expect_eq(get_read(len, 0, &got, &eof), -EPROTO, "%u bytes of it", len);
}

/* The sequence id of a SEQUENCE that has failed is used again. */
Test(nfs4_remote, status)
{
	uint32_t got;
	bool eof;

	begin(NFS4ERR_DELAY, 1);
	put_op(OP_SEQUENCE, NFS4ERR_DELAY);
	cr_expect_eq(get_all(&got, &eof), NFS4ERR_DELAY);
	cr_expect_eq(session.seqid, 4);
	begin(NFS4ERR_BAD_STATEID, 3);
	put_sequence();
	put_op(OP_PUTFH, NFS4_OK);
	put_op(OP_READ, NFS4ERR_BAD_STATEID);
	cr_expect_eq(get_all(&got, &eof), NFS4ERR_BAD_STATEID);
	cr_expect_eq(session.seqid, 4);
	begin(UINT32_MAX, 0);
	cr_expect_eq(get_all(&got, &eof), -EPROTO);
}

/* Whatever comes, nothing is read or written out of bounds, and a success is within the room. */
Test(nfs4_remote, mutations)
{
	uint32_t got;
	bool eof;

	srand(7862);
	for (unsigned i = 0; i < MUTATIONS; i++) {
		put_read(true, (uint32_t)rand() % ROOM);
		for (int n = rand() % 4; n >= 0; n--)
			msg[(size_t)rand() % out.used] = (uint8_t)(rand() % 3 ? rand() : 0xff);
		get_read((uint32_t)out.used, (uint32_t)((size_t)rand() % out.used & ~(size_t)3),
			 &got, &eof);
		session.seqid = 5;
	}
}

static int get_created(uint32_t response, uint32_t slots)
{
	const struct rpc_seg seg = { .base = msg };
	struct rpc_seg whole = seg;
	struct xdr_in x;

	begin(NFS4_OK, 1);
	put_op(OP_CREATE_SESSION, NFS4_OK);
	xdr_put_fixed(&out, session.id, sizeof(session.id));
	xdr_put_u32(&out, 1);
	xdr_put_u32(&out, 0);
	xdr_put_u32(&out, 0);
	xdr_put_u32(&out, 4096);
	xdr_put_u32(&out, response);
	xdr_put_u32(&out, 4096);
	xdr_put_u32(&out, 8);
	xdr_put_u32(&out, slots);
	whole.len = (uint32_t)out.used;
	xdr_in_init(&x, &whole, 1, NULL);
	return nfs4_remote_get_create_session(&x, &session);
}

Test(nfs4_remote, sessions)
{
	cr_expect_eq(get_created(4096, 1), NFS4_OK);
	cr_expect_eq(session.max_response, 4096);
	cr_expect_eq(get_created(NFS4_REMOTE_HEAD, 1), -EPROTO, "no room for data");
	cr_expect_eq(get_created(4096, 0), -EPROTO, "no slot");
}

/* The longest call fits. */
Test(nfs4_remote, calls)
{
	const struct nfs4_remote_owner owner = { .verifier = "1234567" };
	const struct nfs4_remote_range range = { UINT64_MAX, UINT32_MAX };
	const struct nfs4_stateid sid = { .seqid = 1 };
	const struct vfs_fh fh = { .len = VFS_FH_MAX };

	xdr_out_init(&out, msg, 512);
	nfs4_remote_put_read(&out, &session, &fh, &sid, &range);
	cr_expect(!out.overflow);
	xdr_out_init(&out, msg, 512);
	nfs4_remote_put_exchange_id(&out, &owner);
	cr_expect(!out.overflow);
	xdr_out_init(&out, msg, 512);
	nfs4_remote_put_create_session(&out, &session, 1 << 20);
	cr_expect(!out.overflow);
}
