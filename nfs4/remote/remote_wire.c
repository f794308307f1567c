/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/remote/remote_wire.h"

#include <errno.h>
#include <string.h>

#include "lib/util.h"
#include "rpc/message.h"

#define USE_NON_PNFS 0x00010000u /* EXCHGID4_FLAG_USE_NON_PNFS */
#define SP4_NONE 0u
#define MAX_REQUEST 4096u /* bytes of a call; each fits RPC_CALLBACK_SIZE */
#define MAX_CACHED 1024u
#define MAX_OPS 8u
#define NOBODY 65534u	       /* uid and gid */
#define CB_PROGRAM 0x40000000u /* no back channel is asked for */

/* Calls are nobody's: the stateid of COPY_NOTIFY alone gives the right to read. With root's
 * credential, a client could have this server read what the other one lets nobody but root read. */
static void nfs4_remote_put_compound(struct xdr_out *x, uint32_t nops)
{
	const struct rpc_callee to = { NFS4_PROGRAM, NFS4_VERSION, NFSPROC4_COMPOUND };
	uint8_t nobody[5 * 4];
	struct xdr_out cred;

	xdr_out_init(&cred, nobody, sizeof(nobody));
	xdr_put_u32(&cred, 0);		/* stamp */
	xdr_put_opaque(&cred, NULL, 0); /* machinename */
	xdr_put_u32(&cred, NOBODY);
	xdr_put_u32(&cred, NOBODY);
	xdr_put_u32(&cred, 0); /* groups */
	rpc_put_call(x, &to, RPC_AUTH_SYS, nobody, sizeof(nobody));
	xdr_put_opaque(x, NULL, 0); /* tag */
	xdr_put_u32(x, NFS4_MINOR_MAX);
	xdr_put_u32(x, nops);
}

/* Reads the head of the results: the first status that is not NFS4_OK is that of the COMPOUND. */
static int nfs4_remote_get_status(struct xdr_in *x)
{
	const uint32_t status = xdr_get_u32(x);

	xdr_skip_opaque(x, NFS4_OPAQUE_LIMIT); /* tag */
	xdr_get_u32(x);			       /* number of results */
	if (x->err || status > INT32_MAX)
		return -EPROTO;
	return (int)status;
}

/* Reads the beginning of one result, which must be that operation's, and have succeeded. */
static int get_op(struct xdr_in *x, uint32_t opnum)
{
	const uint32_t is = xdr_get_u32(x), status = xdr_get_u32(x);

	return x->err || is != opnum || status != NFS4_OK ? -EPROTO : NFS4_OK;
}

static int begin_results(struct xdr_in *x, uint32_t opnum)
{
	const int status = nfs4_remote_get_status(x);

	return status == NFS4_OK ? get_op(x, opnum) : status;
}

void nfs4_remote_put_exchange_id(struct xdr_out *x, const struct nfs4_remote_owner *owner)
{
	nfs4_remote_put_compound(x, 1);
	xdr_put_u32(x, OP_EXCHANGE_ID);
	xdr_put_fixed(x, owner->verifier, sizeof(owner->verifier));
	xdr_put_opaque(x, owner->id, sizeof(owner->id));
	xdr_put_u32(x, USE_NON_PNFS);
	xdr_put_u32(x, SP4_NONE);
	xdr_put_u32(x, 0); /* eia_client_impl_id */
}

int nfs4_remote_get_exchange_id(struct xdr_in *x, struct nfs4_remote_session *s)
{
	const int status = begin_results(x, OP_EXCHANGE_ID);

	if (status != NFS4_OK)
		return status;
	s->clientid = xdr_get_u64(x);
	s->create_seqid = xdr_get_u32(x);
	xdr_get_u32(x); /* eir_flags */
	return xdr_get_u32(x) != SP4_NONE || x->err ? -EPROTO : NFS4_OK;
}

static void nfs4_remote_put_channel(struct xdr_out *x, uint32_t max_response)
{
	xdr_put_u32(x, 0); /* ca_headerpadsize */
	xdr_put_u32(x, MAX_REQUEST);
	xdr_put_u32(x, max_response);
	xdr_put_u32(x, MAX_CACHED);
	xdr_put_u32(x, MAX_OPS);
	xdr_put_u32(x, 1); /* ca_maxrequests: slots */
	xdr_put_u32(x, 0); /* ca_rdma_ird */
}

void nfs4_remote_put_create_session(struct xdr_out *x, const struct nfs4_remote_session *s,
				    uint32_t max_response)
{
	nfs4_remote_put_compound(x, 1);
	xdr_put_u32(x, OP_CREATE_SESSION);
	xdr_put_u64(x, s->clientid);
	xdr_put_u32(x, s->create_seqid);
	xdr_put_u32(x, 0); /* csa_flags: neither kept on disk nor a back channel */
	nfs4_remote_put_channel(x, max_response);
	nfs4_remote_put_channel(x, MAX_REQUEST);
	xdr_put_u32(x, CB_PROGRAM);
	xdr_put_u32(x, 1);
	xdr_put_u32(x, RPC_AUTH_NONE);
}

int nfs4_remote_get_create_session(struct xdr_in *x, struct nfs4_remote_session *s)
{
	uint32_t ops, slots, max_request;
	const int status = begin_results(x, OP_CREATE_SESSION);

	if (status != NFS4_OK)
		return status;
	xdr_get_fixed(x, s->id, sizeof(s->id));
	xdr_get_u32(x); /* csr_sequence */
	xdr_get_u32(x); /* csr_flags */
	xdr_get_u32(x); /* ca_headerpadsize */
	max_request = xdr_get_u32(x);
	s->max_response = xdr_get_u32(x);
	xdr_get_u32(x); /* ca_maxresponsesize_cached */
	ops = xdr_get_u32(x);
	slots = xdr_get_u32(x);
	s->seqid = 0;
	/* SEQUENCE, PUTFH and READ must fit into a request, and some data into the reply. */
	return x->err || ops < 3 || slots < 1 || max_request < 512 ||
			       s->max_response <= NFS4_REMOTE_HEAD
		       ? -EPROTO
		       : NFS4_OK;
}

void nfs4_remote_put_read(struct xdr_out *x, const struct nfs4_remote_session *s,
			  const struct vfs_fh *fh, const struct nfs4_stateid *sid,
			  const struct nfs4_remote_range *range)
{
	nfs4_remote_put_compound(x, 3);
	xdr_put_u32(x, OP_SEQUENCE);
	xdr_put_fixed(x, s->id, sizeof(s->id));
	xdr_put_u32(x, s->seqid);
	xdr_put_u32(x, 0);	/* sa_slotid */
	xdr_put_u32(x, 0);	/* sa_highest_slotid */
	xdr_put_bool(x, false); /* sa_cachethis */
	xdr_put_u32(x, OP_PUTFH);
	xdr_put_opaque(x, fh->data, fh->len);
	xdr_put_u32(x, OP_READ);
	nfs4_put_stateid(x, sid);
	xdr_put_u64(x, range->offset);
	xdr_put_u32(x, range->count);
}

/* Results of a COMPOUND in the session: SEQUENCE's must name the slot and the sequence id. */
static int get_sequence(struct xdr_in *x, const struct nfs4_remote_session *s)
{
	uint8_t id[NFS4_SESSIONID_SIZE];
	uint32_t seqid, slot;

	if (get_op(x, OP_SEQUENCE) != NFS4_OK)
		return -EPROTO;
	xdr_get_fixed(x, id, sizeof(id));
	seqid = xdr_get_u32(x);
	slot = xdr_get_u32(x);
	xdr_get_u32(x); /* sr_highest_slotid */
	xdr_get_u32(x); /* sr_target_highest_slotid */
	xdr_get_u32(x); /* sr_status_flags */
	return x->err || memcmp(id, s->id, sizeof(id)) != 0 || seqid != s->seqid || slot != 0
		       ? -EPROTO
		       : NFS4_OK;
}

/* A SEQUENCE that has failed itself has not used up its sequence id. */
static int nfs4_remote_failed(struct xdr_in *x, struct nfs4_remote_session *s, int status)
{
	if (status > 0 && get_op(x, OP_SEQUENCE) != NFS4_OK)
		s->seqid--;
	return status;
}

int nfs4_remote_get_read(struct xdr_in *x, struct nfs4_remote_session *s, uint8_t *to,
			 uint32_t room, uint32_t *got, bool *eof)
{
	const int status = nfs4_remote_get_status(x);
	uint32_t len;

	*got = 0;
	if (status != NFS4_OK)
		return nfs4_remote_failed(x, s, status);
	if (get_sequence(x, s) != NFS4_OK || get_op(x, OP_PUTFH) != NFS4_OK ||
	    get_op(x, OP_READ) != NFS4_OK)
		return -EPROTO;
	*eof = xdr_get_bool(x);
	len = xdr_get_u32(x);
	if (x->err || len > room || len > x->left || (len == 0 && !*eof))
		return -EPROTO;
	xdr_get_fixed(x, to, len);
	if (x->err)
		return -EPROTO;
	*got = len;
	return NFS4_OK;
}

void nfs4_remote_put_destroy_session(struct xdr_out *x, const struct nfs4_remote_session *s)
{
	nfs4_remote_put_compound(x, 1);
	xdr_put_u32(x, OP_DESTROY_SESSION);
	xdr_put_fixed(x, s->id, sizeof(s->id));
}

void nfs4_remote_put_destroy_clientid(struct xdr_out *x, const struct nfs4_remote_session *s)
{
	nfs4_remote_put_compound(x, 1);
	xdr_put_u32(x, OP_DESTROY_CLIENTID);
	xdr_put_u64(x, s->clientid);
}
