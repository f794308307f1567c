/* SPDX-License-Identifier: BSD-2-Clause */
/* From a directory to a name in it, and to its parent: what LOOKUP and SECINFO have in common. */
#ifndef RN_NFS4_FIND_H
#define RN_NFS4_FIND_H

#include "nfs4/compound.h"
#include "nfs4/names/name.h"

/* out, which may be the current filehandle, becomes what name leads to from there, over the
 * boundaries of exports; perhaps weak. */
int nfs4_find_name(struct nfs4_compound *c, const struct nfs4_name *name, struct nfs4_place *out);
/* The same for the parent. NFS4ERR_NOENT: there is none. */
int nfs4_find_parent(struct nfs4_compound *c, struct nfs4_place *out);

#endif
