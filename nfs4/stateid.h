/* SPDX-License-Identifier: BSD-2-Clause */
/* stateid4 on the wire (RFC 8881 sections 3.3.12 and 8.2). */
#ifndef RN_NFS4_STATEID_H
#define RN_NFS4_STATEID_H

#include <stdbool.h>
#include <stdint.h>

#include "nfs4/nfs4_proto.h"
#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

#define NFS4_STATEID_SIZE (4u + NFS4_OTHER_SIZE) /* bytes of XDR */

struct nfs4_stateid {
	uint32_t seqid;
	uint8_t other[NFS4_OTHER_SIZE];
};

void nfs4_get_stateid(struct xdr_in *x, struct nfs4_stateid *out);
void nfs4_put_stateid(struct xdr_out *x, const struct nfs4_stateid *sid);

/* The special stateids of section 8.2.3; is_special() is true for all combinations that it reserves. */
bool nfs4_stateid_is_special(const struct nfs4_stateid *sid);	/* other all zeros or all ones */
bool nfs4_stateid_is_anonymous(const struct nfs4_stateid *sid); /* all zeros */
bool nfs4_stateid_is_bypass(const struct nfs4_stateid *sid);	/* all ones: READ bypass */
bool nfs4_stateid_is_current(const struct nfs4_stateid *sid);	/* seqid 1, other zeros */
bool nfs4_stateid_is_invalid(const struct nfs4_stateid *sid);	/* seqid all ones, other zeros */

#endif
