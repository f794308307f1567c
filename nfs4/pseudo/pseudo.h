/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pseudo file system (RFC 7530 section 7, RFC 8881 section 7): the directories between the root
 * and the exports, built of the exports' paths. With an export of exports(5)'s fsid=0 the root is
 * that export, and paths are those below it.
 *
 * A client is shown what leads to an export that it may use, and nothing else. Directories are
 * known by a hash of their names from the root on, so that their handles outlive reloads and
 * restarts. Functions that take a compound run on its worker and return an nfsstat4 where they
 * return an int.
 */
#ifndef RN_NFS4_PSEUDO_PSEUDO_H
#define RN_NFS4_PSEUDO_PSEUDO_H

#include "nfs4/compound.h"

struct nfs4_server;

/* Makes s->pseudo out of s->cfg.exports. 0 or -errno. */
int nfs4_pseudo_new(struct nfs4_server *s);
/* No request is running. */
void nfs4_pseudo_free(struct nfs4_server *s);
/* The exports have changed. 0, or -errno: all stays as it was. */
int nfs4_pseudo_changed(struct nfs4_server *s);

/* The root as this caller sees it: a pseudo directory, or the root of an export. */
int nfs4_pseudo_root(struct nfs4_compound *c, struct nfs4_place *out);
/* Is it a handle of a pseudo directory? Nothing but its version is looked at. */
bool nfs4_pseudo_is_fh(const struct vfs_fh *fh);
int nfs4_pseudo_by_fh(struct nfs4_compound *c, const struct vfs_fh *fh, struct nfs4_place *out);

/* What a name of a pseudo directory leads to: a further one, or the root of an export, perhaps
 * weak. NFS4ERR_NOENT, or what opening the export's root gave. name was checked. */
int nfs4_pseudo_lookup(struct nfs4_compound *c, const struct nfs4_place *dir, const char *name,
		       uint32_t len, struct nfs4_place *out);
/* NFS4ERR_NOENT: dir is the root. */
int nfs4_pseudo_parent(struct nfs4_compound *c, const struct nfs4_place *dir,
		       struct nfs4_place *out);
/* The directory that has the export: where LOOKUPP from its root leads to. */
int nfs4_pseudo_above_export(struct nfs4_compound *c, uint32_t export_id, struct nfs4_place *out);

/* Attributes of a pseudo directory: its fsid is that of no export, its change attribute grows with
 * every reload. NFS4ERR_STALE: it has gone. */
int nfs4_pseudo_attr(struct nfs4_compound *c, const struct nfs4_place *dir, struct vfs_attr *out);

struct nfs4_pseudo_entry {
	const char *name;
	uint32_t len;
	uint64_t cookie;     /* more than 2, up to INT64_MAX; the same after reload and restart */
	uint64_t mounted_on; /* mounted_on_fileid */
	int status;	     /* of a LOOKUP of that name, NFS4ERR_WRONGSEC too: for rdattr_error */
	const struct nfs4_place *place; /* if status is NFS4_OK: the object; valid during each */
};
/* The entries that this caller may see behind cookie (0: all), until each returns false. */
int nfs4_pseudo_each(struct nfs4_compound *c, const struct nfs4_place *dir, uint64_t cookie,
		     bool (*each)(void *arg, const struct nfs4_pseudo_entry *e), void *arg,
		     bool *eof);

#endif
