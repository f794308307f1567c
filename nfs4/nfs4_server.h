/* SPDX-License-Identifier: BSD-2-Clause */
/* NFS version 4 (RFC 7530, RFC 8881, RFC 7862) as an RPC program: the interface for the daemon. */
#ifndef RN_NFS4_NFS4_SERVER_H
#define RN_NFS4_NFS4_SERVER_H

#include "lib/image.h"
#include "lib/log.h"
#include "rpc/backchannel.h"
#include "rpc/program.h"
#include "vfs/vfs.h"

struct nfs4_server;

/*
 * Mapping between ids and names of users and groups (RFC 8881 section 5.9). Thread-safe; no call
 * waits for a name service. 0 or -errno; -RN_EUNNAMED: not known yet, a query was started on behalf of
 * the peer. Names passed in are not NUL-terminated.
 */
struct nfs4_idmap {
	int (*uid_to_name)(void *ctx, const struct sockaddr *peer, uint32_t uid, char *name,
			   size_t size);
	int (*gid_to_name)(void *ctx, const struct sockaddr *peer, uint32_t gid, char *name,
			   size_t size);
	int (*name_to_uid)(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
			   uint32_t *uid);
	int (*name_to_gid)(void *ctx, const struct sockaddr *peer, const char *name, uint32_t len,
			   uint32_t *gid);
	void *ctx;	   /* with all functions NULL: decimal numbers only */
	bool names_always; /* AUTH_SYS clients get names, too */
};

/* An operation that has ended. */
struct nfs4_op_end {
	uint32_t minor;
	uint32_t opnum; /* OP_ILLEGAL: unknown */
	uint32_t status;
	uint64_t elapsed_ns;
	/* Numbers of operations right before it that have succeeded, and whose time is in its own. */
	const uint8_t *before;
	uint32_t nbefore;
};

/* A server of the cluster, as clients reach it. */
#define NFS4_MEMBER_ADDRESSES 8u
struct nfs4_member {
	char name[64];
	bool own;	     /* this server */
	uint64_t run;	     /* its number, which no other run in the cluster has */
	unsigned naddresses; /* 0: it does not say */
	uint8_t address[NFS4_MEMBER_ADDRESSES][16]; /* IPv6, or IPv4 mapped to it (lib/host.h) */
	uint16_t tcp_port, rdma_port;		    /* of NFS; 0: not served so */
};

/* The cluster of servers that this one is a member of. The calls are thread-safe, and do not wait. */
struct nfs4_cluster {
	/* True if clients of some member may be reclaiming locks, so that new ones wait. */
	bool (*blocks_locks)(void *ctx);
	/* True if this server's clients may reclaim now: no member grants what could be in their way. */
	bool (*takes_reclaims)(void *ctx);
	/* Members that run, this one among them, as of about a second ago; writes at most max. Returns their number. Cheap, any thread. */
	unsigned (*members)(void *ctx, struct nfs4_member *out, unsigned max);
	void *ctx;
	/* Scope and major id of all servers of the cluster, and of this one (RFC 8881 sections 2.10.4 and 2.10.5); at most
	 * NFS4_SERVER_ID_MAX bytes. */
	const char *scope, *major;
	/* True if clients get layouts (RFC 8435), by which they read and write at other members by NFSv3. */
	bool layouts;
	uint32_t data_io; /* bytes of a READ or WRITE there, at most */
};

#define NFS4_SERVER_ID_MAX 63u

struct nfs4_config {
	struct vfs *vfs;
	struct vfs_exports exports;
	struct rn_payload_pool *pool;
	struct rn_budget *budget; /* pays for state */
	struct rpc_waits *waits;  /* that of the rpc_server */
	const struct rn_logger *log;
	struct image_reader
		*image; /* of the program before this one, for nfs4_server_new() only; or NULL */
	/* For the image: has the contexts of its callback paths, and runs its copies, whose callers are among clients. */
	struct rpc_server *rpc;
	struct rpc_clients *clients;
	struct nfs4_idmap idmap;
	uint32_t max_io;    /* maxread, maxwrite: bytes */
	unsigned minor_max; /* highest minor version served: 0..2 */
	unsigned minor_min;
	unsigned lease_seconds; /* default 90 */
	unsigned grace_seconds; /* upper limit; default 90 */
	/* Clients of other protocols that may reclaim after this start: the grace period lasts its whole
	 * time then, as they do not say when they have done so. */
	unsigned other_clients;
	unsigned max_sessions; /* in total; 0: limited by memory only */
	bool delegations;      /* clients may get delegations of files */
	bool posix_acls; /* minor version 2 has the attributes of draft-ietf-nfsv4-posix-acls */
	const char *state_dir; /* directory of the client records; NULL: none (tests) */
	const struct nfs4_cluster
		*cluster; /* NULL: this server is alone. Must outlive the server. */
	/* As in nfs3_config: supplementary groups from the server's own databases, or NULL. */
	int (*lookup_groups)(void *ctx, const struct sockaddr *peer, struct vfs_cred *cred);
	void *lookup_ctx;
	bool manage_gids;
	/* Called at the end of operations, on their worker; may be NULL. */
	void (*observe_op)(void *ctx, const struct rpc_request *req, const struct nfs4_op_end *end);
	void *observe_ctx;
	/* Connects to clients of minor version 0 for callbacks. dial NULL: there are none for them. */
	struct rpc_dialer dialer;
	/* Servers that copies may be made from, at these ports, and to (RFC 7862 section 4); IPv4
	 * addresses are mapped into IPv6. None: there are no copies between servers. Must outlive the
	 * server. */
	const struct sockaddr_in6 *copy_servers;
	unsigned ncopy_servers;
	uint16_t tcp_port; /* where those reach this server */
};

/* 0 or -errno; problems with the state directory are logged. */
int nfs4_server_new(const struct nfs4_config *cfg, struct nfs4_server **out);
/*
 * No request may be running, and no callback be under way: its end would look for the client and the
 * server. So transports come first, whose connections end their callbacks when they close
 * (rpc_backchannel_close), and with them the dialer. A callback that begins later finds no connection,
 * and ends at once. No thread of vfs/ may recall a delegation any more (vfs_leases_stop).
 */
void nfs4_server_free(struct nfs4_server *s);

/* Adds version 4 as one of the NFS program's versions. The program's admit and ctx are those of
 * version 3, so the handlers find s through version->ctx. */
void nfs4_version(struct nfs4_server *s, struct rpc_version *out);

/* Minor version of a call that rpc_server.observe is told of; UINT32_MAX: its arguments were not decoded, or it is
 * NULL. */
uint32_t nfs4_minor_of(const struct rpc_request *req);
/* As nfs3_bulk_offset, for COMPOUND: offset of the data of its first WRITE; 0: not found. */
size_t nfs4_bulk_offset(const uint8_t *head, size_t len);
/* Moves x from the arguments of a COMPOUND to the file handle of its first PUTFH. False: none is
 * near its beginning, or the call is cut off. */
bool nfs4_skip_to_fh(struct xdr_in *x);

/* Rebuilds the pseudo file system after a reload of the exports. 0, or -ENOMEM: it is unchanged. */
int nfs4_exports_changed(struct nfs4_server *s);
/*
 * Revokes from every client what it has opened and locked below exports that are lost to the
 * address it registered from. Afterwards other clients may have it and no descriptor is left. Its
 * stateids are answered NFS4ERR_ADMIN_REVOKED until the client has freed them (minor version 0: for
 * a lease). The new exports must be in force, so that no open comes after. Returns the number of
 * opens. Call it from one thread at a time, which need not serve requests; takes milliseconds for
 * each 1000 opens.
 */
uint64_t nfs4_revoke_exports(struct nfs4_server *s, const struct vfs_exports_lost *lost);
/* State that one client would lose by that. */
struct nfs4_loss {
	uint64_t clientid;
	struct sockaddr_in6 addr; /* that registered it; IPv4 is mapped */
	uint64_t opens, locks, delegations;
};
/* Calls each for every client that would lose something. Changes nothing. Not at the same time as
 * nfs4_revoke_exports(). */
void nfs4_count_exports(struct nfs4_server *s, const struct vfs_exports_lost *lost,
			void (*each)(void *ctx, const struct nfs4_loss *loss), void *ctx);
/*
 * Removes a client at the administrator's request: sessions, opens, locks, and its record on disk,
 * so that it can reclaim nothing. Clients then register anew by themselves. 0; -ENOENT: no
 * confirmed client has that id; -RN_ESOON: the client is gone, but its state is kept from others
 * until its record is deleted: call again in some milliseconds. Any thread.
 */
int nfs4_forget_client(struct nfs4_server *s, uint64_t clientid);
enum nfs4_drain {
	NFS4_DRAIN_NONE,
	NFS4_DRAIN_SOME, /* exports for which vfs_export_is_draining() */
	NFS4_DRAIN_ALL,	 /* all exports: no new client may register either */
};
/* Tells what is drained from now on. Delegations of what is drained are recalled by and by (nfs4_tick). Any thread. */
void nfs4_drain(struct nfs4_server *s, enum nfs4_drain what);
/* Called about once a second, from one thread: handles leases and the end of grace. */
void nfs4_tick(struct nfs4_server *s);

/* Has the copies in the background pause, with calls still being served, for nfs4_save(). Waits for a moment for the pieces under way. False: some
 * take too long. */
bool nfs4_rest_copies(struct nfs4_server *s);
/* Ends the copies in the background, and waits for the pieces under way; no copy is made in the
 * background any more. Before the workers end. */
void nfs4_stop_copies(struct nfs4_server *s);

/* For tests: advances the lease clock. */
void nfs4_skip_lease_time(struct nfs4_server *s, uint64_t seconds);

/* True in the grace period, in which clients reclaim the state they had before a restart.
 * Thread-safe. */
bool nfs4_reclaiming(struct nfs4_server *s);
/* True if a client of another protocol may reclaim now. The grace period is extended while reclaims keep
 * coming. Thread-safe. */
bool nfs4_takes_reclaim(struct nfs4_server *s);
/* True if they may reclaim as soon as other members of the cluster grant no locks. */
bool nfs4_takes_reclaims_later(struct nfs4_server *s);
/* True if new locks, or reads and writes without an open, of other protocols must wait for that. */
bool nfs4_blocks_locks(struct nfs4_server *s);
bool nfs4_blocks_io(struct nfs4_server *s);

/* The grace period at this moment. Thread-safe. */
struct nfs4_grace_status {
	bool active;
	uint64_t seconds_left; /* reclaims that keep coming may extend it */
	unsigned expected;     /* clients that may reclaim, and that others wait for */
	unsigned waiting;      /* of them, those that have not said that they are done */
};
void nfs4_grace_status(struct nfs4_server *s, struct nfs4_grace_status *out);

/* A client that others wait for. */
struct nfs4_grace_client {
	const uint8_t *name; /* bytes that it has chosen */
	uint32_t name_len;
	bool sessions; /* minor version 1 or 2 */
	bool back;     /* the client has registered again, but not said that it is done */
	const uint8_t *
		address; /* that it registered from before the restart, 16 bytes; NULL: not known */
};
/* Shows some of them, from *at on, which is 0 at first and moves behind those. each() runs under a lock that calls of
 * NFS need: it must not wait. False: there are no more. Thread-safe. */
bool nfs4_grace_waiting(struct nfs4_server *s, uint32_t *at,
			void (*each)(void *arg, const struct nfs4_grace_client *c), void *arg);
/* Ends the grace period as if its time were over. 0: it is over, and that is on disk; -RN_ESOON: it ends: ask again;
 * -ENOMEM. Thread-safe. */
int nfs4_grace_end(struct nfs4_server *s);

/* Numbers for the daemon's counters, most of them of objects in memory. */
struct nfs4_held {
	uint64_t clients, courtesy_clients, sessions, slots;
	uint64_t owners, opens, locks, delegations, layouts, cached_replies;
	uint64_t copies;       /* asynchronous ones under way, and results that are kept */
	uint64_t copy_sources; /* files that other servers may read for a copy */
	/* Since the start; bytes of asynchronous copies. */
	uint64_t copies_begun, copies_cancelled, copied_bytes;
	/* Likewise: layouts that were given, that were taken from clients, and errors of data servers that clients reported. */
	uint64_t layouts_given, layouts_taken, layout_errors;
};
void nfs4_held(struct nfs4_server *s, struct nfs4_held *out);
/* Hands clients with their state to the next program; no call is under way. NULL, or why it cannot be. nfs4_config.image takes it. */
const char *nfs4_save(struct nfs4_server *s, struct image_writer *w);
/* True if client records could not be written at the last attempt: those that are missing would not
 * get their locks back after a restart. */
bool nfs4_records_failing(const struct nfs4_server *s);

#endif
