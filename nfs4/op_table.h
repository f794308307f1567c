/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An NFSv4 operation as the rest of the server sees it: one row, at the foot of the file that
 * decodes and runs the operation, and one line of NFS4_OP_LIST. All that the server needs to know
 * of an operation is a field of its row; no other code distinguishes operations by number.
 * CONTRIBUTING.md (Add an operation) has the steps.
 */
#ifndef RN_NFS4_OP_TABLE_H
#define RN_NFS4_OP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nfs4_compound;

/*
 * Filehandles that the operation requires; else NFS4ERR_NOFILEHANDLE (RFC 8881 section 16.2.3.1.1).
 */
enum nfs4_op_needs {
	NFS4_NEEDS_FH = 1,
	NFS4_NEEDS_SAVED_FH = 2,
};

enum nfs4_op_flags {
	NFS4_OP_CHANGES = 1, /* changes something: its worst-case result must fit before it runs */
	NFS4_OP_ALONE = 2,   /* may be a COMPOUND's only operation, outside of a session */
	/* Sets the current filehandle, so that the current stateid is no longer current (RFC 8881
	 * section 16.2.3.1.2). */
	NFS4_OP_SETS_FH = 4,
	NFS4_OP_FAILS_WITH_BITMAP = 8, /* its result has a bitmap4 even on failure: SETATTR */
	/*
	 * Gives state back, or precedes operations that do: also allowed for hosts that have lost
	 * an export lately. An operation that needs a current filehandle is checked by the export
	 * anyway.
	 */
	NFS4_OP_FOR_RECENT = 16,
	/* Begins each COMPOUND in a session, and is allowed nowhere else: SEQUENCE (RFC 8881
	 * section 18.46.3). */
	NFS4_OP_FIRST = 32,
	/* Not allowed even behind SEQUENCE: BIND_CONN_TO_SESSION (RFC 8881 section 18.34.3). */
	NFS4_OP_NOT_BEHIND = 64,
	/* May begin on an event thread's worker (rpc/worker.h): vfs/ moves what would block, or needs the caller's identity. */
	NFS4_OP_EVENT_THREAD = 128,
	/* State protection (nfs4/client/protect.h): only by the machine credential; the same, if the client has
	 * asked for that; also by it in the place of a user's. */
	NFS4_OP_MACHINE_ONLY = 256,
	NFS4_OP_MACHINE_IF_ASKED = 512,
	NFS4_OP_MACHINE_TOO = 1024,
	/* May come between PUTFH and such an operation. */
	NFS4_OP_MACHINE_PASSES = 2048,
	/* Allowed where the current filehandle's file system is at other servers only (nfs4_object_is_absent); other operations
	 * that need a filehandle answer NFS4ERR_MOVED. */
	NFS4_OP_AT_ABSENT = 4096,
	/* A mount begins with it: waits for names as long as clients bear: PUTROOTFH, PUTPUBFH. */
	NFS4_OP_MOUNTS = 8192,
};

/* The operation that answers NFS4ERR_WRONGSEC after PUTFH, PUTROOTFH or RESTOREFH, if the export of
 * that filehandle does not accept the call's flavour (RFC 8881 section 2.6.3.1.1). */
enum nfs4_op_flavor {
	NFS4_FLAVOR_BEFORE, /* the operation that sets the filehandle */
	/* As the next operation's row says; only for operations without arguments */
	NFS4_FLAVOR_NEXT,
	NFS4_FLAVOR_HERE, /* this operation, or none if it needs no flavour */
};

/*
 * File system errors that the operation's table in the RFCs lists (RFC 7530 section 13.2, RFC 8881
 * section 15.2, RFC 7862 section 11.2, RFC 8276 section 8.4.5). nfs4_status_for() replaces the others. Errors that any
 * operation may answer, and those that only NFSv4's own state causes, have no bit.
 */
enum nfs4_op_error {
	NFS4_E_LISTED = 1 << 0, /* set by the macros below: the row has its errors */
	NFS4_E_PERM = 1 << 1,
	NFS4_E_NOENT = 1 << 2,
	NFS4_E_IO = 1 << 3,
	NFS4_E_NXIO = 1 << 4,
	NFS4_E_ACCESS = 1 << 5,
	NFS4_E_EXIST = 1 << 6,
	NFS4_E_XDEV = 1 << 7,
	NFS4_E_NOTDIR = 1 << 8, /* and SYMLINK in its place: nfs4_no_dir() */
	NFS4_E_ISDIR = 1 << 9,
	NFS4_E_INVAL = 1 << 10,
	NFS4_E_FBIG = 1 << 11,
	NFS4_E_NOSPC = 1 << 12, /* and DQUOT: the tables always list both */
	NFS4_E_ROFS = 1 << 13,
	NFS4_E_MLINK = 1 << 14,
	NFS4_E_NAMETOOLONG = 1 << 15,
	NFS4_E_NOTEMPTY = 1 << 16,
	NFS4_E_STALE = 1 << 17,
	NFS4_E_NOTSUPP = 1 << 18,
	NFS4_E_SYMLINK = 1 << 19,
	NFS4_E_FILE_OPEN = 1 << 20,
	NFS4_E_BADHANDLE = 1 << 21,
	NFS4_E_LOCKED = 1 << 22,

	/* Operations on an object; on a name in a directory; on the data of a regular file. */
	NFS4_E_OBJECT = NFS4_E_ACCESS | NFS4_E_STALE,
	NFS4_E_NAME = NFS4_E_NOENT | NFS4_E_NOTDIR | NFS4_E_INVAL | NFS4_E_NAMETOOLONG,
	NFS4_E_FILE_ONLY = NFS4_E_ISDIR | NFS4_E_SYMLINK | NFS4_E_INVAL,
};

struct nfs4_op_errors {
	uint32_t minor_0, later; /* enum nfs4_op_error; 0: the row lacks its errors */
};
/* Errors that are the same in all minor versions. */
#define NFS4_ERRORS(all) NFS4_ERRORS_BY_MINOR(all, 0, 0)
#define NFS4_ERRORS_BY_MINOR(all, only_0, only_later)                                              \
	{                                                                                          \
		.minor_0 = NFS4_E_LISTED | (all) | (only_0),                                       \
		.later = NFS4_E_LISTED | (all) | (only_later)                                      \
	}
#define NFS4_ERRORS_NONE NFS4_ERRORS(0)
/* For an operation that asks no file system and returns only errors of its own table. */
#define NFS4_ERRORS_OWN                                                                            \
	{                                                                                          \
		.minor_0 = UINT32_MAX, .later = UINT32_MAX                                         \
	}

/* Layout of the arguments of an idempotent operation, so that a COMPOUND can be searched without
 * decoding it (nfs4/scan.h): fixed bytes, then bitmap4s, then opaques. */
struct nfs4_op_shape {
	bool known;
	uint8_t fixed; /* bytes */
	uint8_t bitmaps, opaques;
};
#define NFS4_SHAPE(fixed_, bitmaps_, opaques_)                                                     \
	{                                                                                          \
		.known = true, .fixed = fixed_, .bitmaps = bitmaps_, .opaques = opaques_           \
	}

struct nfs4_op {
	const char *name; /* without "OP_"; for logs, counters, messages of tests */
	/* Minor versions that know the operation; in others it is NFS4ERR_OP_ILLEGAL. */
	struct {
		uint8_t first, last;
	} minors;
	/* Minor version from which on it must not be implemented (RFC 8881 section 17):
	 * NFS4ERR_NOTSUPP; 0: always allowed. */
	uint8_t gone_from;
	uint8_t needs;	    /* enum nfs4_op_needs */
	uint16_t flags;	    /* enum nfs4_op_flags */
	uint8_t flavor;	    /* enum nfs4_op_flavor */
	uint16_t args_size; /* bytes that decode fills; zeroed before */
	/*
	 * Worst-case bytes of the result behind its status. For results without a bound (READ,
	 * READDIR, GETATTR with ACLs): the part besides the unbounded one (RFC 8881 section
	 * 2.10.6.4).
	 */
	uint16_t reply_max;
	struct nfs4_op_errors errors;
	struct nfs4_op_shape shape;
	uint8_t bulk_at; /* bytes of arguments before the bulk data: WRITE; 0: has none */
	/* Decodes from c->in; malformed arguments set c->in->err, which is answered NFS4ERR_BADXDR.
	 * NULL: no arguments. Values that are well-formed but not allowed are left to run(). */
	void (*decode)(struct nfs4_compound *c, void *args);
	/* Returns nfsstat4 or NFS4_REPLAYED. NULL: an optional operation that this
	 * server does not support, NFS4ERR_NOTSUPP. */
	int (*run)(struct nfs4_compound *c, void *args);
	/* NFS4_FLAVOR_HERE only: true if the arguments make it NFS4_FLAVOR_BEFORE, as an OPEN by
	 * filehandle does. NULL: never. */
	bool (*uses_fh)(const void *args);
	/* True if the arguments make the saved filehandle that of another server (COPY, RFC 7862
	 * section 15.2.3). NULL: never. */
	bool (*saved_is_foreign)(const void *args);
};

/* Each number in nfs4/nfs4_proto.h with its row. */
/* clang-format off */
#define NFS4_OP_LIST(ROW) \
	ROW(ACCESS, access) \
	ROW(CLOSE, close) \
	ROW(COMMIT, commit) \
	ROW(CREATE, create) \
	ROW(DELEGPURGE, delegpurge) \
	ROW(DELEGRETURN, delegreturn) \
	ROW(GETATTR, getattr) \
	ROW(GETFH, getfh) \
	ROW(LINK, link) \
	ROW(LOCK, lock) \
	ROW(LOCKT, lockt) \
	ROW(LOCKU, locku) \
	ROW(LOOKUP, lookup) \
	ROW(LOOKUPP, lookupp) \
	ROW(NVERIFY, nverify) \
	ROW(OPEN, open) \
	ROW(OPENATTR, openattr) \
	ROW(OPEN_CONFIRM, open_confirm) \
	ROW(OPEN_DOWNGRADE, open_downgrade) \
	ROW(PUTFH, putfh) \
	ROW(PUTPUBFH, putpubfh) \
	ROW(PUTROOTFH, putrootfh) \
	ROW(READ, read) \
	ROW(READDIR, readdir) \
	ROW(READLINK, readlink) \
	ROW(REMOVE, remove) \
	ROW(RENAME, rename) \
	ROW(RENEW, renew) \
	ROW(RESTOREFH, restorefh) \
	ROW(SAVEFH, savefh) \
	ROW(SECINFO, secinfo) \
	ROW(SETATTR, setattr) \
	ROW(SETCLIENTID, setclientid) \
	ROW(SETCLIENTID_CONFIRM, setclientid_confirm) \
	ROW(VERIFY, verify) \
	ROW(WRITE, write) \
	ROW(RELEASE_LOCKOWNER, release_lockowner) \
	ROW(BACKCHANNEL_CTL, backchannel_ctl) \
	ROW(BIND_CONN_TO_SESSION, bind_conn_to_session) \
	ROW(EXCHANGE_ID, exchange_id) \
	ROW(CREATE_SESSION, create_session) \
	ROW(DESTROY_SESSION, destroy_session) \
	ROW(FREE_STATEID, free_stateid) \
	ROW(GET_DIR_DELEGATION, get_dir_delegation) \
	ROW(GETDEVICEINFO, getdeviceinfo) \
	ROW(GETDEVICELIST, getdevicelist) \
	ROW(LAYOUTCOMMIT, layoutcommit) \
	ROW(LAYOUTGET, layoutget) \
	ROW(LAYOUTRETURN, layoutreturn) \
	ROW(SECINFO_NO_NAME, secinfo_no_name) \
	ROW(SEQUENCE, sequence) \
	ROW(SET_SSV, set_ssv) \
	ROW(TEST_STATEID, test_stateid) \
	ROW(WANT_DELEGATION, want_delegation) \
	ROW(DESTROY_CLIENTID, destroy_clientid) \
	ROW(RECLAIM_COMPLETE, reclaim_complete) \
	ROW(ALLOCATE, allocate) \
	ROW(COPY, copy) \
	ROW(COPY_NOTIFY, copy_notify) \
	ROW(DEALLOCATE, deallocate) \
	ROW(IO_ADVISE, io_advise) \
	ROW(LAYOUTERROR, layouterror) \
	ROW(LAYOUTSTATS, layoutstats) \
	ROW(OFFLOAD_CANCEL, offload_cancel) \
	ROW(OFFLOAD_STATUS, offload_status) \
	ROW(READ_PLUS, read_plus) \
	ROW(SEEK, seek) \
	ROW(WRITE_SAME, write_same) \
	ROW(CLONE, clone) \
	ROW(GETXATTR, getxattr) \
	ROW(SETXATTR, setxattr) \
	ROW(LISTXATTRS, listxattrs) \
	ROW(REMOVEXATTR, removexattr)
/* clang-format on */

#define NFS4_DECLARE_OP(NAME, name) extern const struct nfs4_op nfs4_op_##name;
NFS4_OP_LIST(NFS4_DECLARE_OP)
#undef NFS4_DECLARE_OP

/* NULL: no operation has that number in that minor version (NFS4ERR_OP_ILLEGAL). */
const struct nfs4_op *nfs4_op_find(uint32_t opnum, uint32_t minor);

/* False: this server does not support the operation, or no server may support it in that minor
 * version (NFS4ERR_NOTSUPP). */
static inline bool nfs4_op_is_done(const struct nfs4_op *op, uint32_t minor)
{
	return op->run && (op->gone_from == 0 || minor < op->gone_from);
}

#endif
