/* SPDX-License-Identifier: BSD-2-Clause */
/* Lookup of a name in a directory, and of its parent, for LOOKUP and SECINFO. */
#ifndef RN_NFS4_FIND_H
#define RN_NFS4_FIND_H

#include "nfs4/compound.h"
#include "nfs4/names/nfs4_name.h"

/* Sets out to the object that name leads to, across boundaries of exports. out may be the current
 * filehandle, and may become weak. */
int nfs4_find_name(struct nfs4_compound *c, const struct nfs4_name *name, struct nfs4_place *out);
/* Status to answer for one that nfs4_find_name gave for a name in dir. A caller whose flavour or connection is not enough for
 * dir is told NFS4ERR_WRONGSEC whether there is such a name or not. */
int nfs4_find_status(const struct nfs4_place *dir, int status);
/* Sets out to the parent. NFS4ERR_NOENT: there is none. */
int nfs4_find_parent(struct nfs4_compound *c, struct nfs4_place *out);

#endif
