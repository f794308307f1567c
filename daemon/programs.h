/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections to clients, for the programs: they start before the TCP transport and end after it,
 * and may want to call a client at any time between.
 */
#ifndef RN_DAEMON_PROGRAMS_H
#define RN_DAEMON_PROGRAMS_H

#include <netinet/in.h>
#include <pthread.h>

#include "conf/settings.h"
#include "daemon/counters/counters.h"
#include "daemon/logs.h"
#include "daemon/names/names.h"
#include "lib/budget.h"
#include "lib/image.h"
#include "lib/payload.h"
#include "rpc/backchannel.h"
#include "rpc/program.h"
#include "vfs/vfs.h"

struct tcp_server;

struct dialer {
	pthread_mutex_t lock;
	struct tcp_server *tcp; /* NULL: no connections can be made */
};

void dialer_init(struct dialer *d);
void dialer_fini(struct dialer *d);
void dialer_open(struct dialer *d, struct tcp_server *tcp);
/* No connection is begun any more. Before tcp_server_quiesce(). */
void dialer_close(struct dialer *d);

/* The RPC programs that the settings ask for: NFS with its versions, MOUNT, NLM, NFSACL and
 * RQUOTA if NFSv3 is enabled, and their shared state. The objects that program tables point to are owned here. */

struct askers;
struct dialer;
struct groups;
struct idmap;
struct gss;
struct nfs3_server;
struct nfs4_cluster;
struct nfs4_server;
struct nsm;
struct tls_users;

#define PROGRAMS_NFS4_SHARE 8u /* fraction of the whole budget that NFSv4's state has */

/* Borrowed pointers; all must outlive the programs. */
struct programs_config {
	const struct cfg_settings *settings;
	const struct logs *logs;
	struct vfs *vfs;
	struct vfs_exports exports;
	struct rn_payload_pool *pool;
	struct rn_budget *budget;
	struct counters *counters;
	struct askers *askers;
	struct dialer *dialer;
	struct rpc_waits *waits;
	struct rpc_clients *clients;
	const struct nfs4_cluster *cluster; /* NULL: the server is alone */
	struct image_reader *
		image; /* of the program before this one, which programs_start() takes the state from; or NULL */
};

struct programs {
	const struct logs *logs;
	struct gss *gss; /* NULL: calls under RPCSEC_GSS are refused */
	struct groups *groups;
	struct idmap *idmap;
	struct tls_users *tls_users; /* NULL: certificates stand for no users */
	struct principals principals;
	struct nsm *nsm; /* NULL: no record of NFSv3's locks is kept */
	struct nfs3_server *nfs3;
	bool nfs2;		  /* NFSv2 is served, with nfs3 */
	bool rquota;		  /* RQUOTA is served, by nfs3 */
	struct nfs4_server *nfs4; /* NULL if NFSv4 is disabled */
	/*
	 * Memory for the state of NFSv4's clients. It is set aside from the whole budget, as
	 * payload slabs are never given back: without it they could use up the budget, and nobody
	 * could open a file.
	 */
	struct rn_budget nfs4_memory;
	struct rn_budget *budget; /* the budget that nfs4_memory is taken from; NULL before */
	struct sockaddr_in6 copy_servers[CFG_MAX_ADDRS];
	/* End of the grace period for NFSv3's locks where NFSv4 is disabled; CLOCK_MONOTONIC, ns. */
	uint64_t grace_until_ns;
	struct drc *drc;
	struct rpc_version versions[3];	    /* the NFS versions served, ascending */
	struct rpc_version acl_versions[2]; /* versions of NFSACL */
};

/* Fills p, which is zeroed, and rpc's programs and reply cache. 0 or -errno. In both cases
 * programs_stop() releases everything, when no request is under way any more. False: a thread of Kerberos is still in its library. */
int programs_start(const struct programs_config *cfg, struct programs *p, struct rpc_server *rpc);
/* Starts what calls the workers by itself. 0 or -errno. */
int programs_run(struct programs *p);
bool programs_stop(struct programs *p);
/* Hands the programs' state to the next program (daemon/hand_over.h); nothing is under way. NULL, or why it cannot be. */
const char *programs_save(struct programs *p, struct image_writer *w);
/* Logs which of the exports in force a protocol cannot serve. */
void programs_log_exports(const struct programs *p);
/* Reads again what a reload of the exports does not: the keytab, and the map of certificates. 0 or -errno; the old ones then
 * stay. */
int programs_reload(struct programs *p);

#endif
