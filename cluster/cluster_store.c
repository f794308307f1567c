/* SPDX-License-Identifier: BSD-2-Clause */
/* The shared object as a store keeps it. */
#include "cluster/cluster_store.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/xattr.h>

#include "lib/clock.h"
#include "lib/error.h"
#include "lib/util.h"

#define WAIT_POLL_MS 50u /* between looks at the version */

int cluster_store_open(const struct cluster_store_cfg *cfg, const struct rn_logger *log,
		       struct cluster_store **store)
{
	int rc;

	if (cfg->is_rados)
		return cluster_store_rados_open(cfg, log, store);
	rc = cluster_store_file_open(cfg->path, store);
	if (rc)
		rn_err(log, "cluster.path %s: %s", cfg->path, rn_error_text(rc));
	return rc;
}

int cluster_cephfs_client(const char *path, uint64_t *client)
{
	char value[64]; /* "client4125" */
	const ssize_t n = getxattr(path, "ceph.client_id", value, sizeof(value) - 1);

	*client = 0;
	if (n < 0)
		return errno == ENODATA || errno == EOPNOTSUPP ? 0 : -errno;
	value[n] = '\0';
	return sscanf(value, "client%" SCNu64, client) == 1 && *client ? 0 : -EPROTO;
}

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

/* Cluster file systems tell nobody on other machines that a file was replaced (inotify), and watches of RADOS break and have to be made anew. A look
 * costs less than a millisecond. */
int cluster_store_wait(struct cluster_store *s, uint64_t version, unsigned ms)
{
	const uint64_t until = rn_now_ms() + ms;
	uint8_t bytes[CLUSTER_BYTES_MAX];
	uint64_t current, now;
	size_t len;
	int rc;

	for (;;) {
		rc = s->ops->read(s, bytes, sizeof(bytes), &len, &current);
		if ((rc != 0 && rc != -ENOENT) || current != version)
			return rc == -ENOENT ? 0 : rc;
		now = rn_now_ms();
		if (now >= until)
			return 0;
		const uint64_t rest = rn_min(WAIT_POLL_MS, until - now);

		rn_sleep_ms((unsigned)rest);
	}
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
