/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RQUOTA versions 1 and 2. The path is resolved as MNT's is: in an export that the caller may use,
 * as the caller. Results are those of rpc.rquotad; quotas that are not in force are not known, so
 * that GETQUOTA and GETACTIVEQUOTA tell the same.
 */
#include <errno.h>
#include <time.h>

#include "lib/error.h"
#include "lib/util.h"
#include "nfs/caller.h"
#include "nfs3/nfs3_procs.h"
#include "nfs3/nfs3_state.h"
#include "nfs3/quota/rquota.h"
#include "rpc/message.h"

#define BLOCK 1024u	     /* bytes: the least unit */
#define BLOCK_MAX (1u << 30) /* the largest, which a client may still read as a signed number */

static uint64_t rquota_largest(const struct vfs_quota_row *row)
{
	return rn_max(row->bytes.used, rn_max(row->bytes.hard, row->bytes.soft));
}

static uint32_t clamp(uint64_t v)
{
	return (uint32_t)rn_min(v, (uint64_t)UINT32_MAX);
}

/* Whole units, rounded up: a limit must not become 0, which means that there is none. */
static uint32_t in_blocks(uint64_t bytes, uint32_t block)
{
	return clamp(bytes / block + (bytes % block != 0));
}

/* Seconds until the soft limit counts as the hard one, negative since then; 0: not over it. */
static uint32_t time_left(const struct vfs_quota_limit *l, int64_t now)
{
	int64_t left;

	if (l->soft == 0 || l->used <= l->soft || l->until == 0)
		return 0;
	if (l->until > now)
		left = rn_min(l->until - now, (int64_t)INT32_MAX);
	else
		left = l->until < now - INT32_MAX ? -INT32_MAX : l->until - now;
	return (uint32_t)(int32_t)(left == 0 ? -1 : left);
}

void rquota_put(struct xdr_out *x, const struct vfs_quota_row *row, int64_t now)
{
	uint32_t block = BLOCK;

	while (block < BLOCK_MAX && rquota_largest(row) / block >= UINT32_MAX)
		block *= 2;
	xdr_put_u32(x, block);
	xdr_put_bool(x, true); /* rq_active */
	xdr_put_u32(x, in_blocks(row->bytes.hard, block));
	xdr_put_u32(x, in_blocks(row->bytes.soft, block));
	xdr_put_u32(x, in_blocks(row->bytes.used, block));
	xdr_put_u32(x, clamp(row->files.hard));
	xdr_put_u32(x, clamp(row->files.soft));
	xdr_put_u32(x, clamp(row->files.used));
	xdr_put_u32(x, time_left(&row->bytes, now));
	xdr_put_u32(x, time_left(&row->files, now));
}

_Static_assert(RQUOTA_PATH_MAX == MNT_PATH_MAX, "a path of either is one of the other");

struct quota_args {
	struct mnt_path path;
	uint32_t kind; /* RQUOTA_USER, RQUOTA_GROUP, or another number that a client may send */
	uint32_t id;
};

static void get_path(struct xdr_in *x, struct mnt_path *p)
{
	const uint32_t len = xdr_get_u32(x);

	if (len > RQUOTA_PATH_MAX)
		x->err = true;
	if (x->err)
		return;
	p->len = len;
	xdr_get_fixed(x, p->bytes, len);
}

static bool decode_v1(struct xdr_in *x, void *args)
{
	struct quota_args *a = args;

	get_path(x, &a->path);
	a->kind = RQUOTA_USER;
	a->id = xdr_get_u32(x);
	return !x->err;
}

static bool decode_v2(struct xdr_in *x, void *args)
{
	struct quota_args *a = args;

	get_path(x, &a->path);
	a->kind = xdr_get_u32(x);
	a->id = xdr_get_u32(x);
	return !x->err;
}

static bool in_group(const struct vfs_cred *cred, uint32_t gid)
{
	for (uint32_t i = 0; i < cred->ngroups; i++)
		if (cred->groups[i] == gid)
			return true;
	return cred->gid == gid;
}

static bool rquota_is_own(const struct vfs_cred *cred, const struct quota_args *a)
{
	return a->kind == RQUOTA_GROUP ? in_group(cred, a->id) : cred->uid == a->id;
}

/*
 * A caller may ask about himself: who he says he is, and who the export takes him for, since that is
 * whose space he uses. Root of a client may ask about everybody; it could call as anyone.
 */
static bool may_ask(const struct rpc_cred *sent, const struct vfs_access *access,
		    const struct quota_args *a)
{
	struct vfs_cred cred = { .uid = sent->uid, .gid = sent->gid, .ngroups = sent->ngids };

	for (uint32_t i = 0; i < sent->ngids; i++)
		cred.groups[i] = sent->gids[i];
	if (cred.uid == 0 || rquota_is_own(&cred, a))
		return true;
	vfs_cred_squash(&cred, access, false);
	return rquota_is_own(&cred, a);
}

/* A status; 0: the caller is not known, and may come again. */
static enum gqr_status rquota_refusal_status(int rc)
{
	if (rc == -RN_EUNNAMED || rc == -RN_EFULL)
		return 0;
	return rc == -EACCES || rc == -EPERM ? RQUOTA_EPERM : RQUOTA_NOQUOTA;
}

static enum gqr_status rquota_find(struct rpc_request *req, const struct quota_args *a,
				   struct vfs_quota_row *row)
{
	struct vfs_ctx ctx;
	struct vfs_node *node;
	enum gqr_status status = RQUOTA_OK;
	int rc;

	if (a->kind > RQUOTA_GROUP)
		return RQUOTA_NOQUOTA;
	rc = mnt_resolve(req, &a->path, &ctx, &node);
	if (rc < 0)
		return rquota_refusal_status(rc);
	if (!nfs_flavor_allowed(&req->call.cred, &ctx.access) ||
	    !may_ask(&req->call.cred, &ctx.access, a))
		status = RQUOTA_EPERM;
	else if (vfs_quota_row(node, a->kind == RQUOTA_GROUP, a->id, row) < 0)
		status = RQUOTA_NOQUOTA;
	vfs_node_put(node);
	vfs_export_put(ctx.exp);
	return status;
}

static enum rpc_run proc_getquota(struct rpc_request *req, void *args)
{
	struct vfs_quota_row row;
	enum gqr_status status;

	if (req->call.cred.sec == RPC_SEC_NONE)
		return RPC_RUN_AUTH_TOOWEAK;
	status = rquota_find(req, args, &row);
	if (!status)
		return RPC_RUN_SYSTEM_ERR;
	xdr_put_u32(&req->out, status);
	if (status == RQUOTA_OK)
		rquota_put(&req->out, &row, time(NULL));
	return RPC_RUN_DONE;
}

struct setquota_args {
	struct mnt_path path;
};

/* words: those behind the path. */
static bool pass_setquota(struct xdr_in *x, struct setquota_args *a, unsigned words)
{
	xdr_get_u32(x); /* command */
	get_path(x, &a->path);
	for (unsigned i = 0; i < words; i++)
		xdr_get_u32(x);
	return !x->err;
}

/* Skips an id and an sq_dqblk. */
static bool decode_set_v1(struct xdr_in *x, void *args)
{
	return pass_setquota(x, args, 1 + 8);
}

/* Skips what decode_set_v1() skips, and a kind of quota. */
static bool decode_set_v2(struct xdr_in *x, void *args)
{
	return pass_setquota(x, args, 2 + 8);
}

/* No client changes quotas, as with rpc.rquotad by default. */
static enum rpc_run proc_setquota(struct rpc_request *req, void *args)
{
	(void)args;
	xdr_put_u32(&req->out, RQUOTA_EPERM);
	return RPC_RUN_DONE;
}

#define GET(name_, decode_)                                                                        \
	{                                                                                          \
		.name = name_, .decode = decode_, .args_size = sizeof(struct quota_args),          \
		.run = proc_getquota, .flags = RPC_BY_PATH                                         \
	}
#define SET(name_, decode_)                                                                        \
	{                                                                                          \
		.name = name_, .decode = decode_, .args_size = sizeof(struct setquota_args),       \
		.run = proc_setquota, .flags = RPC_NO_EXPORT                                       \
	}

const struct rpc_proc rquota_proc_get_v1 = GET("GETQUOTA", decode_v1);
const struct rpc_proc rquota_proc_getactive_v1 = GET("GETACTIVEQUOTA", decode_v1);
const struct rpc_proc rquota_proc_set_v1 = SET("SETQUOTA", decode_set_v1);
const struct rpc_proc rquota_proc_setactive_v1 = SET("SETACTIVEQUOTA", decode_set_v1);
const struct rpc_proc rquota_proc_get_v2 = GET("GETQUOTA", decode_v2);
const struct rpc_proc rquota_proc_getactive_v2 = GET("GETACTIVEQUOTA", decode_v2);
const struct rpc_proc rquota_proc_set_v2 = SET("SETQUOTA", decode_set_v2);
const struct rpc_proc rquota_proc_setactive_v2 = SET("SETACTIVEQUOTA", decode_set_v2);
