/* SPDX-License-Identifier: BSD-2-Clause */
/* Data servers of layouts: the members of the cluster that run, as devices with an id (RFC 8881 section 12.2.10). */
#ifndef RN_NFS4_LAYOUT_DATA_SERVER_H
#define RN_NFS4_LAYOUT_DATA_SERVER_H

#include "nfs4/nfs4_private.h"
#include "vfs/types.h"

#define NFS4_DEVICES_MAX 64u /* as many members may run */

/*
 * The id has the number of the member's run, and a hash of its name and addresses: a member that is started again, or gets
 * another address, is another device.
 */
struct nfs4_device {
	uint8_t id[NFS4_DEVICEID_SIZE];
	struct nfs4_member member;
};

/* True if this server gives layouts. */
static inline bool nfs4_gives_layouts(const struct nfs4_server *srv)
{
	return srv->cfg.cluster && srv->cfg.cluster->layouts;
}

/*
 * The data server of a file: the same at all members, as long as the same members run, so that a file is read and written
 * through one machine. A member that comes or goes changes only the files that it gets or had. False: there is none.
 */
bool nfs4_device_of_file(const struct nfs4_server *srv, const struct vfs_fh *fh,
			 struct nfs4_device *out);
/* The device with that id. False: there is none any more. */
bool nfs4_device_find(const struct nfs4_server *srv, const uint8_t id[NFS4_DEVICEID_SIZE],
		      struct nfs4_device *out);
/* The ids of all. Returns their number. */
unsigned nfs4_device_ids(const struct nfs4_server *srv,
			 uint8_t ids[NFS4_DEVICES_MAX][NFS4_DEVICEID_SIZE]);

#endif
