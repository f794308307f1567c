/* SPDX-License-Identifier: BSD-2-Clause */
/* The procedures' run functions, for the table: args is what the decoder of the same name filled
 * in. */
#ifndef RN_NFS3_PROCS_H
#define RN_NFS3_PROCS_H

#include "rpc/program.h"

enum rpc_run nfs3_null(struct rpc_request *req, void *args);
enum rpc_run nfs3_getattr(struct rpc_request *req, void *args);
enum rpc_run nfs3_setattr(struct rpc_request *req, void *args);
enum rpc_run nfs3_lookup(struct rpc_request *req, void *args);
enum rpc_run nfs3_access(struct rpc_request *req, void *args);
enum rpc_run nfs3_readlink(struct rpc_request *req, void *args);
enum rpc_run nfs3_read(struct rpc_request *req, void *args);
enum rpc_run nfs3_write(struct rpc_request *req, void *args);
enum rpc_run nfs3_create(struct rpc_request *req, void *args);
enum rpc_run nfs3_mkdir(struct rpc_request *req, void *args);
enum rpc_run nfs3_symlink(struct rpc_request *req, void *args);
enum rpc_run nfs3_mknod(struct rpc_request *req, void *args);
enum rpc_run nfs3_remove(struct rpc_request *req, void *args);
enum rpc_run nfs3_rmdir(struct rpc_request *req, void *args);
enum rpc_run nfs3_rename(struct rpc_request *req, void *args);
enum rpc_run nfs3_link(struct rpc_request *req, void *args);
enum rpc_run nfs3_readdir(struct rpc_request *req, void *args);
enum rpc_run nfs3_readdirplus(struct rpc_request *req, void *args);
enum rpc_run nfs3_fsstat(struct rpc_request *req, void *args);
enum rpc_run nfs3_fsinfo(struct rpc_request *req, void *args);
enum rpc_run nfs3_pathconf(struct rpc_request *req, void *args);
enum rpc_run nfs3_commit(struct rpc_request *req, void *args);

bool mnt_decode_path(struct xdr_in *x, void *args); /* struct mnt_path */
enum rpc_run mnt_mnt_v3(struct rpc_request *req, void *args);
enum rpc_run mnt_mnt_v1(struct rpc_request *req, void *args); /* and version 2 */
enum rpc_run mnt_dump(struct rpc_request *req, void *args);
enum rpc_run mnt_umnt(struct rpc_request *req, void *args);
enum rpc_run mnt_umntall(struct rpc_request *req, void *args);
enum rpc_run mnt_export(struct rpc_request *req, void *args);
enum rpc_run mnt_pathconf_v2(struct rpc_request *req, void *args);

#endif
