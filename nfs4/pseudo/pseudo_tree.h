/* SPDX-License-Identifier: BSD-2-Clause */
/* From the sorted paths of a set's exports to its directories. */
#ifndef RN_NFS4_PSEUDO_PSEUDO_TREE_H
#define RN_NFS4_PSEUDO_PSEUDO_TREE_H

#include "nfs4/pseudo/pseudo_set.h"

/* Fills dir, kid and by_id, and each export's dir. Exports with an empty path stay outside. 0,
 * -ENOMEM or -EEXIST. */
int nfs4_pseudo_tree_build(struct nfs4_pseudo_set *set);

#endif
