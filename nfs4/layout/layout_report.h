/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout that a stateid names, and what clients report of it. */
#ifndef RN_NFS4_LAYOUT_LAYOUT_REPORT_H
#define RN_NFS4_LAYOUT_LAYOUT_REPORT_H

#include "nfs4/compound.h"
#include "nfs4/layout/ff_wire.h"
#include "nfs4/state/nfs4_layout.h"

/* The layout of the current file with that stateid, with a reference; its seqid may be an old one. NFS4_OK, or the status of
 * nfs4_state_lookup(). */
int nfs4_layout_get(struct nfs4_compound *c, const struct nfs4_stateid *sid,
		    struct nfs4_layout **out);

/* The key of the current file in nfs4_layout_trouble(). */
uint64_t nfs4_layout_file(const struct nfs4_compound *c);

/* Notes errors that the client reports of its layout of the current file. */
void nfs4_layout_report(struct nfs4_compound *c, const struct nfs4_layout *l,
			const struct nfs4_ff_errors *errors);

#endif
