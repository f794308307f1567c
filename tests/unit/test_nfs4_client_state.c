/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients that hold opens: which client may replace them, and what happens to the opens when the
 * lease has run out. */
#include <netinet/in.h>

#include "nfs4/client/client_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_client_state);

#define OVER 95u

static uint32_t minor;
static struct op_client one, two;
static struct op_owner of_one = { .client = &one, .name = "of one" };
static struct op_owner of_two = { .client = &two, .name = "of two" };
static struct op_file file;

/* The first client opens a file and denies access to others. */
static void hold(void)
{
	const struct op_how how = {
		.fh = &f->root, .name = "file", .deny = OPEN4_SHARE_DENY_BOTH, .access = 3
	};

	make_file("file", "text", 0666);
	cr_assert_eq(op_client_new(f, &one, minor, "one"), NFS4_OK);
	cr_assert_eq(op_client_new(f, &two, minor, "two"), NFS4_OK);
	of_one.seqid = of_two.seqid = 1;
	cr_assert_eq(op_open(f, &of_one, &how, &file), NFS4_OK);
}

static uint32_t open_by_two(struct op_file *out)
{
	const struct op_how how = { .fh = &f->root, .name = "file", .access = 1 };

	return op_open(f, &of_two, &how, out);
}

static void pass(uint64_t seconds)
{
	nfs4_clients_skip_time(f->server4, seconds);
	nfs4_tick(f->server4);
}

static void keep_alive(struct op_client *c)
{
	if (minor == 0)
		cr_expect_eq(call_renew(f, c->clientid), NFS4_OK);
	else
		cr_expect_eq(call_sequence(f, &c->session), NFS4_OK);
}

OP_MINORS_TEST(nfs4_client_state, a_conflict_ends_courtesy)
{
	struct op_file other;

	hold();
	cr_expect_eq(open_by_two(&other), NFS4ERR_SHARE_DENIED);
	pass(60);
	keep_alive(&two);
	pass(OVER - 60);
	cr_expect_eq(open_by_two(&other), NFS4_OK);
	/* The holder learns the loss from its next operation and from its stateids. */
	if (minor == 0) {
		cr_expect_eq(call_renew(f, one.clientid), NFS4ERR_EXPIRED);
		cr_expect_eq(op_read(f, &one, &file.fh, &file.sid), NFS4ERR_EXPIRED);
		return;
	}
	cr_expect_eq(call_sequence(f, &one.session), NFS4_OK);
	cr_expect_eq(one.session.status_flags, SEQ4_STATUS_EXPIRED_ALL_STATE_REVOKED);
	cr_expect_eq(op_read(f, &one, &file.fh, &file.sid), NFS4ERR_EXPIRED);
	cr_expect_eq(op_test_stateid(f, &one, &file.sid), NFS4ERR_EXPIRED);
	cr_expect_eq(op_free_stateid(f, &one, &file.sid), NFS4_OK);
}

OP_MINORS_TEST(nfs4_client_state, without_a_conflict_it_goes_on)
{
	struct op_file other;

	hold();
	pass(1000);
	pass(1000);
	cr_expect_eq(op_read(f, &one, &file.fh, &file.sid), NFS4_OK);
	keep_alive(&one);
	if (minor > 0)
		cr_expect_eq(one.session.status_flags, 0);
	cr_expect_eq(op_client_new(f, &two, minor, "three"), NFS4_OK);
	of_two.seqid = 1;
	cr_expect_eq(open_by_two(&other), NFS4ERR_SHARE_DENIED);
	cr_expect_eq(op_close(f, &of_one, &file), NFS4_OK);
}

/* A restarted client: its old state is dropped when the new client is confirmed, not before. */
OP_MINORS_TEST(nfs4_client_state, a_restart_lets_go)
{
	const struct scid_args sa = { .owner = "one", .verifier = "other  1" };
	struct scid_result sr;
	struct op_file other;
	struct fix4_session s;

	hold();
	if (minor == 0) {
		cr_assert_eq(call_setclientid(f, &sa, &sr), NFS4_OK);
		cr_expect_eq(open_by_two(&other), NFS4ERR_SHARE_DENIED);
		cr_assert_eq(call_setclientid_confirm(f, &sr), NFS4_OK);
	} else {
		const struct eid_args ea = { .owner = "one", .verifier = "other  1" };
		struct eid_result er;

		cr_assert_eq(call_exchange_id(f, NULL, &ea, &er), NFS4_OK);
		cr_expect_eq(open_by_two(&other), NFS4ERR_SHARE_DENIED);
		cr_assert_neq(confirmed_client(f, "one", "other  1", &s), 0);
	}
	cr_expect_eq(open_by_two(&other), NFS4_OK);
}

/* Another principal registers under a name in use (RFC 7530 section 9.1.2, RFC 8881 section
 * 18.35.4, case 3). */
OP_MINORS_TEST(nfs4_client_state, its_name_is_taken)
{
	const struct scid_args sa = { .owner = "one", .verifier = "verifier" };
	const struct eid_args ea = { .owner = "one", .verifier = "verifier" };
	struct sockaddr_in *in = (struct sockaddr_in *)&f->conn.peer;
	struct scid_result sr;
	struct eid_result er;

	memset(&f->conn.peer, 0, sizeof(f->conn.peer));
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0xc0000207);
	in->sin_port = htons(800);
	hold();
	f->uid = 1000;
	for (unsigned over = 0; over < 2; over++) {
		if (minor > 0) {
			cr_expect_eq(call_exchange_id(f, NULL, &ea, &er),
				     over ? NFS4_OK : NFS4ERR_CLID_INUSE);
		} else if (over) {
			cr_expect_eq(call_setclientid(f, &sa, &sr), NFS4_OK);
			cr_expect_eq(call_setclientid_confirm(f, &sr), NFS4_OK);
		} else {
			cr_expect_eq(call_setclientid(f, &sa, &sr), NFS4ERR_CLID_INUSE);
			cr_expect_str_eq(sr.addr, "192.0.2.7.3.32");
			cr_expect_str_neq(sr.netid, "");
		}
		pass(OVER);
	}
	f->uid = 0;
	if (minor > 0)
		cr_expect_eq(call_sequence(f, &one.session), NFS4ERR_BADSESSION);
	else
		cr_expect_eq(call_renew(f, one.clientid), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_client_state, destroy_clientid_with_an_open)
{
	NEED_FIXTURE();
	minor = 1;
	hold();
	cr_expect_eq(call_destroy_session(f, &one.session, one.session.id), NFS4_OK);
	cr_expect_eq(call_destroy_clientid(f, NULL, one.clientid), NFS4ERR_CLIENTID_BUSY);
}
