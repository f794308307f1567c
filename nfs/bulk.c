/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs/bulk.h"

#include <errno.h>
#include <string.h>

#include "lib/pipe.h"
#include "lib/util.h"
#include "rpc/client.h"
#include "rpc/program.h"
#include "vfs/types.h"

void nfs_bulk_to_write(struct vfs_io *io, const struct xdr_bulk *data, uint32_t count)
{
	io->count = count;
	for (unsigned i = 0; i < data->npieces && count > 0; i++) {
		size_t n = rn_min(data->piece[i].iov_len, count);

		io->piece[i].iov_base = data->piece[i].iov_base;
		io->piece[i].iov_len = n;
		io->piece_payload[i] = data->payload[i];
		io->npieces = i + 1;
		count -= (uint32_t)n;
	}
}

int nfs_bulk_to_path(struct rn_arena *arena, const struct xdr_bulk *text, char **out)
{
	char *p;

	if (text->len > VFS_PATH_MAX)
		return -ENAMETOOLONG;
	if (text->len == 0)
		return -EINVAL;
	p = rn_arena_alloc(arena, text->len + 1);
	if (!p)
		return -ENOMEM;
	*out = p;
	for (unsigned i = 0; i < text->npieces; i++) {
		memcpy(p, text->piece[i].iov_base, text->piece[i].iov_len);
		p += text->piece[i].iov_len;
	}
	return memchr(*out, '\0', text->len) ? -EINVAL : 0;
}

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
