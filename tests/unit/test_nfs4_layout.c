/* SPDX-License-Identifier: BSD-2-Clause */
/* Layouts: data servers chosen by hash, bounds, identities, recalls, what clients report, and what goes by wire. */
#include <arpa/inet.h>

#include "lib/util.h"
#include "nfs4/client/nfs4_client.h"
#include "nfs4/layout/data_server.h"
#include "nfs4/layout/ff_wire.h"
#include "nfs4/layout/layouts.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_callbacks.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_layout);

#define LEASE 90u
#define MEMBERS 5u

/* The cluster, of which member 0 is the server under test. */
static struct {
	struct nfs4_member of[MEMBERS];
	bool is_away[MEMBERS];
} members;

static bool blocks_nothing(void *ctx)
{
	(void)ctx;
	return false;
}

static bool takes_reclaims(void *ctx)
{
	(void)ctx;
	return true;
}

static unsigned running(void *ctx, struct nfs4_member *out, unsigned max)
{
	unsigned n = 0;

	(void)ctx;
	for (unsigned i = 0; i < MEMBERS && n < max; i++) {
		if (!members.is_away[i])
			out[n++] = members.of[i];
	}
	return n;
}

static const struct nfs4_cluster cluster = {
	.blocks_locks = blocks_nothing,
	.takes_reclaims = takes_reclaims,
	.members = running,
	.layouts = true,
	.data_io = 1 << 20,
};

static struct op_client client;
static struct op_owner owner;
static struct op_file file;
static struct cb_call c;

static void set_members(void)
{
	memset(&members, 0, sizeof(members));
	for (unsigned i = 0; i < MEMBERS; i++) {
		struct nfs4_member *m = &members.of[i];

		snprintf(m->name, sizeof(m->name), "member %u", i);
		m->own = i == 0;
		m->run = 100 + i;
		m->naddresses = 1;
		memcpy(m->address[0],
		       (uint8_t[16]){ [10] = 0xff, 0xff, 10, 0, 0, (uint8_t)(i + 1) }, 16);
		m->tcp_port = 2049;
	}
}

static void start(void)
{
	set_members();
	f->server4->cfg.cluster = &cluster;
	cbs_on(f);
	cr_assert_eq(op_client_new(f, &client, 2, "client"), NFS4_OK);
	if (cbs_take(&c)) /* RECLAIM_COMPLETE's SEQUENCE */
		cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
}

static uint32_t layoutget_by(struct op_client *cl, const struct vfs_fh *fh,
			     const struct nfs4_stateid *sid, uint32_t iomode)
{
	op_begin(f, cl);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LAYOUTGET);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, iomode);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	xdr_put_u64(&f->out, 0);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 4096);
	return fix4_send(f);
}

static uint32_t layoutget(const struct nfs4_stateid *sid, uint32_t iomode)
{
	return layoutget_by(&client, &file.fh, sid, iomode);
}

/* Reads the result of a LAYOUTGET; returns its uid. */
static uint32_t take_layout(struct nfs4_stateid *sid, uint8_t device[NFS4_DEVICEID_SIZE])
{
	char uid[16] = "";
	const uint8_t *text;
	uint32_t len;

	cr_assert_eq(fix4_result(f, OP_PUTFH), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_LAYOUTGET), NFS4_OK);
	cr_expect(xdr_get_bool(&f->in), "return on close");
	nfs4_get_stateid(&f->in, sid);
	xdr_skip(&f->in, 4 + 8 + 8 + 4 + 4 + 4 + 8 + 4 + 4);
	xdr_get_fixed(&f->in, device, NFS4_DEVICEID_SIZE);
	xdr_skip(&f->in, 4 + 16 + 4);
	xdr_skip_opaque(&f->in, NFS4_FHSIZE);
	text = xdr_get_opaque(&f->in, sizeof(uid) - 1, &len);
	cr_assert_not_null(text);
	memcpy(uid, text, len);
	xdr_skip_opaque(&f->in, 16);
	xdr_skip(&f->in, 8);
	whole();
	return (uint32_t)strtoul(uid, NULL, 10);
}

static uint32_t layoutreturn(const struct nfs4_stateid *sid, uint32_t iomode)
{
	op_begin(f, &client);
	fix4_putfh(f, &file.fh);
	fix4_op(f, OP_LAYOUTRETURN);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, iomode);
	xdr_put_u32(&f->out, LAYOUT4_RET_REC_FILE);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

static uint32_t layouterror(const struct nfs4_stateid *sid, const uint8_t *device, uint32_t status)
{
	op_begin(f, &client);
	fix4_putfh(f, &file.fh);
	fix4_op(f, OP_LAYOUTERROR);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 1);
	xdr_put_fixed(&f->out, device, NFS4_DEVICEID_SIZE);
	xdr_put_u32(&f->out, status);
	xdr_put_u32(&f->out, OP_WRITE);
	return fix4_send(f);
}

static void open_file(const char *name)
{
	const struct op_how how = { .fh = &f->root, .name = name };

	make_file(name, "text", 0666);
	cr_assert_eq(op_open(f, &owner, &how, &file), NFS4_OK);
}

/* Opens files until one has another member as data server. */
static void open_elsewhere(struct nfs4_device *device)
{
	char name[16];

	for (unsigned i = 0; i < 100; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		open_file(name);
		cr_assert(nfs4_device_of_file(f->server4, &file.fh, device));
		if (!device->member.own)
			return;
	}
	cr_assert_fail("all files are the member's own");
}

static struct nfs4_held held(void)
{
	struct nfs4_held n;

	nfs4_held(f->server4, &n);
	return n;
}

/* Seconds go by in which the client renews its lease. */
static void wait_seconds(unsigned seconds)
{
	for (unsigned left = seconds, step; left > 0; left -= step) {
		step = left > LEASE / 2 ? LEASE / 2 : left;
		nfs4_skip_lease_time(f->server4, step);
		cr_assert_neq(cbs_sequence(f, &client.session), UINT32_MAX);
	}
	nfs4_tick(f->server4);
}

Test(nfs4_layout, data_servers_by_hash)
{
	enum { FILES = 2000 };
	unsigned n[MEMBERS] = { 0 }, moved = 0;
	struct nfs4_device before[FILES], now;
	struct vfs_fh fh = { .len = 32 };

	NEED_FIXTURE();
	set_members();
	f->server4->cfg.cluster = &cluster;
	for (unsigned i = 0; i < FILES; i++) {
		memcpy(fh.data, &i, sizeof(i));
		cr_assert(nfs4_device_of_file(f->server4, &fh, &before[i]));
		n[before[i].member.run - 100]++;
	}
	for (unsigned i = 0; i < MEMBERS; i++)
		cr_expect(n[i] > FILES / MEMBERS / 2 && n[i] < 2 * FILES / MEMBERS, "member %u: %u",
			  i, n[i]);
	members.is_away[2] = true;
	for (unsigned i = 0; i < FILES; i++) {
		memcpy(fh.data, &i, sizeof(i));
		cr_assert(nfs4_device_of_file(f->server4, &fh, &now));
		cr_expect_neq(now.member.run, 102u);
		moved += now.member.run != before[i].member.run;
	}
	cr_expect_eq(moved, n[2], "only its files have moved");
	members.of[3].naddresses = 0;
	members.of[4].tcp_port = 0;
	for (unsigned i = 0; i < FILES; i++) {
		memcpy(fh.data, &i, sizeof(i));
		cr_assert(nfs4_device_of_file(f->server4, &fh, &now));
		cr_expect_lt(now.member.run, 102u, "one that clients cannot reach");
	}
	memset(members.is_away, 1, sizeof(members.is_away));
	cr_expect_not(nfs4_device_of_file(f->server4, &fh, &now));
	cr_expect_eq(nfs4_device_ids(f->server4, (uint8_t(*)[NFS4_DEVICEID_SIZE])before), 0);
}

Test(nfs4_layout, device_ids)
{
	uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE],
		again[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE];
	struct nfs4_device device;

	NEED_FIXTURE();
	set_members();
	f->server4->cfg.cluster = &cluster;
	cr_assert_eq(nfs4_device_ids(f->server4, ids), MEMBERS);
	for (unsigned i = 0; i < MEMBERS; i++) {
		cr_assert(nfs4_device_find(f->server4, ids[i], &device));
		cr_expect_eq(device.member.run, 100 + i);
	}
	members.of[1].run = 200;
	members.of[2].tcp_port++;
	members.of[3].address[0][15]++;
	cr_assert_eq(nfs4_device_ids(f->server4, again), MEMBERS);
	cr_expect_arr_eq(ids[0], again[0], NFS4_DEVICEID_SIZE);
	for (unsigned i = 1; i < 4; i++)
		cr_expect_not(nfs4_device_find(f->server4, ids[i], &device), "%u", i);
}

Test(nfs4_layout, given_and_returned)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	cr_expect_eq(take_layout(&sid, id), 0);
	cr_expect_arr_eq(id, device.id, sizeof(id));
	cr_expect_eq(sid.seqid, 1);
	cr_expect_eq(held().layouts, 1);
	cr_expect_eq(held().layouts_given, 1);
	cr_assert_eq(layoutreturn(&sid, LAYOUTIOMODE4_RW), NFS4_OK);
	cr_expect_eq(held().layouts, 0);
	cr_expect_eq(layoutreturn(&sid, LAYOUTIOMODE4_RW), NFS4ERR_BAD_STATEID);
}

Test(nfs4_layout, seqids_wrap)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	struct nfs4_client *cl;
	uint8_t id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	take_layout(&sid, id);
	cl = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
	cr_assert_not_null(cl);
	TAILQ_LAST(&cl->holdings->states, nfs4_held_states)->seqid = UINT32_MAX;
	nfs4_client_put(cl);
	sid.seqid = UINT32_MAX;
	cr_assert_eq(layoutget(&sid, LAYOUTIOMODE4_READ), NFS4_OK);
	take_layout(&sid, id);
	cr_expect_eq(sid.seqid, 1);
	sid.seqid = UINT32_MAX;
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_READ), NFS4_OK, "an older one");
	sid.seqid = 0;
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_READ), NFS4ERR_BAD_STATEID);
}

Test(nfs4_layout, a_bounded_number)
{
	struct nfs4_device device;

	NEED_FIXTURE();
	start();
	f->server4->layouts->max_of_client = 1;
	open_elsewhere(&device);
	cr_expect_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	open_file("another");
	members.of[0].naddresses = 0; /* so it is at another member */
	cr_expect_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4ERR_LAYOUTUNAVAILABLE);
	f->server4->layouts->max_of_client = 2;
	cr_expect_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
}

/* The data server would not take the owner for the owner. */
Test(nfs4_layout, not_where_the_owner_is_squashed)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];
	struct vfs_fh fh;

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	fh = file.fh;
	f->access.flags |= VFS_ROOT_SQUASH;
	f->access.anonuid = f->access.anongid = 4001;
	f->uid = 1000;
	cr_expect_eq(layoutget_by(&client, &fh, &file.sid, LAYOUTIOMODE4_READ),
		     NFS4ERR_LAYOUTUNAVAILABLE, "root's file");
	f->uid = 0;
	cr_assert_eq(layoutget_by(&client, &fh, &file.sid, LAYOUTIOMODE4_READ), NFS4_OK,
		     "root is squashed at both");
	cr_expect_eq(take_layout(&sid, id), 0);
}

Test(nfs4_layout, recalled_when_the_data_server_is_gone)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	take_layout(&sid, id);
	wait_seconds(1);
	cr_expect_eq(cbs_count(), 0, "all run");
	members.is_away[(device.member.run - 100 + 1) % MEMBERS] = true;
	wait_seconds(1);
	cr_expect_eq(cbs_count(), 0, "its data server runs");
	members.is_away[device.member.run - 100] = true;
	wait_seconds(1);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_LAYOUTRECALL);
	cr_expect_eq(c.stateid.seqid, 2);
	cr_expect_arr_eq(c.stateid.other, sid.other, NFS4_OTHER_SIZE);
	cr_expect_arr_eq(c.fh.data, file.fh.data, file.fh.len);
	cr_expect_eq(c.nreferring, 1, "the client may not have read the reply to its LAYOUTGET");
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_DELAY);
	wait_seconds(1);
	cr_assert(cbs_take(&c), "told again");
	cr_expect_eq(c.stateid.seqid, 2, "of the same recall");
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	wait_seconds(2);
	cr_expect_eq(cbs_count(), 0, "the client knows");
	cr_expect_eq(layoutreturn(&c.stateid, LAYOUTIOMODE4_ANY), NFS4_OK);
	cr_expect_eq(held().layouts, 0);
	wait_seconds(1);
	cr_expect_eq(held().layouts_taken, 0);
}

Test(nfs4_layout, the_client_has_none_any_more)
{
	struct nfs4_device device;

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	members.is_away[device.member.run - 100] = true;
	wait_seconds(1);
	cr_assert(cbs_take(&c));
	cbs_answer(f, &c, NFS4_OK, NFS4ERR_NOMATCHING_LAYOUT);
	cr_expect_eq(held().layouts, 0);
}

Test(nfs4_layout, taken_after_a_lease)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	take_layout(&sid, id);
	members.is_away[device.member.run - 100] = true;
	wait_seconds(1);
	cr_assert(cbs_take(&c));
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	wait_seconds(LEASE - 2);
	cr_expect_eq(held().layouts, 1);
	wait_seconds(3);
	cr_expect_eq(held().layouts, 0);
	cr_expect_eq(held().layouts_taken, 1);
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_RW), NFS4ERR_BAD_STATEID);
	cr_expect_eq(op_write(f, &client, &file.fh, &file.sid), NFS4_OK, "by the open, here");
}

/* A layout must not outlive the data server that ends while LAYOUTGET runs, nor keep the client's memory. */
Test(nfs4_layout, ends_with_the_client_while_it_is_recalled)
{
	struct nfs4_device device;

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	members.is_away[device.member.run - 100] = true;
	wait_seconds(1);
	cr_assert_eq(nfs4_forget_client(f->server4, client.clientid), 0);
	cr_expect_eq(held().layouts, 0);
	nfs4_tick(f->server4);
	cr_expect_eq(held().clients, 0);
}

static bool lost_all(void *ctx, uint32_t id, const struct sockaddr *peer)
{
	(void)ctx;
	(void)peer;
	return id == vfs_export_id(f->exp[0]);
}

Test(nfs4_layout, ends_with_the_export)
{
	uint32_t id, some;
	const struct vfs_exports_lost lost = {
		.ids = &id, .n = 1, .some = &some, .lost = lost_all
	};
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t device_id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	id = vfs_export_id(f->exp[0]);
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	take_layout(&sid, device_id);
	cr_expect_gt(nfs4_revoke_exports(f->server4, &lost), 0, "opens");
	cr_expect_eq(held().layouts, 0);
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_RW), NFS4ERR_BAD_STATEID);
}

Test(nfs4_layout, errors_keep_a_client_from_the_data_server)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_RW), NFS4_OK);
	take_layout(&sid, id);
	cr_expect_eq(layouterror(&sid, (const uint8_t *)"sixteen bytes ...", NFS4ERR_NXIO),
		     NFS4_OK);
	cr_expect_eq(layouterror(&sid, id, NFS4ERR_GRACE), NFS4_OK);
	cr_expect_eq(held().layout_errors, 0, "of another device, and one that passes");
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_RW), NFS4_OK);
	cr_expect_eq(layouterror(&sid, id, NFS4ERR_NXIO), NFS4_OK);
	cr_expect_eq(held().layout_errors, 1);
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_RW), NFS4ERR_LAYOUTUNAVAILABLE);
	wait_seconds(LEASE + 1);
	cr_expect_eq(layoutget(&sid, LAYOUTIOMODE4_RW), NFS4_OK, "a lease later");
}

Test(nfs4_layout, what_is_remembered_is_bounded)
{
	static const uint8_t device[NFS4_DEVICEID_SIZE] = { 1 }, other[NFS4_DEVICEID_SIZE] = { 2 };
	struct nfs4_client *cl;

	NEED_FIXTURE();
	start();
	cl = nfs4_client_by_number(f->server4, (uint32_t)client.clientid);
	cr_assert_not_null(cl);
	for (uint64_t file_id = 1; file_id <= 1000; file_id++)
		nfs4_layout_trouble(cl, device, file_id);
	cr_expect(nfs4_layout_is_troubled(cl, device, 1000));
	cr_expect_not(nfs4_layout_is_troubled(cl, device, 1));
	cr_expect_not(nfs4_layout_is_troubled(cl, other, 1000));
	nfs4_layout_trouble(cl, device, 0);
	cr_expect(nfs4_layout_is_troubled(cl, device, 1));
	nfs4_client_put(cl);
}

/* An address of a device, "NETID UADDR"; behind the last, "". */
static void take_address(struct xdr_in *in, char out[128])
{
	char *netid, *uaddr;
	uint32_t len;

	netid = xdr_get_string(in, 64, &len);
	uaddr = xdr_get_string(in, 64, &len);
	cr_assert(netid && uaddr);
	snprintf(out, 128, "%s %s", netid, uaddr);
}

Test(nfs4_layout, addresses_of_a_device)
{
	static const struct {
		struct nfs4_ff_caller caller;
		const char *addrs[4];
	} cases[] = {
		{ { .ipv4 = true },
		  { "tcp 10.0.0.1.8.1", "tcp6 fd00::1.8.1", "rdma 10.0.0.1.78.81",
		    "rdma6 fd00::1.78.81" } },
		{ { .rdma = true },
		  { "rdma6 fd00::1.78.81", "rdma 10.0.0.1.78.81", "tcp6 fd00::1.8.1",
		    "tcp 10.0.0.1.8.1" } },
	};
	struct nfs4_member *m = &members.of[0];
	uint8_t bytes[NFS4_FF_DEVICE_MAX];
	char text[128];

	NEED_FIXTURE();
	set_members();
	m->naddresses = 2;
	m->rdma_port = 20049;
	memcpy(m->address[1], (uint8_t[16]){ 0xfd, [15] = 1 }, 16);
	for (unsigned i = 0; i < rn_array_size(cases); i++) {
		struct xdr_out out;
		struct rpc_seg seg = { .base = bytes };
		struct xdr_in in;

		xdr_out_init(&out, bytes, sizeof(bytes));
		nfs4_put_ff_device(&out, m, 65536, &cases[i].caller);
		seg.len = (uint32_t)out.used;
		xdr_in_init(&in, &seg, 1, &f->arena);
		cr_assert_eq(xdr_get_u32(&in), 4);
		for (unsigned k = 0; k < 4; k++) {
			take_address(&in, text);
			cr_expect_str_eq(text, cases[i].addrs[k]);
		}
		cr_expect_eq(xdr_get_u32(&in), 1);
		cr_expect_eq(xdr_get_u32(&in), 3);
		cr_expect_eq(xdr_get_u32(&in), 0);
		cr_expect_eq(xdr_get_u32(&in), 65536);
		cr_expect_eq(xdr_get_u32(&in), 65536);
		cr_expect_not(xdr_get_bool(&in));
		cr_expect_eq(in.left, 0);
	}
}

/* The longest of all fit what is reserved. */
Test(nfs4_layout, sizes)
{
	static const uint8_t id[NFS4_DEVICEID_SIZE];
	const struct vfs_fh fh = { .len = VFS_FH_MAX };
	const struct nfs4_ff_layout layout = { id, &fh, UINT32_MAX, UINT32_MAX };
	struct nfs4_member m = { .naddresses = NFS4_MEMBER_ADDRESSES,
				 .tcp_port = 65535,
				 .rdma_port = 65535 };
	uint8_t bytes[8192];
	struct xdr_out out;

	memset(m.address, 0xfd, sizeof(m.address));
	xdr_out_init(&out, bytes, sizeof(bytes));
	nfs4_put_ff_layout(&out, &layout);
	cr_expect_eq(out.used, NFS4_FF_LAYOUT_MAX);
	xdr_out_init(&out, bytes, sizeof(bytes));
	nfs4_put_ff_device(&out, &m, 65536, &(struct nfs4_ff_caller){ .ipv4 = true });
	cr_expect_leq(out.used, NFS4_FF_DEVICE_MAX);
}

/* Each error that an operation on layouts answers. */

struct get {
	const struct vfs_fh *fh;
	uint32_t type, iomode;
	uint64_t offset, length, minlength;
	const struct nfs4_stateid *sid;
	uint32_t maxcount;
};

static uint32_t get(const struct get *a)
{
	op_begin(f, &client);
	fix4_putfh(f, a->fh);
	fix4_op(f, OP_LAYOUTGET);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, a->type);
	xdr_put_u32(&f->out, a->iomode);
	xdr_put_u64(&f->out, a->offset);
	xdr_put_u64(&f->out, a->length);
	xdr_put_u64(&f->out, a->minlength);
	fix4_stateid(f, a->sid);
	xdr_put_u32(&f->out, a->maxcount);
	return fix4_send(f);
}

Test(nfs4_layout, errors_of_layoutget)
{
	struct op_owner reader = { &client, "reader", 1 };
	struct nfs4_device device;
	struct nfs4_stateid old;
	struct op_file read;
	struct get good, a;

	NEED_FIXTURE();
	start();
	members.of[0].naddresses = 0; /* no file is this server's own */
	open_elsewhere(&device);
	good = (struct get){ &file.fh, LAYOUT4_FLEX_FILES, LAYOUTIOMODE4_RW, 0, 1, 1, &file.sid,
			     4096 };
	a = good;
	a.type = 1;
	cr_expect_eq(get(&a), NFS4ERR_UNKNOWN_LAYOUTTYPE);
	a = good;
	a.iomode = LAYOUTIOMODE4_ANY;
	cr_expect_eq(get(&a), NFS4ERR_BADIOMODE);
	a = good;
	a.minlength = 2;
	cr_expect_eq(get(&a), NFS4ERR_INVAL);
	a = good;
	a.maxcount = 16;
	cr_expect_eq(get(&a), NFS4ERR_TOOSMALL);
	a = good;
	a.fh = &f->root;
	cr_expect_eq(get(&a), NFS4ERR_WRONG_TYPE);
	cr_assert_eq(op_open(f, &reader,
			     &(struct op_how){ .fh = &f->root,
					       .name = "f0",
					       .access = OPEN4_SHARE_ACCESS_READ },
			     &read),
		     NFS4_OK);
	a = good;
	a.fh = &read.fh;
	a.sid = &read.sid;
	cr_expect_eq(get(&a), NFS4ERR_OPENMODE);
	cr_assert_eq(op_open(f, &reader, &(struct op_how){ .fh = &f->root, .name = "f0" }, &read),
		     NFS4_OK);
	old = read.sid;
	old.seqid--;
	a.sid = &old;
	cr_expect_eq(get(&a), NFS4ERR_OLD_STATEID);
	cr_assert_eq(get(&good), NFS4_OK);
	members.is_away[device.member.run - 100] = true;
	wait_seconds(1);
	cr_assert(cbs_take(&c));
	cr_expect_eq(get(&good), NFS4ERR_RECALLCONFLICT);
}

static uint32_t commit(const struct vfs_fh *fh, const struct nfs4_stateid *sid, bool reclaim,
		       uint64_t last, uint32_t type)
{
	op_begin(f, &client);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LAYOUTCOMMIT);
	xdr_put_u64(&f->out, 8);
	xdr_put_u64(&f->out, 8);
	xdr_put_bool(&f->out, reclaim);
	fix4_stateid(f, sid);
	xdr_put_bool(&f->out, true);
	xdr_put_u64(&f->out, last);
	xdr_put_bool(&f->out, false);
	xdr_put_u32(&f->out, type);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

static uint32_t give_back(const struct vfs_fh *fh, const struct nfs4_stateid *sid, bool reclaim,
			  uint32_t iomode, uint32_t type)
{
	op_begin(f, &client);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LAYOUTRETURN);
	xdr_put_bool(&f->out, reclaim);
	xdr_put_u32(&f->out, type);
	xdr_put_u32(&f->out, iomode);
	xdr_put_u32(&f->out, LAYOUT4_RET_REC_FILE);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	fix4_stateid(f, sid);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

Test(nfs4_layout, errors_of_layoutcommit_and_layoutreturn)
{
	static const struct nfs4_stateid anonymous;
	const uint32_t flex = LAYOUT4_FLEX_FILES;
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];
	struct vfs_fh link;

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(symlink("to", fix_path(f, "link")), 0);
	link = handle("link");
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_READ), NFS4_OK);
	take_layout(&sid, id);
	cr_expect_eq(commit(&file.fh, &sid, false, 8, flex), NFS4ERR_BADIOMODE);
	cr_assert_eq(layoutget(&sid, LAYOUTIOMODE4_RW), NFS4_OK);
	take_layout(&sid, id);
	cr_expect_eq(commit(&file.fh, &sid, false, 8, flex), NFS4_OK);
	cr_expect_eq(commit(&file.fh, &sid, false, 8, 1), NFS4ERR_UNKNOWN_LAYOUTTYPE);
	cr_expect_eq(commit(&file.fh, &sid, false, 16, flex), NFS4ERR_INVAL);
	cr_expect_eq(commit(&file.fh, &sid, true, 8, flex), NFS4ERR_NO_GRACE);
	cr_expect_eq(commit(&file.fh, &file.sid, false, 8, flex), NFS4ERR_BADLAYOUT);
	cr_expect_eq(commit(&f->root, &sid, false, 8, flex), NFS4ERR_ISDIR);
	cr_expect_eq(commit(&link, &sid, false, 8, flex), NFS4ERR_SYMLINK);
	cr_expect_eq(give_back(&file.fh, &sid, false, LAYOUTIOMODE4_RW, 1),
		     NFS4ERR_UNKNOWN_LAYOUTTYPE);
	cr_expect_eq(give_back(&file.fh, &sid, false, 0, flex), NFS4ERR_INVAL);
	cr_expect_eq(give_back(&file.fh, &sid, true, LAYOUTIOMODE4_RW, flex), NFS4ERR_NO_GRACE);
	cr_expect_eq(give_back(&file.fh, &anonymous, false, LAYOUTIOMODE4_RW, flex),
		     NFS4ERR_BAD_STATEID);
	cr_expect_eq(give_back(&f->root, &sid, false, LAYOUTIOMODE4_RW, flex), NFS4ERR_WRONG_TYPE);
	cr_expect_eq(give_back(&file.fh, &sid, false, LAYOUTIOMODE4_ANY, flex), NFS4_OK);
}

static uint32_t statistics(const struct vfs_fh *fh, const struct nfs4_stateid *sid)
{
	static const uint8_t id[NFS4_DEVICEID_SIZE];

	op_begin(f, &client);
	fix4_putfh(f, fh);
	fix4_op(f, OP_LAYOUTSTATS);
	xdr_put_u64(&f->out, 0);
	xdr_put_u64(&f->out, UINT64_MAX);
	fix4_stateid(f, sid);
	for (unsigned i = 0; i < 4; i++)
		xdr_put_u64(&f->out, 1);
	xdr_put_fixed(&f->out, id, sizeof(id));
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

Test(nfs4_layout, errors_of_reports)
{
	struct nfs4_stateid sid;
	struct nfs4_device device;
	uint8_t id[NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	open_elsewhere(&device);
	cr_assert_eq(layoutget(&file.sid, LAYOUTIOMODE4_READ), NFS4_OK);
	take_layout(&sid, id);
	cr_expect_eq(statistics(&file.fh, &sid), NFS4_OK);
	cr_expect_eq(statistics(&file.fh, &file.sid), NFS4ERR_BAD_STATEID);
	cr_expect_eq(statistics(&f->root, &sid), NFS4ERR_WRONG_TYPE);
	cr_expect_eq(layouterror(&file.sid, id, NFS4ERR_IO), NFS4ERR_BAD_STATEID);
	file.fh = f->root;
	cr_expect_eq(layouterror(&sid, id, NFS4ERR_IO), NFS4ERR_WRONG_TYPE);
}

static uint32_t getdeviceinfo(const uint8_t *id, uint32_t type, uint32_t maxcount)
{
	op_begin(f, &client);
	fix4_op(f, OP_GETDEVICEINFO);
	xdr_put_fixed(&f->out, id, NFS4_DEVICEID_SIZE);
	xdr_put_u32(&f->out, type);
	xdr_put_u32(&f->out, maxcount);
	xdr_put_u32(&f->out, 0);
	return fix4_send(f);
}

Test(nfs4_layout, errors_of_getdeviceinfo)
{
	uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE];
	uint32_t least;

	NEED_FIXTURE();
	start();
	cr_assert_eq(nfs4_device_ids(f->server4, ids), MEMBERS);
	cr_expect_eq(getdeviceinfo(ids[1], 1, 4096), NFS4ERR_UNKNOWN_LAYOUTTYPE);
	cr_expect_eq(getdeviceinfo((const uint8_t *)"sixteen bytes ...", LAYOUT4_FLEX_FILES, 4096),
		     NFS4ERR_NOENT);
	cr_expect_eq(getdeviceinfo(ids[1], LAYOUT4_FLEX_FILES, 20), NFS4ERR_TOOSMALL);
	cr_expect_eq(fix4_result(f, OP_GETDEVICEINFO), NFS4ERR_TOOSMALL);
	least = xdr_get_u32(&f->in);
	whole();
	cr_expect_eq(getdeviceinfo(ids[1], LAYOUT4_FLEX_FILES, least - 1), NFS4ERR_TOOSMALL);
	cr_expect_eq(getdeviceinfo(ids[1], LAYOUT4_FLEX_FILES, least), NFS4_OK);
	cr_expect_eq(getdeviceinfo(ids[1], LAYOUT4_FLEX_FILES, 0), NFS4_OK, "is it there?");
}

Test(nfs4_layout, clients_are_told_of_devices_that_are_gone)
{
	uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE];

	NEED_FIXTURE();
	start();
	cr_assert_eq(nfs4_device_ids(f->server4, ids), MEMBERS);
	wait_seconds(1);
	op_begin(f, &client);
	fix4_op(f, OP_GETDEVICEINFO);
	xdr_put_fixed(&f->out, ids[2], NFS4_DEVICEID_SIZE);
	xdr_put_u32(&f->out, LAYOUT4_FLEX_FILES);
	xdr_put_u32(&f->out, 4096);
	xdr_put_u32(&f->out, 1);
	xdr_put_u32(&f->out, UINT32_MAX);
	cr_assert_eq(fix4_send(f), NFS4_OK);
	cr_assert_eq(fix4_result(f, OP_GETDEVICEINFO), NFS4_OK);
	cr_expect_eq(xdr_get_u32(&f->in), LAYOUT4_FLEX_FILES);
	xdr_skip_opaque(&f->in, 8192);
	cr_expect_eq(xdr_get_u32(&f->in), 1);
	cr_expect_eq(xdr_get_u32(&f->in),
		     1u << NOTIFY_DEVICEID4_CHANGE | 1u << NOTIFY_DEVICEID4_DELETE);
	whole();
	members.is_away[2] = true;
	wait_seconds(LEASE);
	wait_seconds(1);
	cr_expect_eq(cbs_count(), 0, "a layout may not have been taken yet");
	wait_seconds(LEASE / 2);
	wait_seconds(LEASE / 2 + 2);
	cr_assert(cbs_take(&c));
	cr_expect_eq(c.op, OP_CB_NOTIFY_DEVICEID);
	cr_expect_arr_eq(c.device, ids[2], NFS4_DEVICEID_SIZE);
	cbs_answer(f, &c, NFS4_OK, NFS4_OK);
	wait_seconds(1);
	cr_expect_eq(cbs_count(), 0, "once");
}
