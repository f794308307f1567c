/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/template.h"

#include <string.h>

#include "nfs3/nfs3_server.h"
#include "nfs3/nfs3_proto.h"
#include "rpc/xdr_out.h"
#include "tests/fuzz/session/compound.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/nfs2_calls.h"
#include "tests/unit/nfs3_samples.h"

static void put_mark(struct xdr_out *x, char letter, uint8_t k)
{
	const uint8_t mark[4] = { 0xf1, 'F', (uint8_t)letter, k };

	xdr_put_fixed(x, mark, sizeof(mark));
}

static void put_handle(void *ctx, struct xdr_out *x, enum sample_object object)
{
	(void)ctx;
	put_mark(x, 'H', (uint8_t)object); /* enum ss_handle begins with the same objects */
}

static const struct sample_world world = { .put_fh = put_handle, .path = SS_EXPORT };

unsigned ss_template_count(void)
{
	return nfs3_sample_count + ss_compound_count() + ss_nfs2_call_count;
}

const char *ss_template_name(unsigned i)
{
	const unsigned first2 = nfs3_sample_count + ss_compound_count();

	if (i >= first2)
		return ss_nfs2_calls[i - first2].name;
	return i < nfs3_sample_count ? nfs3_samples[i].name
				     : ss_compound_name(i - nfs3_sample_count);
}

size_t ss_template(unsigned i, uint8_t *out)
{
	struct xdr_out x;

	const unsigned first2 = nfs3_sample_count + ss_compound_count();

	xdr_out_init(&x, out, SS_TEMPLATE_MAX);
	i %= ss_template_count();
	if (i >= first2)
		nfs3_sample_put(&ss_nfs2_calls[i - first2], &x, &world);
	else if (i < nfs3_sample_count)
		nfs3_sample_put(&nfs3_samples[i], &x, &world);
	else
		ss_compound_put(i - nfs3_sample_count, &x);
	return x.used;
}

static void begin(struct xdr_out *x, uint8_t *out, uint32_t proc, unsigned handle)
{
	const struct sample empty = { .prog = NFS_PROGRAM, .vers = NFS3_VERSION, .proc = proc };

	xdr_out_init(x, out, SS_TEMPLATE_MAX);
	nfs3_sample_put(&empty, x, &world);
	put_mark(x, 'H', (uint8_t)handle);
}

size_t ss_template_read(uint8_t *out, unsigned handle, uint64_t offset, uint32_t count)
{
	struct xdr_out x;

	begin(&x, out, NFSPROC3_READ, handle);
	xdr_put_u64(&x, offset);
	xdr_put_u32(&x, count);
	return x.used;
}

size_t ss_template_write(uint8_t *out, unsigned handle, uint64_t offset, uint32_t stable,
			 uint8_t size)
{
	struct xdr_out x;

	begin(&x, out, NFSPROC3_WRITE, handle);
	xdr_put_u64(&x, offset);
	xdr_put_u32(&x, ss_sizes[size]);
	xdr_put_u32(&x, stable);
	put_mark(&x, 'B', size);
	return x.used;
}

size_t ss_template_readdir(uint8_t *out, unsigned handle, bool plus, bool from_cookie,
			   uint32_t count)
{
	struct xdr_out x;

	begin(&x, out, plus ? NFSPROC3_READDIRPLUS : NFSPROC3_READDIR, handle);
	if (from_cookie) {
		put_mark(&x, 'C', 0);
		put_mark(&x, 'V', 0);
	} else {
		xdr_put_u64(&x, 0);
		xdr_put_u64(&x, 0);
	}
	xdr_put_u32(&x, count);
	if (plus)
		xdr_put_u32(&x, count);
	return x.used;
}

size_t ss_template_exclusive(uint8_t *out, bool new_name, uint8_t k)
{
	struct xdr_out x;

	begin(&x, out, NFSPROC3_CREATE, SS_FH_ROOT);
	xdr_put_opaque(&x, new_name ? "made" : "private", new_name ? 4 : 7);
	xdr_put_u32(&x, NFS3_EXCLUSIVE);
	put_mark(&x, 'X', k);
	return x.used;
}

static void put_read_segment(struct xdr_out *x, uint32_t position, uint8_t size)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, position);
	put_mark(x, 'S', size);
}

static void put_write_chunk(struct xdr_out *x, uint8_t size)
{
	xdr_put_u32(x, 1);
	xdr_put_u32(x, 1); /* number of segments */
	put_mark(x, 'S', size);
}

size_t ss_template_rdma(const struct ss_chunks *c, const uint8_t *msg, size_t len, uint8_t *out)
{
	struct xdr_out x;

	xdr_out_init(&x, out, SS_TEMPLATE_MAX);
	xdr_put_fixed(&x, msg, 4); /* the call's xid */
	xdr_put_u32(&x, 1);
	xdr_put_u32(&x, 32);
	xdr_put_u32(&x, c->long_call ? 1 : 0); /* RDMA_NOMSG, RDMA_MSG */
	if (c->long_call)
		put_read_segment(&x, 0, c->read);
	else if (c->read)
		put_read_segment(&x, c->read_position, c->read);
	xdr_put_u32(&x, 0);
	if (c->write)
		put_write_chunk(&x, c->write);
	xdr_put_u32(&x, 0);
	if (c->reply)
		put_write_chunk(&x, c->reply);
	else
		xdr_put_u32(&x, 0);
	if (!c->long_call)
		xdr_put_fixed(&x, msg, (uint32_t)len);
	return x.used;
}
