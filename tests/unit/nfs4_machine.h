/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * State machines of clients, opens, locks and delegations, as a specification that is small enough to
 * visit every state: 3 clients, 2 files, 1 restart of the server. An event has one or more permitted
 * outcomes. nfs4_machine_search.c visits all states breadth first and checks the invariants;
 * nfs4_machine_code.c has the server do the same events and compares. doc/design/proof.md says what
 * is proven by it.
 */
#ifndef RN_TESTS_NFS4_MACHINE_H
#define RN_TESTS_NFS4_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MACH_CLIENTS 3
#define MACH_FILES 2
#define MACH_RESTARTS 1

/* Ways to open a file. The server keeps the set of a client's opens as struct mach_hold.modes. */
enum { MACH_R, MACH_W, MACH_D, MACH_MODES }; /* D: to read, denying others to write */

enum { MACH_LOCK_R = 1, MACH_LOCK_W = 2 };
enum { MACH_DELEG_R = 1, MACH_DELEG_W = 2, MACH_RECALLED = 4, MACH_REVOKED = 8 };

/* Parts of what a client holds of a file. */
enum { MACH_OPEN = 1, MACH_LOCK = 2, MACH_DELEG = 4 };

/* What a client believes to hold of a file. Whether the server holds it for the client is a matter of
 * the client's life; see mach_held(). */
struct mach_hold {
	uint8_t modes, lock, deleg;
	uint8_t back;  /* parts that the client has got, or reclaimed, since it came back */
	uint8_t given; /* parts for which another client has got what conflicts */
};

enum mach_life {
	MACH_NEW,  /* unknown to the server; believes nothing */
	MACH_LIVE, /* its lease is good */
	MACH_AWAY, /* its lease has run out, and the server keeps its state */
	MACH_GONE, /* as AWAY, but the server has dropped its state, as somebody wanted it */
	MACH_DOWN, /* the server has restarted, and the client has not come back */
	MACH_BACK, /* it has come back, and not yet reclaimed all */
};

enum {
	MACH_LAPSED = 1, /* the lease had run out when the server stopped: nobody waits for it */
	MACH_BARRED =
		2, /* its state was dropped, it has booted, or grace is over: it must not reclaim */
	MACH_LOST = 4, /* a delegation was revoked: it may be refused all of them */
};

struct mach_state {
	struct mach_hold hold[MACH_CLIENTS][MACH_FILES];
	uint8_t life[MACH_CLIENTS], flags[MACH_CLIENTS];
	uint8_t grace, restarts;
};

/* c is a client, f a file. */
enum mach_kind {
	MACH_OPEN_R,
	MACH_OPEN_W,
	MACH_OPEN_D,
	MACH_OPEN_R_DELEG, /* the client wants a delegation to read */
	MACH_OPEN_W_DELEG,
	MACH_CLAIM, /* an open that the holder of a delegation has made by itself */
	MACH_CLOSE,
	MACH_DOWNGRADE, /* to R */
	MACH_LOCK_READ,
	MACH_LOCK_WRITE,
	MACH_UNLOCK,
	MACH_RETURN, /* a delegation; one that was revoked is freed */
	MACH_USE,    /* READ or WRITE by the open's stateid */
	MACH_USE_DELEG,
	MACH_RECLAIM_OPEN, /* and the delegation */
	MACH_RECLAIM_LOCK,
	MACH_RECLAIM_LATE, /* by a client that has said that it is done, or has booted */
	MACH_PER_FILE,	   /* the kinds from here on concern no file */
	MACH_REGISTER = MACH_PER_FILE,
	MACH_RENEW,
	MACH_REBOOT, /* the client, which holds nothing then */
	MACH_COME_BACK,
	MACH_COMPLETE,
	MACH_LEASE_ENDS,	     /* of this client; as MACH_TIME for the others */
	MACH_PER_CLIENT,	     /* the kinds from here on concern no client */
	MACH_TIME = MACH_PER_CLIENT, /* a lease passes, all renew it: recalls time out */
	MACH_RESTART,
	MACH_GRACE_ENDS,
	MACH_KINDS
};

struct mach_event {
	uint8_t kind, c, f;
};

/* Statuses that an operation may answer, as a set: the answer must be one of them. */
enum {
	MACH_SAYS_OK = 1u << 0,
	MACH_SAYS_SHARE_DENIED = 1u << 1,
	MACH_SAYS_DENIED = 1u << 2,
	MACH_SAYS_DELAY = 1u << 3,
	MACH_SAYS_GRACE = 1u << 4,
	MACH_SAYS_OPENMODE = 1u << 5,
	MACH_SAYS_REVOKED = 1u << 6,	/* DELEG_REVOKED */
	MACH_SAYS_NO_RECLAIM = 1u << 7, /* NO_GRACE, RECLAIM_BAD, RECLAIM_CONFLICT */
	MACH_SAYS_UNKNOWN =
		1u << 8, /* the client, its session or the stateid is not known, or expired */
};

struct mach_outcome {
	uint32_t says;
	bool deleg; /* the answer has a delegation */
	struct mach_state next;
};

#define MACH_OUTCOMES 32

/* Faults of one line that can be put into the machine: the checks must find each. */
enum mach_fault {
	MACH_RIGHT,
	MACH_IGNORES_DENY,
	MACH_IGNORES_LOCKS,
	MACH_KEEPS_AND_GIVES, /* state of a client that is away is not dropped when it is given */
	MACH_RECALL_NOT_AWAITED,
	MACH_REVOKES_SILENTLY,
	MACH_GONE_COMES_BACK,
	MACH_GRACE_ADMITS,
	MACH_GRACE_LETS_READ,
	MACH_GRACE_LETS_WRITE,
	MACH_RECLAIM_AFTER_GRACE,
	MACH_DROPPED_MAY_RECLAIM,
	MACH_REVOKED_IS_RECLAIMED,
	MACH_BOOTED_RECLAIMS,
	MACH_LAPSED_HAS_DELEG,
	MACH_DELEG_BESIDE_WRITER,
	MACH_CLOSE_LEAVES_LOCK,
	MACH_FAULTS
};
extern enum mach_fault mach_fault;
extern const char *const mach_fault_name[MACH_FAULTS];

/* Client 0 is of minor version 0, which has no delegations here. Clients 1 and 2 differ in nothing. */
static inline bool mach_has_sessions(int c)
{
	return c > 0;
}

/* All clients live and hold nothing. */
void mach_init(struct mach_state *s);
/* Outcomes of the event, none if it cannot happen in that state. */
unsigned mach_outcomes(const struct mach_state *s, struct mach_event e,
		       struct mach_outcome out[MACH_OUTCOMES]);
/* The part that the server holds for the client. */
struct mach_hold mach_held(const struct mach_state *s, int c, int f);
/* True if the client held it when the server stopped, may reclaim it, and must be waited for. */
bool mach_is_awaited(const struct mach_state *s, int c);
uint32_t mach_access(unsigned modes);
uint32_t mach_deny(unsigned modes);

/* The invariant that a state, or a step to it, violates; NULL: none. */
const char *mach_violates(const struct mach_state *s);
const char *mach_step_violates(const struct mach_state *s, struct mach_event e,
			       const struct mach_outcome *o);

/* Number of events; the i-th one. */
#define MACH_EVENTS                                                                                \
	(MACH_PER_FILE * MACH_CLIENTS * MACH_FILES +                                               \
	 (MACH_PER_CLIENT - MACH_PER_FILE) * MACH_CLIENTS + MACH_KINDS - MACH_PER_CLIENT)
struct mach_event mach_event(unsigned i);
/* Prints an event or an answer as words. */
void mach_tell(char *to, size_t size, struct mach_event e);
void mach_tell_says(char *to, size_t size, uint32_t says);

/* Symmetries: bit 0 exchanges the clients 1 and 2, bit 1 the files. Each is its own inverse. */
#define MACH_SYMMETRIES 4
struct mach_event mach_turn_event(struct mach_event e, unsigned symmetry);
void mach_turn(struct mach_state *s, unsigned symmetry);
/* Replaces s by the least of its symmetric states; returns the symmetry. */
unsigned mach_canonical(struct mach_state *s);

/* nfs4_machine_search.c */
#define MACH_PATH 64 /* events of the longest path */
struct mach_found {
	const char *violated; /* NULL: nothing */
	uint64_t states, edges;
	unsigned depth; /* to which all was visited */
	bool all;	/* no state is left to visit */
	double seconds;
	/* The shortest path: to the violation. */
	unsigned steps;
	struct mach_event path[MACH_PATH];
};
/* Visits all states up to a depth by the kinds of events in the set, or until an invariant is violated. */
void mach_search(uint64_t kinds, unsigned depth, struct mach_found *out);
#define MACH_ALL_KINDS ((UINT64_C(1) << MACH_KINDS) - 1)
double mach_seconds(void);
/* States of the last search: the number of a canonical state (MACH_NONE: it was not reached), and the
 * shortest path to one, with one more event. */
#define MACH_NONE UINT32_MAX
uint32_t mach_number(const struct mach_state *s);
const struct mach_state *mach_numbered(uint32_t i);
unsigned mach_depth(uint32_t i);
unsigned mach_path(uint32_t to, unsigned last, struct mach_event path[MACH_PATH]);
void mach_print_path(const struct mach_event *path, unsigned n);

/* nfs4_machine_code.c: the server. */
struct fixture;
void mach_code_begin(struct fixture *f);
void mach_code_end(void);
/* A new server, and clients that hold nothing. */
void mach_code_anew(void);
/*
 * Has the server do the event, and compares. Returns the outcome that it has chosen, or -1: it has
 * done what is not permitted, and why[] says what.
 */
int mach_code_step(const struct mach_state *s, struct mach_event e, const struct mach_outcome *out,
		   unsigned n, char why[256]);

#endif
