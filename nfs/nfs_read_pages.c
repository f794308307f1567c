/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/nfs_read_pages.h"

#include "lib/pipe.h"
#include "rpc/client.h"
#include "rpc/program.h"

struct rn_pipe *nfs_read_pages(const struct rpc_request *req, struct vfs_io *io)
{
	const struct rpc_conn *conn = req->conn;

	if (io->count < VFS_PAGES_LEAST || !rpc_reply_takes_pipes(req) || !conn->client ||
	    req->out.nbulks == XDR_BULKS_MAX)
		return NULL;
	struct rn_pipe *p =
		rn_pipe_get(req->server->pipes, io->offset, io->count, &conn->client->pipes);

	if (p && vfs_read_pages(io, p))
		return p;
	rn_pipe_put(p);
	return NULL;
}
