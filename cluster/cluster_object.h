/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The object that all members of a cluster share, as plain data, and the transitions that members make in it by compare-and-set.
 *
 * A member is an instance of the server: an address, a name and a state directory. The cluster has one grace period: while one
 * member's clients may reclaim locks, all members refuse new ones. The algorithm is that of nfs-ganesha's rados_cluster, with
 * a heartbeat beside it (cluster/member.h), so that the others enforce when a member dies and not when it returns.
 *
 * What locks rely on:
 *  1. No member grants a lock while a client of another member may still reclaim it.
 *  2. What a dead server held in the file system is released only when all members enforce the grace (cluster_all_enforce()).
 *  3. What the file system dropped before that nobody reclaims: who stops granting, or declares a member dead, looks first whether the locks
 *     are still there (cluster_must_stand(), cluster_lose()).
 *
 * Transitions change the object or refuse with a reason; a refused one leaves the object as it was. Nothing here waits, allocates or logs.
 * doc/design/cluster.md has the transitions as a table; tests/unit/test_cluster_model.c explores them.
 */
#ifndef RN_CLUSTER_CLUSTER_OBJECT_H
#define RN_CLUSTER_CLUSTER_OBJECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLUSTER_MEMBERS 64u	/* members that a cluster may have */
#define CLUSTER_NAME_SIZE 64u	/* bytes of a member's name with its NUL */
#define CLUSTER_DIGEST_SIZE 16u /* bytes of one digest */
#define CLUSTER_ADDRESSES 8u	/* addresses that one member may have */
#define CLUSTER_CLOCK_MS 10	/* allowed difference of members' clocks */
#define CLUSTER_DEAD_MS_MIN 2000u
#define CLUSTER_DEAD_MS_MAX 600000u

enum cluster_state {
	CLUSTER_RUNNING = 1, /* joined, and not known to have ended */
	CLUSTER_STOPPED,     /* has left */
	CLUSTER_DEAD, /* its heartbeat stopped; whoever still runs under that incarnation is fenced */
};

/* Facts that members must have in common; bits of cluster_differences(). */
enum cluster_difference {
	CLUSTER_KEY = 1 << 0, /* the key that signs handles */
	CLUSTER_EXPORTS = 1 << 1,
	CLUSTER_SETTINGS = 1 << 2,
};

struct cluster_digest {
	uint8_t key[CLUSTER_DIGEST_SIZE], exports[CLUSTER_DIGEST_SIZE],
		settings[CLUSTER_DIGEST_SIZE];
};

/* Addresses and ports where clients reach a member; no addresses: they are not known. */
struct cluster_place {
	unsigned naddresses;
	uint8_t address[CLUSTER_ADDRESSES][16]; /* IPv6, or IPv4 mapped to it (lib/host.h) */
	uint16_t tcp_port, rdma_port;		/* NFS's ports; 0: the transport is not served */
};

struct cluster_member {
	char name[CLUSTER_NAME_SIZE];
	enum cluster_state state;
	bool needs_grace; /* true while clients of this member may reclaim, or may come back to reclaim */
	bool enforcing; /* true if this member grants no new locks until the grace of the current epoch ends */
	/* True if its clients may not reclaim, as others may have been granted what the file system has dropped of theirs; until their records are. */
	bool lost;
	uint64_t incarnation; /* number of this run; no two runs in the cluster have the same */
	uint64_t
		holder; /* the run with the locks that clients may reclaim: this one, or an earlier one until they have reclaimed */
	struct cluster_digest digest;
	struct cluster_place place; /* stays when the member stops: its address moves with it */
	/* Bit i: this member has seen the clock of that in row i ahead of its own by more than CLUSTER_CLOCK_MS. Both run. */
	uint64_t ahead;
};

struct cluster_object {
	uint64_t epoch; /* current epoch; each grace begins a new one */
	/* Epoch before the grace, whose locks may be reclaimed; 0: there is no grace. */
	uint64_t reclaim_epoch;
	uint64_t last_incarnation; /* last number given to a run */
	/* Time without a heartbeat after which a member is declared dead; all members go by this one. */
	uint32_t dead_ms;
	unsigned nmembers;
	struct cluster_member member[CLUSTER_MEMBERS];
};

/* Reasons for which a transition is refused. */
enum cluster_refusal {
	CLUSTER_OK = 0,
	CLUSTER_BAD_NAME,   /* not a name of letters, digits, ".", "_" and "-" */
	CLUSTER_BAD_TIME,   /* the time until a member is declared dead is out of range */
	CLUSTER_FULL,	    /* CLUSTER_MEMBERS members are there */
	CLUSTER_BAD_PLACE,  /* an address is not that of one machine, or there are too many */
	CLUSTER_SAME_PLACE, /* another member runs at one of the addresses, with the same port */
	CLUSTER_UNLIKE,	    /* key, exports or settings differ from those of members that run */
	CLUSTER_CLOCK,	    /* the clocks of most members that run are ahead of the caller's */
	CLUSTER_FENCED, /* the caller was declared dead, was removed, or has been started anew elsewhere */
	CLUSTER_NO_GRACE,	/* there is no grace to enforce */
	CLUSTER_OLD_EPOCH,	/* another grace has begun since the caller looked */
	CLUSTER_NOT_ENFORCED,	/* not all members enforce the grace yet */
	CLUSTER_UNKNOWN_MEMBER, /* no member has that name */
	CLUSTER_NOT_RUNNING,	/* the member has stopped, or is dead already */
	CLUSTER_IS_RUNNING,	/* the member runs, so it cannot be removed */
	CLUSTER_STARTED_ANEW,	/* the member that seemed dead has been started again */
	CLUSTER_RELEASED, /* nothing of the member's need be locked in the file system any more */
};

const char *cluster_refusal_text(enum cluster_refusal r);

/* A member that starts. */
struct cluster_starter {
	const char *name;
	struct cluster_digest digest;
	bool has_records; /* there are records of clients that may reclaim */
	uint32_t
		dead_ms; /* CLUSTER_DEAD_MS_MIN to CLUSTER_DEAD_MS_MAX; in force if no other member runs */
	struct cluster_place place;
};

/* A member's own name and the number of its run, with which it makes transitions. */
struct cluster_self {
	char name[CLUSTER_NAME_SIZE];
	uint64_t incarnation;
};

/* Duties of a running member, as cluster_duty() reads them from the object. */
struct cluster_duty {
	bool fenced;	  /* this run is over: answer nothing more. The rest is false then. */
	bool enforce;	  /* grant no new locks */
	bool confirm;	  /* call cluster_enforcing() once no lock is granted any more */
	bool may_reclaim; /* own clients may reclaim: all members enforce */
	bool lost; /* own clients may not reclaim: drop their records, then call cluster_reclaimed() */
	bool leave;	/* the member has to leave, as its clock is apart from the others' */
	uint64_t epoch; /* of the grace; for cluster_enforcing() */
};

/* Why the cluster's grace period cannot end yet, as seen at one member. */
enum cluster_wait {
	CLUSTER_WAITS_NOT,
	CLUSTER_WAITS_ENFORCE, /* the member runs, and has not stopped granting locks */
	CLUSTER_WAITS_START, /* the member does not run, and its clients may reclaim after its next start */
	CLUSTER_WAITS_RECLAIM, /* its clients may be reclaiming */
};

/* The object of a cluster without members. */
void cluster_init(struct cluster_object *o);

bool cluster_name_is_valid(const char *name);
/* The member with that name, or NULL. */
struct cluster_member *cluster_find(struct cluster_object *o, const char *name);
const struct cluster_member *cluster_look(const struct cluster_object *o, const char *name);
/* True if the object can have come about by transitions. */
bool cluster_is_sound(const struct cluster_object *o);
/* True if there is a grace, and each member that runs enforces it: reclaims may begin, and what dead members held in the file system
 * may be released. Stays true until the grace ends. */
bool cluster_all_enforce(const struct cluster_object *o);
/*
 * True if what a run that has ended held in the file system may be released, be it by its keeper or by the eviction of its file system client:
 * its clients may reclaim and all members enforce, or its clients may not reclaim. False as long as the object shows that run as running.
 */
bool cluster_may_release(const struct cluster_object *o, const struct cluster_self *run);
/* True if the file system has the locks of that member's run `holder`, unless clients of others may have been granted them. */
bool cluster_must_stand(const struct cluster_object *o, const struct cluster_member *m);
enum cluster_wait cluster_waits_for(const struct cluster_object *o, const struct cluster_member *m);
struct cluster_duty cluster_duty(const struct cluster_object *o, const struct cluster_self *self);
/* True if one of the two members has seen the clock of the other ahead. */
bool cluster_are_apart(const struct cluster_object *o, const char *a, const char *b);
/* Bits of enum cluster_difference. */
unsigned cluster_differences(const struct cluster_digest *a, const struct cluster_digest *b);

/*
 * A member starts. The caller knows that no other process runs as this member: it holds the lock of the state directory. If there
 * are records, a grace begins, or the member joins the one under way; it enforces from the start in both cases. A member that is
 * unknown or was removed has nothing to reclaim, nor has one that left without state: others may have been granted it. If needs_grace is
 * false afterwards, the caller drops its records.
 * The key must be that of all members that run; exports and settings those of one of them at least, so that a member can be
 * started while a change is rolled out. Fills in *self.
 */
enum cluster_refusal cluster_join(struct cluster_object *o, const struct cluster_starter *starter,
				  struct cluster_self *self);
/* The caller has stopped granting locks, for the grace that began that epoch. */
enum cluster_refusal cluster_enforcing(struct cluster_object *o, const struct cluster_self *self,
				       uint64_t epoch);
/* The caller's clients have reclaimed, or have had their time, or may not; it takes no reclaims any more, and has dropped the records of
 * those that did not come. The last member ends the grace. */
enum cluster_refusal cluster_reclaimed(struct cluster_object *o, const struct cluster_self *self);
/* The heartbeat of a member's run has stopped for longer than its lease lasts. by: NULL if that member is to be started again, and says so before it
 * joins. */
enum cluster_refusal cluster_declare_dead(struct cluster_object *o, const struct cluster_self *by,
					  const char *name, uint64_t incarnation);
/*
 * The locks of that member's run `holder` are gone from the file system, though cluster_must_stand(): its clients may not reclaim. If that run is
 * taken for running, it is dead. by: as above.
 */
enum cluster_refusal cluster_lose(struct cluster_object *o, const struct cluster_self *by,
				  const char *name, uint64_t holder);
/*
 * The caller stops, and grants no more. has_records: its clients reclaim after the next start, so the grace begins now. The caller
 * keeps its locks in the file system until cluster_all_enforce(), if it has records.
 */
enum cluster_refusal cluster_leave(struct cluster_object *o, const struct cluster_self *self,
				   bool has_records);
/* The administrator gives a member up that does not run, and with it all that its clients could reclaim. */
enum cluster_refusal cluster_remove(struct cluster_object *o, const char *name);
/*
 * The caller has seen for certain that the clock of that run is ahead of its own by more than CLUSTER_CLOCK_MS; is_ahead false: it has not for long.
 * Who is apart from more than half of the others leaves (cluster_duty.leave), one after the other: first who is apart from most, and of several
 * who was started last. So of two members one stays.
 */
enum cluster_refusal cluster_see_clock(struct cluster_object *o, const struct cluster_self *self,
				       const char *name, uint64_t incarnation, bool is_ahead);
/* The caller has read other exports or settings. */
enum cluster_refusal cluster_set_digest(struct cluster_object *o, const struct cluster_self *self,
					const struct cluster_digest *digest);

/*
 * The object as bytes, all words big-endian: magic, version, length and checksum of what follows; epochs, last incarnation, number of
 * members; each member with its length before it. The checksum finds damage; decoding checks every length and value besides, as
 * whoever can write the file can make the checksum, too.
 */
#define CLUSTER_BYTES_MAX                                                                          \
	(64u + CLUSTER_MEMBERS * (48u + CLUSTER_NAME_SIZE + 3 * CLUSTER_DIGEST_SIZE +              \
				  CLUSTER_ADDRESSES * 16u))

/* Number of bytes; size is CLUSTER_BYTES_MAX at least. */
size_t cluster_encode(const struct cluster_object *o, uint8_t *bytes);
/* 0; -EBADMSG: damaged; -EPROTONOSUPPORT: of another version. *o is changed only with 0. */
int cluster_decode(const uint8_t *bytes, size_t len, struct cluster_object *o);

#endif
