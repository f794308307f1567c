/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nfs4/recovery/db_open_private.h"
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

/* Not in the table of statements, where clang-tidy takes a literal of two lines for a missing
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

/* Reads the run before; begins nothing, so that a full disk keeps no records from being read. */
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

void nfs4_db_clear_log(const struct nfs4_db *db)
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
