/* SPDX-License-Identifier: BSD-2-Clause */
/* Filehandles of a COMPOUND, the identity that its operations act under there, and whose answer it may be. */
#ifndef RN_NFS4_OBJECT_H
#define RN_NFS4_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "vfs/vfs.h"

/*
 * The object that a filehandle of a COMPOUND names: none yet, a directory of the pseudo file
 * system, or an object of an export with the caller's identity there. There are two: the current
 * and the saved filehandle. An object of an export holds a reference of the export and one of the
 * node.
 */

struct nfs4_compound;

enum nfs4_object_kind {
	NFS4_NOWHERE,
	NFS4_PSEUDO,
	NFS4_FILE,
	/* The object is another server's: only fh is valid, and only COPY may use it, which comes
	 * next. */
	NFS4_FOREIGN,
	/* The object was made by the COMPOUND, and was gone before its handle was known: every use is NFS4ERR_STALE. */
	NFS4_GONE,
};

struct nfs4_object {
	enum nfs4_object_kind kind;
	struct vfs_fh fh;
	/* NFS4_PSEUDO: id of the directory, for nfs4/pseudo/pseudo.h only. */
	uint64_t pseudo_id;
	/* NFS4_FILE */
	uint32_t export_id;
	uint32_t type;	    /* S_IFMT bits */
	struct vfs_ctx ctx; /* exp is a reference; cred is squashed for the export */
	struct vfs_node *node;
	/* True if the client's port is not acceptable to the export (NFS4ERR_ACCESS). PUTFH and
	 * PUTROOTFH have no status for that, so the operation that uses the object returns it. */
	bool bad_port;
	/* True if the call's flavour is not accepted here. Only operations that need no credentials
	 * are allowed (NFS4ERR_WRONGSEC, RFC 8881 section 2.6.3.1). */
	bool wrongsec;
	/* True if operations that may be sent with the machine credential are allowed all the same, which comes by a
	 * flavour that is not enough for users. */
	bool machine;
};

/* Puts its references. */
void nfs4_object_clear(struct nfs4_object *p);
/* Copies from to to, with references of its own; cannot fail. */
void nfs4_object_copy(struct nfs4_object *to, const struct nfs4_object *from);
/* Moves from to to, with its references. */
void nfs4_object_take(struct nfs4_object *to, struct nfs4_object *from);

/* Sets out to the object that fh names in the export with that id, or to the export's root if fh is NULL, for this
 * caller, perhaps with wrongsec or bad_port. NFS4ERR_STALE: this client has no export with that id, or the file has gone.
 * out is unchanged on failure. */
int nfs4_object_in_export(struct nfs4_compound *c, uint32_t id, const struct vfs_fh *fh,
			  struct nfs4_object *out);

/* The root of an export that was found already, with the caller's rights there: see struct vfs_nested. */
int nfs4_object_of_nested(struct nfs4_compound *c, struct vfs_export *exp,
			  const struct vfs_access *access, struct nfs4_object *out);
/* Has the COMPOUND go on where the file system of p is served (vfs_exports.enter), for an object that becomes the
 * current one, or is so again. NFS4_OK, or NFS4ERR_DELAY: it does not answer. */
int nfs4_object_enter(const struct nfs4_compound *c, const struct nfs4_object *p);

/* True for an object of an export whose files are, for this caller, at other servers (RFC 8881 section 11.4). */
bool nfs4_object_is_absent(const struct nfs4_object *p);

/* NFS4_OK; NFS4ERR_WRONGSEC if it has wrongsec; NFS4ERR_ACCESS if it has bad_port. */
int nfs4_object_usable(const struct nfs4_object *p);

/* Sets p to another object of the same export; takes over the reference of n. NULL: p becomes NFS4_GONE. */
void nfs4_object_move(struct nfs4_object *p, struct vfs_node *n);

/* Requirements of an operation on the current filehandle, checked before it runs. */
enum nfs4_need {
	NFS4_NEED_DIR = 1, /* else the status of nfs4_no_dir */
	NFS4_NEED_REG = 2, /* else NFS4ERR_ISDIR, NFS4ERR_SYMLINK, NFS4ERR_INVAL or WRONG_TYPE */
	/* Neither in a read-only export nor in the pseudo file system: else NFS4ERR_ROFS. */
	NFS4_NEED_WRITABLE = 4,
	/* An object of an export. For the pseudo file system: NFS4ERR_ROFS or the status of another
	 * need. Operations without this flag handle it themselves. */
	NFS4_NEED_FILE = 8,
};
/* The status if a directory is needed and p is none: NFS4ERR_SYMLINK for a symbolic link, so that the
 * client follows it (RFC 7530 section 13.1.2.8, RFC 8881 section 15.1.2.8), else NFS4ERR_NOTDIR. */
int nfs4_no_dir(const struct nfs4_object *p);
/* Checks the needs, NFS4ERR_NOFILEHANDLE and nfs4_object_usable. (Only LOOKUP, LOOKUPP, OPEN and
 * SECINFO meet objects with wrongsec, since PUTFH before other operations fails.) */
int nfs4_need(const struct nfs4_compound *c, const struct nfs4_object *p, unsigned need);

/*
 * Exports of a COMPOUND's cached reply: those that the COMPOUND entered, and the caller's
 * identity in each. A cached reply may hold data of files. A retry gets it only if each of these
 * exports still admits the caller, with the same flavour and the same protection of the connection
 * (TLS), and squashes it to the same user. The client's address may differ.
 */

#define NFS4_REPLY_EXPORTS_MOST 4u /* exports; a reply with more is not given to a retry */

struct nfs4_compound;
struct nfs4_object;

struct nfs4_reply_exports {
	uint32_t n; /* number of exports; NFS4_REPLY_EXPORTS_MOST + 1: too many */
	uint32_t export_id[NFS4_REPLY_EXPORTS_MOST];
	/* Squashed identities in the order of export_id; in a cached reply a keyed hash of them and
	 * the credential */
	uint64_t who;
};

/* The exports to store with the reply of c. */
struct nfs4_reply_exports nfs4_reply_exports_of(const struct nfs4_compound *c);

/* Permission of c's caller to get a reply of exports a: 0; -EACCES; -RN_EUNNAMED: not known yet. Asks
 * the exports: no lock may be held. */
int nfs4_reply_exports_check(const struct nfs4_compound *c, const struct nfs4_reply_exports *a);

#endif
