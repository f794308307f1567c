/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The caller of a call in the image of the state (lib/image.h), for work that the server does on its behalf after the reply: the ends of the
 * connection, and the credential. The next program checks each step of that work against them, as for a call.
 */
#ifndef RN_RPC_CALLER_IMAGE_H
#define RN_RPC_CALLER_IMAGE_H

#include "lib/image.h"
#include "rpc/client.h"
#include "rpc/conn.h"
#include "rpc/message.h"

#define RPC_NETID_SIZE 16u /* bytes of a netid with its NUL */

/* Member of a record. Its principal is borrowed: from the credential when it is written, from the image when it is read. */
struct rpc_saved_caller {
	char netid[RPC_NETID_SIZE];
	bool reliable, keeps_port, datagrams, mapped, unknown;
	struct sockaddr_storage peer, local;
	uint64_t conn; /* id of the connection; 0: none of this machine's */
	uint32_t flavor, sec, uid, gid, ngids;
	uint8_t protection;
	uint32_t gids[RPC_AUTH_SYS_GIDS_MAX];
	struct image_bytes principal;
};

/* Fields of the member of a type; tags are those from `tag` to `tag` + 16. */
#define RPC_SAVED_CALLER_FIELDS(tag, type, member)                                                 \
	IMAGE_FIXED((tag) + 0, type, member.netid),                                                \
		IMAGE_NUMBER((tag) + 1, type, member.reliable),                                    \
		IMAGE_NUMBER((tag) + 2, type, member.keeps_port),                                  \
		IMAGE_NUMBER((tag) + 3, type, member.mapped),                                      \
		IMAGE_NUMBER((tag) + 4, type, member.unknown),                                     \
		IMAGE_FIXED((tag) + 5, type, member.peer),                                         \
		IMAGE_FIXED((tag) + 6, type, member.local),                                        \
		IMAGE_NUMBER((tag) + 7, type, member.conn),                                        \
		IMAGE_NUMBER((tag) + 8, type, member.flavor),                                      \
		IMAGE_NUMBER((tag) + 9, type, member.sec),                                         \
		IMAGE_NUMBER((tag) + 10, type, member.uid),                                        \
		IMAGE_NUMBER((tag) + 11, type, member.gid),                                        \
		IMAGE_NUMBER((tag) + 12, type, member.ngids),                                      \
		IMAGE_NUMBER((tag) + 13, type, member.protection),                                 \
		IMAGE_FIXED((tag) + 14, type, member.gids),                                        \
		IMAGE_BYTES((tag) + 15, type, member.principal),                                   \
		IMAGE_NUMBER((tag) + 16, type, member.datagrams)

/* For image_put(w, ...). */
struct rpc_saved_caller rpc_caller_save(const struct image_writer *w, const struct rpc_conn *conn,
					const struct rpc_cred *cred);

/* A caller that was read. The members point to each other, so that it must not be moved. */
struct rpc_loaded_caller {
	char netid[RPC_NETID_SIZE];
	struct rpc_conn_ops ops; /* without functions */
	struct rpc_conn conn;	 /* client: a reference, or NULL */
	struct rpc_cred cred;	 /* principal: a reference, or NULL */
};

/* Reads a caller, whose client is one of `clients`; NULL: it gets none. 0 and references, which rpc_caller_put() drops; -EPROTO, -ENOMEM. */
int rpc_caller_load(const struct rpc_saved_caller *saved, struct rpc_clients *clients,
		    struct rpc_loaded_caller *out);
void rpc_caller_put(struct rpc_loaded_caller *caller);

#endif
