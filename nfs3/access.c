/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs3/access.h"

#include <sys/stat.h>

/* Permissions that the bits of ACCESS ask for on this type of object; RFC 1813 section 3.3.4 leaves
 * it to the server which apply. */
struct access_bit {
	uint32_t bit;
	unsigned may;
};

static const struct access_bit dir_bits[] = {
	{ ACCESS3_READ, VFS_MAY_READ },
	{ ACCESS3_LOOKUP, VFS_MAY_EXEC },
	{ ACCESS3_MODIFY, VFS_MAY_WRITE | VFS_MAY_EXEC },
	{ ACCESS3_EXTEND, VFS_MAY_WRITE | VFS_MAY_EXEC },
	{ ACCESS3_DELETE, VFS_MAY_DELETE },
	{ 0, 0 },
};

static const struct access_bit file_bits[] = {
	{ ACCESS3_READ, VFS_MAY_READ },
	{ ACCESS3_MODIFY, VFS_MAY_WRITE },
	{ ACCESS3_EXTEND, VFS_MAY_WRITE },
	{ ACCESS3_EXECUTE, VFS_MAY_EXEC },
	{ 0, 0 },
};

int nfs3_access(struct nfs3_op *op, uint32_t want, uint32_t *granted, struct vfs_attr *attr)
{
	const struct access_bit *bits;
	unsigned may = 0, got;
	int rc;

	bits = S_ISDIR(vfs_node_type(op->node[0])) ? dir_bits : file_bits;
	for (unsigned i = 0; bits[i].bit; i++)
		if (want & bits[i].bit)
			may |= bits[i].may;
	rc = vfs_access(&op->ctx, op->node[0], may, &got, attr);
	if (rc < 0)
		return rc;
	*granted = 0;
	for (unsigned i = 0; bits[i].bit; i++)
		if ((want & bits[i].bit) && (got & bits[i].may) == bits[i].may)
			*granted |= bits[i].bit;
	return 0;
}
