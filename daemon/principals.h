/* SPDX-License-Identifier: BSD-2-Clause */
/* From a Kerberos principal or a certificate to the user that a call acts for: rpc_server.identify. */
#ifndef RN_DAEMON_PRINCIPALS_H
#define RN_DAEMON_PRINCIPALS_H

#include "rpc/program.h"

struct idmap;
struct tls_users;

struct principals {
	struct idmap *idmap;	 /* NULL: there is no Kerberos */
	struct tls_users *users; /* NULL: certificates stand for no users */
};

/*
 * Fills in uid and gid of the call's credential; ctx is a struct principals. A principal that idmapd.conf(5) maps to nobody
 * gets the id -1, which every export makes anonymous, as in the kernel's server. Groups are looked up later, by
 * struct nfs_groups. Waits for the name service. A call that has waited as long as it may has an unknown
 * user, where its program can tell the client to come again.
 */
enum rpc_run principals_identify(void *ctx, struct rpc_request *req);

#endif
