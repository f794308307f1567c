/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The database of client records: state_dir/nfs4-clients.db, mode 0600, with a write-ahead log. A
 * commit costs one fsync. One thread at a time uses it; other processes are locked out.
 *
 * Each start begins a new epoch. Rows in the table at a start may be reclaimed. Rows written in
 * this epoch carry its number, and the rows of earlier epochs are deleted when the grace period
 * ends. So a crash during grace loses neither.
 */
#ifndef RN_NFS4_RECOVERY_DB_PRIVATE_H
#define RN_NFS4_RECOVERY_DB_PRIVATE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/log.h"
#include "nfs4/nfs4_proto.h"
#include "nfs4/recovery/client_records.h"

#define NFS4_DB_NAME "nfs4-clients.db"
#define NFS4_DB_VERSION 2

/*
 * Bit beside enum nfs4_record_bits: the client had not completed its reclaims when grace ended.
 * Others may have been granted what it did not reclaim, so it may reclaim nothing after the next
 * restart.
 */
#define NFS4_DB_SUSPECT 128u
/* The lease had run out when the server stopped: the client may reclaim, but grace does not wait
 * for it. */
#define NFS4_DB_LAPSED 64u

struct nfs4_db;

struct nfs4_db_row {
	const uint8_t *id;
	uint32_t id_len; /* up to NFS4_OPAQUE_LIMIT */
	bool sessions;
	uint8_t verifier[NFS4_VERIFIER_SIZE];
	unsigned bits;
	struct nfs4_record_origin origin;
};

/*
 * Opens the database, or creates it. One that exists is not written to, so that it can be read where
 * a disk is full. old_lease: seconds of lease that clients of earlier epochs rely on. A damaged
 * database is moved aside and a new one made. -errno: it cannot be used; the log says what to do.
 * again: a further attempt, which is not logged and leaves a damaged database alone.
 */
int nfs4_db_open(const char *dir, unsigned lease, const struct rn_logger *log, bool again,
		 struct nfs4_db **out, unsigned *old_lease);
void nfs4_db_close(struct nfs4_db *db);

/* In a transaction, the first one of this run: begins the epoch. */
int nfs4_db_begin_epoch(struct nfs4_db *db);
/* In the same: the records of the epoch before become those of this one. */
int nfs4_db_continue(struct nfs4_db *db);
/* Allocates space that later transactions will need, if there is some. */
void nfs4_db_reserve(const struct nfs4_db *db);

/* Calls each() for every row of earlier epochs. A result other than 0 ends the walk and is
 * returned. */
int nfs4_db_each(struct nfs4_db *db, int (*each)(void *ctx, const struct nfs4_db_row *row),
		 void *ctx);

/* A transaction: begin, any number of the calls below, commit. commit returns 0 if all is on disk,
 * else -errno and nothing is. */
int nfs4_db_begin(struct nfs4_db *db);
int nfs4_db_put(struct nfs4_db *db, const struct nfs4_db_row *row); /* in this epoch */
int nfs4_db_delete(struct nfs4_db *db, const struct nfs4_db_row *row);
int nfs4_db_end_grace(struct nfs4_db *db, unsigned lease); /* rows of earlier epochs go */
int nfs4_db_commit(struct nfs4_db *db);
void nfs4_db_rollback(struct nfs4_db *db);
/* Removes the file, even a damaged one, so that no client can reclaim. 0 or -errno. Only close is
 * allowed afterwards. */
int nfs4_db_remove(struct nfs4_db *db);
/* SQLite's message for the last failure. */
const char *nfs4_db_why(struct nfs4_db *db);

/* Private parts of the database, shared by the files that implement it. */

enum nfs4_db_statement {
	NFS4_DB_BEGIN,
	NFS4_DB_COMMIT,
	NFS4_DB_ROLLBACK,
	NFS4_DB_PUT,
	NFS4_DB_DELETE,
	NFS4_DB_PRUNE,
	NFS4_DB_LEASE,
	NFS4_DB_EACH,
	NFS4_DB_STATEMENTS
};

struct nfs4_db {
	sqlite3 *handle;
	int64_t epoch;	/* of this run */
	unsigned lease; /* seconds, for the next run to know */
	char *path;
	sqlite3_stmt *st[NFS4_DB_STATEMENTS];
};

#endif
