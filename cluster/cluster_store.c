/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared object as a store keeps it. */
#include "cluster/cluster_store.h"

#include <errno.h>

#include "lib/error.h"

int cluster_store_read(struct cluster_store *s, struct cluster_object *o, uint64_t *version)
{
	uint8_t bytes[CLUSTER_BYTES_MAX];
	size_t len;
	const int rc = s->ops->read(s, bytes, sizeof(bytes), &len, version);

	if (rc == -ENOENT) {
		cluster_init(o);
		return 0;
	}
	return rc != 0 ? rc : cluster_decode(bytes, len, o);
}

int cluster_store_swap(struct cluster_store *s, uint64_t version, const struct cluster_object *o)
{
	uint8_t bytes[CLUSTER_BYTES_MAX];

	return s->ops->swap(s, version, bytes, cluster_encode(o, bytes));
}

const char *cluster_store_error_text(int rc)
{
	if (rc == -EBADMSG)
		return "the cluster's object is damaged";
	if (rc == -EPROTONOSUPPORT)
		return "the cluster's object is of another version of ringnfsd; all members must "
		       "have the same";
	return rn_error_text(rc);
}
