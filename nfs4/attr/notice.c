/* SPDX-License-Identifier: BSD-2-Clause */
#include "nfs4/attr/notice.h"

#include <string.h>

#include "nfs4/attr/source.h"

void nfs4_put_notice_attrs(struct xdr_out *x, const uint32_t mask[NFS4_ATTR_WORDS],
			   const struct vfs_fh *fh, const struct vfs_attr *attr)
{
	struct nfs4_attr_source src;
	struct nfs4_bitmap b;

	memset(&src, 0, sizeof(src));
	src.attr = *attr;
	if (fh)
		src.fh = *fh;
	memcpy(b.word, mask, sizeof(b.word));
	nfs4_put_fattr(x, &b, &src);
}
