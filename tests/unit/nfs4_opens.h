/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens and locks through the fixture, of any minor version. Each function sends one COMPOUND and
 * returns its operation's status, or that of a failed operation before it. In minor version 0
 * owners' sequence numbers advance as the RFC says.
 */
#ifndef RN_TESTS_NFS4_OPENS_H
#define RN_TESTS_NFS4_OPENS_H

#include "tests/unit/nfs4_fixture.h"

/* A client of minor version 0, or a client with a session. */
struct op_client {
	uint32_t minor;
	uint64_t clientid;
	struct fix4_session session;
};

/* An open-owner or a lock-owner. */
struct op_owner {
	struct op_client *client;
	const char *name;
	uint32_t seqid; /* for its next operation */
};

enum op_create { OP_NOCREATE, OP_UNCHECKED, OP_GUARDED, OP_EXCLUSIVE, OP_EXCLUSIVE_1 };
enum op_claim {
	OP_BY_NAME,
	OP_RECLAIM,
	OP_DELEG_CUR,
	OP_DELEG_PREV,
	OP_BY_FH,
	OP_DCUR_FH,
	OP_DPREV_FH
};

struct op_how {
	const struct vfs_fh *fh; /* the directory, or the file itself */
	const char *name;
	uint32_t access, deny; /* access 0 stands for read and write */
	enum op_create create;
	enum op_claim claim;
	bool set_mode, set_size;
	uint32_t mode;
	uint64_t size;
	const char *verifier; /* 8 bytes */
	uint32_t delegation;  /* delegation type claimed by OP_RECLAIM */
	/* OP_DELEG_CUR, OP_DCUR_FH: the delegation's; NULL: zeros */
	const struct nfs4_stateid *delegated;
};

struct op_file {
	struct vfs_fh fh;
	struct nfs4_stateid sid;
	uint64_t before, after;
	uint32_t rflags, attrset[3], delegation, why;
	struct nfs4_stateid deleg; /* of the delegation, if there is one */
};

struct op_range {
	uint32_t type; /* nfs_lock_type4 */
	uint64_t offset, length;
	bool reclaim;
};

struct op_denied {
	uint64_t offset, length, clientid;
	uint32_t type, owner_len;
	char owner[64];
};

/* Makes a confirmed client that has completed its reclaims. */
uint32_t op_client_new(struct fixture *f, struct op_client *c, uint32_t minor, const char *name);
void op_begin(struct fixture *f, struct op_client *c);

/* Encodes OPEN's arguments. op_open() sends the whole COMPOUND, and OPEN_CONFIRM if the server asks
 * for it. */
void op_put_open(struct fixture *f, const struct op_owner *o, const struct op_how *how);
void op_get_open(struct fixture *f, struct op_file *out);
uint32_t op_open(struct fixture *f, struct op_owner *o, const struct op_how *how,
		 struct op_file *out);
/* Opens without OPEN_CONFIRM. */
uint32_t op_open_only(struct fixture *f, struct op_owner *o, const struct op_how *how,
		      struct op_file *out);
uint32_t op_confirm(struct fixture *f, struct op_owner *o, struct op_file *file);
uint32_t op_close(struct fixture *f, struct op_owner *o, struct op_file *file);
uint32_t op_downgrade(struct fixture *f, struct op_owner *o, struct op_file *file, uint32_t access,
		      uint32_t deny);

/* lock: stateid to lock with, replaced by the new one. op_lock_first() is for a lock-owner without
 * a stateid for the file. */
uint32_t op_lock_first(struct fixture *f, struct op_owner *open_owner, struct op_owner *lock_owner,
		       const struct op_file *file, const struct op_range *r,
		       struct nfs4_stateid *lock, struct op_denied *denied);
uint32_t op_lock(struct fixture *f, struct op_owner *lock_owner, const struct vfs_fh *fh,
		 const struct op_range *r, struct nfs4_stateid *lock, struct op_denied *denied);
uint32_t op_unlock(struct fixture *f, struct op_owner *lock_owner, const struct vfs_fh *fh,
		   const struct op_range *r, struct nfs4_stateid *lock);
uint32_t op_lockt(struct fixture *f, struct op_owner *lock_owner, const struct vfs_fh *fh,
		  const struct op_range *r, struct op_denied *denied);
uint32_t op_release_lockowner(struct fixture *f, struct op_owner *o);
uint32_t op_free_stateid(struct fixture *f, struct op_client *c, const struct nfs4_stateid *sid);
/* Status of one stateid in TEST_STATEID's result. */
uint32_t op_test_stateid(struct fixture *f, struct op_client *c, const struct nfs4_stateid *sid);

/* Takes open_delegation4 apart, into delegation, why and deleg. */
void op_get_delegation(struct fixture *f, struct op_file *out);
uint32_t op_delegreturn(struct fixture *f, struct op_client *c, const struct vfs_fh *fh,
			const struct nfs4_stateid *sid);

/* READ and WRITE of one byte at offset 0, as user f->uid. */
uint32_t op_read(struct fixture *f, struct op_client *c, const struct vfs_fh *fh,
		 const struct nfs4_stateid *sid);
uint32_t op_write(struct fixture *f, struct op_client *c, const struct vfs_fh *fh,
		  const struct nfs4_stateid *sid);

/* Another thread that holds the busy lock of the client's first open until f->moved is 1. */
struct op_busy {
	struct fixture *f;
	struct nfs4_open *open;
	pthread_t thread;
};

void op_busy_begin(struct op_busy *b, struct fixture *f, const struct op_client *c);
void op_busy_end(struct op_busy *b);

/* Recomputes the tag of a modified stateid, so that the server does not take it for one of another
 * run. */
void op_retag(struct fixture *f, struct nfs4_stateid *sid);

/* Defines a criterion test for each minor version; the body finds it in `minor`. */
#define OP_MINOR_TEST(suite, name, number)                                                         \
	Test(suite, name##_v4##number)                                                             \
	{                                                                                          \
		NEED_FIXTURE();                                                                    \
		minor = number;                                                                    \
		name();                                                                            \
	}
#define OP_MINORS_TEST(suite, name)                                                                \
	static void name(void);                                                                    \
	OP_MINOR_TEST(suite, name, 0)                                                              \
	OP_MINOR_TEST(suite, name, 1)                                                              \
	OP_MINOR_TEST(suite, name, 2)                                                              \
	static void name(void)

#endif
