/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the recovery. One lock guards all of it but the database, which is the writing
 * thread's; nothing is called under it, and no file is touched.
 */
#ifndef RN_NFS4_RECOVERY_PRIVATE_H
#define RN_NFS4_RECOVERY_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "nfs4/recovery/db_private.h"
#include "nfs4/recovery/records.h"
#include "nfs4/server.h"

enum nfs4_job_kind {
	NFS4_JOB_PUT,
	NFS4_JOB_DELETE,
	NFS4_JOB_REVOKE, /* a deletion, after which what the client had is given to others */
	NFS4_JOB_END_GRACE,
};

/* An operation that waits, in its request's arena. */
struct nfs4_record_wait {
	struct nfs4_record_wait *next;
	struct rpc_request *req;
	void (*resume)(struct rpc_request *req);
	int (*again)(struct nfs4_compound *c, int rc);
	void *saved; /* of c->wait */
	int rc;
};

/* Belongs to the queue, then to the writing thread. rec lives while it points here: see
 * nfs4_record_fini(). */
struct nfs4_record_job {
	struct nfs4_record_job *next;
	enum nfs4_job_kind kind;
	bool taken;		/* by the writing thread */
	struct nfs4_db_row row; /* row.id is id below */
	struct nfs4_record *rec;
	struct nfs4_record_wait *waiting;
	uint8_t id[];
};

/* A client with a record of an earlier epoch that has not come to its end of reclaiming. */
struct nfs4_expected {
	struct nfs4_expected *next;
	struct nfs4_record *rec; /* once it has come back */
	bool sessions;
	bool done;
	bool back;    /* it has come back */
	bool lapsed;  /* its lease had run out: nobody who wants something waits for it */
	bool revoked; /* others may have what it had: it reclaims nothing of that */
	unsigned bits;
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	struct nfs4_record_origin origin;
	uint32_t guesses; /* verifiers that strangers have tried */
	uint32_t id_len;
	uint8_t id[];
};

enum nfs4_grace_phase { NFS4_GRACE_OVER, NFS4_GRACE_RUNNING, NFS4_GRACE_ENDING };

struct nfs4_grace {
	_Atomic int phase; /* enum nfs4_grace_phase; changed under the lock */
	uint64_t began_s, ends_s;
	uint64_t reclaimed_s; /* when somebody last reclaimed, or 0 */
	unsigned seconds;     /* that it is to last */
	unsigned back;	      /* clients that have come back */
	unsigned expected;    /* how many there were, besides those whose lease had run out */
	unsigned left;	      /* of these, not done */
	unsigned lapsed;      /* of the others, who may come back */
	unsigned denying;     /* of left and lapsed, who denied something */
	uint32_t nbuckets;    /* a power of two, or 0 */
	uint8_t seed[16];     /* of the hash: ids are chosen by clients */
	struct nfs4_expected **bucket;
};

struct nfs4_recovery {
	struct nfs4_server *srv;
	const struct rn_logger *log;
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_t thread;
	struct nfs4_db *db; /* NULL: nothing is recorded. Of the thread once that runs. */
	struct nfs4_record_job *first, **last;
	bool stop;
	bool failing;  /* the last transaction was not written: of the thread */
	bool given_up; /* the records were removed: of the thread */
	struct nfs4_grace grace;
};

/* jobs.c. With the lock held: */
struct nfs4_record_job *nfs4_job_new(enum nfs4_job_kind kind, const struct nfs4_db_row *row);
void nfs4_job_queue(struct nfs4_recovery *r, struct nfs4_record_job *job);
/* A new job of that kind for a record, queued. NULL: no memory. */
struct nfs4_record_job *nfs4_job_post(struct nfs4_recovery *r, struct nfs4_record *rec,
				      enum nfs4_job_kind kind, unsigned bits);
/* The job after which bits are on disk: one that has not been taken yet, or a new one. */
struct nfs4_record_job *nfs4_job_for(struct nfs4_recovery *r, struct nfs4_record *rec,
				     unsigned bits);
/* The record's job, if there is one, points to it no longer; it is carried out all the same. */
void nfs4_job_detach(struct nfs4_record *rec);
/* The record's bits on disk when all jobs are done. */
unsigned nfs4_record_coming_bits(const struct nfs4_record *rec);
/* Marks a record that is, or will be, on disk NFS4_DB_SUSPECT, or no longer. */
void nfs4_record_suspect(struct nfs4_recovery *r, struct nfs4_record *rec, bool suspect);

/* writer.c */
int nfs4_writer_start(struct nfs4_recovery *r);
void nfs4_writer_stop(struct nfs4_recovery *r); /* when all is written */

/* expected.c. With the lock held: */
int nfs4_expected_add(void *r, const struct nfs4_db_row *row); /* nfs4_db_each's each */
struct nfs4_expected *nfs4_expected_find(struct nfs4_grace *g, const struct nfs4_record *rec);
void nfs4_expected_free(struct nfs4_grace *g);

/* grace.c */
void nfs4_grace_begin(struct nfs4_recovery *r, unsigned seconds);
void nfs4_grace_check(struct nfs4_recovery *r, uint64_t now);
/* With the lock held. Its end is on disk: true if it was not over before. */
bool nfs4_grace_ended(struct nfs4_recovery *r);
/* With the lock held. rec is no longer that client's; done: nor will it reclaim. False: nobody
 * expected it. */
bool nfs4_grace_forget(struct nfs4_recovery *r, struct nfs4_record *rec, bool done);

#endif
