/* SPDX-License-Identifier: BSD-2-Clause */
/* Callbacks of minor version 0: which addresses are called, what is sent, and what answers and
 * failures mean for the path. */
#include <arpa/inet.h>
#include <errno.h>

#include "lib/util.h"
#include "nfs4/callback/callback.h"
#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_table.h"
#include "nfs4/session/session_private.h"
#include "rpc/principal.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"
#include "vfs/export.h"

NFS3_SUITE(nfs4_cb_v40);

#define PROGRAM 0x40000001u
#define IDENT 77u
#define PEERS 16u
#define CALLS 8u

/* A client's end of a connection. */
struct peer {
	struct rpc_conn base;
	struct rpc_route route;
	uint8_t msg[CALLS][RPC_CALLBACK_SIZE];
	uint32_t len[CALLS];
	unsigned ncalls;
	bool hung_up;
	int refuse;
};

static struct peer peers[PEERS];
static unsigned npeers;
static int dial_rc;

static int op_call(struct rpc_conn *conn, const uint8_t *msg, uint32_t len)
{
	struct peer *p = rn_container_of(conn, struct peer, base);

	if (p->refuse)
		return p->refuse;
	cr_assert_lt(p->ncalls, CALLS);
	memcpy(p->msg[p->ncalls], msg, len);
	p->len[p->ncalls++] = len;
	return 0;
}

static void op_hang_up(struct rpc_conn *conn)
{
	rn_container_of(conn, struct peer, base)->hung_up = true;
	rpc_backchannel_close(conn);
}

static void op_destroy(struct rpc_conn *conn)
{
	(void)conn;
}

static const struct rpc_conn_ops peer_ops = {
	.netid = "tcp", .call = op_call, .hang_up = op_hang_up, .destroy = op_destroy
};

static int dial(void *ctx, const struct rpc_route *route, struct rpc_backchannel **out)
{
	struct peer *p = &peers[npeers];

	(void)ctx;
	if (dial_rc != 0)
		return dial_rc;
	cr_assert_lt(npeers, PEERS);
	p->route = *route;
	p->base.ops = &peer_ops;
	atomic_init(&p->base.refs, 1);
	*out = rpc_backchannel_get(&p->base);
	cr_assert_not_null(*out);
	npeers++;
	return 0;
}

static void begin(void)
{
	f->server4->cfg.dialer = (struct rpc_dialer){ .dial = dial };
}

static void end(void)
{
	for (unsigned i = 0; i < npeers; i++) {
		rpc_backchannel_close(&peers[i].base);
		rpc_conn_put(&peers[i].base);
	}
}

static void lose(struct peer *p)
{
	rpc_backchannel_close(&p->base);
}

static struct scid_args args(void)
{
	return (struct scid_args){
		.owner = "client", .verifier = "verf0001", .program = PROGRAM, .ident = IDENT
	};
}

/* SETCLIENTID and SETCLIENTID_CONFIRM; the client, with a reference. */
static struct nfs4_client *client_of(const struct scid_args *a)
{
	struct nfs4_client *cl;
	struct scid_result r;

	cr_assert_eq(call_setclientid(f, a, &r), NFS4_OK);
	cr_assert_eq(call_setclientid_confirm(f, &r), NFS4_OK);
	cl = nfs4_client_get(f->server4->clients, r.clientid);
	cr_assert_not_null(cl);
	return cl;
}

/* Bytes that came over a connection. */
struct seen {
	uint32_t xid, prog, vers, proc, flavor, cred_len;
	uint8_t cred[RPC_AUTH_BYTES_MAX];
	uint32_t minor, ident, nops, op,
		arg; /* of a CB_COMPOUND: up to the first word of arguments */
	size_t rest; /* bytes behind that */
};

static struct seen take(struct peer *p, unsigned i)
{
	struct seen s = { 0 };
	struct rpc_seg seg;
	struct xdr_in x;
	uint32_t len;

	cr_assert_lt(i, p->ncalls, "call %u was not made", i);
	seg = (struct rpc_seg){ .base = p->msg[i], .len = p->len[i] };
	xdr_in_init(&x, &seg, 1, NULL);
	s.xid = xdr_get_u32(&x);
	cr_expect_eq(xdr_get_u32(&x), RPC_CALL);
	cr_expect_eq(xdr_get_u32(&x), RPC_VERSION);
	s.prog = xdr_get_u32(&x);
	s.vers = xdr_get_u32(&x);
	s.proc = xdr_get_u32(&x);
	s.flavor = xdr_get_u32(&x);
	const uint8_t *cred = xdr_get_opaque(&x, RPC_AUTH_BYTES_MAX, &s.cred_len);
	cr_assert_not_null(cred);
	memcpy(s.cred, cred, s.cred_len);
	cr_expect_eq(xdr_get_u64(&x), 0); /* verifier */
	if (s.proc == NFSPROC4_CB_COMPOUND) {
		xdr_get_opaque(&x, 1024, &len);
		s.minor = xdr_get_u32(&x);
		s.ident = xdr_get_u32(&x);
		s.nops = xdr_get_u32(&x);
		s.op = xdr_get_u32(&x);
		s.arg = xdr_get_u32(&x);
	}
	cr_assert_not(x.err, "the call is cut short");
	s.rest = x.left;
	return s;
}

/* Answers call i with these words behind the xid. */
static void answer(struct peer *p, unsigned i, const uint32_t *words, unsigned n)
{
	uint8_t buf[256];
	struct xdr_out x;

	xdr_out_init(&x, buf, sizeof(buf));
	xdr_put_u32(&x, take(p, i).xid);
	for (unsigned w = 0; w < n; w++)
		xdr_put_u32(&x, words[w]);
	rpc_backchannel_reply(&p->base, buf, (uint32_t)x.used);
}

#define ACCEPTED RPC_REPLY, RPC_MSG_ACCEPTED, 0, 0

static void answer_null(struct peer *p, unsigned i)
{
	static const uint32_t words[] = { ACCEPTED, RPC_SUCCESS };

	answer(p, i, words, rn_array_size(words));
}

static void answer_op(struct peer *p, unsigned i, uint32_t status)
{
	const uint32_t words[] = { ACCEPTED, RPC_SUCCESS, status, 0, 1, OP_CB_RECALL, status };

	answer(p, i, words, rn_array_size(words));
}

struct mine {
	struct nfs4_cb cb;
	unsigned ended;
	int rc;
	uint32_t status;
	bool body;
};

static void mine_encode(const struct nfs4_cb *cb, struct xdr_out *x)
{
	(void)cb;
	xdr_put_u32(x, 4711);
}

static void mine_done(struct nfs4_cb *cb, int rc, uint32_t status, struct xdr_in *results)
{
	struct mine *m = rn_container_of(cb, struct mine, cb);

	m->ended++;
	m->rc = rc;
	m->status = status;
	m->body = results != NULL;
}

static const struct nfs4_cb_op mine_op = {
	.name = "mine", .opnum = OP_CB_RECALL, .encode = mine_encode, .done = mine_done
};

static void start(struct mine *m, struct nfs4_client *cl)
{
	memset(m, 0, sizeof(*m));
	nfs4_cb_call(&m->cb, &mine_op, cl);
}

/* A client whose probe was answered, over peers[0]. */
static struct nfs4_client *reached(void)
{
	const struct scid_args a = args();
	struct nfs4_client *cl = client_of(&a);

	cr_assert_eq(npeers, 1);
	answer_null(&peers[0], 0);
	cr_assert(nfs4_cb_reaches(cl));
	return cl;
}

Test(nfs4_cb_v40, the_probe)
{
	const struct scid_args a = args();
	struct scid_result r;
	struct nfs4_client *cl;
	struct seen s;

	NEED_FIXTURE();
	begin();
	f->conn.local.ss_family = AF_INET;
	((struct sockaddr_in *)&f->conn.local)->sin_addr.s_addr = htonl(0x7f000005);
	cr_assert_eq(call_setclientid(f, &a, &r), NFS4_OK);
	cr_expect_eq(npeers, 0); /* the client may be made up */
	cr_assert_eq(call_setclientid_confirm(f, &r), NFS4_OK);
	cr_assert_eq(npeers, 1);
	cr_expect_eq(ntohs(peers[0].route.to.sin6_port), 1000);
	cr_expect_arr_eq(peers[0].route.to.sin6_addr.s6_addr + 10,
			 ((uint8_t[]){ 0xff, 0xff, 192, 0, 2, 1 }), 6);
	cr_expect_arr_eq(peers[0].route.from.sin6_addr.s6_addr + 10,
			 ((uint8_t[]){ 0xff, 0xff, 127, 0, 0, 5 }), 6);
	s = take(&peers[0], 0);
	cr_expect_eq(s.prog, PROGRAM);
	cr_expect_eq(s.vers, 1);
	cr_expect_eq(s.proc, NFSPROC4_CB_NULL);
	cr_expect_eq(s.flavor, RPC_AUTH_SYS);
	cr_expect_eq(s.rest, 0);
	cr_expect_eq(s.cred_len, 20);
	cr_expect_arr_eq(s.cred, (uint8_t[20]){ 0 }, 20);
	cl = nfs4_client_get(f->server4->clients, r.clientid);
	cr_expect_not(nfs4_cb_reaches(cl));
	/* A retry of the confirmation sends no other probe. */
	cr_assert_eq(call_setclientid_confirm(f, &r), NFS4_OK);
	cr_assert_eq(call_renew(f, r.clientid), NFS4_OK);
	answer_null(&peers[0], 0);
	cr_expect(nfs4_cb_reaches(cl));
	cr_assert_eq(call_setclientid_confirm(f, &r), NFS4_OK);
	cr_assert_eq(call_renew(f, r.clientid), NFS4_OK);
	cr_expect_eq(peers[0].ncalls, 1);
	cr_expect_eq(npeers, 1);
	nfs4_client_put(cl);
	end();
}

Test(nfs4_cb_v40, auth_none)
{
	const struct scid_args a = args();
	struct seen s;

	NEED_FIXTURE();
	begin();
	f->flavor = RPC_AUTH_NONE;
	nfs4_client_put(client_of(&a));
	cr_assert_eq(npeers, 1);
	s = take(&peers[0], 0);
	cr_expect_eq(s.flavor, RPC_AUTH_NONE);
	cr_expect_eq(s.cred_len, 0);
	end();
}

/* Only the caller itself is called, by TCP, and no program but a transient one. */
Test(nfs4_cb_v40, who_is_called)
{
	static const struct {
		uint32_t program;
		const char *netid, *addr;
		bool called;
	} rows[] = {
		{ PROGRAM, "tcp", "192.0.2.1.3.232", true },
		{ PROGRAM, "tcp", "192.0.2.1.0.22", true },
		{ 0x5fffffff, "tcp", "192.0.2.1.3.232", true },
		{ PROGRAM, "tcp", "192.0.2.2.3.232", false },
		{ PROGRAM, "tcp", "127.0.0.1.3.232", false },
		{ PROGRAM, "tcp", "0.0.0.0.3.232", false },
		{ PROGRAM, "tcp", "192.0.2.1.0.0", false },
		{ PROGRAM, "tcp6", "::ffff:192.0.2.1.3.232", false },
		{ PROGRAM, "tcp6", "::1.3.232", false },
		{ PROGRAM, "udp", "192.0.2.1.3.232", false },
		{ PROGRAM, "rdma", "192.0.2.1.3.232", false },
		{ PROGRAM, "", "", false },
		{ 100003, "tcp", "192.0.2.1.3.232", false },
		{ 0x3fffffff, "tcp", "192.0.2.1.3.232", false },
		{ 0x60000000, "tcp", "192.0.2.1.3.232", false },
	};

	NEED_FIXTURE();
	begin();
	for (size_t i = 0; i < rn_array_size(rows); i++) {
		const char name[2] = { (char)('a' + i), '\0' };
		const unsigned before = npeers;
		struct scid_args a = args();
		struct nfs4_client *cl;

		a.owner = name;
		a.program = rows[i].program;
		a.netid = rows[i].netid;
		a.addr = rows[i].addr;
		cl = client_of(&a);
		cr_expect_eq(npeers - before, rows[i].called, "row %zu", i);
		if (npeers > before)
			answer_null(&peers[before], 0);
		cr_expect_eq(nfs4_cb_reaches(cl), rows[i].called, "row %zu", i);
		nfs4_client_put(cl);
	}
	end();
}

Test(nfs4_cb_v40, ipv6)
{
	struct sockaddr_in6 *peer;
	struct scid_args a = args();

	NEED_FIXTURE();
	begin();
	peer = (struct sockaddr_in6 *)&f->conn.peer;
	*peer = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_scope_id = 3 };
	inet_pton(AF_INET6, "fe80::5", &peer->sin6_addr);
	a.netid = "tcp6";
	a.addr = "fe80::5.8.1";
	nfs4_client_put(client_of(&a));
	cr_assert_eq(npeers, 1);
	cr_expect_arr_eq(&peers[0].route.to.sin6_addr, &peer->sin6_addr, 16);
	cr_expect_eq(peers[0].route.to.sin6_scope_id, 3); /* of the link that the call came by */
	cr_expect_eq(ntohs(peers[0].route.to.sin6_port), 2049);
	end();
}

Test(nfs4_cb_v40, an_operation)
{
	struct nfs4_client *cl;
	struct mine m, n;
	struct seen s;

	NEED_FIXTURE();
	begin();
	cl = reached();
	start(&m, cl);
	start(&n, cl);
	cr_expect_eq(npeers, 1);
	s = take(&peers[0], 1);
	cr_expect_eq(s.prog, PROGRAM);
	cr_expect_eq(s.proc, NFSPROC4_CB_COMPOUND);
	cr_expect_eq(s.minor, 0);
	cr_expect_eq(s.ident, IDENT);
	cr_expect_eq(s.nops, 1);
	cr_expect_eq(s.op, OP_CB_RECALL);
	cr_expect_eq(s.arg, 4711);
	cr_expect_eq(s.rest, 0);
	answer_op(&peers[0], 2, NFS4ERR_BADHANDLE);
	cr_expect_eq(n.ended, 1);
	cr_expect_eq(n.rc, 0);
	cr_expect_eq(n.status, NFS4ERR_BADHANDLE);
	cr_expect_not(n.body);
	cr_expect_eq(m.ended, 0);
	answer_op(&peers[0], 1, NFS4_OK);
	cr_expect_eq(m.ended, 1);
	cr_expect_eq(m.rc, 0);
	cr_expect_eq(m.status, NFS4_OK);
	cr_expect(m.body);
	cr_expect(nfs4_cb_reaches(cl));
	nfs4_client_put(cl);
	end();
}

/* Answers to an operation, and whether the path works after them. */
Test(nfs4_cb_v40, answers)
{
	static const struct {
		const char *name;
		unsigned n;
		uint32_t words[10];
		int rc;
	} rows[] = {
		{ "success", 10, { ACCEPTED, RPC_SUCCESS, 0, 0, 1, OP_CB_RECALL, 0 }, 0 },
		{ "OP_CB_ILLEGAL",
		  10,
		  { ACCEPTED, RPC_SUCCESS, NFS4ERR_OP_ILLEGAL, 0, 1, OP_CB_ILLEGAL,
		    NFS4ERR_OP_ILLEGAL },
		  0 },
		{ "another operation",
		  10,
		  { ACCEPTED, RPC_SUCCESS, 0, 0, 1, OP_CB_GETATTR, 0 },
		  -EPROTO },
		{ "no result",
		  8,
		  { ACCEPTED, RPC_SUCCESS, NFS4ERR_MINOR_VERS_MISMATCH, 0, 0 },
		  -EPROTO },
		{ "two results", 10, { ACCEPTED, RPC_SUCCESS, 0, 0, 2, OP_CB_RECALL, 0 }, -EPROTO },
		{ "cut short", 9, { ACCEPTED, RPC_SUCCESS, 0, 0, 1, OP_CB_RECALL }, -EPROTO },
		{ "nothing", 5, { ACCEPTED, RPC_SUCCESS }, -EPROTO },
		{ "a long tag", 7, { ACCEPTED, RPC_SUCCESS, 0, 0xffffffff }, -EPROTO },
		{ "no such program", 5, { ACCEPTED, RPC_PROG_UNAVAIL }, -EOPNOTSUPP },
		{ "denied",
		  4,
		  { RPC_REPLY, RPC_MSG_DENIED, RPC_AUTH_ERROR, RPC_AUTH_BADCRED },
		  -EACCES },
		{ "garbage", 2, { RPC_REPLY, 9 }, -EPROTO },
	};

	NEED_FIXTURE();
	begin();
	for (size_t i = 0; i < rn_array_size(rows); i++) {
		const char name[2] = { (char)('a' + i), '\0' };
		struct scid_args a = args();
		struct nfs4_client *cl;
		struct mine m;

		a.owner = name;
		cl = client_of(&a);
		answer_null(&peers[i], 0);
		start(&m, cl);
		answer(&peers[i], 1, rows[i].words, rows[i].n);
		cr_expect_eq(m.ended, 1, "%s", rows[i].name);
		cr_expect_eq(m.rc, rows[i].rc, "%s: %d", rows[i].name, m.rc);
		cr_expect_eq(nfs4_cb_reaches(cl), rows[i].rc == 0, "%s", rows[i].name);
		cr_expect_eq(peers[i].hung_up, rows[i].rc != 0, "%s", rows[i].name);
		nfs4_client_put(cl);
	}
	end();
}

/* A path that is down is not used, until a RENEW some time later has it probed. */
Test(nfs4_cb_v40, no_answer)
{
	struct nfs4_client *cl;
	struct mine m, n;

	NEED_FIXTURE();
	begin();
	cl = reached();
	start(&m, cl);
	start(&n, cl);
	rpc_backchannel_expire(&peers[0].base, UINT64_MAX);
	cr_expect_eq(m.rc, -ETIMEDOUT);
	cr_expect_eq(m.ended, 1);
	cr_expect_eq(n.ended, 1);
	cr_expect(peers[0].hung_up);
	cr_expect_not(nfs4_cb_reaches(cl));
	start(&m, cl);
	cr_expect_eq(m.rc, -ENOTCONN);
	cr_expect_eq(call_renew(f, cl->clientid), NFS4_OK);
	cr_expect_eq(npeers, 1);
	nfs4_clients_skip_time(f->server4, 46);
	cr_expect_eq(call_renew(f, cl->clientid), NFS4_OK);
	cr_assert_eq(npeers, 2);
	cr_expect_eq(call_renew(f, cl->clientid), NFS4_OK);
	cr_expect_eq(npeers, 2);
	answer_null(&peers[1], 0);
	cr_expect(nfs4_cb_reaches(cl));
	/* No memory for the connection is no news. */
	peers[1].refuse = -ENOMEM;
	start(&m, cl);
	cr_expect_eq(m.rc, -ENOMEM);
	cr_expect(nfs4_cb_reaches(cl));
	nfs4_client_put(cl);
	end();
}

Test(nfs4_cb_v40, no_connection)
{
	const struct scid_args a = args();
	struct nfs4_client *cl;

	NEED_FIXTURE();
	begin();
	dial_rc = -ECONNREFUSED;
	cl = client_of(&a);
	cr_expect_not(nfs4_cb_reaches(cl));
	dial_rc = 0;
	nfs4_clients_skip_time(f->server4, 46);
	cr_expect_eq(call_renew(f, cl->clientid), NFS4_OK);
	cr_assert_eq(npeers, 1);
	/* Refused after a moment: a fresh connection is not made twice for one call. */
	lose(&peers[0]);
	cr_expect_eq(npeers, 1);
	cr_expect_not(nfs4_cb_reaches(cl));
	nfs4_client_put(cl);
	end();
}

/* A connection that is lost is made again, and calls are sent once more. */
Test(nfs4_cb_v40, lost_connections)
{
	struct nfs4_client *cl;
	struct mine m, n;

	NEED_FIXTURE();
	begin();
	cl = reached();
	lose(&peers[0]); /* while it was idle */
	cr_expect(nfs4_cb_reaches(cl));
	start(&m, cl);
	cr_assert_eq(npeers, 2);
	answer_op(&peers[1], 0, NFS4_OK);
	cr_expect_eq(m.rc, 0);
	cr_expect_eq(m.ended, 1);
	start(&m, cl);
	start(&n, cl);
	lose(&peers[1]); /* while calls are under way */
	cr_assert_eq(npeers, 3);
	cr_expect_eq(take(&peers[2], 0).arg, 4711);
	answer_op(&peers[2], 0, NFS4_OK);
	cr_expect_eq(m.rc, 0);
	cr_expect_eq(m.ended, 1);
	lose(&peers[2]); /* the other call is not sent a third time */
	cr_expect_eq(npeers, 3);
	cr_expect_eq(n.rc, -ENOTCONN);
	cr_expect_eq(n.ended, 1);
	nfs4_client_put(cl);
	end();
}

/* Under Kerberos: a call that comes while the probe waits for a context does not end the probe. */
Test(nfs4_cb_v40, no_context_yet)
{
	struct nfs4_client *cl;
	struct mine m;

	NEED_FIXTURE();
	begin();
	cl = reached();
	lose(&peers[0]);
	cl->callback->me = rpc_principal_new("nfs/server", 10);
	cl->callback->state = NFS4_CB_TRYING;
	start(&m, cl);
	cr_expect_eq(m.ended, 1);
	cr_expect_eq(m.rc, -ENOKEY);
	cr_expect_eq(npeers, 1);
	cr_expect_eq(cl->callback->state, NFS4_CB_TRYING);
	nfs4_cb_conn_no_auth(cl);
	cr_expect_eq(cl->callback->state, NFS4_CB_DOWN);
	nfs4_client_put(cl);
	end();
}

/* SETCLIENTID with the same verifier changes the callback (RFC 7530 section 16.33.5). */
Test(nfs4_cb_v40, another_callback)
{
	struct scid_args a = args();
	struct nfs4_client *cl, *same;
	struct scid_result r;
	struct mine m;

	NEED_FIXTURE();
	begin();
	cl = reached();
	a.program = PROGRAM + 1;
	a.ident = 5;
	a.addr = "192.0.2.1.8.1";
	cr_assert_eq(call_setclientid(f, &a, &r), NFS4_OK);
	cr_expect_not(peers[0].hung_up); /* not yet confirmed */
	cr_expect(nfs4_cb_reaches(cl));
	start(&m, cl);
	cr_assert_eq(call_setclientid_confirm(f, &r), NFS4_OK);
	cr_expect(peers[0].hung_up);
	cr_expect_not(nfs4_cb_reaches(cl));
	cr_assert_eq(npeers, 2);
	cr_expect_eq(ntohs(peers[1].route.to.sin6_port), 2049);
	/* The call that was under way goes over the new connection, as does the probe. */
	cr_expect_eq(peers[1].ncalls, 2);
	cr_expect_eq(m.ended, 0);
	for (unsigned i = 0; i < 2; i++) {
		const struct seen s = take(&peers[1], i);

		cr_expect_eq(s.prog, PROGRAM + 1);
		if (s.proc == NFSPROC4_CB_COMPOUND) {
			cr_expect_eq(s.ident, 5);
			answer_op(&peers[1], i, NFS4_OK);
		} else {
			answer_null(&peers[1], i);
		}
	}
	cr_expect_eq(m.rc, 0);
	cr_expect(nfs4_cb_reaches(cl));
	/* To an address that is not called. */
	a.addr = "192.0.2.9.8.1";
	same = client_of(&a);
	cr_expect_eq(same, cl);
	cr_expect(peers[1].hung_up);
	cr_expect_eq(npeers, 2);
	cr_expect_not(nfs4_cb_reaches(cl));
	start(&m, cl);
	cr_expect_eq(m.rc, -ENOTCONN);
	nfs4_client_put(same);
	nfs4_client_put(cl);
	end();
}

/* The connection goes with the client. */
Test(nfs4_cb_v40, a_client_that_goes)
{
	struct scid_args a = args();
	struct nfs4_client *cl, *next;
	struct mine m;

	NEED_FIXTURE();
	begin();
	cl = reached();
	start(&m, cl);
	a.verifier = "verf0002"; /* the client has restarted */
	next = client_of(&a);
	cr_expect_neq(next, cl);
	cr_expect(peers[0].hung_up);
	cr_expect_eq(m.ended, 1);
	cr_expect_eq(m.rc, -ENOTCONN);
	cr_expect_not(nfs4_cb_reaches(cl));
	start(&m, cl);
	cr_expect_eq(m.rc, -ENOTCONN);
	cr_expect_eq(npeers, 2);
	nfs4_client_put(cl);
	nfs4_client_put(next);
	end();
}

/* A client with sessions but no back channel has no path. */
Test(nfs4_cb_v40, a_client_with_sessions)
{
	struct fix4_session s;
	struct nfs4_client *cl;
	struct mine m;

	NEED_FIXTURE();
	begin();
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", false), NFS4_OK);
	cl = nfs4_client_get(f->server4->clients, s.clientid);
	cr_expect_not(nfs4_cb_reaches(cl));
	start(&m, cl);
	cr_expect_eq(m.ended, 1);
	cr_expect_eq(m.rc, -ENOTCONN);
	cr_expect_eq(npeers, 0);
	nfs4_client_put(cl);
	end();
}

static struct op_client holder, other;
static struct op_owner owner, rival;
static struct op_file file, theirs;

static uint32_t open_as(struct op_owner *o, uint32_t access, struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = "a", .access = access };

	return op_open(f, o, &how, out);
}

/* The holder's second OPEN, the first one having been confirmed. */
static void begin_holder(void)
{
	begin();
	f->server4->cfg.delegations = true;
	vfs_export_set_nfs_only(f->exp[0], true);
	make_file("a", "text", 0666);
	cr_assert_eq(op_client_new(f, &other, 1, "other"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &holder, 0, "holder"), NFS4_OK);
	cr_assert_eq(npeers, 1);
	owner = (struct op_owner){ &holder, "owner", 1 };
	rival = (struct op_owner){ &other, "rival", 1 };
}

/* Delegations are for clients that have answered, by owners that are confirmed. */
Test(nfs4_cb_v40, delegations)
{
	NEED_FIXTURE();
	begin_holder();
	answer_null(&peers[0], 0);
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_NONE);
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_READ);
	cr_expect_eq(call_renew(f, holder.clientid), NFS4_OK);
	/* Somebody else is in its way, and the client does not answer. */
	cr_expect_eq(open_as(&rival, OPEN4_SHARE_ACCESS_WRITE, &theirs), NFS4ERR_DELAY);
	cr_expect_eq(take(&peers[0], 1).op, OP_CB_RECALL);
	rpc_backchannel_expire(&peers[0].base, UINT64_MAX);
	cr_expect_eq(call_renew(f, holder.clientid), NFS4ERR_CB_PATH_DOWN);
	nfs4_clients_skip_time(f->server4, 46);
	cr_expect_eq(call_renew(f, holder.clientid), NFS4ERR_CB_PATH_DOWN);
	cr_assert_eq(npeers, 2);
	cr_expect_eq(call_renew(f, holder.clientid), NFS4_OK); /* it is being probed */
	answer_null(&peers[1], 0);
	cr_expect_eq(call_renew(f, holder.clientid), NFS4_OK);
	nfs4_tick(f->server4);
	cr_expect_eq(take(&peers[1], 1).op, OP_CB_RECALL);
	answer_op(&peers[1], 1, NFS4_OK);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	cr_expect_eq(open_as(&rival, OPEN4_SHARE_ACCESS_WRITE, &theirs), NFS4_OK);
	end();
}

Test(nfs4_cb_v40, no_delegation_before_an_answer)
{
	NEED_FIXTURE();
	begin_holder();
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_NONE);
	answer_null(&peers[0], 0);
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_expect_eq(file.delegation, OPEN_DELEGATE_READ);
	end();
}

/* The holder has a delegation that it was given for the user. */
static void begin_delegated(uint32_t uid)
{
	begin_holder();
	answer_null(&peers[0], 0);
	f->uid = uid;
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_assert_eq(open_as(&owner, OPEN4_SHARE_ACCESS_READ, &file), NFS4_OK);
	cr_assert_eq(file.delegation, OPEN_DELEGATE_READ);
}

/* No session tells whose call it is: another client names the delegation's stateid. */
Test(nfs4_cb_v40, a_delegation_of_another_client)
{
	static struct op_client thief;
	struct op_owner name = { &thief, "thief", 1 };
	struct op_how how = { .name = "a",
			      .access = OPEN4_SHARE_ACCESS_READ,
			      .claim = OP_DELEG_CUR };

	NEED_FIXTURE();
	begin_delegated(0);
	how.fh = &f->root;
	how.delegated = &file.deleg;
	cr_assert_eq(op_client_new(f, &thief, 0, "thief"), NFS4_OK);
	cr_expect_eq(op_open_only(f, &name, &how, &theirs), NFS4ERR_BAD_STATEID);
	cr_expect_eq(call_renew(f, thief.clientid), NFS4_OK);
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK,
		     "it is still there");
	end();
}

Test(nfs4_cb_v40, another_user_returns_it)
{
	NEED_FIXTURE();
	begin_delegated(1000);
	f->uid = 1001;
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4ERR_BAD_STATEID);
	f->uid = 1000;
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	end();
}

/* The user who set the client up may return what others were given. */
Test(nfs4_cb_v40, the_client_returns_it)
{
	NEED_FIXTURE();
	begin_delegated(1000);
	f->uid = 0;
	cr_expect_eq(op_delegreturn(f, &holder, &file.fh, &file.deleg), NFS4_OK);
	end();
}
