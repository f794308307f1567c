/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_RECALL_SLOT (RFC 8881 section 20.8): the client is to use fewer slots of the session. */
#ifndef RN_NFS4_CALLBACK_CB_RECALL_SLOT_H
#define RN_NFS4_CALLBACK_CB_RECALL_SLOT_H

#include <stdint.h>

struct nfs4_session;

/* highest is the slot up to which the client may go on. Does not wait; the caller holds a
 * reference and no lock. */
void nfs4_recall_slots(struct nfs4_session *s, uint32_t highest);

#endif
