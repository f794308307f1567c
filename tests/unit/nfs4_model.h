/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A simple model of what NFSv4 clients hold: shares as bits, locks as one byte for each byte of the
 * file, delegations as one for each client and file. test_nfs4_model.c compares the server with it.
 */
#ifndef RN_TESTS_NFS4_MODEL_H
#define RN_TESTS_NFS4_MODEL_H

#include "nfs4/nfs4_private.h"
#include "tests/unit/nfs4_opens.h"

#define CLIENTS 4
#define OWNERS 2
#define LOCKERS 2
#define FILES 4
#define BYTES 16u

/* One open-owner's open of a file. */
struct model_open {
	bool is;
	uint32_t access, deny;
	uint32_t combinations; /* set of bits access * 4 + deny */
	struct op_file file;
};

/* Locks of a lock-owner on a file. */
struct model_lock {
	bool is; /* the owner has a stateid */
	int opener;
	struct nfs4_stateid sid;
	uint8_t byte[BYTES]; /* 0: none, 1: read, 2: write */
};

/* A client's delegation of a file. */
struct model_deleg {
	bool is, writes;
	bool recalled; /* somebody has met it */
	bool told;     /* CB_RECALL was sent */
	bool knows;    /* the client has answered NFS4_OK to that */
	bool revoked;  /* not freed yet */
	struct nfs4_stateid sid;
	/* To write: what the client has changed by itself. */
	uint64_t change; /* the server's when it was given */
	uint64_t size;
	uint32_t changes;
	bool modified; /* the server knows of it */
	bool silent;   /* a question was not answered */
};

/* Whether a client may reclaim delegations: not after it has let one be revoked. */
enum model_reclaim { MAY_RECLAIM, LOST_ONE, UNKNOWN };

struct model_client {
	struct op_client client;
	uint32_t minor;
	bool lost; /* the lease ran out and a conflict ended the state */
	bool away; /* the lease ran out */
	bool met;  /* somebody was in the way of it while it was away */
	enum model_reclaim reclaim;
	char name[32], owner_name[OWNERS][32], locker_name[LOCKERS][32];
	struct op_owner owner[OWNERS], locker[LOCKERS];
	struct model_open open[OWNERS][FILES];
	struct model_lock lock[LOCKERS][FILES];
	struct model_deleg deleg[FILES];
};

struct model_file {
	const char *name;
	struct vfs_fh fh;
	uint64_t size, change; /* the server's, when somebody has looked at it last */
	bool seen;	       /* somebody has */
	bool touched;	       /* changed since */
};

/* How often something has happened, to see what a run has tested. */
struct model_counts {
	unsigned to_read, to_write, alone, claimed, reclaimed, recalls, revoked, lost;
	unsigned met_by_open, met_by_change, met_by_look, asked, modified, refused;
};

extern struct model {
	struct fixture *f;
	struct model_counts n;
	unsigned seed;
	int step;
	struct model_client client[CLIENTS];
	struct model_file file[FILES];
} model;

uint32_t chance(uint32_t n);

/* Makes the client known to the server, without any state. */
void register_client(struct model_client *c);
/* The client holds nothing any more. */
void drop_model(struct model_client *c);
/* Sends an operation that renews the lease. */
void renew(struct model_client *c);

/* An operation of client c, and who is in its way. */
struct meeting {
	int c, file;
	bool hit[CLIENTS];
	bool waits;    /* a delegation has to be returned first */
	bool writes;   /* with waits: those to read are in the way, too */
	uint32_t want; /* its status */
};

/* Adds the clients whose delegations are in the way of a use of the file, unless the operation is
 * refused anyway; m->want is its status then, or NFS4ERR_DELAY. Those delegations are recalled. */
void meet_delegs(struct meeting *m, bool writes);
/* Sends an operation until it has its last status: again while the state of a client that is away is
 * being removed, or while not all holders have been told. Asserts that the status is m->want. */
void go_through(struct meeting *m, uint32_t (*send)(void *arg), void *arg, const char *what);
bool somebody_lives(const bool hit[CLIENTS]);
/* Marks clients that lost their state; each must have been in conflict, as hit[] says. */
void see_who_lost(const bool hit[CLIENTS]);
/* True if the answer was NFS4ERR_DELAY. Lets time pass until the next try. */
bool delayed(uint32_t status);

/* Takes the server's calls and answers them: probes; recalls and questions for attributes, for which
 * there must be a reason. A client that is not ready is told again later. */
void answer_calls(void);
/* A client that was away is back, and answers what it was asked meanwhile. */
void answer_kept_calls(void);
/* Type of the delegation that an open by name with that word brings. */
uint32_t deleg_expected(int c, int file, uint32_t access);
/* True if the server gives the client a delegation of that type. */
bool deleg_may_be_given(int c, int file, bool writes);
/* Notes the delegation in the result of an OPEN, if there is one. */
void note_deleg(int c, int file, const struct op_file *got);
/* Waits until the server has revoked the delegation, if it must: it was recalled more than a lease ago. */
void expect_revoked(struct model_client *c, struct model_deleg *d);

struct fix4_attrs;
/* Checks the attributes of a file that no holder has modified, and notes them. */
void check_attrs(int file, const struct fix4_attrs *got);

/* Steps with locks. */
void do_lock(int c, int l, int file);
void do_unlock(int c, int l, int file);
void do_test(int c, int l, int file);
/* Steps with delegations. */
void do_return(int c, int file);
void do_use_delegated(int c, int file);
void do_change(int c, int file);
void do_peek(int c, int file);
void do_look(int c, int file);

/* Ends the server and starts another. Clients that are not away reclaim what they had. */
void do_restart(void);
/* Starts the server with the settings of the model. */
void start_server(void);
void stop_server(void);

#endif
