/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/nfs4_fixture.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/unit/nfs4_text.h"
#include "tests/unit/nfs4_valid_errors.h"

const char *fix4_verifier = "verifier";

/* Ends the process, because the test would go on with wrong data. Criterion's assertions cannot be
 * used: fuzz targets share this fixture. */
__attribute__((format(printf, 2, 3))) static void must(bool ok, const char *what, ...)
{
	va_list ap;

	if (ok)
		return;
	va_start(ap, what);
	vfprintf(stderr, what, ap);
	va_end(ap);
	fputc('\n', stderr);
	abort();
}

/* The COMPOUND that is being built or read; one at a time. */
static struct {
	size_t count_at;
	uint32_t count;
	uint32_t results;
	uint32_t minor;
	struct fix4_session *session;
	uint32_t op[128]; /* numbers of the first operations */
} now;

/* Prints a line for each failure that the process sees for the first time, if RINGNFS_SHOW_ERRORS
 * is set. tests/nfs4-errors collects these lines from the tests' logs. */
static void show_error(uint32_t opnum, uint32_t status)
{
	static uint8_t shown[NFS4_MINOR_MAX + 1][128][256];
	uint32_t row = rn_min(opnum, 127u);
	uint32_t column = status < 128 ? status : 128 + status % 10000 % 128;
	char line[64];
	int len;

	if (now.minor > NFS4_MINOR_MAX || shown[now.minor][row][column] ||
	    !getenv("RINGNFS_SHOW_ERRORS"))
		return;
	shown[now.minor][row][column] = 1;
	len = snprintf(line, sizeof(line), "nfs4-error %u %u %u\n", now.minor, opnum, status);
	if (write(STDERR_FILENO, line, (size_t)len) != len)
		perror("nfs4-error");
}

static void check_error(uint32_t opnum, uint32_t status)
{
	/* Names are looked up only in case of an error, because tests/cost counts the instructions
	 * here. */
	if (!nfs4_error_is_valid(opnum, now.minor, status))
		must(false, "%s must not answer %s", nfs4_op_text(opnum), nfs4_status_text(status));
	if (status != NFS4_OK)
		show_error(opnum, status);
}

void fix4_begin_bare(struct fixture *f, uint32_t minor, const char *tag)
{
	struct xdr_out *c = fix_call(f, NFS4_PROGRAM, NFS4_VERSION, NFSPROC4_COMPOUND);

	now.session = NULL;
	now.count = 0;
	now.minor = minor;
	xdr_put_opaque(c, tag, (uint32_t)strlen(tag));
	xdr_put_u32(c, minor);
	now.count_at = xdr_out_pos(c);
	xdr_put_u32(c, 0);
}

void fix4_begin(struct fixture *f, struct fix4_session *s)
{
	fix4_begin_tag(f, s, "");
}

void fix4_begin_tag(struct fixture *f, struct fix4_session *s, const char *tag)
{
	fix4_begin_bare(f, s ? s->minor : 0, tag);
	if (!s)
		return;
	now.session = s;
	fix4_op(f, OP_SEQUENCE);
	xdr_put_fixed(&f->out, s->id, NFS4_SESSIONID_SIZE);
	xdr_put_u32(&f->out, s->seqid++);
	xdr_put_u32(&f->out, s->slot);
	xdr_put_u32(&f->out, s->slot);
	xdr_put_bool(&f->out, s->cache_this);
}

void fix4_op(struct fixture *f, uint32_t opnum)
{
	xdr_put_u32(&f->out, opnum);
	if (now.count < rn_array_size(now.op))
		now.op[now.count] = opnum;
	now.count++;
}

void fix4_count(struct fixture *f)
{
	(void)f;
	if (now.count < rn_array_size(now.op))
		now.op[now.count] = 0;
	now.count++;
}

void fix4_send_any(struct fixture *f)
{
	xdr_patch_u32(&f->out, now.count_at, now.count);
	fix_send(f);
}

/* Checks that the COMPOUND's status is that of its last result. */
static void check_failure(uint32_t status)
{
	uint32_t opnum, n = now.results;

	if (status == NFS4_OK || n == 0 || n > now.count || n > rn_array_size(now.op))
		return;
	opnum = now.op[n - 1];
	if (status != NFS4ERR_OP_ILLEGAL && opnum != 0)
		check_error(opnum, status);
}

static uint32_t read_results(struct fixture *f)
{
	struct xdr_in *r = &f->in;
	uint32_t len, status;

	if (f->outcome != FIX_REPLY || f->accept_stat != RPC_SUCCESS)
		return FIX4_NO_STATUS;
	status = xdr_get_u32(r);
	xdr_get_opaque(r, 1024, &len);
	now.results = xdr_get_u32(r);
	must(!r->err, "COMPOUND4res is cut short");
	check_failure(status);
	if (now.session && now.results > 0 && fix4_result(f, OP_SEQUENCE) == NFS4_OK) {
		xdr_skip(r, NFS4_SESSIONID_SIZE + 16);
		now.session->status_flags = xdr_get_u32(r);
	}
	return status;
}

uint32_t fix4_resend(struct fixture *f)
{
	fix_send(f);
	return read_results(f);
}

uint32_t fix4_send(struct fixture *f)
{
	must(!f->out.overflow, "the call is too long");
	xdr_patch_u32(&f->out, now.count_at, now.count);
	return fix4_resend(f);
}

uint32_t fix4_result(struct fixture *f, uint32_t opnum)
{
	uint32_t got, status;

	if (now.results == 0)
		must(false, "no result is left, not of %s", nfs4_op_text(opnum));
	now.results--;
	got = xdr_get_u32(&f->in);
	status = xdr_get_u32(&f->in);
	must(!f->in.err, "the result of %s is cut short", nfs4_op_text(opnum));
	must(got == opnum, "result of %s, not %s", nfs4_op_text(got), nfs4_op_text(opnum));
	check_error(got, status);
	return status;
}

uint32_t fix4_results_left(const struct fixture *f)
{
	(void)f;
	return now.results;
}

void fix4_putfh(struct fixture *f, const struct vfs_fh *fh)
{
	fix4_op(f, OP_PUTFH);
	xdr_put_opaque(&f->out, fh->data, fh->len);
}

void fix4_name(struct fixture *f, const char *name)
{
	xdr_put_opaque(&f->out, name, (uint32_t)strlen(name));
}

void fix4_lookup(struct fixture *f, const char *name)
{
	fix4_op(f, OP_LOOKUP);
	fix4_name(f, name);
}

void fix4_stateid(struct fixture *f, const struct nfs4_stateid *sid)
{
	nfs4_put_stateid(&f->out, sid);
}

void fix4_get_fh(struct fixture *f, struct vfs_fh *fh)
{
	const uint8_t *p = xdr_get_opaque(&f->in, NFS4_FHSIZE, &fh->len);

	must(p && fh->len <= sizeof(fh->data), "a handle of %u bytes", fh->len);
	memcpy(fh->data, p, fh->len);
}

void fix4_get_stateid(struct fixture *f, struct nfs4_stateid *sid)
{
	nfs4_get_stateid(&f->in, sid);
}

void fix4_get_cinfo(struct fixture *f, bool *atomic, uint64_t *before, uint64_t *after)
{
	*atomic = xdr_get_bool(&f->in);
	*before = xdr_get_u64(&f->in);
	*after = xdr_get_u64(&f->in);
}

uint32_t fix4_handle(struct fixture *f, struct fix4_session *s, const struct vfs_fh *dir,
		     const char *name, struct vfs_fh *fh)
{
	uint32_t status;

	fix4_begin(f, s);
	fix4_putfh(f, dir);
	fix4_lookup(f, name);
	fix4_op(f, OP_GETFH);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_PUTFH);
	fix4_result(f, OP_LOOKUP);
	fix4_result(f, OP_GETFH);
	fix4_get_fh(f, fh);
	return status;
}

static uint32_t exchange_id(struct fixture *f, struct fix4_session *s, const char *owner)
{
	uint32_t status;

	fix4_begin_bare(f, s->minor, "");
	fix4_op(f, OP_EXCHANGE_ID);
	xdr_put_fixed(&f->out, fix4_verifier, NFS4_VERIFIER_SIZE);
	fix4_name(f, owner);
	xdr_put_u32(&f->out, 0); /* flags */
	xdr_put_u32(&f->out, 0); /* SP4_NONE */
	xdr_put_u32(&f->out, 0); /* no implementation id */
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_EXCHANGE_ID);
	s->clientid = xdr_get_u64(&f->in);
	s->seqid = xdr_get_u32(&f->in);
	return status;
}

static void put_channel(struct xdr_out *c)
{
	xdr_put_u32(c, 0);	    /* headerpadsize */
	xdr_put_u32(c, 1100 << 10); /* maxrequestsize */
	xdr_put_u32(c, 1100 << 10); /* maxresponsesize */
	xdr_put_u32(c, 8 << 10);    /* maxresponsesize_cached */
	xdr_put_u32(c, 64);	    /* maxoperations */
	xdr_put_u32(c, 16);	    /* maxrequests */
	xdr_put_u32(c, 0);	    /* no rdma_ird */
}

static uint32_t create_session(struct fixture *f, struct fix4_session *s)
{
	struct xdr_out *c = &f->out;
	uint32_t status;

	fix4_begin_bare(f, s->minor, "");
	fix4_op(f, OP_CREATE_SESSION);
	xdr_put_u64(c, s->clientid);
	xdr_put_u32(c, s->seqid);
	xdr_put_u32(c, f->back_channel ? CREATE_SESSION4_FLAG_CONN_BACK_CHAN : 0);
	put_channel(c);
	put_channel(c);
	xdr_put_u32(c, 0x40000000); /* callback program */
	xdr_put_u32(c, 1);
	xdr_put_u32(c, RPC_AUTH_NONE);
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_CREATE_SESSION);
	xdr_get_fixed(&f->in, s->id, NFS4_SESSIONID_SIZE);
	s->seqid = 1;
	s->slot = 0;
	return status;
}

uint32_t fix4_session_new(struct fixture *f, struct fix4_session *s, uint32_t minor,
			  const char *owner, bool reclaimed)
{
	uint32_t status;

	memset(s, 0, sizeof(*s));
	s->minor = minor;
	status = exchange_id(f, s, owner);
	if (status == NFS4_OK)
		status = create_session(f, s);
	if (status != NFS4_OK || !reclaimed)
		return status;
	fix4_begin(f, s);
	fix4_op(f, OP_RECLAIM_COMPLETE);
	xdr_put_bool(&f->out, false);
	return fix4_send(f);
}

uint32_t fix4_clientid_new(struct fixture *f, const char *owner, uint64_t *clientid)
{
	uint8_t confirm[NFS4_VERIFIER_SIZE];
	uint32_t status;

	fix4_begin(f, NULL);
	fix4_op(f, OP_SETCLIENTID);
	xdr_put_fixed(&f->out, fix4_verifier, NFS4_VERIFIER_SIZE);
	fix4_name(f, owner);
	xdr_put_u32(&f->out, 0x40000000); /* callback program */
	fix4_name(f, "tcp");
	fix4_name(f, "192.0.2.1.3.232");
	xdr_put_u32(&f->out, 1); /* callback_ident */
	status = fix4_send(f);
	if (status != NFS4_OK)
		return status;
	fix4_result(f, OP_SETCLIENTID);
	*clientid = xdr_get_u64(&f->in);
	xdr_get_fixed(&f->in, confirm, sizeof(confirm));
	fix4_begin(f, NULL);
	fix4_op(f, OP_SETCLIENTID_CONFIRM);
	xdr_put_u64(&f->out, *clientid);
	xdr_put_fixed(&f->out, confirm, sizeof(confirm));
	return fix4_send(f);
}
