/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The database of client records: state_dir/nfs4-clients.db, mode 0600, a write-ahead log beside
 * it. A commit costs one fsync. Used by one thread at a time; another process is kept out.
 *
 * Each start begins a new epoch. What is in the table at a start may be reclaimed; what a client
 * gets in this epoch carries its number, and when the grace period ends the others go. A crash in
 * grace thus loses neither.
 */
#ifndef RN_NFS4_DB_PRIVATE_H
#define RN_NFS4_DB_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/log.h"
#include "nfs4/proto.h"
#include "nfs4/recovery/records.h"

#define NFS4_DB_NAME "nfs4-clients.db"
#define NFS4_DB_VERSION 2

/* Beside enum nfs4_record_bits: had not completed its reclaims when grace ended, so that others may
 * have got what it did not ask for: it may reclaim nothing after the next restart. */
#define NFS4_DB_SUSPECT 128u
/* Its lease had run out when the server stopped: it may reclaim, but nobody waits for it. */
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
 * Opens or makes it and begins an epoch, all durably. old_lease: seconds that clients of earlier
 * epochs may count on. A damaged database is put aside and a new one made. -errno, logged with what
 * to do: cannot be used.
 */
int nfs4_db_open(const char *dir, unsigned lease, const struct rn_logger *log, struct nfs4_db **out,
		 unsigned *old_lease);
void nfs4_db_close(struct nfs4_db *db);

/* The rows of earlier epochs. each() returns 0 or what ends it. */
int nfs4_db_each(struct nfs4_db *db, int (*each)(void *ctx, const struct nfs4_db_row *row),
		 void *ctx);

/* A transaction: begin, any number of the others, commit: 0 if all of it is on disk, else -errno
 * and nothing of it. */
int nfs4_db_begin(struct nfs4_db *db);
int nfs4_db_put(struct nfs4_db *db, const struct nfs4_db_row *row); /* in this epoch */
int nfs4_db_delete(struct nfs4_db *db, const struct nfs4_db_row *row);
int nfs4_db_end_grace(struct nfs4_db *db, unsigned lease); /* rows of earlier epochs go */
int nfs4_db_commit(struct nfs4_db *db);
void nfs4_db_rollback(struct nfs4_db *db);
/* Removes the file, whatever state it is in: nobody can reclaim. 0 or -errno. Only close is allowed
 * afterwards. */
int nfs4_db_remove(struct nfs4_db *db);
/* What SQLite says of the last failure. */
const char *nfs4_db_why(struct nfs4_db *db);

#endif
