/* SPDX-License-Identifier: BSD-2-Clause */
/* EXCHANGE_ID: the nine cases of RFC 8881 section 18.35.4, and refused arguments. */
#include <ftw.h>
#include <stdlib.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_exchange_id);

#define UPDATE EXCHGID4_FLAG_UPD_CONFIRMED_REC_A

static struct eid_result r;

static uint32_t exchange(const char *owner, const char *verifier, uint32_t flags)
{
	const struct eid_args a = { .owner = owner, .verifier = verifier, .flags = flags };

	return call_exchange_id(f, NULL, &a, &r);
}

static uint32_t create(uint64_t clientid, uint32_t seqid)
{
	const struct cs_args a = {
		.clientid = clientid, .seqid = seqid, .fore = usual_channel, .back = usual_channel
	};
	struct cs_result out;

	return call_create_session(f, NULL, &a, &out);
}

Test(nfs4_exchange_id, case_1_new_owner)
{
	NEED_FIXTURE();
	cr_expect_eq(exchange("one", "verf0001", 0), NFS4_OK);
	whole();
	cr_expect_neq(r.clientid, 0);
	cr_expect_eq(r.flags, EXCHGID4_FLAG_USE_NON_PNFS);
	cr_expect_eq(r.protect, 0);
	cr_expect_eq(r.minor_id, 0);
	cr_expect_str_eq(r.major, r.scope);
	cr_expect_eq(strncmp(r.major, "ringnfs-", 8), 0);
	cr_expect_eq(strncmp(r.impl, "ringnfs", 7), 0, "%s", r.impl);
	cr_expect_eq(create(r.clientid, r.seqid), NFS4_OK);
}

Test(nfs4_exchange_id, case_2_the_same_again)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	id = confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(exchange("one", "verf0001", 0), NFS4_OK);
	cr_expect_eq(r.clientid, id);
	cr_expect_eq(r.flags, EXCHGID4_FLAG_USE_NON_PNFS | EXCHGID4_FLAG_CONFIRMED_R);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	/* The result's sequence number must be valid for one more session. */
	cr_expect_eq(create(id, r.seqid), NFS4_OK);
}

Test(nfs4_exchange_id, case_3_another_principal)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	id = confirmed_client(f, "one", "verf0001", &s);
	f->uid = 1000;
	/* A client without state is replaced by a new one. */
	cr_expect_eq(exchange("one", "verf0001", 0), NFS4_OK);
	cr_expect_neq(r.clientid, id);
	cr_expect_eq(r.flags, EXCHGID4_FLAG_USE_NON_PNFS);
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
	cr_expect_eq(create(id, 2), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(create(r.clientid, r.seqid), NFS4_OK);
}

Test(nfs4_exchange_id, case_4_replaces_an_unconfirmed_one)
{
	uint64_t id;

	NEED_FIXTURE();
	cr_expect_eq(exchange("one", "verf0001", 0), NFS4_OK);
	id = r.clientid;
	f->uid = 1000;
	cr_expect_eq(exchange("one", "verf0002", 0), NFS4_OK);
	cr_expect_neq(r.clientid, id);
	cr_expect_eq(create(r.clientid, r.seqid), NFS4_OK);
	f->uid = 0;
	cr_expect_eq(create(id, 1), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_exchange_id, case_5_the_client_has_restarted)
{
	struct fix4_session s;
	uint64_t id, id2;

	NEED_FIXTURE();
	id = confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(exchange("one", "verf0002", 0), NFS4_OK);
	id2 = r.clientid;
	cr_expect_neq(id2, id);
	cr_expect_eq(r.flags, EXCHGID4_FLAG_USE_NON_PNFS);
	/* The old client lives until the new one is confirmed. */
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	cr_expect_eq(create(id2, r.seqid), NFS4_OK);
	cr_expect_eq(call_sequence(f, &s), NFS4ERR_BADSESSION);
	cr_expect_eq(create(id, 2), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_exchange_id, case_5_and_the_old_one_after_all)
{
	struct fix4_session s;
	uint64_t id, id2;

	NEED_FIXTURE();
	id = confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(exchange("one", "verf0002", 0), NFS4_OK);
	id2 = r.clientid;
	cr_expect_eq(exchange("one", "verf0001", 0), NFS4_OK);
	cr_expect_eq(r.clientid, id);
	cr_expect_eq(create(id2, 1), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_exchange_id, case_6_update)
{
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	id = confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(exchange("one", "verf0001", UPDATE), NFS4_OK);
	cr_expect_eq(r.clientid, id);
	cr_expect_eq(r.flags, EXCHGID4_FLAG_USE_NON_PNFS | EXCHGID4_FLAG_CONFIRMED_R);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_exchange_id, case_7_nothing_to_update)
{
	uint64_t id;

	NEED_FIXTURE();
	cr_expect_eq(exchange("one", "verf0001", UPDATE), NFS4ERR_NOENT);
	cr_expect_eq(exchange("one", "verf0001", 0), NFS4_OK);
	id = r.clientid;
	cr_expect_eq(exchange("one", "verf0001", UPDATE), NFS4ERR_NOENT);
	cr_expect_eq(create(id, 1), NFS4_OK);
}

Test(nfs4_exchange_id, cases_8_and_9_an_update_by_others)
{
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(exchange("one", "verf0002", UPDATE), NFS4ERR_NOT_SAME);
	f->uid = 1000;
	cr_expect_eq(exchange("one", "verf0002", UPDATE), NFS4ERR_NOT_SAME);
	cr_expect_eq(exchange("one", "verf0001", UPDATE), NFS4ERR_PERM);
	f->uid = 0;
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
}

Test(nfs4_exchange_id, owners_and_minor_versions_are_apart)
{
	struct scid_args a = { .owner = "one", .verifier = "verf0001" };
	struct scid_result sr;
	struct fix4_session s;

	NEED_FIXTURE();
	confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(exchange("two", "verf0001", 0), NFS4_OK);
	cr_expect_eq(r.flags, EXCHGID4_FLAG_USE_NON_PNFS);
	cr_expect_eq(exchange("", "verf0001", 0), NFS4_OK);
	/* SETCLIENTID's clients are separate. */
	cr_expect_eq(call_setclientid(f, &a, &sr), NFS4_OK);
	cr_expect_neq(sr.clientid, s.clientid);
	cr_expect_eq(call_setclientid_confirm(f, &sr), NFS4_OK);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	cr_expect_eq(call_renew(f, s.clientid), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(create(sr.clientid, 1), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_exchange_id, arguments)
{
	static const struct {
		struct eid_args a;
		uint32_t status;
	} rows[] = {
		{ { .flags = 0x103 | EXCHGID4_FLAG_USE_NON_PNFS }, NFS4_OK },
		{ { .flags = EXCHGID4_FLAG_USE_PNFS_MDS | EXCHGID4_FLAG_USE_PNFS_DS }, NFS4_OK },
		{ { .flags = EXCHGID4_FLAG_CONFIRMED_R }, NFS4ERR_INVAL },
		{ { .flags = 0x8 }, NFS4ERR_INVAL },
		{ { .flags = EXCHGID4_FLAG_SUPP_FENCE_OPS }, NFS4ERR_INVAL },
		{ { .flags = EXCHGID4_FLAG_SUPP_FENCE_OPS, .minor = 2 }, NFS4_OK },
		{ { .impl_id = true }, NFS4_OK },
		/* Both kinds of state protection need RPCSEC_GSS. */
		{ { .protect = 1 }, NFS4ERR_INVAL },
		{ { .protect = 2, .nalgs = 1, .window = 1 }, NFS4ERR_ENCR_ALG_UNSUPP },
		{ { .protect = 2, .nalgs = 0, .window = 1 }, NFS4ERR_INVAL },
		{ { .protect = 2, .nalgs = 1, .window = 0 }, NFS4ERR_INVAL },
		{ { .protect = 3 }, NFS4ERR_BADXDR },
	};

	NEED_FIXTURE();
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct eid_args a = rows[i].a;
		uint32_t status;

		a.owner = "one";
		a.verifier = "verf0001";
		status = call_exchange_id(f, NULL, &a, &r);
		cr_expect_eq(status, rows[i].status, "row %zu: %u", i, status);
		whole();
	}
}

Test(nfs4_exchange_id, within_a_session_and_not_beside_others)
{
	const struct eid_args a = { .owner = "one", .verifier = "verf0001" };
	struct fix4_session s;
	uint64_t id;

	NEED_FIXTURE();
	id = confirmed_client(f, "one", "verf0001", &s);
	cr_expect_eq(call_exchange_id(f, &s, &a, &r), NFS4_OK);
	cr_expect_eq(r.clientid, id);
	fix4_begin_bare(f, 1, "");
	fix4_op(f, OP_EXCHANGE_ID);
	xdr_put_fixed(&f->out, "verf0001", 8);
	fix4_name(f, "one");
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	xdr_put_u32(&f->out, 0);
	fix4_op(f, OP_PUTROOTFH);
	cr_expect_eq(fix4_send(f), NFS4ERR_NOT_ONLY_OP);
}

static void restart(void)
{
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_assert_null(fix_start_nfs4(f));
}

static void write_id(const char *text)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/nfs4-server-id", f->state_dir);
	fd = open(path, O_WRONLY | O_TRUNC);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

Test(nfs4_exchange_id, the_server_is_the_same_after_a_restart)
{
	char major[64], other[64];
	uint64_t id;

	NEED_FIXTURE();
	cr_assert_eq(exchange("one", "verf0001", 0), NFS4_OK);
	strcpy(other, r.major);
	strcpy(f->state_dir, "/tmp/test_nfs4_exchange_id.XXXXXX");
	cr_assert_not_null(mkdtemp(f->state_dir));
	restart();
	cr_assert_eq(exchange("one", "verf0001", 0), NFS4_OK);
	cr_expect_str_neq(r.major, other);
	strcpy(major, r.major);
	id = r.clientid;
	restart();
	cr_expect_eq(create(id, 1), NFS4ERR_STALE_CLIENTID);
	cr_assert_eq(exchange("one", "verf0001", 0), NFS4_OK);
	cr_expect_str_eq(r.major, major);
	cr_expect_neq(r.clientid, id);
	/* An invalid name in the file is replaced. */
	write_id("nonsense\n");
	restart();
	cr_assert_eq(exchange("one", "verf0001", 0), NFS4_OK);
	cr_expect_str_neq(r.major, major);
	cr_expect_eq(strncmp(r.major, "ringnfs-", 8), 0);
	nfs4_server_free(f->server4);
	f->server4 = NULL;
	cr_expect_eq(nftw(f->state_dir, remove_one, 4, FTW_DEPTH | FTW_PHYS), 0);
}

/* The oldest unconfirmed clients make room; confirmed ones stay. */
Test(nfs4_exchange_id, a_flood_of_unconfirmed_ones)
{
	struct fix4_session s;
	struct nfs4_held held;
	uint64_t first;
	size_t used;
	char name[32];

	NEED_FIXTURE();
	confirmed_client(f, "good", "verf0001", &s);
	cr_assert_eq(exchange("first", "verf0001", 0), NFS4_OK);
	first = r.clientid;
	used = f->budget.used;
	for (unsigned i = 0; i < 5000; i++) {
		snprintf(name, sizeof(name), "bad %u", i);
		cr_assert_eq(exchange(name, "verf0001", 0), NFS4_OK);
		if (i == 4500)
			used = f->budget.used;
	}
	cr_expect_leq(f->budget.used, used + 4096); /* names are a digit longer */
	cr_expect_eq(create(first, 1), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(create(r.clientid, 1), NFS4_OK);
	cr_expect_eq(call_sequence(f, &s), NFS4_OK);
	nfs4_held(f->server4, &held);
	cr_expect_eq(held.clients, 2);
	cr_expect_eq(held.sessions, 2);
}
