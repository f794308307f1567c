/* SPDX-License-Identifier: BSD-2-Clause */
/* The busy lock of an open (nfs4/state/state.h), for operations. */
#ifndef RN_NFS4_STATE_BUSY_H
#define RN_NFS4_STATE_BUSY_H

#include <stdbool.h>

struct nfs4_compound;
struct nfs4_open;

/*
 * Takes the open's busy lock. A prompt worker (rpc/worker.h) does not wait for a thread that may
 * hold it while a file is opened: false, and the operation is declined. It must return any status
 * without having changed anything; the loop runs it again elsewhere.
 */
bool nfs4_open_enter(struct nfs4_compound *c, struct nfs4_open *open);
void nfs4_open_leave(struct nfs4_open *open);

#endif
