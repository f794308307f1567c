/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/cluster_mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "cluster/cluster_store.h"
#include "vfs/export.h"
#include "vfs/mount_table.h"

/* A list of mounts while it is made. */
struct mount_listing {
	struct vfs_mount_table table;
	struct cluster_mounts *out;
	const struct rn_logger *log;
};

/* True if the kernel's CephFS client would reconnect after an eviction: its locks and unwritten data would be lost silently. */
static bool mount_comes_back(const struct vfs_mount_table *t, uint64_t mnt_id)
{
	const struct vfs_mount_entry *e = vfs_mount_table_find(t, mnt_id);

	return e && strcmp(e->type, "ceph") == 0 &&
	       vfs_mount_has_option(e, "recover_session=clean");
}

static int mount_listing_put(struct cluster_mounts *out, const char *path, uint64_t client,
			     uint64_t dev)
{
	for (unsigned i = 0; i < out->n; i++)
		if (out->mount[i].client == client && out->mount[i].dev == dev)
			return 0;
	if (out->n == CLUSTER_MOUNTS_MAX)
		return -ENOSPC;
	out->mount[out->n].path = strdup(path);
	if (!out->mount[out->n].path)
		return -ENOMEM;
	out->mount[out->n].client = client;
	out->mount[out->n++].dev = dev;
	return 0;
}

static int mount_listing_add(struct mount_listing *l, const char *path)
{
	struct statx stx;
	uint64_t client;
	int rc = vfs_statx_mount(AT_FDCWD, path, 0, STATX_TYPE, &stx);

	if (rc == -ENOENT) /* the export's directory does not exist now */
		return 0;
	if (!rc)
		rc = cluster_cephfs_client(path, &client);
	if (!rc && mount_comes_back(&l->table, stx.stx_mnt_id))
		rc = -EINVAL;
	if (!rc)
		rc = mount_listing_put(l->out, path, client,
				       makedev(stx.stx_dev_major, stx.stx_dev_minor));
	if (rc)
		rn_err(l->log, "cluster: %s: %s%s", path, strerror(-rc),
		       rc == -ESHUTDOWN ? ": this machine's client of the file system was evicted; "
					  "unmount and mount it again"
		       : rc == -EINVAL
			       ? ": it is mounted with recover_session=clean, by which locks are "
				 "lost silently; mount it with recover_session=no"
			       : "");
	return rc;
}

int cluster_mounts_list(const struct cfg_settings *settings, struct exports *exports,
			struct cluster_mounts *out, const struct rn_logger *log)
{
	struct mount_listing l = { .out = out, .log = log };
	struct exports_now now;
	int rc;

	*out = (struct cluster_mounts){ .n = 0 };
	rc = vfs_mount_table_load(&l.table);
	if (rc)
		return rc;
	rc = mount_listing_add(&l, settings->server.state_dir);
	if (!rc)
		rc = mount_listing_add(&l, settings->cluster.path);
	exports_now_get(exports, &now);
	for (unsigned i = 0; i < now.table->n_exports && !rc; i++)
		rc = mount_listing_add(&l, now.table->exports[i].path);
	exports_now_put(&now);
	vfs_mount_table_free(&l.table);
	if (rc)
		cluster_mounts_free(out);
	return rc;
}

void cluster_mounts_free(struct cluster_mounts *m)
{
	for (unsigned i = 0; i < m->n; i++)
		free(m->mount[i].path);
	m->n = 0;
}

unsigned cluster_mounts_clients(const struct cluster_mounts *m,
				uint64_t clients[CLUSTER_MOUNTS_MAX])
{
	unsigned n = 0;

	for (unsigned i = 0; i < m->n; i++)
		if (m->mount[i].client)
			clients[n++] = m->mount[i].client;
	return n;
}

const char *cluster_mounts_lost(const struct cluster_mounts *m)
{
	for (unsigned i = 0; i < m->n; i++) {
		const int fd =
			open(m->mount[i].path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
		const bool lost = fd >= 0 ? vfs_is_lost(fd) : vfs_error_tells_lost(-errno);

		if (fd >= 0)
			close(fd);
		if (lost)
			return m->mount[i].path;
	}
	return NULL;
}
