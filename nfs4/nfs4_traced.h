/* SPDX-License-Identifier: BSD-2-Clause */
/* A COMPOUND that has just been answered, for traces: operations, client and file. */
#ifndef RN_NFS4_NFS4_TRACED_H
#define RN_NFS4_NFS4_TRACED_H

#include <stdbool.h>
#include <stdint.h>

struct rpc_request;
struct vfs_fh;

struct nfs4_traced {
	uint32_t minor;
	uint32_t nops;	    /* operations that ran; the last one has the COMPOUND's status */
	const uint8_t *ops; /* numbers of the first of them; 0: illegal */
	uint32_t nkept;
	uint64_t clientid;	 /* 0: not known */
	const struct vfs_fh *fh; /* current filehandle at the end; NULL: none */
};

/* Within rpc_server.observe: what out points to lasts as long. False: the request is no COMPOUND, or no operation of it
 * has begun. */
bool nfs4_traced(const struct rpc_request *req, struct nfs4_traced *out);

/* The RFCs' name of a status; NULL: none has that number. */
const char *nfs4_status_name(uint32_t status);

#endif
