/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages of the log that a client brings about, with a limit for each client (lib/log.h). */
#ifndef RN_NFS4_TOLD_H
#define RN_NFS4_TOLD_H

#include "lib/log.h"
#include "rpc/address.h"

struct nfs4_compound;

struct nfs4_told {
	char client[RPC_ADDRESS_TEXT]; /* address that the call came from */
	unsigned left_out;	       /* messages about it before */
};

/* False: nothing is to be logged. */
bool nfs4_told_begin(struct nfs4_compound *c, enum rn_level level, struct nfs4_told *t);
/* After the message. */
void nfs4_told_end(struct nfs4_compound *c, const struct nfs4_told *t);

#endif
