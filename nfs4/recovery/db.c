/* SPDX-License-Identifier: BSD-2-Clause */
/* The database of client records: opening, checking, and its statements. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/util.h"
#include "nfs4/recovery/db_private.h"

/* Bytes of the file and its log that are allocated before they are needed, lest others fill the disk:
 * some 20,000 records, and the log up to the checkpoint that SQLite makes after 1,000 pages. */
#define RESERVE (4 << 20)
#define RESERVE_WAL (5 << 20)

#define BUSY_MS 500 /* wait for the server of the run before, which may still be ending */

/* With the exclusive lock SQLite keeps the log's index in its own memory, and not in a mapped file,
 * which another process could truncate. FULL: a commit is on disk when it returns. */
static const char setup[] = "PRAGMA locking_mode=EXCLUSIVE;"
			    "PRAGMA journal_mode=WAL;"
			    "PRAGMA synchronous=FULL;"
			    "PRAGMA mmap_size=0;"
			    "PRAGMA trusted_schema=0;";

static const char schema[] =
	"PRAGMA application_id=1919837811;"
	"CREATE TABLE run(one INTEGER PRIMARY KEY CHECK(one=1), epoch INTEGER NOT NULL,"
	" lease INTEGER NOT NULL);"
	"INSERT INTO run VALUES(1,0,0);"
	"CREATE TABLE client(id BLOB NOT NULL, sessions INTEGER NOT NULL, verifier BLOB NOT NULL,"
	" bits INTEGER NOT NULL, epoch INTEGER NOT NULL, PRIMARY KEY(id,sessions)) WITHOUT ROWID;"
	"PRAGMA user_version=1;";

/* Version 2 adds the caller that registered the client; NULL in the rows of version 1. */
static const char upgrade[] = "ALTER TABLE client ADD COLUMN address BLOB;"
			      "ALTER TABLE client ADD COLUMN reserved INTEGER;"
			      "ALTER TABLE client ADD COLUMN flavor INTEGER;"
			      "ALTER TABLE client ADD COLUMN uid INTEGER;"
			      "PRAGMA user_version=2;";

/* Stands outside of the table of statements, where clang-tidy takes a literal of two lines for a missing
 * comma. */
static const char each_client[] = "SELECT id,sessions,verifier,bits,address,reserved,flavor,uid "
				  "FROM client WHERE epoch<?1";

static const char *const statements[NFS4_DB_STATEMENTS] = {
	[NFS4_DB_BEGIN] = "BEGIN IMMEDIATE",
	[NFS4_DB_COMMIT] = "COMMIT",
	[NFS4_DB_ROLLBACK] = "ROLLBACK",
	[NFS4_DB_PUT] = "INSERT OR REPLACE INTO client VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
	[NFS4_DB_DELETE] = "DELETE FROM client WHERE id=?1 AND sessions=?2",
	[NFS4_DB_PRUNE] = "DELETE FROM client WHERE epoch<?1",
	[NFS4_DB_LEASE] = "UPDATE run SET lease=?1",
	[NFS4_DB_EACH] = each_client,
};

/* Translates an SQLite result code into -errno; 0 for success. */
static int nfs4_db_errno(int rc)
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

static int exec(struct nfs4_db *db, const char *sql)
{
	return nfs4_db_errno(sqlite3_exec(db->handle, sql, NULL, NULL, NULL));
}

/* The first column of the first row. */
static int db_query(struct nfs4_db *db, const char *sql, int64_t *number, bool *is_ok)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db->handle, sql, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW && number)
		*number = sqlite3_column_int64(st, 0);
	if (rc == SQLITE_ROW && is_ok) {
		const char *text = (const char *)sqlite3_column_text(st, 0);

		*is_ok = text && strcmp(text, "ok") == 0;
	}
	if (rc == SQLITE_DONE)
		rc = SQLITE_CORRUPT;
	sqlite3_finalize(st);
	return nfs4_db_errno(rc);
}

/* Creates the tables of a new file, or upgrades those of an earlier version. */
static int make_tables(struct nfs4_db *db, int64_t version)
{
	int rc = exec(db, "BEGIN IMMEDIATE");

	if (!rc && version == 0)
		rc = exec(db, schema);
	if (!rc)
		rc = exec(db, upgrade);
	if (!rc)
		rc = exec(db, "COMMIT");
	/* A table or column that exists already is not of this server. */
	return rc == -EIO ? -EUCLEAN : rc;
}

/* -EUCLEAN: damaged; -EPROTO: written by a later release. A new file gets its tables. */
static int check_schema(struct nfs4_db *db)
{
	int64_t version = 0;
	bool whole = false;
	int rc = db_query(db, "PRAGMA user_version", &version, NULL);

	if (rc)
		return rc;
	if (version > NFS4_DB_VERSION)
		return -EPROTO;
	rc = db_query(db, "PRAGMA quick_check(1)", NULL, &whole);
	if (rc)
		return rc;
	if (!whole || version < 0)
		return -EUCLEAN;
	return version < NFS4_DB_VERSION ? make_tables(db, version) : 0;
}

static int db_prepare(struct nfs4_db *db)
{
	for (unsigned i = 0; i < NFS4_DB_STATEMENTS; i++) {
		int rc = sqlite3_prepare_v3(db->handle, statements[i], -1,
					    SQLITE_PREPARE_PERSISTENT, &db->st[i], NULL);

		/* A statement does not fit the tables: they are not of this server. */
		if (rc != SQLITE_OK)
			return rc == SQLITE_ERROR ? -EUCLEAN : nfs4_db_errno(rc);
	}
	return 0;
}

/* Reads the run before. Writes nothing, so that records can be read on a full disk. */
static int read_run(struct nfs4_db *db, unsigned lease, unsigned *old_lease)
{
	int64_t was = 0;
	int rc = db_query(db, "SELECT lease FROM run", &was, NULL);

	if (!rc)
		rc = db_query(db, "SELECT epoch FROM run", &db->epoch, NULL);
	if (rc)
		return rc;
	*old_lease = was > 0 && was < 86400 ? (unsigned)was : 0;
	if (db->epoch < 0 || db->epoch == INT64_MAX)
		return -EUCLEAN;
	db->epoch++;
	/* Until grace ends, clients of earlier epochs rely on the longest of the leases. */
	db->lease = lease < *old_lease ? *old_lease : lease;
	return 0;
}

int nfs4_db_begin_epoch(struct nfs4_db *db)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "UPDATE run SET epoch=%" PRId64 ",lease=%u", db->epoch,
		 db->lease);
	return exec(db, sql);
}

int nfs4_db_continue(struct nfs4_db *db)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "UPDATE client SET epoch=%" PRId64, db->epoch);
	return exec(db, sql);
}

/* Allocates blocks for a file as it may grow to. Some file systems cannot. */
static void db_reserve_blocks(const char *path, off_t bytes)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	(void)fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, bytes);
	close(fd);
}

void nfs4_db_reserve(const struct nfs4_db *db)
{
	char wal[PATH_MAX + 16];

	snprintf(wal, sizeof(wal), "%s-wal", db->path);
	db_reserve_blocks(db->path, RESERVE);
	db_reserve_blocks(wal, RESERVE_WAL);
}

/* Creates the file with mode 0600, before SQLite would create it readable by all. */
static int db_make_file(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd < 0 || fsync(fd) < 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	return rc;
}

static int db_try_open(const char *path, unsigned lease, struct nfs4_db *db, unsigned *old_lease)
{
	int rc = db_make_file(path), keep_log = 1;

	if (rc)
		return rc;
	rc = nfs4_db_errno(sqlite3_open_v2(path, &db->handle,
					   SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL));
	if (!rc) {
		/* The log stays after a close, with the blocks that it has. */
		sqlite3_file_control(db->handle, NULL, SQLITE_FCNTL_PERSIST_WAL, &keep_log);
		sqlite3_busy_timeout(db->handle, BUSY_MS);
		rc = exec(db, setup);
	}
	if (!rc)
		rc = check_schema(db);
	if (!rc)
		rc = db_prepare(db);
	if (!rc)
		rc = read_run(db, lease, old_lease);
	return rc;
}

static int open_path(const char *path, unsigned lease, struct nfs4_db **out, unsigned *old_lease)
{
	struct nfs4_db *db = calloc(1, sizeof(*db));
	int rc = -ENOMEM;

	if (db)
		db->path = strdup(path);
	if (db && db->path)
		rc = db_try_open(path, lease, db, old_lease);

	if (rc)
		nfs4_db_close(db);
	else
		*out = db;
	return rc;
}

/* Makes a log whose contents are in the file an empty one, which keeps its blocks. */
static void nfs4_db_clear_log(const struct nfs4_db *db)
{
	static const uint8_t no_header[32];
	char wal[PATH_MAX + 16];
	int fd;

	snprintf(wal, sizeof(wal), "%s-wal", db->path);
	fd = open(wal, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return;
	/* A failure leaves a log that says what the file says. */
	if (lseek(fd, 0, SEEK_END) > 0 && pwrite(fd, no_header, sizeof(no_header), 0) > 0)
		(void)fsync(fd);
	close(fd);
}

int nfs4_db_remove(struct nfs4_db *db)
{
	char other[PATH_MAX + 16], *slash = strrchr(db->path, '/');
	int rc;

	/* Both must go: SQLite ignores a log without its file, and the file alone might hold an
	 * older state. */
	snprintf(other, sizeof(other), "%s-wal", db->path);
	if (unlink(db->path) < 0 || (unlink(other) < 0 && errno != ENOENT))
		return -errno;
	*slash = 0;
	rc = sync_dir(db->path);
	free(db->path);
	db->path = NULL;
	return rc;
}

/* Moves a damaged file aside for the administrator, together with its log. Only the last one is
 * kept. */
static int put_aside(const char *path)
{
	static const char *const parts[] = { "-wal", "-shm", "-journal" };
	char from[PATH_MAX + 16], to[PATH_MAX + 16];

	for (unsigned i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		snprintf(from, sizeof(from), "%s%s", path, parts[i]);
		snprintf(to, sizeof(to), "%s.damaged%s", path, parts[i]);
		if (rename(from, to) < 0 && errno != ENOENT)
			return -errno;
	}
	snprintf(to, sizeof(to), "%s.damaged", path);
	return rename(path, to) < 0 ? -errno : 0;
}

static void db_explain_failure(const struct rn_logger *log, const char *path, int rc)
{
	if (rc == -EPROTO)
		rn_err(log,
		       "%s is of a later release of ringnfs: NFSv4 clients cannot reclaim their "
		       "locks after restarts until that release runs again or the file is removed",
		       path);
	else if (rc == -EBUSY)
		rn_err(log,
		       "%s is in use by another process: NFSv4 clients cannot reclaim their locks "
		       "after restarts; give each ringnfsd its own server.state_dir",
		       path);
	else
		rn_err(log,
		       "%s cannot be used (%s): NFSv4 clients cannot reclaim their locks after "
		       "restarts; make the directory writable, with some space: it is tried again",
		       path, strerror(-rc));
}

int nfs4_db_open(const char *dir, unsigned lease, const struct rn_logger *log, bool again,
		 struct nfs4_db **out, unsigned *old_lease)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof(path), "%s/" NFS4_DB_NAME, dir), err;

	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENAMETOOLONG;
	err = open_path(path, lease, out, old_lease);
	if (err == -EUCLEAN && !again) {
		rn_err(log,
		       "%s is damaged: locks that NFSv4 clients held cannot be reclaimed this "
		       "time; "
		       "it is kept as %s.damaged, which may be removed",
		       path, path);
		err = put_aside(path);
		if (!err)
			err = open_path(path, lease, out, old_lease);
	}
	if (!err)
		err = sync_dir(dir);
	if (err) {
		if (!again)
			db_explain_failure(log, path, err);
		if (*out)
			nfs4_db_close(*out);
		*out = NULL;
	}
	return err;
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
