/* SPDX-License-Identifier: BSD-2-Clause */
/* Private parts of the recovery. One lock guards all but the database, which belongs to the writing
 * thread. No callback and no file access happens under it. */
#ifndef RN_NFS4_RECOVERY_PRIVATE_H
#define RN_NFS4_RECOVERY_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "nfs4/recovery/db_private.h"
#include "nfs4/recovery/client_records.h"
#include "nfs4/nfs4_private.h"

enum nfs4_job_kind {
	NFS4_JOB_PUT,
	NFS4_JOB_DELETE,
	NFS4_JOB_REVOKE, /* a deletion, after which others are granted what the client had */
	NFS4_JOB_END_GRACE,
};

/* Operations wait for its address. Belongs to the queue, then to the writing thread. rec outlives this pointer: see
 * nfs4_record_fini(). */
struct nfs4_record_job {
	struct nfs4_record_job *next;
	enum nfs4_job_kind kind;
	bool taken;		/* taken from the queue by the writing thread */
	struct nfs4_db_row row; /* row.id is id below */
	struct nfs4_record *rec;
	uint8_t id[];
};

/* A client with a record of an earlier epoch that has not ended reclaiming. */
struct nfs4_expected {
	struct nfs4_expected *next;
	struct nfs4_record *rec; /* NULL until the client has come back */
	bool sessions;
	bool done;
	bool back;   /* the client has registered again */
	bool lapsed; /* its lease had run out: no other client waits for it */
	/* True if the client may believe that it still has delegations, so that nobody may change
	 * files before it has come back. False if its lease had run out: it reclaims none. */
	bool delegated;
	bool writes;  /* delegated, and some may be to write: nobody may read those files either */
	bool revoked; /* its state may be granted to others: it reclaims nothing of that */
	unsigned bits;
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct nfs4_record_origin origin;
	uint32_t guesses; /* wrong verifiers from other addresses */
	uint32_t id_len;
	uint8_t id[];
};

enum nfs4_grace_phase { NFS4_GRACE_OVER, NFS4_GRACE_RUNNING, NFS4_GRACE_ENDING };

struct nfs4_grace {
	_Atomic int phase; /* enum nfs4_grace_phase; changed under the lock */
	uint64_t began_s, ends_s;
	uint64_t reclaimed_s; /* time of the last reclaim, or 0 */
	unsigned seconds;     /* length of the grace period */
	unsigned back;	      /* clients that have come back */
	/* Clients with records at the start, without those whose lease had run out */
	unsigned expected;
	unsigned left;	     /* expected clients that have not ended reclaiming */
	unsigned lapsed;     /* lapsed clients that may still come back */
	unsigned denying;    /* clients counted in left and lapsed that denied access */
	unsigned delegating; /* clients expected at the start, and not done, that had delegations */
	unsigned writing;    /* clients of these that had some to write */
	uint32_t nbuckets;   /* a power of two, or 0 */
	uint8_t seed[16];    /* key of the hash: clients choose their ids */
	struct nfs4_expected **bucket;
};

struct nfs4_recovery {
	struct nfs4_server *srv;
	const struct rn_logger *log;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	bool records;	    /* there is a directory for records, and the thread */
	struct nfs4_db *db; /* NULL: cannot be opened. Used by the thread only, once it runs. */
	struct nfs4_record_job *first, **last;
	bool stop;
	bool again; /* all jobs in the queue have failed; they are tried again some time later */
	bool lost;  /* records of this run were removed: each client needs a new one */
	_Atomic bool failing; /* the last transaction failed; changed by the thread */
	uint64_t open_at_s;   /* no attempt to open it before: nfs4_now(); thread only */
	bool begun;	      /* this run's epoch is on disk; thread only */
	bool continues;	      /* the database's records become those of this run; thread only */
	bool prune;	      /* no client may reclaim what the database has; thread only */
	struct nfs4_grace grace;
};

/* jobs.c. With the lock held: */
struct nfs4_record_job *nfs4_job_new(enum nfs4_job_kind kind, const struct nfs4_db_row *row);
void nfs4_job_queue(struct nfs4_recovery *r, struct nfs4_record_job *job);
/* Has the thread write now what it would try again later. */
void nfs4_job_try_now(struct nfs4_recovery *r);
/* A new job of that kind for a record, queued. NULL: no memory. */
struct nfs4_record_job *nfs4_job_post(struct nfs4_recovery *r, struct nfs4_record *rec,
				      enum nfs4_job_kind kind, unsigned bits);
/*
 * The job after which bits are on disk: a queued one that the thread has not taken, or a new one.
 */
struct nfs4_record_job *nfs4_job_for(struct nfs4_recovery *r, struct nfs4_record *rec,
				     unsigned bits);
/* Detaches the record's job, if any, from the record; the job is carried out all the same. */
void nfs4_job_detach(struct nfs4_record *rec);
/* The record's bits on disk after all jobs. */
unsigned nfs4_record_coming_bits(const struct nfs4_record *rec);
/* Sets or clears NFS4_DB_SUSPECT in a record that is, or will be, on disk. */
void nfs4_record_suspect(struct nfs4_recovery *r, struct nfs4_record *rec, bool suspect);

/* writer.c */
/* Begins this run's epoch, before the thread runs. -errno: logged, and tried again. */
int nfs4_writer_begin(struct nfs4_recovery *r);
int nfs4_writer_start(struct nfs4_recovery *r);
void nfs4_writer_stop(struct nfs4_recovery *r); /* after all is written */

/* expected.c. With the lock held: */
int nfs4_expected_add(void *r, const struct nfs4_db_row *row); /* callback for nfs4_db_each */
struct nfs4_expected *nfs4_expected_find(struct nfs4_grace *g, const struct nfs4_record *rec);
void nfs4_expected_free(struct nfs4_grace *g);

/* grace.c */
void nfs4_grace_begin(struct nfs4_recovery *r, unsigned seconds);
void nfs4_grace_check(struct nfs4_recovery *r, uint64_t now);
/* With the lock held. The end of grace is on disk. True if grace was not over before. */
bool nfs4_grace_ended(struct nfs4_recovery *r);
/* With the lock held. rec no longer belongs to its expected client; done: that client will not
 * reclaim either. False: the client was not expected. */
bool nfs4_grace_forget(struct nfs4_recovery *r, struct nfs4_record *rec, bool done);

#endif
