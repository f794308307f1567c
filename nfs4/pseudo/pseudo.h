/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pseudo file system (RFC 7530 section 7, RFC 8881 section 7): the directories between the root
 * and the exports, built from the exports' paths. With an export that has fsid=0 (exports(5)) the
 * root is that export, and paths are those below it.
 *
 * A client sees only what leads to an export that it may use. A directory is identified by a hash
 * of its names from the root on, so that its handle outlives reloads and restarts. Functions that
 * take a compound run on its worker; those that return int return an nfsstat4.
 */
#ifndef RN_NFS4_PSEUDO_PSEUDO_H
#define RN_NFS4_PSEUDO_PSEUDO_H

#include "nfs/nested.h"
#include "nfs4/compound.h"

struct nfs4_server;

/* Makes s->pseudo from s->cfg.exports. 0 or -errno. */
int nfs4_pseudo_new(struct nfs4_server *s);
/* No request may be running. */
void nfs4_pseudo_free(struct nfs4_server *s);
/* Rebuilds the tree after a reload of the exports. 0, or -errno: the old tree stays. */
int nfs4_pseudo_changed(struct nfs4_server *s);

/* The root as this caller sees it: a pseudo directory, or the root of an export. */
int nfs4_pseudo_root(struct nfs4_compound *c, struct nfs4_object *out);
/* True if the handle is that of a pseudo directory. Only its version is looked at. */
bool nfs4_pseudo_is_fh(const struct vfs_fh *fh);

/* Sets p to the object that fh names for this caller (PUTFH), in the pseudo file system or an export, perhaps with wrongsec or
 * bad_port. Errors are NFS4ERR_BADHANDLE, STALE and others; p is then unchanged. */
int nfs4_object_by_fh(struct nfs4_compound *c, struct nfs4_object *p, const struct vfs_fh *fh);

/* Looks up a checked name in a pseudo directory: another one, or the root of an export, perhaps
 * with wrongsec. NFS4ERR_NOENT, or the error of opening the export's root. */
int nfs4_pseudo_lookup(struct nfs4_compound *c, const struct nfs4_object *dir, const char *name,
		       uint32_t len, struct nfs4_object *out);
/* NFS4ERR_NOENT: dir is the root. */
int nfs4_pseudo_parent(struct nfs4_compound *c, const struct nfs4_object *dir,
		       struct nfs4_object *out);

/* Writes the path of an export in NFSv4's name space, "/" for the root. Empty: it is not shown there. */
void nfs4_pseudo_path_of(struct nfs4_compound *c, uint32_t export_id, char *path, size_t size);

/* Attributes of a pseudo directory. Its fsid differs from that of every export; its change
 * attribute grows with every reload. NFS4ERR_STALE: it has gone. */
int nfs4_pseudo_attr(struct nfs4_compound *c, const struct nfs4_object *dir, struct vfs_attr *out);

/* Adds to *all the flavours of the exports below dir that the caller may use; AUTH_SYS and AUTH_NONE if
 * there are none. */
void nfs4_pseudo_flavors(struct nfs4_compound *c, const struct nfs4_object *dir,
			 struct vfs_access *all);

struct nfs4_pseudo_entry {
	const char *name;
	uint32_t len;
	uint64_t cookie;     /* over 2, up to INT64_MAX; stable across reloads and restarts */
	uint64_t mounted_on; /* mounted_on_fileid */
	/* result of a LOOKUP of this name, NFS4ERR_WRONGSEC included: for rdattr_error */
	int status;
	const struct nfs4_object *object; /* if status is NFS4_OK: the object; valid during each */
};
/* Calls each for the entries after cookie (0: all) that this caller may see, until each returns
 * false. */
int nfs4_pseudo_each(struct nfs4_compound *c, const struct nfs4_object *dir, uint64_t cookie,
		     bool (*each)(void *arg, const struct nfs4_pseudo_entry *e), void *arg,
		     bool *eof);

/* The boundaries between exports. A nested export takes the place of the directory (or file) that
 * it covers, for callers who may use it. ".." of its root leads back. */

/*
 * True if the entry of the current directory leads to the root of another export for this caller, or is not for him.
 * *status is then NFS4_OK and out (an initialized object) that root, perhaps with wrongsec; or *status says why it cannot be
 * reached. False, nearly always at the cost of comparing the name: the name leads to e->found.
 */
bool nfs4_cross_down(struct nfs4_compound *c, const struct nfs_entry *e, struct nfs4_object *out,
		     int *status);

/* The parent of an export's root: in the export that contains it, or a pseudo directory. */
int nfs4_cross_up(struct nfs4_compound *c, struct nfs4_object *root, struct nfs4_object *out);

/* mounted_on_fileid of an object of an export with that fileid. The two differ at the root of
 * exports and of mounts. (An entry of READDIR has it as vfs_dirent.fileid.) */
uint64_t nfs4_mounted_on(struct nfs4_compound *c, const struct nfs4_object *p, uint64_t fileid);

#endif
