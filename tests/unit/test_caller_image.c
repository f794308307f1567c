/* SPDX-License-Identifier: BSD-2-Clause */
/* The caller of a call in the image of the state: it is read as it was written, and nothing is read that no server has written. */
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "rpc/caller_image.h"
#include "rpc/principal.h"

struct record {
	uint32_t before;
	struct rpc_saved_caller caller;
};
static const struct image_field record_fields[] = {
	IMAGE_NUMBER(1, struct record, before),
	RPC_SAVED_CALLER_FIELDS(40, struct record, caller),
};
static const struct image_kind record_kind = { 1, rn_array_size(record_fields), record_fields };

static const struct rpc_conn_ops tcp = { .netid = "tcp6", .reliable = true, .keeps_port = true };
static const struct rpc_conn_ops udp = { .netid = "udp", .datagrams = true };

static struct rpc_conn conn_of(const struct rpc_conn_ops *ops)
{
	struct rpc_conn conn = { .ops = ops, .id = 77 };
	struct sockaddr_in *peer = (struct sockaddr_in *)&conn.peer;

	peer->sin_family = AF_INET;
	peer->sin_addr.s_addr = htonl(0xc0000201);
	peer->sin_port = htons(1001);
	conn.local = conn.peer;
	((struct sockaddr_in *)&conn.local)->sin_port = htons(2049);
	return conn;
}

/* Writes one record, and reads it. The image is the caller's to free: the record points into it. */
static struct image_reader *pass(const struct rpc_conn *conn, const struct rpc_cred *cred,
				 bool elsewhere, struct record *out)
{
	struct image_reader *image;
	struct image_writer *w;
	struct image_at at;
	int fd;

	cr_assert_eq(image_write(&w), 0);
	if (elsewhere)
		image_for_elsewhere(w);
	image_begin(w, "callers");
	image_put(w, &record_kind, &(struct record){ 9, rpc_caller_save(w, conn, cred) });
	cr_assert_eq(image_seal(w, &fd), 0);
	fd = dup(fd);
	image_writer_free(w);
	cr_assert_eq(image_read(fd, &image), 0);
	cr_assert(image_enter(image, "callers", &at));
	cr_assert_eq(image_get(&at, &record_kind, out), 0);
	return image;
}

Test(caller_image, caller_under_kerberos_is_read_as_it_was)
{
	struct rpc_principal *user = rpc_principal_new("user@REALM", 10);
	const struct rpc_conn conn = conn_of(&tcp);
	const struct rpc_cred cred = { .flavor = RPC_RPCSEC_GSS,
				       .sec = RPC_SEC_KRB5P,
				       .protection = RPC_MUTUAL_TLS,
				       .principal = user,
				       .mapped = true,
				       .uid = 1000,
				       .gid = 100,
				       .ngids = 2,
				       .gids = { 4, 27 } };
	struct record r = { .before = 0 };
	struct image_reader *image = pass(&conn, &cred, false, &r);
	struct rpc_loaded_caller c;

	cr_assert_eq(rpc_caller_load(&r.caller, NULL, &c), 0);
	image_reader_free(image);
	cr_assert_str_eq(c.conn.ops->netid, "tcp6");
	cr_assert(c.ops.reliable && c.ops.keeps_port && !c.ops.datagrams);
	cr_assert_eq(memcmp(&c.conn.peer, &conn.peer, sizeof(conn.peer)), 0);
	cr_assert_eq(memcmp(&c.conn.local, &conn.local, sizeof(conn.local)), 0);
	cr_assert_eq(c.conn.id, 77);
	cr_assert(rpc_principal_is(c.cred.principal, user));
	cr_assert(c.cred.mapped && !c.cred.unknown);
	cr_assert(c.cred.flavor == RPC_RPCSEC_GSS && c.cred.sec == RPC_SEC_KRB5P);
	cr_assert_eq(c.cred.protection, RPC_MUTUAL_TLS);
	cr_assert(c.cred.uid == 1000 && c.cred.gid == 100 && c.cred.ngids == 2);
	cr_assert_eq(memcmp(c.cred.gids, cred.gids, sizeof(cred.gids)), 0);
	rpc_caller_put(&c);
	rpc_principal_put(user);
}

Test(caller_image, caller_gets_its_client)
{
	struct rpc_clients *clients = rpc_clients_new();
	const struct rpc_conn conn = conn_of(&udp);
	const struct rpc_cred cred = { .flavor = RPC_AUTH_SYS, .uid = 5 };
	struct record r = { .before = 0 };
	struct image_reader *image = pass(&conn, &cred, false, &r);
	struct rpc_loaded_caller c;
	struct rpc_client *same;

	cr_assert_eq(rpc_caller_load(&r.caller, clients, &c), 0);
	same = rpc_client_get(clients, &conn.peer);
	cr_assert_eq(c.conn.client, same);
	cr_assert(c.ops.datagrams && !c.cred.principal);
	rpc_client_put(same);
	rpc_caller_put(&c);
	image_reader_free(image);
	rpc_clients_free(clients);
}

Test(caller_image, connection_has_no_number_on_another_machine)
{
	const struct rpc_conn conn = conn_of(&tcp);
	const struct rpc_cred cred = { .flavor = RPC_AUTH_NONE };
	struct record r = { .before = 0 };

	image_reader_free(pass(&conn, &cred, true, &r));
	cr_assert_eq(r.caller.conn, 0);
}

Test(caller_image, impossible_callers_are_refused)
{
	struct rpc_saved_caller s = { .ngids = RPC_AUTH_SYS_GIDS_MAX + 1 };
	struct rpc_loaded_caller c;

	cr_assert_eq(rpc_caller_load(&s, NULL, &c), -EPROTO);
	s = (struct rpc_saved_caller){ .protection = RPC_MUTUAL_TLS + 1 };
	cr_assert_eq(rpc_caller_load(&s, NULL, &c), -EPROTO);
	s = (struct rpc_saved_caller){ .ngids = 0 };
	memset(s.netid, 'x', sizeof(s.netid));
	cr_assert_eq(rpc_caller_load(&s, NULL, &c), -EPROTO);
}
