/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pieces of a copy from another server. The data of a piece are read first, which nobody waits for,
 * then a worker writes them, checked as a COPY of that piece would be.
 */
#include "nfs4/data/copy_remote.h"

#include <errno.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/stateid_check.h"

#define PIECE (1u << 20) /* bytes */
#define LEASE_PART 3u	 /* time for an answer of the other server, as a part of a lease */
#define TIMEOUT_LEAST 2u /* seconds */

int nfs4_copy_remote_new(struct nfs4_copy *copy, const struct nfs4_compound *c,
			 const struct nfs4_remote_file *file)
{
	const struct nfs4_config *cfg = &c->server->cfg;
	const unsigned timeout = (unsigned)rn_max(cfg->lease_seconds / LEASE_PART, TIMEOUT_LEAST);

	copy->remote.file = nfs4_remote_new(&cfg->dialer, file, timeout);
	return copy->remote.file ? 0 : -ENOMEM;
}

static void put_payload(struct nfs4_copy *copy)
{
	rn_payload_put(copy->remote.payload);
	copy->remote.payload = NULL;
}

void nfs4_copy_remote_free(struct nfs4_copy *copy)
{
	put_payload(copy);
	nfs4_remote_free(copy->remote.file);
	copy->remote.file = NULL;
}

static void fetched(struct nfs4_remote_read *rd, int rc)
{
	struct nfs4_copy *copy = rn_container_of(rd, struct nfs4_copy, remote.read);

	copy->remote.fetched = true;
	copy->remote.rc = rc;
	nfs4_copy_queue(copy);
}

void nfs4_copy_fetch(struct nfs4_copy *copy)
{
	struct nfs4_copy_remote *r = &copy->remote;
	const size_t size = rn_min(copy->count - copy->copied, PIECE);
	struct rpc_request *req = copy->req;

	r->payload = rn_payload_get_for(req->server->pool, size, rpc_request_account(req));
	r->read = (struct nfs4_remote_read){
		.offset = copy->from_at + copy->copied,
		.count = (uint32_t)size,
		.done = fetched,
	};
	if (!r->payload) {
		fetched(&r->read, -ENOMEM);
		return;
	}
	r->read.to = r->payload->data;
	nfs4_remote_read(r->file, &r->read);
}

/* The client is told what has been copied; or, if that is nothing, to copy by itself, since it learns
 * then what is wrong. */
int nfs4_copy_given_up(const struct nfs4_copy *copy)
{
	return copy->copied > 0 ? NFS4_OK : NFS4ERR_OFFLOAD_DENIED;
}

/* Status of a piece whose data were fetched, or not. A server that has served before may be back
 * soon. */
static int fetch_status(const struct nfs4_copy *copy)
{
	const struct nfs4_copy_remote *r = &copy->remote;

	if (r->rc == 0)
		return NFS4_OK;
	if (r->rc == -RN_ELATER || r->rc == -ENOMEM ||
	    (r->rc == -ENOTCONN && nfs4_remote_has_served(r->file)))
		return NFS4ERR_DELAY;
	return nfs4_copy_given_up(copy);
}

static void nfs4_copy_remote_store(struct nfs4_copy *copy, struct nfs4_copy_piece *p)
{
	const struct nfs4_copy_remote *r = &copy->remote;
	uint32_t bytes;
	int64_t n;
	int status;

	p->c.io = (struct vfs_io){
		.ctx = &p->c.current.ctx,
		.node = p->c.current.node,
		.offset = copy->to_at + copy->copied,
		.count = r->read.got,
		.opened = p->files.to.opened,
		.piece[0] = { r->payload->data, r->read.got },
		.piece_payload[0] = r->payload,
		.npieces = 1,
		.stable = VFS_UNSTABLE,
	};
	n = vfs_write(&p->c.io);
	bytes = n > 0 ? (uint32_t)n : 0;
	status = nfs4_data_status(&p->c, n < 0 ? (int)n : 0);
	nfs4_two_files_end(&p->files);
	put_payload(copy);
	if (p->c.io.stable == VFS_UNSTABLE)
		copy->offload.committed = VFS_UNSTABLE;
	if (copy->remote.read.eof && bytes == copy->remote.read.got)
		copy->count = copy->copied + bytes;
	if (status != NFS4_OK && !nfs4_is_later(status) && copy->copied > 0)
		status = NFS4_OK;
	nfs4_copy_end_piece(copy, status, bytes);
}

void nfs4_copy_store(struct rpc_request *req)
{
	struct nfs4_copy *copy = req->transport_private;
	struct nfs4_copy_piece *p = NULL;
	int status = fetch_status(copy);

	copy->remote.fetched = false;
	if (copy->remote.read.got > 0) {
		p = nfs4_copy_piece_new(copy);
		status = p ? nfs4_place_by_fh(&p->c, &p->c.current, &copy->to_fh) : NFS4ERR_DELAY;
	}
	if (p && status == NFS4_OK)
		status = nfs4_destination_begin(&p->c, &p->files);
	if (p && status == NFS4_OK) {
		nfs4_copy_remote_store(copy, p);
		return;
	}
	put_payload(copy);
	nfs4_copy_end_piece(copy, nfs4_copy_is_returned(copy, status) ? NFS4_OK : status, 0);
}
