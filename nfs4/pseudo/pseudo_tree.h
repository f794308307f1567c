/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds the directories of a set from the sorted paths of its exports. */
#ifndef RN_NFS4_PSEUDO_PSEUDO_TREE_H
#define RN_NFS4_PSEUDO_PSEUDO_TREE_H

#include "nfs4/pseudo/pseudo_set.h"

/* Fills dir, kid and by_id, and dir of each export. Exports with an empty path are left out. 0,
 * -ENOMEM or -EEXIST. */
int nfs4_pseudo_tree_build(struct nfs4_pseudo_set *set);

#endif
