/* SPDX-License-Identifier: BSD-2-Clause */
/* COPY, CLONE, COPY_NOTIFY, OFFLOAD_CANCEL and OFFLOAD_STATUS (RFC 7862 sections 15.2, 15.13, 15.3, 15.8 and 15.9). */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "lib/host.h"
#include "lib/util.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/compound.h"
#include "nfs4/data/nfs4_copy.h"
#include "nfs4/nfs4_private.h"
#include "nfs4/state/copy_source.h"
#include "nfs4/state/state.h"
#include "nfs4/state/stateid_check.h"
#include "rpc/address.h"

enum netloc_type4 { NL4_NAME = 1, NL4_URL = 2, NL4_NETADDR = 3 };

/* Reads a string of less than size bytes. False: it is longer, or has a NUL in it. */
static bool netloc_get_text(struct xdr_in *in, char *out, uint32_t size)
{
	uint32_t len;
	const uint8_t *p = xdr_get_opaque(in, UINT32_MAX, &len);

	out[0] = '\0';
	if (!p || len >= size || memchr(p, '\0', len))
		return false;
	memcpy(out, p, len);
	out[len] = '\0';
	return true;
}

static void as_tcp(char netid[NFS4_NETID_MAX])
{
	if (strcmp(netid, "rdma") == 0)
		strcpy(netid, "tcp");
	else if (strcmp(netid, "rdma6") == 0)
		strcpy(netid, "tcp6");
}

static bool get_netaddr(struct xdr_in *in, bool any_transport, struct sockaddr_in6 *out)
{
	char netid[NFS4_NETID_MAX], uaddr[NFS4_UADDR_MAX];
	const bool known = netloc_get_text(in, netid, sizeof(netid));
	const bool fits = netloc_get_text(in, uaddr, sizeof(uaddr));

	if (any_transport)
		as_tcp(netid);
	return known && fits && nfs4_parse_uaddr(netid, uaddr, out);
}

/* Decodes one. False: it is well-formed, but no address that can be used: a name, a URL, or an
 * address of another transport. With any_transport an RDMA address is good, too, where only the host
 * matters. */
static bool nfs4_get_netloc(struct xdr_in *in, bool any_transport, struct sockaddr_in6 *out)
{
	memset(out, 0, sizeof(*out));
	switch (xdr_get_u32(in)) {
	case NL4_NETADDR:
		return get_netaddr(in, any_transport, out) && !in->err;
	case NL4_NAME:
	case NL4_URL:
		xdr_skip_opaque(in, UINT32_MAX);
		return false;
	default:
		in->err = true;
		return false;
	}
}

/* Bytes of one that nfs4_put_own_netloc() puts, at most. */
#define NFS4_NETLOC_MAX (4u + 4u + 8u + 4u + 64u)

/* Puts the address that the caller reaches this server at, with the port of NFS over TCP. */
static void nfs4_put_own_netloc(const struct nfs4_compound *c, struct xdr_out *out)
{
	struct sockaddr_in6 own;
	char uaddr[NFS4_UADDR_MAX];
	const char *netid;

	rn_address_as_ipv6(&c->req->conn->local, &own);
	own.sin6_port = htons(c->server->cfg.tcp_port);
	netid = IN6_IS_ADDR_V4MAPPED(&own.sin6_addr) ? "tcp" : "tcp6";
	nfs4_uaddr(&own, uaddr);
	xdr_put_u32(out, NL4_NETADDR);
	xdr_put_opaque(out, netid, (uint32_t)strlen(netid));
	xdr_put_opaque(out, uaddr, (uint32_t)strlen(uaddr));
}

/* True if the settings name any server. */
static bool nfs4_copies_between_servers(const struct nfs4_server *srv)
{
	return srv->cfg.ncopy_servers > 0;
}

static bool is_same_address(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	struct rpc_address x, y;

	rpc_address_of((const struct sockaddr_storage *)a, &x);
	rpc_address_of((const struct sockaddr_storage *)b, &y);
	return rpc_address_equal(&x, &y);
}

/* True if the settings name the address; with_port: and this port of it. */
static bool nfs4_is_copy_server(const struct nfs4_server *srv, const struct sockaddr_in6 *addr,
				bool with_port)
{
	for (unsigned i = 0; i < srv->cfg.ncopy_servers; i++) {
		const struct sockaddr_in6 *named = &srv->cfg.copy_servers[i];

		if (is_same_address(named, addr) &&
		    (!with_port || named->sin6_port == addr->sin6_port))
			return true;
	}
	return false;
}

/* Decodes two stateids, two offsets and the count, which begin the arguments of both operations. */
static void nfs4_get_two_files(struct xdr_in *in, struct nfs4_two_files *t)
{
	nfs4_get_stateid(in, &t->from_sid);
	nfs4_get_stateid(in, &t->to_sid);
	t->copy.from.offset = xdr_get_u64(in);
	t->copy.offset = xdr_get_u64(in);
	t->copy.count = xdr_get_u64(in);
}

/* Anything but a regular file is NFS4ERR_WRONG_TYPE, directories and symbolic links too (RFC 7862
 * sections 15.2.3 and 15.13.3). */
static int need_file(const struct nfs4_compound *c, const struct nfs4_object *p, unsigned need)
{
	int status = nfs4_need(c, p, need);

	return status == NFS4_OK && (p->kind != NFS4_FILE || p->type != S_IFREG)
		       ? NFS4ERR_WRONG_TYPE
		       : status;
}

int nfs4_two_files_begin(struct nfs4_compound *c, struct nfs4_two_files *t)
{
	int status = need_file(c, &c->saved, 0);

	if (status == NFS4_OK)
		status = need_file(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);
	if (status == NFS4_OK)
		status = nfs4_io_begin_at(c, &c->saved, &t->from_sid, NFS4_IO_READ, &t->from);
	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &t->to_sid, NFS4_IO_WRITE, &t->to);
	if (status != NFS4_OK) {
		nfs4_two_files_end(t);
		return status;
	}
	t->copy.from.ctx = &c->saved.ctx;
	t->copy.from.node = c->saved.node;
	t->copy.from.opened = t->from.opened;
	t->copy.ctx = &c->current.ctx;
	t->copy.node = c->current.node;
	t->copy.opened = t->to.opened;
	return NFS4_OK;
}

int nfs4_destination_begin(struct nfs4_compound *c, struct nfs4_two_files *t)
{
	int status = need_file(c, &c->current, NFS4_NEED_FILE | NFS4_NEED_WRITABLE);

	if (status == NFS4_OK)
		status = nfs4_io_begin(c, &t->to_sid, NFS4_IO_WRITE, &t->to);
	return status;
}

void nfs4_two_files_end(struct nfs4_two_files *t)
{
	nfs4_io_end(&t->from);
	nfs4_io_end(&t->to);
}

/*
 * COPY (RFC 7862 section 15.2), within this server and from others. Within, a copy of at most
 * VFS_COPY_MAX bytes is synchronous. A longer one is asynchronous (nfs4/data/nfs4_copies.h) if the client
 * allows that (ca_synchronous) and can be called back, and if both files are open for it: a copy ends
 * with the opens that it relies on. Otherwise it ends after VFS_COPY_MAX bytes, and the client asks
 * for the rest.
 *
 * COPY that names a source server is asynchronous, or NFS4ERR_OFFLOAD_DENIED. After NFS4ERR_NOTSUPP,
 * which is not in the operation's table, Linux's client would send no COPY to that mount any more.
 */

struct copy_args {
	struct nfs4_two_files files;
	bool between_servers, synchronous;
	struct sockaddr_in6 source; /* a server that the settings name, or of family 0 */
	uint64_t verifier;	    /* read before anything is copied */
};

static void decode_copy(struct nfs4_compound *c, void *args)
{
	struct copy_args *a = args;
	uint32_t servers;

	nfs4_get_two_files(c->in, &a->files);
	xdr_get_bool(c->in); /* ca_consecutive: it always is */
	a->synchronous = xdr_get_bool(c->in);
	servers = xdr_get_u32(c->in);
	a->between_servers = servers > 0;
	for (uint32_t i = 0; i < servers && !c->in->err; i++) {
		struct sockaddr_in6 addr;

		if (nfs4_get_netloc(c->in, false, &addr) && a->source.sin6_family == 0 &&
		    nfs4_is_copy_server(c->server, &addr, true))
			a->source = addr;
	}
}

/* sid: of an asynchronous copy; or NULL, and n bytes were copied. */
static void op_copy_put_result(struct nfs4_compound *c, const struct copy_args *a,
			       const struct nfs4_stateid *sid, int64_t n)
{
	const struct vfs_copy *copy = &a->files.copy;

	xdr_put_u32(c->out, sid ? 1 : 0); /* wr_callback_id */
	if (sid)
		nfs4_put_stateid(c->out, sid);
	xdr_put_u64(c->out, sid ? 0 : (uint64_t)n);
	xdr_put_u32(c->out, copy->stable && !sid ? VFS_FILE_SYNC : VFS_UNSTABLE);
	xdr_put_u64(c->out, a->verifier); /* as WRITE puts it */
	xdr_put_bool(c->out, true);	  /* cr_consecutive */
	xdr_put_bool(c->out, !sid);	  /* cr_synchronous */
}

/* An error is left to the synchronous copy. */
static bool start_asynchronous(struct nfs4_compound *c, const struct copy_args *a,
			       struct nfs4_stateid *sid)
{
	const struct nfs4_two_files *t = &a->files;
	struct nfs4_copy_order order = { .files = t, .verifier = a->verifier };

	if (a->synchronous || !c->req->server->background || !t->from.state || !t->to.state)
		return false;
	if ((t->copy.count > 0 && t->copy.count <= VFS_COPY_MAX) || !nfs4_cb_works(c->session))
		return false;
	return vfs_copy_measure(&t->copy, &order.count) == 0 && order.count > VFS_COPY_MAX &&
	       nfs4_copy_start(c, &order, sid);
}

/* RFC 7862 section 15.2.3: a copy between servers cannot be synchronous here. */
static int deny_synchronous(struct nfs4_compound *c)
{
	xdr_put_bool(c->out, true);  /* cr_consecutive */
	xdr_put_bool(c->out, false); /* cr_synchronous */
	c->keep_body = true;
	return NFS4ERR_OFFLOAD_NO_REQS;
}

/* Bytes to copy at most; a count of 0 means up to the end of the source. False: the range is none of a
 * file. */
static bool get_range(const struct vfs_copy *copy, uint64_t *count)
{
	const uint64_t from = copy->from.offset, to = copy->offset;

	if (from > INT64_MAX || to > INT64_MAX)
		return false;
	*count = rn_min(INT64_MAX - from, INT64_MAX - to);
	if (copy->count > *count)
		return false;
	*count = copy->count > 0 ? copy->count : *count;
	return *count > 0;
}

/* Only COPY_NOTIFY's stateids may be used at the source (RFC 7862 section 4.6.2), whose seqid is not 0
 * (section 4.8). A special one would have this server read as a client of the source's own. */
static bool may_be_of_copy_notify(const struct nfs4_stateid *sid)
{
	return sid->seqid != 0 && !nfs4_stateid_is_special(sid);
}

static int start_remote(struct nfs4_compound *c, struct copy_args *a, struct nfs4_stateid *sid)
{
	struct nfs4_two_files *t = &a->files;
	struct nfs4_remote_file file = { .route.to = a->source,
					 .fh = c->saved.fh,
					 .sid = t->from_sid };
	struct nfs4_copy_order order = { .files = t, .verifier = a->verifier, .remote = &file };

	if (!get_range(&t->copy, &order.count))
		return NFS4ERR_INVAL;
	rn_address_as_ipv6(&c->req->conn->local, &file.route.from);
	if (!c->req->server->background || !c->server->cfg.dialer.dial || !t->to.state ||
	    !nfs4_cb_works(c->session) || !nfs4_copy_start(c, &order, sid))
		return NFS4ERR_OFFLOAD_DENIED;
	return NFS4_OK;
}

/*
 * A copy from another server, which the settings must name: no client can make this server connect to
 * any other. After NFS4ERR_OFFLOAD_DENIED clients copy by themselves.
 */
static int run_between_servers(struct nfs4_compound *c, struct copy_args *a)
{
	struct nfs4_stateid sid;
	int status;

	if (a->source.sin6_family == 0 || c->saved.kind == NFS4_PSEUDO)
		return NFS4ERR_OFFLOAD_DENIED;
	if (a->synchronous)
		return deny_synchronous(c);
	if (!may_be_of_copy_notify(&a->files.from_sid))
		return NFS4ERR_BAD_STATEID;
	status = nfs4_destination_begin(c, &a->files);
	if (status == NFS4_OK) {
		a->verifier = vfs_write_verifier(c->current.ctx.exp);
		status = start_remote(c, a, &sid);
	}
	nfs4_two_files_end(&a->files);
	if (status == NFS4_OK)
		op_copy_put_result(c, a, &sid, 0);
	nfs4_object_clear(&c->saved); /* no other operation can use it */
	return status;
}

/* True if the saved filehandle is another server's. */
static bool is_from_elsewhere(const void *args)
{
	const struct copy_args *a = args;

	return a->source.sin6_family != 0;
}

static int run_copy(struct nfs4_compound *c, void *args)
{
	struct copy_args *a = args;
	struct nfs4_stateid sid;
	int status;
	int64_t n;

	if (a->between_servers)
		return run_between_servers(c, a);
	status = nfs4_two_files_begin(c, &a->files);
	if (status != NFS4_OK)
		return status;
	a->files.copy.account = rpc_request_account(c->req);
	a->verifier = vfs_write_verifier(c->current.ctx.exp);
	if (start_asynchronous(c, a, &sid)) {
		nfs4_two_files_end(&a->files);
		op_copy_put_result(c, a, &sid, 0);
		return NFS4_OK;
	}
	do
		n = vfs_copy(&a->files.copy);
	while (n < 0 && nfs4_await(c, (int)n));
	status = nfs4_data_status(c, n < 0 ? (int)n : 0);
	nfs4_two_files_end(&a->files);
	if (status == NFS4_OK)
		op_copy_put_result(c, a, NULL, n);
	return status;
}

const struct nfs4_op nfs4_op_copy = {
	.name = "COPY",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH | NFS4_NEEDS_SAVED_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 4 + NFS4_STATEID_SIZE + 8 + 4 + NFS4_VERIFIER_SIZE + 4 + 4,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_FBIG | NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_NOTSUPP),
	.args_size = sizeof(struct copy_args),
	.decode = decode_copy,
	.run = run_copy,
	.saved_is_foreign = is_from_elsewhere,
};

/* CLONE (RFC 7862 section 15.13). The change is durable before the reply, as nothing in the result
 * lets a client know that it was lost. */

static void decode_clone(struct nfs4_compound *c, void *args)
{
	nfs4_get_two_files(c->in, args);
}

static int run_clone(struct nfs4_compound *c, void *args)
{
	struct nfs4_two_files *t = args;
	int status = nfs4_two_files_begin(c, t);
	int rc;

	if (status != NFS4_OK)
		return status;
	do
		rc = vfs_clone(&t->copy);
	while (nfs4_await(c, rc));
	nfs4_two_files_end(t);
	struct vfs_sync sync = { .node = { c->current.node } };
	return nfs4_data_status(c, nfs4_settle(c, &sync, rc));
}

const struct nfs4_op nfs4_op_clone = {
	.name = "CLONE",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH | NFS4_NEEDS_SAVED_FH,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_FILE_ONLY | NFS4_E_FBIG |
			      NFS4_E_NOSPC | NFS4_E_ROFS | NFS4_E_NOTSUPP | NFS4_E_XDEV),
	.args_size = sizeof(struct nfs4_two_files),
	.decode = decode_clone,
	.run = run_clone,
};

/*
 * COPY_NOTIFY (RFC 7862 section 15.3): lets another server read a file for a copy. Only servers that
 * the settings name; if they name none, NFS4ERR_NOTSUPP. Linux's client then does not ask again, and
 * copies by itself.
 */

struct copy_notify_args {
	struct nfs4_stateid sid;
	bool is_address;
	struct sockaddr_in6 destination;
};

static void decode_copy_notify(struct nfs4_compound *c, void *args)
{
	struct copy_notify_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
	a->is_address = nfs4_get_netloc(c->in, true, &a->destination);
}

static void nfs4_copy_notify_put_result(struct nfs4_compound *c, const struct nfs4_stateid *sid)
{
	xdr_put_u64(c->out, c->server->cfg.lease_seconds); /* cnr_lease_time */
	xdr_put_u32(c->out, 0);
	nfs4_put_stateid(c->out, sid);
	xdr_put_u32(c->out, 1); /* cnr_source_server */
	nfs4_put_own_netloc(c, c->out);
}

/* The right to read is checked here, for the user: the other server reads as that user's agent. */
static int nfs4_copy_notify_begin(struct nfs4_compound *c, const struct copy_notify_args *a,
				  struct nfs4_io_right *r)
{
	int status = nfs4_io_begin(c, &a->sid, NFS4_IO_READ, r);

	if (status == NFS4_OK && !r->state)
		status = NFS4ERR_BAD_STATEID; /* a special one is no open */
	if (status == NFS4_OK && !r->opened)
		status = nfs4_data_status(c, vfs_may_read(&c->current.ctx, c->current.node));
	return status;
}

static int run_copy_notify(struct nfs4_compound *c, void *args)
{
	const struct copy_notify_args *a = args;
	struct nfs4_io_right right = { .opened = false };
	struct nfs4_stateid sid;
	int status;

	if (!nfs4_copies_between_servers(c->server))
		return NFS4ERR_NOTSUPP;
	if (!a->is_address || !nfs4_is_copy_server(c->server, &a->destination, false))
		return NFS4ERR_ACCESS;
	status = nfs4_need(c, &c->current, NFS4_NEED_REG | NFS4_NEED_FILE);
	if (status == NFS4ERR_ROFS)
		status = NFS4ERR_WRONG_TYPE;
	if (status == NFS4_OK)
		status = nfs4_copy_notify_begin(c, a, &right);
	if (status == NFS4_OK)
		status = nfs4_copy_source_add(c, right.state, &a->destination, &sid);
	nfs4_io_end(&right);
	if (status == NFS4_OK)
		nfs4_copy_notify_put_result(c, &sid);
	return status;
}

const struct nfs4_op nfs4_op_copy_notify = {
	.name = "COPY_NOTIFY",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.reply_max = 8 + 4 + NFS4_STATEID_SIZE + 4 + NFS4_NETLOC_MAX,
	.errors = NFS4_ERRORS(NFS4_E_OBJECT | NFS4_E_IO | NFS4_E_LOCKED | NFS4_E_FILE_ONLY |
			      NFS4_E_NOTSUPP),
	.args_size = sizeof(struct copy_notify_args),
	.decode = decode_copy_notify,
	.run = run_copy_notify,
};

/* OFFLOAD_CANCEL and OFFLOAD_STATUS (RFC 7862 sections 15.8 and 15.9) of asynchronous copies. OFFLOAD_CANCEL also
 * ends what a COPY_NOTIFY allows. */

struct offload_args {
	struct nfs4_stateid sid;
};

static void decode_offload(struct nfs4_compound *c, void *args)
{
	struct offload_args *a = args;

	nfs4_get_stateid(c->in, &a->sid);
}

/* The answer waits for the piece under way, as nfsd's does: nothing is written after it. */
static int run_offload_cancel(struct nfs4_compound *c, void *args)
{
	const struct offload_args *a = args;

	return nfs4_copy_source_cancel(c, &a->sid) ? NFS4_OK : nfs4_copy_cancel(c, &a->sid);
}

static int run_offload_status(struct nfs4_compound *c, void *args)
{
	const struct offload_args *a = args;
	struct nfs4_copy_state is;
	int status = nfs4_copy_look(c, &a->sid, &is);

	if (status != NFS4_OK)
		return status;
	xdr_put_u64(c->out, is.copied);
	xdr_put_u32(c->out, is.ended ? 1 : 0); /* osr_complete */
	if (is.ended)
		xdr_put_u32(c->out, is.status);
	return NFS4_OK;
}

const struct nfs4_op nfs4_op_offload_cancel = {
	.name = "OFFLOAD_CANCEL",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.flags = NFS4_OP_CHANGES,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct offload_args),
	.decode = decode_offload,
	.run = run_offload_cancel,
};

const struct nfs4_op nfs4_op_offload_status = {
	.name = "OFFLOAD_STATUS",
	.minors = { 2, 2 },
	.needs = NFS4_NEEDS_FH,
	.reply_max = 8 + 4 + 4,
	.errors = NFS4_ERRORS_OWN,
	.args_size = sizeof(struct offload_args),
	.decode = decode_offload,
	.run = run_offload_status,
};
