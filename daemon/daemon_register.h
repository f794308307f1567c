/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registration with rpcbind. It runs on a thread of its own, since rpcbind may block for long; a
 * missing rpcbind gives a warning.
 *
 * Any local user may register a program that nobody has registered, and a restart of rpcbind loses all registrations. So the thread looks
 * at them every half minute, and at each reload: what is missing is registered again, and what another user has registered is replaced.
 * Root's own other registrations (rpc.statd, the kernel's lock manager) stay, but for those that a start finds.
 */
#ifndef RN_DAEMON_DAEMON_REGISTER_H
#define RN_DAEMON_DAEMON_REGISTER_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/log.h"

struct registration;

/* Ports in host order, 0: not served; and the versions served. */
struct registration_ports {
	bool nfs2, nfs3, nfs4, rquota;
	uint16_t tcp4, tcp6, mount4, mount6, rquota4, rquota6, rdma4, rdma6;
	bool udp_nfs; /* NFS is served over UDP, too */
	uint16_t udp4, udp6, mount_udp4, mount_udp6, rquota_udp4, rquota_udp6;
	uint16_t nsm; /* UDP, of the status monitor */
};

/* Called on the thread of the registration when all was registered that is served at the start, or could
 * not be. */
struct registration_hook {
	void (*registered)(void *ctx);
	void *ctx;
};

/* NULL: no memory or no thread (logged). */
struct registration *registration_start(const struct registration_ports *ports,
					const struct registration_hook *hook,
					const struct rn_logger *log);
/* Registers besides what has become served since, of RDMA. Does not wait. */
void registration_rdma(struct registration *r, const struct registration_ports *ports);
/* Looks at the registrations soon. Does not wait. NULL is allowed. */
void registration_look(struct registration *r);
/* Removes the registrations and frees; waits for a registration under way. NULL is allowed. */
void registration_stop(struct registration *r);

#endif
