/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs3_fixture.h"

#include <errno.h>
#include <ftw.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "rpc/backchannel.h"
#include "vfs/worker/worker_state.h"

#define FIX_BUDGET (64u << 20)

static struct fixture *of_conn(struct rpc_request *req)
{
	return rn_container_of(req->conn, struct fixture, conn);
}

static void answered(struct fixture *f, enum fix_outcome how)
{
	f->outcome = how;
	f->answers++;
	rpc_request_reset(f->req);
}

static void flatten(struct fixture *f, const struct xdr_out *x)
{
	f->reply_len = xdr_out_total(x);
	f->had_bulk = x->nbulks > 0;
	f->nbulks = x->nbulks;
	for (unsigned i = 0; i < x->nbulks; i++)
		f->bulk_len[i] = x->bulk[i].len;
	xdr_out_copy(x, f->reply);
}

static void on_reply(struct rpc_request *req)
{
	struct fixture *f = of_conn(req);

	if (xdr_out_total(&req->out) <= FIX_REPLY_SIZE)
		flatten(f, &req->out);
	answered(f, FIX_REPLY);
}

static void on_drop(struct rpc_request *req)
{
	answered(of_conn(req), FIX_DROP);
}

static void on_too_long(struct rpc_request *req)
{
	answered(of_conn(req), FIX_TOO_LONG);
}

static void on_garbage(struct rpc_request *req)
{
	answered(of_conn(req), FIX_GARBAGE_CALL);
}

static void on_destroy(struct rpc_conn *conn)
{
	(void)conn;
}

static const struct rpc_conn_ops ops = {
	.netid = "tcp",
	.reliable = true,
	.keeps_port = true,
	.reply = on_reply,
	.drop = on_drop,
	.too_long = on_too_long,
	.garbage = on_garbage,
	.destroy = on_destroy,
};

void fix_accept(struct vfs_access *a, enum vfs_sec sec)
{
	a->nsecs = 0;
	vfs_access_accept(a, sec, 0);
}

void fix_spread(struct vfs_access *a)
{
	for (unsigned i = 0; i < a->nsecs; i++)
		a->secs[i].flags |= (uint8_t)(a->flags & VFS_FLAVOR_FLAGS);
}

static int give(struct fixture *f, unsigned i, struct vfs_export **exp, struct vfs_access *access)
{
	if (f->deny_after > 0 && --f->deny_after == 0)
		f->deny = true;
	if (f->undecided)
		return -RN_EUNNAMED;
	if (f->deny)
		return -EACCES;
	vfs_export_ref(f->exp[i]);
	*exp = f->exp[i];
	*access = f->access;
	fix_spread(access);
	return 0;
}

static int by_id(void *ctx, uint32_t id, const struct sockaddr *peer, struct vfs_export **exp,
		 struct vfs_access *access)
{
	(void)peer;
	if (id < 1 || id > FIX_EXPORTS)
		return -ESTALE;
	return give(ctx, id - 1, exp, access);
}

static int by_path(void *ctx, const char *path, const struct sockaddr *peer,
		   struct vfs_export **exp, struct vfs_access *access, const char **rest)
{
	struct fixture *f = ctx;

	(void)peer;
	for (unsigned i = 0; i < FIX_EXPORTS; i++) {
		size_t len = strlen(f->dir[i]);

		if (strncmp(path, f->dir[i], len) || (path[len] != '/' && path[len] != '\0'))
			continue;
		*rest = path + len + strspn(path + len, "/");
		return give(f, i, exp, access);
	}
	return -ENOENT;
}

static void list(void *ctx,
		 bool (*each)(void *arg, const char *path, const char *const *groups,
			      unsigned ngroups),
		 void *arg)
{
	static const char *const groups[] = { "192.0.2.0/24", "*.example.net" };
	struct fixture *f = ctx;

	if (each(arg, f->dir[0], groups, 2))
		each(arg, f->dir[1], NULL, 0);
}

static void each_export(void *ctx, bool (*each)(void *arg, struct vfs_export *exp), void *arg)
{
	struct fixture *f = ctx;

	for (unsigned i = 0; i < FIX_EXPORTS; i++) {
		if (f->exp[i] && !each(arg, f->exp[i]))
			return;
	}
}

const char *fix_start_nfs4(struct fixture *f)
{
	/* ::ffff:127.0.0.1 */
	static const struct sockaddr_in6 named = {
		.sin6_family = AF_INET6,
		.sin6_addr.s6_addr = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1 },
	};
	struct nfs4_config cfg = {
		.vfs = f->vfs,
		.exports = { .by_id = by_id,
			     .by_path = by_path,
			     .list = list,
			     .each = each_export,
			     .ctx = f },
		.pool = f->pool,
		.budget = &f->budget,
		.waits = f->rpc.waits,
		.max_io = NFS3_MAX_IO,
		.minor_max = 2,
		.lease_seconds = 90,
		.grace_seconds = 90,
		.state_dir = f->state_dir[0] ? f->state_dir : NULL,
		.copy_servers = &named,
		.ncopy_servers = 1,
	};

	if (nfs4_server_new(&cfg, &f->server4) < 0)
		return "nfs4_server_new failed";
	nfs4_clients_stop_time(f->server4);
	f->versions[0] = f->rpc.programs[0].versions[0];
	nfs4_version(f->server4, &f->versions[1]);
	f->rpc.programs[0].versions = f->versions;
	f->rpc.programs[0].nversions = 2;
	return NULL;
}

static const char *start_server(struct fixture *f)
{
	struct nfs3_config cfg = {
		.vfs = f->vfs,
		.exports = { .by_id = by_id, .by_path = by_path, .list = list, .ctx = f },
		.max_io = NFS3_MAX_IO,
		.packed_handles = true, /* all versions of MOUNT */
	};

	if (nfs3_server_new(&cfg, &f->server) < 0 || rpc_waits_new(NULL, &f->rpc.waits) < 0)
		return "no memory";
	f->rpc.pool = f->pool;
	f->rpc.nprograms = 5;
	nfs3_program(f->server, &f->rpc.programs[0], &f->rpc.programs[1]);
	nlm_program(f->server, &f->rpc.programs[2]);
	nfsacl_program(f->server, &f->rpc.programs[3]);
	rquota_program(f->server, &f->rpc.programs[4]);
	return fix_start_nfs4(f);
}

static const char *start_vfs(struct fixture *f)
{
	struct vfs_config cfg = {
		.pool = f->pool,
		.max_fds = 256,
		.handle_mac = true,
		.write_verifier = 0x1122334455667788,
	};
	const char *tmp = getenv("TMPDIR");
	const char *why = "vfs";

	if (vfs_new(&cfg, &f->vfs) < 0)
		return "vfs_new failed";
	for (unsigned i = 0; i < FIX_EXPORTS; i++) {
		snprintf(f->dir[i], sizeof(f->dir[i]), "%s/ringnfs-test-XXXXXX",
			 tmp ? tmp : "/tmp");
		if (!mkdtemp(f->dir[i]) || chmod(f->dir[i], 0755) < 0)
			return "no temporary directory";
		if (vfs_export_open(
			    f->vfs,
			    &(struct vfs_export_config){ f->dir[i], i + 1, VFS_IO_BUFFERED, false },
			    &f->exp[i], &why) < 0) {
			f->exp[i] = NULL;
			return why;
		}
	}
	if (vfs_worker_new(f->vfs, 64, &f->vw) < 0) {
		f->vw = NULL;
		return "io_uring is not available";
	}
	return NULL;
}

void fix_from(struct fixture *f, uint8_t machine)
{
	struct sockaddr_in *peer = (struct sockaddr_in *)&f->conn.peer;

	peer->sin_family = AF_INET;
	peer->sin_port = htons(700);
	peer->sin_addr.s_addr = htonl(0xc0000200 + machine);
	f->conn.id++; /* the next call counts as another connection's */
}

static void move(struct rpc_worker *from, struct rpc_request *req)
{
	struct fixture *f = rn_container_of(from, struct fixture, event_worker);

	f->moved++;
	req->worker = &f->worker;
	rn_inbox_post(&f->worker.inbox, &req->node);
}

static const char *start_request(struct fixture *f)
{
	if (rn_inbox_init(&f->worker.inbox) < 0)
		return "no eventfd";
	if (vfs_worker_new_event(f->vfs, &f->event_vw) < 0)
		return "no memory";
	f->worker.vfs = f->vw;
	rn_fiber_of_thread(&f->fiber, f->vw);
	f->event_worker.vfs = f->event_vw;
	f->event_worker.on_event_thread = true;
	f->event_worker.move = move;
	f->worker.stacks = f->event_worker.stacks = rn_stacks_new(&f->budget, 16);
	if (!f->worker.stacks)
		return "no memory";
	fix_from(f, 1);
	f->conn.ops = &ops;
	atomic_store(&f->conn.refs, 1);
	f->req = rpc_request_new(f->pool);
	f->call = malloc(FIX_CALL_SIZE);
	f->reply = malloc(FIX_REPLY_SIZE);
	if (!f->req || !f->call || !f->reply)
		return "no memory";
	f->req->conn = &f->conn;
	f->req->worker = &f->worker;
	return NULL;
}

/* Gets the root's handle by MOUNT, as a client does. */
static const char *find_root(struct fixture *f)
{
	struct xdr_out *c = fix_call(f, MOUNT_PROGRAM, 3, 1);
	struct xdr_in *r;

	fix_put_name(c, f->dir[0]);
	r = fix_send(f);
	if (f->outcome != FIX_REPLY || xdr_get_u32(r) != MNT3_OK)
		return "MNT failed";
	fix_get_fh(r, &f->root);
	return NULL;
}

const char *fix_start(struct fixture **out)
{
	struct fixture *f;
	const char *why;

	*out = NULL;
	if (geteuid() != 0)
		return "needs root, to open files by handle";
	f = calloc(1, sizeof(*f));
	if (!f)
		return "no memory";
	umask(0); /* as the daemon */
	fix_accept(&f->access, VFS_SEC_SYS);
	f->access.anonuid = f->access.anongid = 65534;
	f->flavor = RPC_AUTH_SYS;
	f->reply_max = FIX_REPLY_SIZE;
	f->split = 1;
	rn_budget_init(&f->budget, FIX_BUDGET);
	f->pool = rn_payload_pool_new(&f->budget);
	why = f->pool ? start_vfs(f) : "no memory";
	if (!why)
		why = start_server(f);
	if (!why)
		why = start_request(f);
	if (!why)
		why = find_root(f);
	if (why)
		fix_stop(f);
	else
		*out = f;
	return why;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

void fix_close_back(struct fixture *f)
{
	rpc_backchannel_close(&f->conn);
	rpc_backchannel_put(atomic_exchange(&f->conn.back, NULL));
	atomic_store(&f->conn.closing, false);
}

void fix_stop(struct fixture *f)
{
	fix_close_back(f);
	rpc_request_free(f->req);
	nfs4_server_free(f->server4);
	nfs3_server_free(f->server);
	drc_free(f->rpc.drc);
	if (f->vw)
		vfs_worker_free(f->vw);
	if (f->event_vw)
		vfs_worker_free(f->event_vw);
	setfsuid(0); /* the thread still acts as the last call's user */
	setfsgid(0);
	for (unsigned i = 0; i < FIX_EXPORTS; i++) {
		if (f->exp[i]) {
			vfs_forget_export(f->vfs, i + 1);
			vfs_export_put(f->exp[i]);
		}
		if (f->dir[i][0])
			nftw(f->dir[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
	}
	if (f->vfs)
		vfs_free(f->vfs);
	rpc_waits_free(f->rpc.waits);
	if (f->worker.inbox.fd > 0)
		rn_inbox_fini(&f->worker.inbox);
	rn_fiber_put(f->worker.spare);
	rn_fiber_put(f->event_worker.spare);
	rn_stacks_free(f->worker.stacks);
	if (f->pool)
		rn_payload_pool_free(f->pool);
	free(f->call);
	free(f->reply);
	free(f);
}

struct xdr_out *fix_call(struct fixture *f, uint32_t prog, uint32_t vers, uint32_t proc)
{
	struct xdr_out *c = &f->out;

	xdr_out_init(c, f->call, FIX_CALL_SIZE);
	xdr_put_u32(c, ++f->xid);
	xdr_put_u32(c, RPC_CALL);
	xdr_put_u32(c, RPC_VERSION);
	xdr_put_u32(c, prog);
	xdr_put_u32(c, vers);
	xdr_put_u32(c, proc);
	xdr_put_u32(c, f->flavor);
	if (f->flavor == RPC_AUTH_SYS) {
		xdr_put_u32(c, 4 + 8 + 12 + 4);
		xdr_put_u32(c, 0); /* stamp */
		xdr_put_opaque(c, "test", 4);
		xdr_put_u32(c, f->uid);
		xdr_put_u32(c, f->gid);
		xdr_put_u32(c, 1);
		xdr_put_u32(c, f->gid);
	} else {
		xdr_put_u32(c, 0);
	}
	xdr_put_u32(c, RPC_AUTH_NONE);
	xdr_put_u32(c, 0);
	return c;
}

void fix_run(struct rpc_request *req)
{
	if (!rpc_is_ready(req->worker))
		abort();
	rpc_run(req);
}

void fix_begin(struct fixture *f, struct rpc_request *req)
{
	req->server = &f->rpc;
	req->work = rpc_dispatch;
	fix_run(req);
}

static void run_inbox(struct fixture *f)
{
	struct rn_inbox_node *n = rn_inbox_take(&f->worker.inbox);

	while (n) {
		struct rn_inbox_node *next = n->next;
		struct rpc_request *req = rn_container_of(n, struct rpc_request, node);

		fix_run(req);
		n = next;
	}
}

/* Each segment is an allocation of exact size, so that AddressSanitizer sees a read beyond it. */
static void add_piece(struct fixture *f, const uint8_t *p, size_t len, bool placed)
{
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, p, len);
	f->req->seg[f->req->nseg++] =
		(struct rpc_seg){ .base = copy, .len = (uint32_t)len, .placed = placed };
}

static void cut(struct fixture *f, const uint8_t *msg, size_t len)
{
	unsigned n = f->split < 1 ? 1 : f->split > 8 ? 8 : f->split;
	size_t done = 0;

	f->req->nseg = 0;
	for (unsigned i = 0; i < f->nreduced; i++) {
		size_t at = f->reduced[i].at;
		uint32_t item = f->reduced[i].len;

		add_piece(f, msg + done, at - done, false);
		add_piece(f, msg + at, item, true);
		done = at + item + rn_xdr_pad(item);
	}
	for (unsigned i = 0; i < n && f->nreduced == 0; i++)
		add_piece(f, msg + len * i / n, len * (i + 1) / n - len * i / n, false);
	if (f->nreduced > 0)
		add_piece(f, msg + done, len - done, false);
	f->nreduced = 0;
}

static void begin(struct fixture *f, struct rpc_request *req)
{
	f->moved = 0;
	req->worker = f->on_event_thread ? &f->event_worker : &f->worker;
	if (!f->on_event_thread) {
		fix_begin(f, req);
		return;
	}
	vfs_identity_root(&f->vw->identity); /* the thread of such a worker is always root */
	atomic_store(&f->event_worker.ended_ns, 0);
	req->run_ns = rn_now_ns();
	fix_begin(f, req);
	/* The daemon reads the clock here if counting has not (daemon/workers/worker_pool.c): tests/cost counts such readings. */
	if (!atomic_load(&f->event_worker.ended_ns))
		rn_now_ns();
}

/* Milliseconds after which a call counts as unanswered. */
#define PATIENCE_MS 10000u

void fix_send_raw(struct fixture *f, const uint8_t *msg, size_t len)
{
	struct rpc_request *req = f->req;
	struct rpc_seg piece[8];
	const unsigned step = f->on_wait ? 1 : 50; /* milliseconds */
	unsigned n;

	cut(f, msg, len);
	n = req->nseg; /* the request forgets its segments */
	memcpy(piece, req->seg, n * sizeof(*piece));
	f->outcome = FIX_NOTHING;
	f->answers = 0;
	f->reply_len = 0;
	req->reply_max = f->reply_max;
	req->nbulk_spaces = f->nbulk_spaces;
	req->arrived_ns = rn_now_ns();
	memcpy(req->bulk_space, f->bulk_space, sizeof(req->bulk_space));
	begin(f, req);
	for (unsigned waited = 0; waited < PATIENCE_MS && f->answers == 0; waited += step) {
		if (f->on_wait)
			f->on_wait(f);
		vfs_worker_wait(f->vw, step);
		run_inbox(f);
	}
	for (unsigned i = 0; i < n; i++)
		free(piece[i].base);
}

struct xdr_in *fix_send(struct fixture *f)
{
	struct xdr_in *r = &f->in;

	fix_send_raw(f, f->call, f->out.used);
	f->reply_stat = f->accept_stat = f->auth_stat = UINT32_MAX;
	f->seg = (struct rpc_seg){ .base = f->reply, .len = (uint32_t)f->reply_len };
	rn_arena_init(&f->arena, f->arena_mem, sizeof(f->arena_mem));
	xdr_in_init(r, &f->seg, 1, &f->arena);
	if (f->outcome != FIX_REPLY || xdr_get_u32(r) != f->xid || xdr_get_u32(r) != RPC_REPLY)
		return r;
	f->reply_stat = xdr_get_u32(r);
	if (f->reply_stat == RPC_MSG_ACCEPTED) {
		xdr_get_u64(r); /* verifier */
		f->accept_stat = xdr_get_u32(r);
	} else if (xdr_get_u32(r) == RPC_AUTH_ERROR) {
		f->auth_stat = xdr_get_u32(r);
	}
	return r;
}

void fix_put_fh(struct xdr_out *c, const struct vfs_fh *fh)
{
	xdr_put_opaque(c, fh->data, fh->len);
}

void fix_put_name(struct xdr_out *c, const char *name)
{
	xdr_put_opaque(c, name, (uint32_t)strlen(name));
}

void fix_put_sattr_mode(struct xdr_out *c, uint32_t mode)
{
	xdr_put_bool(c, true);
	xdr_put_u32(c, mode);
	for (int i = 0; i < 5; i++) /* uid, gid, size, atime, mtime */
		xdr_put_u32(c, 0);
}

const char *fix_path(struct fixture *f, const char *name)
{
	static char path[8192];

	snprintf(path, sizeof(path), "%s/%s", f->dir[0], name);
	return path;
}

uint32_t fix_lookup(struct fixture *f, const struct vfs_fh *dir, const char *name,
		    struct vfs_fh *out)
{
	struct xdr_out *c = fix_call(f, NFS_PROGRAM, 3, NFSPROC3_LOOKUP);
	struct xdr_in *r;
	uint32_t status;

	fix_put_fh(c, dir);
	fix_put_name(c, name);
	r = fix_send(f);
	status = xdr_get_u32(r);
	if (status == NFS3_OK)
		fix_get_fh(r, out);
	return status;
}

void fix_get_fh(struct xdr_in *r, struct vfs_fh *fh)
{
	const uint8_t *p = xdr_get_opaque(r, VFS_FH_MAX, &fh->len);

	if (p)
		memcpy(fh->data, p, fh->len);
}

void fix_get_attr(struct xdr_in *r, struct fix_attr *a)
{
	a->type = xdr_get_u32(r);
	a->mode = xdr_get_u32(r);
	a->nlink = xdr_get_u32(r);
	a->uid = xdr_get_u32(r);
	a->gid = xdr_get_u32(r);
	a->size = xdr_get_u64(r);
	a->used = xdr_get_u64(r);
	a->major = xdr_get_u32(r);
	a->minor = xdr_get_u32(r);
	a->fsid = xdr_get_u64(r);
	a->fileid = xdr_get_u64(r);
	for (int i = 0; i < 2; i++)
		a->atime[i] = xdr_get_u32(r);
	for (int i = 0; i < 2; i++)
		a->mtime[i] = xdr_get_u32(r);
	for (int i = 0; i < 2; i++)
		a->ctime[i] = xdr_get_u32(r);
}

bool fix_get_post_attr(struct xdr_in *r, struct fix_attr *a)
{
	struct fix_attr none;

	if (!xdr_get_bool(r))
		return false;
	fix_get_attr(r, a ? a : &none);
	return true;
}

bool fix_get_post_fh(struct xdr_in *r, struct vfs_fh *fh)
{
	if (!xdr_get_bool(r))
		return false;
	fix_get_fh(r, fh);
	return true;
}

bool fix_get_wcc(struct xdr_in *r, struct fix_attr *after)
{
	if (xdr_get_bool(r)) {
		xdr_get_u64(r); /* size */
		xdr_get_u64(r); /* mtime */
		xdr_get_u64(r); /* ctime */
	}
	return fix_get_post_attr(r, after);
}
