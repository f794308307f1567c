/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of a file that another client has a write delegation of (RFC 8881 section 10.4.3, RFC 7530
 * section 10.4.3). The holder is asked for its size, and whether it has changed the data. If it has, the
 * file gets the present time as that of its last change, and with it a new change attribute, before each
 * answer.
 */
#ifndef RN_NFS4_ATTR_HELD_ATTRS_H
#define RN_NFS4_ATTR_HELD_ATTRS_H

struct nfs4_compound;
struct nfs4_object;
struct nfs4_queries;
struct nfs4_server;
struct vfs_attr;

/*
 * For an operation that returns size, change or times of p, an object of an export. NFS4_OK: attr, which
 * must be set, is as the holder says, or as it was if nobody has such a delegation. Waits for the
 * answer. NFS4ERR_DELAY: there was none, and the delegation is recalled.
 */
int nfs4_held_attrs(struct nfs4_compound *c, struct nfs4_object *p, struct vfs_attr *attr);

/* Sets srv->queries. 0 or -ENOMEM. */
int nfs4_queries_new(struct nfs4_server *srv);
/* All clients must have been dropped, and their callbacks have ended. NULL is allowed. */
void nfs4_queries_free(struct nfs4_queries *qs);

#endif
