/* SPDX-License-Identifier: BSD-2-Clause */
/* SETCLIENTID and SETCLIENTID_CONFIRM: the cases of RFC 7530 sections 16.33.5 and 16.34.5. A record
 * is {v, x, c, k, s} there: verifier, id string, client id, callback, confirm verifier. */
#include <netinet/in.h>

#include "nfs4/client/cb_path.h"
#include "nfs4/client/client_host.h"
#include "nfs4/client/client_table.h"
#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_client_calls.h"

NFS3_SUITE(nfs4_setclientid);

static struct scid_result set(const char *owner, const char *verifier, uint32_t program)
{
	const struct scid_args a = { .owner = owner, .verifier = verifier, .program = program };
	struct scid_result r;

	cr_assert_eq(call_setclientid(f, &a, &r), NFS4_OK);
	whole();
	return r;
}

static uint32_t confirm(const struct scid_result *r)
{
	return call_setclientid_confirm(f, r);
}

static struct scid_result confirmed(const char *owner, const char *verifier, uint32_t program)
{
	const struct scid_result r = set(owner, verifier, program);

	cr_assert_eq(confirm(&r), NFS4_OK);
	return r;
}

static bool same_confirm(const struct scid_result *a, const struct scid_result *b)
{
	return memcmp(a->confirm, b->confirm, sizeof(a->confirm)) == 0;
}

/* Callback program of the confirmed client. */
static uint32_t callback_of(uint64_t clientid)
{
	struct nfs4_client *cl = nfs4_client_get(f->server4->clients, clientid);
	uint32_t program = cl && cl->callback ? cl->callback->program : 0;

	nfs4_client_put(cl);
	return program;
}

Test(nfs4_setclientid, a_new_client)
{
	struct scid_result r;

	NEED_FIXTURE();
	r = set("one", "verf0001", 7);
	/* The client id is not valid before it is confirmed. */
	cr_expect_eq(call_renew(f, r.clientid), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(confirm(&r), NFS4_OK);
	cr_expect_eq(call_renew(f, r.clientid), NFS4_OK);
	cr_expect_eq(callback_of(r.clientid), 7);
	/* A retry, as after a lost reply. */
	cr_expect_eq(confirm(&r), NFS4_OK);
	cr_expect_eq(call_renew(f, r.clientid + 1), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_renew(f, r.clientid ^ (1ull << 40)), NFS4ERR_STALE_CLIENTID);
}

/* Confirmed {v, x, c, l, s} and SETCLIENTID {v, x, k}. */
Test(nfs4_setclientid, a_change_of_the_callback)
{
	struct scid_result s, t, u;

	NEED_FIXTURE();
	s = confirmed("one", "verf0001", 7);
	t = set("one", "verf0001", 8);
	cr_expect_eq(t.clientid, s.clientid);
	cr_expect_not(same_confirm(&s, &t));
	cr_expect_eq(callback_of(s.clientid), 7);
	u = set("one", "verf0001", 9);
	cr_expect_eq(u.clientid, s.clientid);
	/* The earlier unconfirmed record was removed. */
	cr_expect_eq(confirm(&t), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(callback_of(s.clientid), 7);
	cr_expect_eq(confirm(&u), NFS4_OK);
	cr_expect_eq(callback_of(s.clientid), 9);
	cr_expect_eq(confirm(&u), NFS4_OK);
	cr_expect_eq(confirm(&s), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_renew(f, s.clientid), NFS4_OK);
}

/* Confirmed {u, x, c, l, s}, and SETCLIENTID {v, x, k}, twice. */
Test(nfs4_setclientid, a_restart_of_the_client)
{
	struct scid_result s, t, r;

	NEED_FIXTURE();
	s = confirmed("one", "verf0001", 7);
	t = set("one", "verf0002", 8);
	cr_expect_neq(t.clientid, s.clientid);
	cr_expect_eq(call_renew(f, s.clientid), NFS4_OK);
	r = set("one", "verf0002", 8);
	cr_expect_neq(r.clientid, s.clientid);
	cr_expect_neq(r.clientid, t.clientid);
	cr_expect_not(same_confirm(&r, &t));
	cr_expect_not(same_confirm(&r, &s));
	cr_expect_eq(confirm(&t), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_renew(f, s.clientid), NFS4_OK);
	cr_expect_eq(confirm(&r), NFS4_OK);
	cr_expect_eq(call_renew(f, s.clientid), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(call_renew(f, r.clientid), NFS4_OK);
	cr_expect_eq(callback_of(r.clientid), 8);
	cr_expect_eq(confirm(&s), NFS4ERR_STALE_CLIENTID);
}

/* No confirmed record for x: the unconfirmed one is replaced. */
Test(nfs4_setclientid, again_before_it_is_confirmed)
{
	struct scid_result s, t;

	NEED_FIXTURE();
	s = set("one", "verf0001", 7);
	t = set("one", "verf0001", 7);
	cr_expect_neq(t.clientid, s.clientid);
	cr_expect_not(same_confirm(&s, &t));
	cr_expect_eq(confirm(&s), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(confirm(&t), NFS4_OK);
}

Test(nfs4_setclientid, a_wrong_confirm_verifier)
{
	struct scid_result s, bad;

	NEED_FIXTURE();
	s = set("one", "verf0001", 7);
	bad = s;
	bad.confirm[0] ^= 1;
	cr_expect_eq(confirm(&bad), NFS4ERR_STALE_CLIENTID);
	cr_expect_eq(confirm(&s), NFS4_OK);
	cr_expect_eq(confirm(&bad), NFS4ERR_STALE_CLIENTID);
}

/* Another principal: it may replace a client without state (section 9.1.2), but each principal may
 * confirm only its own registration. */
Test(nfs4_setclientid, other_principals)
{
	struct scid_result s, t, u;

	NEED_FIXTURE();
	s = confirmed("one", "verf0001", 7);
	t = set("one", "verf0001", 8);
	f->uid = 1000;
	cr_expect_eq(confirm(&t), NFS4ERR_CLID_INUSE); /* callback update */
	cr_expect_eq(confirm(&s), NFS4ERR_CLID_INUSE); /* a retry */
	cr_expect_eq(callback_of(s.clientid), 7);
	u = set("one", "verf0001", 9);
	cr_expect_neq(u.clientid, s.clientid);
	f->uid = 0;
	cr_expect_eq(confirm(&u), NFS4ERR_CLID_INUSE); /* new client */
	cr_expect_eq(call_renew(f, s.clientid), NFS4_OK);
	f->uid = 1000;
	cr_expect_eq(confirm(&u), NFS4_OK);
	cr_expect_eq(call_renew(f, s.clientid), NFS4ERR_STALE_CLIENTID);
}

Test(nfs4_setclientid, universal_addresses)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(2049) };
	char text[NFS4_UADDR_MAX];

	a.sin6_addr = in6addr_loopback;
	nfs4_uaddr(&a, text);
	cr_expect_str_eq(text, "::1.8.1");
	memset(&a.sin6_addr, 0, sizeof(a.sin6_addr));
	memset(a.sin6_addr.s6_addr + 10, 0xff, 2);
	memcpy(a.sin6_addr.s6_addr + 12, (uint8_t[]){ 192, 0, 2, 255 }, 4);
	nfs4_uaddr(&a, text);
	cr_expect_str_eq(text, "192.0.2.255.8.1");
	memset(&a.sin6_addr, 0xab, sizeof(a.sin6_addr));
	a.sin6_port = 0xffff;
	nfs4_uaddr(&a, text);
	cr_expect_str_eq(text, "abab:abab:abab:abab:abab:abab:abab:abab.255.255");
}

Test(nfs4_setclientid, universal_addresses_are_read)
{
	static const struct {
		const char *netid, *text;
		uint16_t port; /* 0: refused */
	} rows[] = {
		{ "tcp", "192.0.2.255.8.1", 2049 },
		{ "tcp", "192.0.2.255.0.1", 1 },
		{ "tcp", "192.0.2.255.255.255", 65535 },
		{ "tcp6", "2001:db8::1.8.1", 2049 },
		{ "tcp6", "::1.3.232", 1000 },
		{ "tcp6", "2001:db8::192.0.2.1.8.1", 2049 },
		{ "tcp6", "2001:0db8:0000:0000:0000:0000:0000:0001.255.0", 65280 },
		{ "tcp", "", 0 },
		{ "tcp", ".", 0 },
		{ "tcp", "8.1", 0 },
		{ "tcp", ".8.1", 0 },
		{ "tcp", "192.0.2.255", 0 },
		{ "tcp", "192.0.2.255.8", 0 },
		{ "tcp", "192.0.2.255.8.1.", 0 },
		{ "tcp", "192.0.2.255.8.1.1", 0 },
		{ "tcp", "192.0.2.255.0.0", 0 },
		{ "tcp", "192.0.2.255.8.256", 0 },
		{ "tcp", "192.0.2.255.256.1", 0 },
		{ "tcp", "192.0.2.255.8.01", 0 },
		{ "tcp", "192.0.2.255.8.+1", 0 },
		{ "tcp", "192.0.2.255.8.-1", 0 },
		{ "tcp", "192.0.2.255. 8.1", 0 },
		{ "tcp", "192.0.2.255.8..1", 0 },
		{ "tcp", "192.0.2.255.8.1 ", 0 },
		{ "tcp", "192.0.2.255.8.1000", 0 },
		{ "tcp", "192.0.2.256.8.1", 0 },
		{ "tcp", "192.0.02.255.8.1", 0 },
		{ "tcp", "192.2.255.8.1", 0 },
		{ "tcp", "0x7f.0.0.1.8.1", 0 },
		{ "tcp", "localhost.8.1", 0 },
		{ "tcp", "::1.8.1", 0 },
		{ "tcp6", "192.0.2.255.8.1", 0 },
		{ "tcp6", "::ffff:192.0.2.255.8.1", 0 },
		{ "tcp6", "fe80::1%eth0.8.1", 0 },
		{ "tcp6", "[::1].8.1", 0 },
		{ "tcp6", "::1", 0 },
		{ "tcp6", "2001:0db8:0000:0000:0000:0000:0000:0001:0001.255.0", 0 },
		{ "udp", "192.0.2.255.8.1", 0 },
		{ "rdma", "192.0.2.255.8.1", 0 },
		{ "rdma6", "::1.8.1", 0 },
		{ "TCP", "192.0.2.255.8.1", 0 },
		{ "tcp ", "192.0.2.255.8.1", 0 },
		{ "", "192.0.2.255.8.1", 0 },
	};
	struct sockaddr_in6 a;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const bool read = nfs4_parse_uaddr(rows[i].netid, rows[i].text, &a);

		cr_expect_eq(read, rows[i].port != 0, "%s %s", rows[i].netid, rows[i].text);
		if (read)
			cr_expect_eq(ntohs(a.sin6_port), rows[i].port, "%s", rows[i].text);
	}
	cr_assert(nfs4_parse_uaddr("tcp", "192.0.2.255.8.1", &a));
	cr_expect_arr_eq(a.sin6_addr.s6_addr,
			 ((uint8_t[]){ 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 255 }),
			 16);
	cr_assert(nfs4_parse_uaddr("tcp6", "::1.8.1", &a));
	cr_expect_arr_eq(&a.sin6_addr, &in6addr_loopback, 16);
}

/* Texts of any length that are no address count as no address. */
Test(nfs4_setclientid, odd_callbacks)
{
	static const struct {
		uint32_t len, status;
	} rows[] = { { 0, NFS4_OK },
		     { 63, NFS4_OK },
		     { 64, NFS4_OK },
		     { 1024, NFS4_OK },
		     { 1025, NFS4ERR_BADXDR } };
	char text[1025];

	NEED_FIXTURE();
	memset(text, 'x', sizeof(text));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fix4_begin(f, NULL);
		fix4_op(f, OP_SETCLIENTID);
		xdr_put_fixed(&f->out, "verf0001", 8);
		xdr_put_opaque(&f->out, text, 1024);
		xdr_put_u32(&f->out, 1);
		xdr_put_opaque(&f->out, text, rows[i].len);
		xdr_put_opaque(&f->out, text, rows[i].len);
		xdr_put_u32(&f->out, 1);
		cr_expect_eq(fix4_send(f), rows[i].status, "length %u", rows[i].len);
	}
}
