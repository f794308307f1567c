/* SPDX-License-Identifier: BSD-2-Clause */
/* CB_SEQUENCE alone, or CB_NULL: tells whether the callback path of a session or of a minor version 0
 * client works. */
#ifndef RN_NFS4_CALLBACK_CB_PROBE_H
#define RN_NFS4_CALLBACK_CB_PROBE_H

struct nfs4_cb_hooks;

/* For nfs4/nfs4_program.c. */
extern const struct nfs4_cb_hooks nfs4_cb_hooks;

#endif
