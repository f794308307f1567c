/* SPDX-License-Identifier: BSD-2-Clause */
/*
* Lists the state of NFSv4 clients for administrators. Tables are walked in pieces of some hundred entries, and
 * no lock is held while a state is shown. A walk may pause, and goes on behind the last state that it has shown:
 * what is held from its beginning to its end is shown once, and what comes or goes meanwhile at most once.
 */
#ifndef RN_NFS4_NFS4_VIEW_H
#define RN_NFS4_NFS4_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/nfs4_private.h"
#include "vfs/view.h"

struct nfs4_server;

enum nfs4_view_kind { NFS4_VIEW_OPENS, NFS4_VIEW_LOCKS, NFS4_VIEW_DELEGATIONS, NFS4_VIEW_LAYOUTS };

/* An open, a delegation, a layout, or the locks that one lock-owner has of a file. Valid during the call that shows it. */
struct nfs4_view_state {
	uint64_t id; /* unique in this run of the server: the last 8 bytes of its stateid */
	uint64_t clientid;
	bool sessions; /* a client of minor version 1 or 2 */
	/* Bytes that the client has chosen: its name, and that of the owner (delegations and layouts have none). */
	const uint8_t *client, *owner;
	uint32_t client_len, owner_len;
	uint32_t export_id; /* export that it was got through */
	struct vfs_fh fh;
	struct vfs_file *file;
	uint64_t age_s;
	bool revoked; /* the client has not freed its stateid yet, and has nothing else of it */
	/* Opens: bits of VFS_SHARE_*. False: another thread is changing them. */
	bool share_known;
	uint8_t access, deny;
	/* Locks. False: as above. */
	bool ranges_known;
	const struct vfs_view_ranges *ranges;
	/* Delegations. */
	bool directory, writing;
	/* Layouts. */
	bool to_read, to_write;
	const char *data_server; /* name of the member */
	/* Both. */
	bool recalled;
	uint64_t recalled_s; /* seconds since the recall */
};

struct nfs4_view_query {
	enum nfs4_view_kind kind;
	uint64_t clientid; /* 0: of all clients */
	/* Shows a state. False ends the call behind it. */
	bool (*show)(void *arg, const struct nfs4_view_state *st);
	void *arg;
};

/* Position of a walk: zeroed at its beginning. Any values are safe. */
struct nfs4_view_cursor {
	uint32_t client; /* number of the client under way, or of the last one */
	uint32_t entry;	 /* the first entry of its table that was not looked at */
};

/* Goes on with a walk, for so many pieces at most. True: it has come to its end. */
bool nfs4_view(struct nfs4_server *s, const struct nfs4_view_query *q, struct nfs4_view_cursor *at,
	       unsigned pieces);

enum nfs4_view_status {
	NFS4_VIEW_UNCONFIRMED,
	NFS4_VIEW_ACTIVE,
	NFS4_VIEW_COURTESY, /* the lease has run out, and nobody wants what the client holds yet */
	NFS4_VIEW_EXPIRED,  /* the client has lost its state */
};

#define NFS4_VIEW_CLIENT_CONNS 64u /* more are not told */

struct rpc_principal;

/* A registered client. Valid during the call that shows it. */
struct nfs4_view_client {
	uint64_t clientid;
	bool sessions;	     /* of minor version 1 or 2 */
	const uint8_t *name; /* bytes that it has chosen */
	uint32_t name_len;
	uint8_t address[16]; /* from which it registered; IPv4 is mapped */
	const char *netid;   /* by which it registered, such as "tcp" */
	uint32_t flavor;     /* enum rpc_auth_flavor of the user who registered it */
	uint32_t uid;	     /* of AUTH_SYS */
	const struct rpc_principal *principal; /* of RPCSEC_GSS, or NULL */
	bool machine; /* its state is protected by that principal: SP4_MACH_CRED */
	enum nfs4_view_status status;
	uint64_t since_s; /* seconds since the status is that */
	uint64_t lease_s; /* active: seconds until its lease runs out unless it is renewed */
	uint32_t nsessions;
	uint64_t opens, locks, delegations;
	const struct nfs4_counts *counts;
	/* Connections (rpc_conn.id) bound to its sessions, and the last one that it called over. Some may be gone. */
	uint32_t nconns;
	uint64_t conn[NFS4_VIEW_CLIENT_CONNS], last_conn;
};

/*
 * Shows registered clients, most of them at a time; true: it has come to the end. *after is 0 at the beginning, and tells
 * where to go on; any value is safe. A client that is there from the beginning of the walk to its end is shown once. No
 * lock is held during show().
 */
bool nfs4_view_clients(struct nfs4_server *s, uint32_t *after, unsigned most,
		       void (*show)(void *arg, const struct nfs4_view_client *c), void *arg);
/* Shows the client with that id, if there is one. */
void nfs4_view_client(struct nfs4_server *s, uint64_t clientid,
		      void (*show)(void *arg, const struct nfs4_view_client *c), void *arg);

#define NFS4_VIEW_CONNS 32u

enum nfs4_view_path {
	NFS4_VIEW_NO_PATH, /* the client wants no callbacks, or has bound no connection for them */
	NFS4_VIEW_UNTRIED, /* a connection is bound; no call was answered yet */
	NFS4_VIEW_UP,
	NFS4_VIEW_DOWN,
	NFS4_VIEW_FAULT, /* the client must make a new session */
};

struct nfs4_view_channel {
	uint32_t slots, busy;
	uint32_t max_request, max_reply, max_ops; /* bytes; operations of a COMPOUND */
	uint32_t nconns;
	uint64_t conn[NFS4_VIEW_CONNS]; /* rpc_conn.id; some may be gone */
};

/* Valid during the call that shows it. */
struct nfs4_view_session {
	uint8_t id[16];
	uint64_t clientid;
	const uint8_t *name; /* of the client, as above */
	uint32_t name_len;
	uint32_t minor;
	uint64_t age_s;
	struct nfs4_view_channel fore, back;
	uint32_t used;	 /* slots of the fore channel up to the highest one used so far */
	uint32_t target; /* slots that the client is to use */
	uint32_t cached; /* replies that are kept for retries */
	uint32_t max_cached;
	uint64_t memory; /* bytes charged for it, those replies included */
	enum nfs4_view_path path;
	uint32_t waiting; /* callbacks that wait for a slot */
	uint32_t flags;	  /* as the next SEQUENCE is answered: SEQ4_STATUS_* */
};

/* Shows the sessions of clients, all of a client's or none, most clients at a time. The rest is as above. clientid: the
 * only client to be shown; 0: all. */
struct nfs4_view_sessions {
	uint64_t clientid;
	void (*show)(void *arg, const struct nfs4_view_session *s);
	void *arg;
};
bool nfs4_view_sessions(struct nfs4_server *s, uint32_t *after, unsigned most,
			const struct nfs4_view_sessions *how);
/* True if the connection is bound to a session of that client. */
bool nfs4_view_is_bound(struct nfs4_server *s, uint64_t clientid, uint64_t conn);

/* The end of what one client holds, at the administrator's request; nfs4_forget_client ends a whole client. */

/*
 * Takes a state with that id (nfs4_view_state.id) from its client. Others may have it at once; its stateid is answered
 * NFS4ERR_ADMIN_REVOKED until the client has freed it (minor version 0: for a lease), and SEQUENCE says so. An open
 * goes with its locks. Afterwards the client may not reclaim after a restart what it still holds beside it, as a client
 * that has not noticed would also reclaim this. 0, or
 * -ENOENT: there is none of that kind, or it was revoked before.
 * -RN_ESOON: its record is being written: call again in some milliseconds.
 * -EBUSY: an operation with it does not end, perhaps because of its file system.
 * Call it from one thread at a time with nfs4_revoke_exports; it may wait for the file system that closes the file.
 */
int nfs4_end_state(struct nfs4_server *s, enum nfs4_view_kind kind, uint64_t id);
/* Asks the client to return a delegation. It is revoked if the client does not within a lease. 0 or -ENOENT. */
int nfs4_recall_delegation(struct nfs4_server *s, uint64_t id);

/* A COMPOUND that has just been answered, for traces: operations, client and file. */

struct rpc_request;
struct vfs_fh;

struct nfs4_traced {
	uint32_t minor;
	uint32_t nops;	    /* operations that ran; the last one has the COMPOUND's status */
	const uint8_t *ops; /* numbers of the first of them; 0: illegal */
	uint32_t nkept;
	uint64_t clientid;	 /* 0: not known */
	const struct vfs_fh *fh; /* current filehandle at the end; NULL: none */
};

/* Within rpc_server.observe: what out points to lasts as long. False: the request is no COMPOUND, or no operation of it
 * has begun. */
bool nfs4_traced(const struct rpc_request *req, struct nfs4_traced *out);

/* The RFCs' name of a status; NULL: none has that number. */
const char *nfs4_status_name(uint32_t status);

#endif
