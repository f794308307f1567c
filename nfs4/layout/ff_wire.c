/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/layout/ff_wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"

static void put_id(struct xdr_out *x, uint32_t id)
{
	char text[12];
	const int len = snprintf(text, sizeof(text), "%u", id);

	xdr_put_opaque(x, text, (uint32_t)len);
}

void nfs4_put_ff_layout(struct xdr_out *x, const struct nfs4_ff_layout *l)
{
	static const struct nfs4_stateid
		anonymous; /* as for any data server that is loosely coupled */

	xdr_put_u64(x, 0); /* stripe unit: the file is not striped */
	xdr_put_u32(x, 1); /* mirrors */
	xdr_put_u32(x, 1); /* data servers */
	xdr_put_fixed(x, l->device, NFS4_DEVICEID_SIZE);
	xdr_put_u32(x, 1); /* efficiency: there is no other mirror */
	nfs4_put_stateid(x, &anonymous);
	xdr_put_u32(x, 1); /* handles: one for each version of the device */
	xdr_put_opaque(x, l->fh->data, l->fh->len);
	put_id(x, l->uid);
	put_id(x, l->gid);
	xdr_put_u32(x, 0); /* flags: I/O may also go through this server */
	xdr_put_u32(x, 0); /* statistics are not asked for */
}

static bool is_ipv4(const struct in6_addr *addr)
{
	return IN6_IS_ADDR_V4MAPPED(addr);
}

/* Puts the addresses of one kind. Returns their number. */
static uint32_t put_addresses(struct xdr_out *x, const struct nfs4_member *m, bool rdma, bool ipv4)
{
	const uint16_t port = rdma ? m->rdma_port : m->tcp_port;
	const char *netid = rdma ? ipv4 ? "rdma" : "rdma6" : ipv4 ? "tcp" : "tcp6";
	struct sockaddr_in6 addr = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	char uaddr[NFS4_UADDR_MAX];
	uint32_t n = 0;

	for (unsigned i = 0; i < m->naddresses && port; i++) {
		memcpy(&addr.sin6_addr, m->address[i], sizeof(addr.sin6_addr));
		if (is_ipv4(&addr.sin6_addr) != ipv4)
			continue;
		nfs4_uaddr(&addr, uaddr);
		xdr_put_opaque(x, netid, (uint32_t)strlen(netid));
		xdr_put_opaque(x, uaddr, (uint32_t)strlen(uaddr));
		n++;
	}
	return n;
}

void nfs4_put_ff_device(struct xdr_out *x, const struct nfs4_member *m, uint32_t io,
			const struct nfs4_ff_caller *caller)
{
	const size_t at = xdr_out_pos(x);
	uint32_t n;

	xdr_put_u32(x, 0);
	n = put_addresses(x, m, caller->rdma, caller->ipv4);
	n += put_addresses(x, m, caller->rdma, !caller->ipv4);
	n += put_addresses(x, m, !caller->rdma, caller->ipv4);
	n += put_addresses(x, m, !caller->rdma, !caller->ipv4);
	xdr_patch_u32(x, at, n);
	xdr_put_u32(x, 1); /* versions */
	xdr_put_u32(x, 3); /* NFSv3, which is never tightly coupled */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, io);
	xdr_put_u32(x, io);
	xdr_put_bool(x, false);
}

void nfs4_get_ff_errors(struct xdr_in *x, struct nfs4_ff_errors *out)
{
	const uint32_t n = xdr_get_u32(x);

	for (uint32_t i = 0; i < n && !x->err; i++) {
		struct nfs4_ff_error error;

		xdr_get_fixed(x, error.device, sizeof(error.device));
		error.status = xdr_get_u32(x);
		error.opnum = xdr_get_u32(x);
		if (!x->err && out->n < rn_array_size(out->of))
			out->of[out->n++] = error;
	}
}

#define NETADDR_MAX 128u /* bytes of a netid, and of a universal address */
#define IO_LATENCY_SIZE (5u * 8u + 2u * 12u)

/* ff_iostats4. Nothing is done with them: the data server has counted what it did. */
static void skip_statistics(struct xdr_in *x)
{
	xdr_skip(x, 8 + 8 + NFS4_STATEID_SIZE + 2 * (8 + 8) + NFS4_DEVICEID_SIZE);
	xdr_skip_opaque(x, NETADDR_MAX);
	xdr_skip_opaque(x, NETADDR_MAX);
	xdr_skip_opaque(x, NFS4_FHSIZE);
	xdr_skip(x, 2 * IO_LATENCY_SIZE + 12);
	xdr_get_bool(x);
}

void nfs4_get_ff_return(struct xdr_in *x, struct nfs4_ff_errors *out)
{
	const uint32_t len = xdr_get_u32(x);
	const size_t left = x->left;
	uint32_t n;

	if (len == 0)
		return;
	n = xdr_get_u32(x);
	for (uint32_t i = 0; i < n && !x->err; i++) {
		xdr_skip(x, 8 + 8 + NFS4_STATEID_SIZE);
		nfs4_get_ff_errors(x, out);
	}
	n = xdr_get_u32(x);
	for (uint32_t i = 0; i < n && !x->err; i++)
		skip_statistics(x);
	if (left - x->left != len)
		x->err = true;
}
