/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "nfs4/recovery/db_open_private.h"
#include "nfs4/recovery/db_private.h"

/* Translates an SQLite result code into -errno; 0 for success. */
int nfs4_db_errno(int rc)
{
	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	default:
		return -EIO;
	}
}

/* Runs a prepared statement to its end and makes it ready for the next time. */
static int db_step(sqlite3_stmt *st)
{
	int rc = sqlite3_step(st);

	/* reset returns the error of step again */
	sqlite3_reset(st);
	sqlite3_clear_bindings(st);
	return nfs4_db_errno(rc);
}

static void bind_key(sqlite3_stmt *st, const struct nfs4_db_row *row)
{
	/* An empty id is an empty blob, not NULL. */
	sqlite3_bind_blob(st, 1, row->id_len ? (const void *)row->id : "", (int)row->id_len,
			  SQLITE_STATIC);
	sqlite3_bind_int(st, 2, row->sessions);
}

/* Parameters left unbound are NULL: the origin is unknown. The connection's protection shares a column with the kind of port, of
 * which earlier releases wrote 0 or 1. */
static void bind_origin(sqlite3_stmt *st, const struct nfs4_record_origin *origin)
{
	sqlite3_bind_blob(st, 6, origin->address, sizeof(origin->address), SQLITE_STATIC);
	sqlite3_bind_int(st, 7, origin->reserved | origin->protection << 1);
	sqlite3_bind_int64(st, 8, origin->flavor);
	sqlite3_bind_int64(st, 9, origin->uid);
}

int nfs4_db_put(struct nfs4_db *db, const struct nfs4_db_row *row)
{
	sqlite3_stmt *st = db->st[NFS4_DB_PUT];

	bind_key(st, row);
	sqlite3_bind_blob(st, 3, row->verifier, sizeof(row->verifier), SQLITE_STATIC);
	sqlite3_bind_int(st, 4, (int)row->bits);
	sqlite3_bind_int64(st, 5, db->epoch);
	if (row->origin.known)
		bind_origin(st, &row->origin);
	return db_step(st);
}

int nfs4_db_delete(struct nfs4_db *db, const struct nfs4_db_row *row)
{
	sqlite3_stmt *st = db->st[NFS4_DB_DELETE];

	bind_key(st, row);
	return db_step(st);
}

int nfs4_db_end_grace(struct nfs4_db *db, unsigned lease)
{
	int rc;

	sqlite3_bind_int64(db->st[NFS4_DB_PRUNE], 1, db->epoch);
	rc = db_step(db->st[NFS4_DB_PRUNE]);
	if (rc)
		return rc;
	sqlite3_bind_int64(db->st[NFS4_DB_LEASE], 1, lease);
	return db_step(db->st[NFS4_DB_LEASE]);
}

int nfs4_db_begin(struct nfs4_db *db)
{
	return db_step(db->st[NFS4_DB_BEGIN]);
}

int nfs4_db_commit(struct nfs4_db *db)
{
	return db_step(db->st[NFS4_DB_COMMIT]);
}

void nfs4_db_rollback(struct nfs4_db *db)
{
	/* Some failures have caused a rollback already. */
	if (!sqlite3_get_autocommit(db->handle))
		db_step(db->st[NFS4_DB_ROLLBACK]);
}

static void get_origin(sqlite3_stmt *st, struct nfs4_record_origin *origin)
{
	if (sqlite3_column_bytes(st, 4) != (int)sizeof(origin->address))
		return; /* NULL: unknown */
	origin->known = true;
	memcpy(origin->address, sqlite3_column_blob(st, 4), sizeof(origin->address));
	origin->reserved = sqlite3_column_int(st, 5) & 1;
	origin->protection = (uint8_t)(sqlite3_column_int(st, 5) >> 1);
	origin->flavor = (uint32_t)sqlite3_column_int64(st, 6);
	origin->uid = (uint32_t)sqlite3_column_int64(st, 7);
}

static int one_row(sqlite3_stmt *st, int (*each)(void *ctx, const struct nfs4_db_row *row),
		   void *ctx)
{
	struct nfs4_db_row row = {
		.id = sqlite3_column_blob(st, 0),
		.id_len = (uint32_t)sqlite3_column_bytes(st, 0),
		.sessions = sqlite3_column_int(st, 1),
		.bits = (unsigned)sqlite3_column_int(st, 3),
	};

	if (row.id_len > NFS4_OPAQUE_LIMIT ||
	    sqlite3_column_bytes(st, 2) != (int)sizeof(row.verifier))
		return 0; /* not a row of this server */
	memcpy(row.verifier, sqlite3_column_blob(st, 2), sizeof(row.verifier));
	get_origin(st, &row.origin);
	return each(ctx, &row);
}

int nfs4_db_each(struct nfs4_db *db, int (*each)(void *ctx, const struct nfs4_db_row *row),
		 void *ctx)
{
	sqlite3_stmt *st = db->st[NFS4_DB_EACH];
	int err = 0, rc = SQLITE_DONE;

	sqlite3_bind_int64(st, 1, db->epoch);
	while (!err && (rc = sqlite3_step(st)) == SQLITE_ROW)
		err = one_row(st, each, ctx);
	sqlite3_reset(st);
	return err ? err : nfs4_db_errno(rc);
}

const char *nfs4_db_why(struct nfs4_db *db)
{
	return sqlite3_errmsg(db->handle);
}

/* True if the log has nothing that the file lacks. */
static bool is_log_done(struct nfs4_db *db)
{
	int in_log = 0, copied = -1;

	return db->handle && db->path &&
	       sqlite3_wal_checkpoint_v2(db->handle, NULL, SQLITE_CHECKPOINT_PASSIVE, &in_log,
					 &copied) == SQLITE_OK &&
	       in_log >= 0 && in_log == copied; /* -1: it has no log */
}

void nfs4_db_close(struct nfs4_db *db)
{
	bool done;

	if (!db)
		return;
	for (unsigned i = 0; i < rn_array_size(db->st); i++)
		sqlite3_finalize(db->st[i]);
	done = is_log_done(db);
	sqlite3_close(db->handle);
	if (done)
		nfs4_db_clear_log(db);
	free(db->path);
	free(db);
}
