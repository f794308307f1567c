/* SPDX-License-Identifier: BSD-2-Clause */
/* NFS version 2 (RFC 1094). NFSv3's server gives what both share: settings, MOUNT and locks. */
#ifndef RN_NFS2_SERVER_H
#define RN_NFS2_SERVER_H

#include "rpc/program.h"

struct nfs3_server;
struct rn_logger;

/* The version, to be put into the NFS program. s was made with packed_handles. */
void nfs2_version(struct nfs3_server *s, struct rpc_version *out);

/* NFSACL version 2, to be put into that program. */
void nfsacl2_version(struct nfs3_server *s, struct rpc_version *out);

/* Logs a line for each export that NFSv2 cannot serve, as its files have no handles of 32 bytes. */
void nfs2_log_unserved(const struct nfs3_server *s, const struct rn_logger *log);

#endif
