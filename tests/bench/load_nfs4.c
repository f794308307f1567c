/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NFSv4.1 and 4.2 (RFC 8881) of the load generator: sessions, and setting up. Each connection is a
 * client of its own, with as many sessions as its calls need slots.
 */
#include <stdio.h>
#include <unistd.h>
#include "load.h"
#include "nfs4_numbers.h"

#define SLOTS_ASKED 64u

/* A COMPOUND without SEQUENCE. */
static void bare(struct load *l, struct call *c, struct xdr *x, unsigned nops)
{
	rpc_begin(l, c, x, PROG_NFS, 1);
	put32(x, 0); /* tag */
	put32(x, l->o.minor);
	put32(x, nops);
}

void nfs4_begin(struct load *l, struct call *c, struct xdr *x, unsigned nops)
{
	bare(l, c, x, nops + 1);
	put32(x, OP_SEQUENCE);
	put_bytes(x, c->session->id, 16);
	put32(x, ++c->seqid);
	put32(x, c->slot);
	put32(x, c->session->slots - 1);
	put32(x, 0); /* no reply need be kept */
}

static void begin_reply(struct xdr *x, uint32_t *status)
{
	uint32_t n;

	*status = get32(x);
	get_opaque(x, &n);
	get32(x);
}

bool nfs4_op(struct xdr *x, uint32_t op)
{
	return get32(x) == op && get32(x) == 0 && !x->bad;
}

const char *nfs4_reply(struct xdr *x)
{
	uint32_t status;

	begin_reply(x, &status);
	if (!nfs4_op(x, OP_SEQUENCE))
		return "SEQUENCE failed";
	xdr_take(x, 16 + 5 * 4);
	return NULL;
}

void nfs4_putfh(struct xdr *x, const struct fh *fh)
{
	put32(x, OP_PUTFH);
	put_opaque(x, fh->data, fh->len);
}

void nfs4_get_fh(struct xdr *x, struct fh *fh)
{
	const uint8_t *data = get_opaque(x, &fh->len);

	if (!data || fh->len > FH_MAX) {
		x->bad = true;
		fh->len = 0;
		return;
	}
	memcpy(fh->data, data, fh->len);
}

/* OPEN for reading and writing, without a delegation, that makes the file; one that is there is an error or not. */
void nfs4_put_open(struct xdr *x, const struct conn *k, const char *name, bool guarded)
{
	put32(x, OP_OPEN);
	put32(x, 0);
	put32(x, 3 | 0x400);
	put32(x, 0);
	put64(x, k->clientid);
	put_string(x, "nfsload");
	put32(x, 1); /* OPEN4_CREATE */
	put32(x, guarded);
	put32(x, 2); /* attributes: the mode */
	put32(x, 0);
	put32(x, 1u << 1);
	put32(x, 4);
	put32(x, 0666);
	put32(x, 0); /* CLAIM_NULL */
	put_string(x, name);
}

void nfs4_get_open(struct xdr *x, uint8_t *stateid)
{
	uint32_t n, why;

	get_bytes(x, stateid, 16);
	xdr_take(x, 20 + 4);
	for (n = get32(x); n && !x->bad; n--)
		get32(x);
	n = get32(x);
	why = n == 3 ? get32(x) : 0;
	if (why == 1 || why == 2)
		get32(x);
	if (n == 1 || n == 2)
		die("the server delegates though it was asked not to");
}

void nfs4_put_close(struct xdr *x, const uint8_t *stateid)
{
	put32(x, OP_CLOSE);
	put32(x, 0);
	put_bytes(x, stateid, 16);
}

/* ---- one by one ------------------------------------------------------------------------------- */
typedef void encode_fn(struct load *l, struct call *c, struct xdr *x);

/* Sends what encode makes, again while the server asks for patience, and reads the reply up to the first result. */
static void must(struct load *l, struct call *c, encode_fn *encode, struct xdr *reply,
		 const char *what)
{
	uint32_t status;
	struct xdr x;

	for (;;) {
		encode(l, c, &x);
		rpc_wait(l, c, &x, reply);
		begin_reply(reply, &status);
		if (status == 0)
			return;
		if (status != NFS4ERR_DELAY && status != NFS4ERR_GRACE)
			die("%s: status %u", what, status);
		usleep(100000);
	}
}

/* The same with SEQUENCE's result passed over. */
static void must_in_session(struct load *l, struct call *c, encode_fn *encode, struct xdr *reply,
			    const char *what)
{
	must(l, c, encode, reply, what);
	if (!nfs4_op(reply, OP_SEQUENCE))
		die("%s: no SEQUENCE in the reply", what);
	xdr_take(reply, 16 + 5 * 4);
}

static void encode_exchange_id(struct load *l, struct call *c, struct xdr *x)
{
	char owner[64];

	snprintf(owner, sizeof(owner), "nfsload-%d-%u", getpid(), c->conn->index);
	bare(l, c, x, 1);
	put32(x, OP_EXCHANGE_ID);
	put64(x, (uint64_t)getpid());
	put_string(x, owner);
	put32(x, 0);
	put32(x, 0); /* SP4_NONE */
	put32(x, 0);
}

static void put_channel(struct xdr *x, uint32_t bytes, uint32_t slots)
{
	put32(x, 0);
	put32(x, bytes);
	put32(x, bytes);
	put32(x, 4096);
	put32(x, 8);
	put32(x, slots);
	put32(x, 0);
}

static void encode_create_session(struct load *l, struct call *c, struct xdr *x)
{
	bare(l, c, x, 1);
	put32(x, OP_CREATE_SESSION);
	put64(x, c->conn->clientid);
	put32(x, c->conn->create_seq);
	put32(x, 0);
	put_channel(x, SIZE_MAX_IO + 65536, l->o.calls < SLOTS_ASKED ? l->o.calls : SLOTS_ASKED);
	put_channel(x, 4096, 1);
	put32(x, 0x40000000);
	put32(x, 1);
	put32(x, 0); /* AUTH_NONE */
}

static void encode_reclaim_complete(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 1);
	put32(x, OP_RECLAIM_COMPLETE);
	put32(x, 0);
}

/* Makes a session, and gives its slots to calls from `first` on; returns the first call without one. */
static unsigned add_session(struct load *l, struct conn *k, unsigned first)
{
	struct session *s = &k->sessions[k->nsessions++];
	struct xdr reply;
	unsigned i;

	if (k->nsessions > SESSIONS_MAX)
		die("%u sessions have not slots enough", SESSIONS_MAX);
	must(l, &k->calls[0], encode_create_session, &reply, "CREATE_SESSION");
	k->create_seq++;
	if (!nfs4_op(&reply, OP_CREATE_SESSION))
		die("CREATE_SESSION: no result");
	get_bytes(&reply, s->id, 16);
	xdr_take(&reply, 2 * 4 + 5 * 4); /* up to the slots of the fore channel */
	s->slots = get32(&reply);
	if (reply.bad || !s->slots)
		die("a session without slots");
	for (i = 0; i < s->slots && first + i < l->o.calls; i++) {
		k->calls[first + i].session = s;
		k->calls[first + i].slot = i;
	}
	if (s->slots > i)
		s->slots = i;
	return first + i;
}

static void nfs4_connect(struct load *l, struct conn *k)
{
	struct call *c = &k->calls[0];
	unsigned ready = 0;
	struct xdr reply;

	must(l, c, encode_exchange_id, &reply, "EXCHANGE_ID");
	if (!nfs4_op(&reply, OP_EXCHANGE_ID))
		die("EXCHANGE_ID: no result");
	k->clientid = get64(&reply);
	k->create_seq = get32(&reply);
	while (ready < l->o.calls)
		ready = add_session(l, k, ready);
	must(l, c, encode_reclaim_complete, &reply, "RECLAIM_COMPLETE");
}

/* ---- the folder and the files ----------------------------------------------------------------- */
static void encode_path(struct load *l, struct call *c, struct xdr *x)
{
	char path[512], *at, *word, *save;
	unsigned n = 0;

	for (at = strcpy(path, l->o.path); *at; at++)
		n += *at != '/' && (at == path || at[-1] == '/');
	nfs4_begin(l, c, x, n + 2);
	put32(x, OP_PUTROOTFH);
	for (word = strtok_r(path, "/", &save); word; word = strtok_r(NULL, "/", &save)) {
		put32(x, OP_LOOKUP);
		put_string(x, word);
	}
	put32(x, OP_GETFH);
}

static void find_path(struct load *l, struct call *c)
{
	struct xdr reply;
	uint32_t op;

	must_in_session(l, c, encode_path, &reply, "looking up the path");
	while ((op = get32(&reply)) == OP_PUTROOTFH || op == OP_LOOKUP)
		get32(&reply);
	get32(&reply);
	nfs4_get_fh(&reply, &l->dir);
	if (op != OP_GETFH || reply.bad)
		die("the path has no handle");
}

static void encode_make(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 3);
	nfs4_putfh(x, &l->dir);
	nfs4_put_open(x, c->conn, l->files[c->file].name, false);
	put32(x, OP_GETFH);
}

static void encode_fill(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, &l->files[c->file].fh);
	put32(x, OP_WRITE);
	put_bytes(x, c->stateid, 16);
	put64(x, c->offset);
	put32(x, 0); /* UNSTABLE4 */
	put32(x, SIZE_MAX_IO);
	c->data = data_at(c->file, c->offset);
	c->data_len = SIZE_MAX_IO;
}

static void encode_commit(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, &l->files[c->file].fh);
	put32(x, OP_COMMIT);
	put64(x, 0);
	put32(x, 0);
}

static void encode_close(struct load *l, struct call *c, struct xdr *x)
{
	nfs4_begin(l, c, x, 2);
	nfs4_putfh(x, &l->files[c->file].fh);
	nfs4_put_close(x, c->stateid);
}

/* Opens the call's file, makes it if need be, and keeps its handle and stateid. */
static void open_file(struct load *l, struct call *c)
{
	struct xdr reply;

	must_in_session(l, c, encode_make, &reply, "OPEN");
	if (!nfs4_op(&reply, OP_PUTFH) || !nfs4_op(&reply, OP_OPEN))
		die("OPEN: no result");
	nfs4_get_open(&reply, c->stateid);
	if (!nfs4_op(&reply, OP_GETFH))
		die("OPEN: no handle");
	nfs4_get_fh(&reply, &l->files[c->file].fh);
}

static void fill_file(struct load *l, struct call *c)
{
	struct xdr reply;

	for (c->offset = 0; c->offset < l->o.file_size; c->offset += SIZE_MAX_IO) {
		must_in_session(l, c, encode_fill, &reply, "WRITE");
		if (!nfs4_op(&reply, OP_PUTFH) || !nfs4_op(&reply, OP_WRITE) ||
		    get32(&reply) != SIZE_MAX_IO)
			die("filling a file: not all was written");
	}
	must(l, c, encode_commit, &reply, "COMMIT");
}

static void nfs4_prepare(struct load *l, struct call *c)
{
	struct xdr reply;

	find_path(l, c);
	for (c->file = 0; l->job->files && c->file < l->o.files; c->file++) {
		open_file(l, c);
		if (l->job->data)
			fill_file(l, c);
		must(l, c, encode_close, &reply, "CLOSE");
	}
}

static void nfs4_open(struct load *l, struct conn *k)
{
	struct call *c = &k->calls[0];

	if (!l->job->data)
		return;
	c->file = k->index % l->o.files;
	open_file(l, c);
	memcpy(k->stateid, c->stateid, 16);
}

/* ---- leaving ---------------------------------------------------------------------------------- */
static void encode_destroy_session(struct load *l, struct call *c, struct xdr *x)
{
	bare(l, c, x, 1);
	put32(x, OP_DESTROY_SESSION);
	put_bytes(x, c->conn->sessions[c->conn->nsessions].id, 16);
}

static void encode_destroy_clientid(struct load *l, struct call *c, struct xdr *x)
{
	bare(l, c, x, 1);
	put32(x, OP_DESTROY_CLIENTID);
	put64(x, c->conn->clientid);
}

static void nfs4_leave(struct load *l, struct conn *k)
{
	struct call *c = &k->calls[0];
	struct xdr reply;

	if (l->job->data) {
		c->file = k->index % l->o.files;
		memcpy(c->stateid, k->stateid, 16);
		must(l, c, encode_close, &reply, "CLOSE");
	}
	while (k->nsessions) {
		k->nsessions--;
		must(l, c, encode_destroy_session, &reply, "DESTROY_SESSION");
	}
	must(l, c, encode_destroy_clientid, &reply, "DESTROY_CLIENTID");
}

const struct protocol protocol_nfs4 = {
	.version = 4,
	.jobs = nfs4_jobs,
	.prepare = nfs4_prepare,
	.connect = nfs4_connect,
	.open = nfs4_open,
	.leave = nfs4_leave,
};
