/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR of the flexible file layout type (RFC 8435), which stands in opaque fields of RFC 8881's layout operations. */
#ifndef RN_NFS4_LAYOUT_FF_WIRE_H
#define RN_NFS4_LAYOUT_FF_WIRE_H

#include "nfs4/layout/data_server.h"
#include "nfs4/stateid.h"

/* Bytes of ff_layout4 and of ff_device_addr4 at most. */
#define NFS4_FF_ID_SIZE (4u + 12u) /* a user or group as a decimal number */
#define NFS4_FF_LAYOUT_MAX                                                                         \
	(8u + 4u + 4u + NFS4_DEVICEID_SIZE + 4u + NFS4_STATEID_SIZE + 4u + 4u + VFS_FH_MAX +       \
	 2u * NFS4_FF_ID_SIZE + 4u + 4u)
#define NFS4_FF_ADDRESS_MAX (4u + 8u + 4u + 64u)
#define NFS4_FF_DEVICE_MAX (4u + 2u * NFS4_MEMBER_ADDRESSES * NFS4_FF_ADDRESS_MAX + 4u + 20u)

/* A whole file at one data server. */
struct nfs4_ff_layout {
	const uint8_t *device;
	const struct vfs_fh *fh;
	uint32_t uid, gid; /* that the client has in the credentials of its calls there */
};

void nfs4_put_ff_layout(struct xdr_out *x, const struct nfs4_ff_layout *l);

/* How the client has called: addresses of that kind come first, as Linux's client goes by the first that answers. */
struct nfs4_ff_caller {
	bool rdma, ipv4;
};

void nfs4_put_ff_device(struct xdr_out *x, const struct nfs4_member *m, uint32_t io,
			const struct nfs4_ff_caller *caller);

/* device_error4 */
struct nfs4_ff_error {
	uint8_t device[NFS4_DEVICEID_SIZE];
	uint32_t status, opnum;
};
#define NFS4_FF_ERROR_SIZE (NFS4_DEVICEID_SIZE + 4u + 4u)

/* The first errors of a report; more say nothing new. */
struct nfs4_ff_errors {
	uint32_t n;
	struct nfs4_ff_error of[64];
};

/* Reads an array of device_error4, and adds them. */
void nfs4_get_ff_errors(struct xdr_in *x, struct nfs4_ff_errors *out);
/* Reads an opaque field with ff_layoutreturn4, or with nothing at all; malformed ones set x->err. */
void nfs4_get_ff_return(struct xdr_in *x, struct nfs4_ff_errors *out);

#endif
