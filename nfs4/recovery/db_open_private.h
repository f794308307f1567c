/* SPDX-License-Identifier: BSD-2-Clause */
/* Private parts of the database, shared by the files that implement it. */
#ifndef RN_NFS4_DB_OPEN_PRIVATE_H
#define RN_NFS4_DB_OPEN_PRIVATE_H

#include <sqlite3.h>
#include <stdint.h>

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

int nfs4_db_errno(int rc);
/* Makes a log whose contents are in the file an empty one, which keeps its blocks. */
void nfs4_db_clear_log(const struct nfs4_db *db);

#endif
