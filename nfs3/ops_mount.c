/* SPDX-License-Identifier: BSD-2-Clause */
/* MNT, UMNT and UMNTALL of all versions, and version 2's PATHCONF (RFC 1813 appendix I, RFC 1094
 * appendix A). */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "lib/error.h"
#include "lib/log_ids.h"
#include "lib/util.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_state.h"
#include "rpc/address.h"
#include "vfs/packed.h"

static bool decode_path(struct xdr_in *x, void *args)
{
	struct mnt_path *p = args;
	uint32_t len = xdr_get_u32(x);

	if (x->err)
		return false;
	p->len = len;
	if (len > MNT_PATH_MAX)
		xdr_skip(x, (size_t)len + rn_xdr_pad(len));
	else
		xdr_get_fixed(x, p->bytes, len);
	return !x->err;
}

static enum mountstat3 mount_status(int rc)
{
	switch (-rc) {
	case 0:
		return MNT3_OK;
	case ENOENT:
	case ESTALE:
		return MNT3ERR_NOENT;
	case EACCES:
	case EPERM:
	case RN_EUNNAMED: /* the caller's name could not be found in time */
		return MNT3ERR_ACCES;
	case ENOTDIR:
	case ELOOP:
		return MNT3ERR_NOTDIR;
	case EINVAL:
		return MNT3ERR_INVAL;
	case ENAMETOOLONG:
		return MNT3ERR_NAMETOOLONG;
	case EOPNOTSUPP:
		return MNT3ERR_NOTSUPP;
	case ENOMEM:
	case EMFILE:
	case ENFILE:
		return MNT3ERR_SERVERFAULT;
	default:
		return MNT3ERR_IO;
	}
}

/* The status of versions 1 and 2 is an errno of UNIX (RFC 1094 appendix A.5). */
static uint32_t mount_status_v1(int rc)
{
	const enum mountstat3 status = rc == -EOPNOTSUPP ? MNT3ERR_ACCES : mount_status(rc);

	return status < MNT3ERR_NOTSUPP ? status : MNT3ERR_IO;
}

static void mnt_put_flavors(struct xdr_out *x, const struct vfs_access *access)
{
	xdr_put_u32(x, access->nsecs);
	for (unsigned i = 0; i < access->nsecs; i++)
		xdr_put_u32(x, nfs_sec_number(access->secs[i].sec));
}

/* A path from a peer, made fit for one line of a log. */
static void printable(const struct mnt_path *path, char *out, size_t size)
{
	const size_t len = path->len > MNT_PATH_MAX ? 0 : path->len;
	size_t n = 0;

	for (; n < len && n + 1 < size; n++)
		out[n] = isprint((unsigned char)path->bytes[n]) ? path->bytes[n] : '?';
	out[n] = '\0';
}

static const char *mnt_refusal_reason(const struct rpc_request *req,
				      const struct vfs_access *access, int rc)
{
	if (req->admission == RPC_STRANGER || req->admission == RPC_RECENT)
		return "no export is for this host";
	if (rc == -RN_EUNNAMED)
		return "its name could not be found out in time";
	if (rc == -EACCES && nfs_check_port(access, req->conn) != 0)
		return "its port is not below 1024, which the option secure wants";
	if (rc == -EACCES && !nfs_transport_allowed(&req->call.cred, access))
		return "the export takes other connections only, as its option xprtsec says";
	if (rc == -EOPNOTSUPP)
		return "NFSv2 cannot name files of its file system, whose handles are too long";
	if (rc == -EACCES && access->nsecs > 0 && !nfs_flavor_allowed(&req->call.cred, access))
		return "the export does not take this security flavour";
	return rn_error_text(rc);
}

/* A message about a MNT, with the facts that both kinds have. */
struct about {
	char client[RPC_ADDRESS_TEXT], path[256], line[768];
	struct rn_log_event event;
	unsigned left_out;
};

/* False: nothing is to be logged. */
static bool begin_message(struct rpc_request *req, const struct mnt_path *path, struct about *a)
{
	struct nfs3_server *s = req->program_ctx;
	const struct vfs_exports *exports = &s->cfg.exports;
	const struct sockaddr *peer = (const struct sockaddr *)&req->conn->peer;
	struct rn_host host;

	rn_host_of(peer, &host);
	if (!rn_log_hosts_pass(&s->told, &host, req->arrived_ns, &a->left_out))
		return false;
	rpc_address_text(&req->conn->peer, a->client);
	printable(path, a->path, sizeof(a->path));
	a->line[0] = '\0';
	if (exports->why && path->len > 0 && path->len <= MNT_PATH_MAX)
		exports->why(exports->ctx, path->bytes, peer, a->line, sizeof(a->line));
	a->event = (struct rn_log_event){ .client = a->client, .operation = "MNT" };
	return true;
}

static void end_message(const struct nfs3_server *s, const struct about *a)
{
	if (a->left_out)
		rn_notice(s->cfg.log, "%s: %u more messages about MNT are not shown", a->client,
			  a->left_out);
}

static void mnt_log_refusal(struct rpc_request *req, const struct mnt_path *path,
			    const struct vfs_access *access, int rc)
{
	const struct nfs3_server *s = req->program_ctx;
	struct about a;

	if (!begin_message(req, path, &a))
		return;
	a.event.id = RN_ID_MOUNT_REFUSED;
	rn_log_event(s->cfg.log, RN_NOTICE, &a.event, "%s: MNT of %s refused: %s%s%s", a.client,
		     a.path, mnt_refusal_reason(req, access, rc), a.line[0] ? "; " : "", a.line);
	end_message(s, &a);
}

static void log_grant(struct rpc_request *req, const struct mnt_path *path,
		      const struct vfs_ctx *ctx)
{
	const struct nfs3_server *s = req->program_ctx;
	struct about a;

	if (!rn_log_wants(s->cfg.log, RN_INFO) || !begin_message(req, path, &a))
		return;
	a.event.id = RN_ID_MOUNT_GRANTED;
	a.event.export = vfs_export_path(ctx->exp);
	rn_log_event(s->cfg.log, RN_INFO, &a.event, "%s: MNT of %s granted, %s%s%s", a.client,
		     a.path, ctx->access.flags & VFS_RO ? "read-only" : "read-write",
		     a.line[0] ? "; " : "", a.line);
	end_message(s, &a);
}

/* A stranger gets the same answer for every path, so that it does not learn which are exported. */
static int mnt_resolve_call(struct rpc_request *req, const struct mnt_path *path,
			    struct vfs_ctx *ctx, struct vfs_node **node)
{
	*node = NULL;
	memset(ctx, 0, sizeof(*ctx));
	if (req->admission == RPC_STRANGER || req->admission == RPC_RECENT)
		return -EACCES;
	return mnt_resolve(req, path, ctx, node);
}

/* Puts the handle, and what the version adds to it. */
typedef void put_mounted_fn(struct xdr_out *x, const struct vfs_fh *fh,
			    const struct vfs_packed_fh *packed, const struct vfs_access *access);

static void put_mounted3(struct xdr_out *x, const struct vfs_fh *fh,
			 const struct vfs_packed_fh *packed, const struct vfs_access *access)
{
	(void)packed;
	xdr_put_opaque(x, fh->data, fh->len);
	mnt_put_flavors(x, access);
}

static void put_mounted1(struct xdr_out *x, const struct vfs_fh *fh,
			 const struct vfs_packed_fh *packed, const struct vfs_access *access)
{
	(void)fh;
	(void)access;
	xdr_put_fixed(x, packed->data, sizeof(packed->data));
}

static enum rpc_run run_mnt(struct rpc_request *req, const struct mnt_path *path, bool is_packed,
			    put_mounted_fn *put)
{
	struct nfs3_server *s = req->program_ctx;
	struct vfs_packed_fh packed;
	struct vfs_ctx ctx;
	struct vfs_node *node;
	int rc = mnt_resolve_call(req, path, &ctx, &node);

	if (rc == 0 && is_packed)
		rc = vfs_packed_of(node, &packed);
	if (rc < 0)
		mnt_log_refusal(req, path, &ctx.access, rc);
	else
		log_grant(req, path, &ctx);
	xdr_put_u32(&req->out, is_packed ? mount_status_v1(rc) : mount_status(rc));
	if (rc == 0) {
		put(&req->out, vfs_node_fh(node), &packed, &ctx.access);
		mnt_list_add(&s->mounts, (const struct sockaddr *)&req->conn->peer, path->bytes);
	}
	vfs_node_put(node);
	if (ctx.exp)
		vfs_export_put(ctx.exp);
	return RPC_RUN_DONE;
}

static enum rpc_run proc_mnt(struct rpc_request *req, void *args)
{
	return run_mnt(req, args, false, put_mounted3);
}

static enum rpc_run proc_mnt_v1(struct rpc_request *req, void *args)
{
	return run_mnt(req, args, true, put_mounted1);
}

static enum rpc_run proc_umnt(struct rpc_request *req, void *args)
{
	struct nfs3_server *s = req->program_ctx;
	struct mnt_path *path = args;

	if (path->len > 0 && path->len <= MNT_PATH_MAX)
		mnt_list_remove(&s->mounts, (const struct sockaddr *)&req->conn->peer, path->bytes);
	return RPC_RUN_DONE;
}

static enum rpc_run proc_umntall(struct rpc_request *req, void *args)
{
	struct nfs3_server *s = req->program_ctx;

	(void)args;
	mnt_list_remove_all(&s->mounts, (const struct sockaddr *)&req->conn->peer);
	return RPC_RUN_DONE;
}

/* POSIX values of a path. A bit of the first mask says that a value could not be determined: all of
 * them on failure. */
static enum rpc_run mnt_pathconf(struct rpc_request *req, void *args)
{
	struct xdr_out *x = &req->out;
	struct vfs_statfs st = { 0 };
	struct vfs_ctx ctx;
	struct vfs_node *node;
	int rc = mnt_resolve(req, args, &ctx, &node);

	if (rc == 0)
		rc = vfs_statfs(&ctx, node, &st);
	xdr_put_u32(x, st.link_max);
	xdr_put_u32(x, MAX_CANON);
	xdr_put_u32(x, MAX_INPUT);
	xdr_put_u32(x, st.name_max);
	xdr_put_u32(x, PATH_MAX);
	xdr_put_u32(x, PIPE_BUF);
	xdr_put_u32(x, 0); /* vdisable */
	xdr_put_u32(x, 0);
	xdr_put_u32(x, rc == 0 ? 0 : 0xffff);
	xdr_put_u32(x, 0);
	vfs_node_put(node);
	if (ctx.exp)
		vfs_export_put(ctx.exp);
	return RPC_RUN_DONE;
}

/* MNT alone answers strangers: it says that they are refused. rpc.mountd lists exports and mounts
 * to anybody; DUMP and EXPORT here are for hosts that some export admits. */
const struct rpc_proc mnt_proc_mnt = {
	.name = "MNT",
	.decode = decode_path,
	.args_size = sizeof(struct mnt_path),
	.run = proc_mnt,
	.flags = RPC_FOR_ALL,
};

const struct rpc_proc mnt_proc_mnt_v1 = {
	.name = "MNT",
	.decode = decode_path,
	.args_size = sizeof(struct mnt_path),
	.run = proc_mnt_v1,
	.flags = RPC_FOR_ALL,
};

const struct rpc_proc mnt_proc_umnt = {
	.name = "UMNT",
	.decode = decode_path,
	.args_size = sizeof(struct mnt_path),
	.run = proc_umnt,
	.flags = RPC_FOR_RECENT,
};

const struct rpc_proc mnt_proc_umntall = {
	.name = "UMNTALL",
	.run = proc_umntall,
	.flags = RPC_FOR_RECENT,
};

const struct rpc_proc mnt_proc_pathconf = {
	.name = "PATHCONF",
	.decode = decode_path,
	.args_size = sizeof(struct mnt_path),
	.run = mnt_pathconf,
	.flags = RPC_BY_PATH,
};
