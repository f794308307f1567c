/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a client of minor version 2 and their results (RFC 8881, RFC 7863): the few that reading a
 * file by a stateid takes. Encoders put a whole RPC call; x.overflow says that it does not fit.
 * Decoders get the results of COMPOUND and return an nfsstat4, or -EPROTO: it is not the result of
 * that call.
 */
#ifndef RN_NFS4_REMOTE_REMOTE_WIRE_H
#define RN_NFS4_REMOTE_REMOTE_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/nfs4_proto.h"
#include "nfs4/stateid.h"
#include "vfs/vfs.h"

/* Bytes of a reply to READ beside its data, at most. */
#define NFS4_REMOTE_HEAD 1024u

struct nfs4_remote_owner {
	uint8_t id[16], verifier[NFS4_VERIFIER_SIZE];
};
struct nfs4_remote_session {
	uint8_t id[NFS4_SESSIONID_SIZE];
	uint64_t clientid;
	uint32_t create_seqid; /* for CREATE_SESSION */
	uint32_t seqid;	       /* of the last SEQUENCE, of slot 0 */
	uint32_t max_response; /* bytes */
};

void nfs4_remote_put_exchange_id(struct xdr_out *x, const struct nfs4_remote_owner *owner);
/* Sets clientid and create_seqid. */
int nfs4_remote_get_exchange_id(struct xdr_in *x, struct nfs4_remote_session *s);

void nfs4_remote_put_create_session(struct xdr_out *x, const struct nfs4_remote_session *s,
				    uint32_t max_response);
/* Sets id, seqid and max_response. */
int nfs4_remote_get_create_session(struct xdr_in *x, struct nfs4_remote_session *s);

struct nfs4_remote_range {
	uint64_t offset;
	uint32_t count;
};
void nfs4_remote_put_read(struct xdr_out *x, const struct nfs4_remote_session *s,
			  const struct vfs_fh *fh, const struct nfs4_stateid *sid,
			  const struct nfs4_remote_range *range);
/* Takes back seqid if SEQUENCE has failed. Copies the data to to, at most room bytes: more are -EPROTO, and so are none before the end. */
int nfs4_remote_get_read(struct xdr_in *x, struct nfs4_remote_session *s, uint8_t *to,
			 uint32_t room, uint32_t *got, bool *eof);

void nfs4_remote_put_destroy_session(struct xdr_out *x, const struct nfs4_remote_session *s);
void nfs4_remote_put_destroy_clientid(struct xdr_out *x, const struct nfs4_remote_session *s);

#endif
