/* SPDX-License-Identifier: BSD-2-Clause */
/* SEQUENCE: slots, retries, and what is refused (RFC 8881 sections 2.10.6.1 and 18.46). */
#include "nfs4/client/clients.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_fixture.h"

NFS3_SUITE(nfs4_sequence);

static struct fix4_session s;

static void begin_session(void)
{
	cr_assert_eq(fix4_session_new(f, &s, 1, "client", true), NFS4_OK);
}

struct seq_args {
	uint32_t seqid, slot, highest;
	bool cache_this;
};

struct seq_result {
	uint32_t status; /* of SEQUENCE */
	uint32_t seqid, slot, highest, target, flags;
};

/* A COMPOUND that begins with SEQUENCE, to which operations may be added. */
static void seq_begin(const struct fix4_session *of, const struct seq_args *a)
{
	fix4_begin_bare(f, of->minor, "");
	fix4_op(f, OP_SEQUENCE);
	xdr_put_fixed(&f->out, of->id, NFS4_SESSIONID_SIZE);
	xdr_put_u32(&f->out, a->seqid);
	xdr_put_u32(&f->out, a->slot);
	xdr_put_u32(&f->out, a->highest);
	xdr_put_bool(&f->out, a->cache_this);
}

static void seq_result(const struct fix4_session *of, struct seq_result *r)
{
	uint8_t id[NFS4_SESSIONID_SIZE];

	memset(r, 0, sizeof(*r));
	r->status = fix4_result(f, OP_SEQUENCE);
	if (r->status != NFS4_OK)
		return;
	xdr_get_fixed(&f->in, id, sizeof(id));
	cr_expect_arr_eq(id, of->id, sizeof(id));
	r->seqid = xdr_get_u32(&f->in);
	r->slot = xdr_get_u32(&f->in);
	r->highest = xdr_get_u32(&f->in);
	r->target = xdr_get_u32(&f->in);
	r->flags = xdr_get_u32(&f->in);
}

/* SEQUENCE alone; the status of the COMPOUND. */
static uint32_t seq(uint32_t seqid, uint32_t slot, uint32_t highest, struct seq_result *r)
{
	const struct seq_args a = { .seqid = seqid, .slot = slot, .highest = highest };
	struct seq_result unused;
	uint32_t status;

	seq_begin(&s, &a);
	status = fix4_send(f);
	seq_result(&s, r ? r : &unused);
	return status;
}

Test(nfs4_sequence, slots_take_their_next_request_only)
{
	static const struct {
		uint32_t seqid, slot, highest, status;
	} steps[] = {
		{ 0, 3, 3, NFS4ERR_SEQ_MISORDERED }, /* as CREATE_SESSION contrived it */
		{ 2, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 1, 3, 3, NFS4_OK },
		{ 1, 3, 3, NFS4_OK }, /* a retry */
		{ 0, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 3, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ UINT32_MAX, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 2, 3, 3, NFS4_OK },
		{ 1, 3, 3, NFS4ERR_SEQ_MISORDERED },
		{ 1, 15, 15, NFS4_OK },
		{ 1, 16, 16, NFS4ERR_BADSLOT },
		{ 1, UINT32_MAX, UINT32_MAX, NFS4ERR_BADSLOT },
		{ 2, 15, 16, NFS4ERR_BAD_HIGH_SLOT },
		{ 2, 15, UINT32_MAX, NFS4ERR_BAD_HIGH_SLOT },
		{ 2, 15, 15, NFS4_OK },
	};
	struct seq_result r;

	NEED_FIXTURE();
	begin_session();
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		uint32_t status = seq(steps[i].seqid, steps[i].slot, steps[i].highest, &r);

		cr_expect_eq(status, steps[i].status, "step %zu: %u", i, status);
		cr_expect_eq(r.status, steps[i].status);
		if (r.status != NFS4_OK)
			continue;
		cr_expect_eq(r.seqid, steps[i].seqid);
		cr_expect_eq(r.slot, steps[i].slot);
		cr_expect_eq(r.highest, 15);
		cr_expect_eq(r.target, 15);
		cr_expect_eq(r.flags, 0);
		whole();
	}
}
