/* SPDX-License-Identifier: BSD-2-Clause */
/* GETDEVICEINFO (RFC 8881 section 18.40). GETDEVICELIST is not supported, as in nfsd. */
#include <arpa/inet.h>
#include <string.h>

#include "lib/host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/layout/ff_wire.h"
#include "nfs4/state/holdings.h"

/* Bytes of the result without the body: type, length of the body, bitmap of one word. */
#define HEAD_SIZE (4u + 4u + 4u + 4u)
#define NOTICES_MAX 8u /* words of the bitmap of notifications */

struct getdeviceinfo_args {
	uint8_t id[NFS4_DEVICEID_SIZE];
	uint32_t type, maxcount;
	uint32_t notices; /* bits of NOTIFY_DEVICEID4_* that the client asks for */
};

static void decode_getdeviceinfo(struct nfs4_compound *c, void *args)
{
	struct getdeviceinfo_args *a = args;
	uint32_t words;

	xdr_get_fixed(c->in, a->id, sizeof(a->id));
	a->type = xdr_get_u32(c->in);
	a->maxcount = xdr_get_u32(c->in);
	words = xdr_get_u32(c->in);
	if (words > NOTICES_MAX)
		c->in->err = true;
	for (uint32_t i = 0; i < words && !c->in->err; i++) {
		const uint32_t word = xdr_get_u32(c->in);

		a->notices |= i == 0 ? word : 0;
	}
}

static struct nfs4_ff_caller caller_of(const struct nfs4_compound *c)
{
	const struct rpc_conn *conn = c->req->conn;
	uint8_t peer[16];

	rn_address_map((const struct sockaddr *)&conn->peer, peer);
	return (struct nfs4_ff_caller){
		.rdma = conn->rdma != NULL,
		.ipv4 = IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)peer) != 0,
	};
}

/*
 * A device never changes, so there is nothing to tell of that. Linux's client keeps devices, and its connections to them, only where the
 * server will tell of both.
 */
#define NOTICES (1u << NOTIFY_DEVICEID4_CHANGE | 1u << NOTIFY_DEVICEID4_DELETE)

static int put_device(struct nfs4_compound *c, const struct getdeviceinfo_args *a,
		      const struct nfs4_device *device)
{
	const struct nfs4_ff_caller caller = caller_of(c);
	const size_t at = xdr_out_pos(c->out);
	uint32_t size;

	xdr_put_u32(c->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(c->out, 0);
	if (a->maxcount > 0)
		nfs4_put_ff_device(c->out, &device->member, c->server->cfg.cluster->data_io,
				   &caller);
	xdr_patch_u32(c->out, at + 4, (uint32_t)(xdr_out_pos(c->out) - at - 8));
	xdr_put_u32(c->out, 1);
	xdr_put_u32(c->out, a->notices & NOTICES);
	size = (uint32_t)(xdr_out_pos(c->out) - at);
	if (a->maxcount == 0 || size <= a->maxcount) {
		if (a->notices & 1u << NOTIFY_DEVICEID4_DELETE)
			atomic_store(&c->client->holdings->hears_of_devices, true);
		return NFS4_OK;
	}
	xdr_out_rewind(c->out, at);
	xdr_put_u32(c->out, size);
	c->keep_body = true;
	return NFS4ERR_TOOSMALL;
}

static int run_getdeviceinfo(struct nfs4_compound *c, void *args)
{
	const struct getdeviceinfo_args *a = args;
	struct nfs4_device device;

	if (!nfs4_gives_layouts(c->server))
		return NFS4ERR_NOTSUPP;
	if (a->type != LAYOUT4_FLEX_FILES)
		return NFS4ERR_UNKNOWN_LAYOUTTYPE;
	if (!nfs4_device_find(c->server, a->id, &device))
		return NFS4ERR_NOENT;
	return put_device(c, a, &device);
}

const struct nfs4_op nfs4_op_getdeviceinfo = {
	.name = "GETDEVICEINFO",
	.minors = { 1, 2 },
	.reply_max = HEAD_SIZE + NFS4_FF_DEVICE_MAX,
	.errors = NFS4_ERRORS(NFS4_E_INVAL | NFS4_E_NOENT | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct getdeviceinfo_args),
	.decode = decode_getdeviceinfo,
	.run = run_getdeviceinfo,
};
