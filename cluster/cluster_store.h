/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place where members of a cluster keep the shared object and their heartbeats: the interface, and the backends that implement it.
 *
 * A backend keeps one object of bytes with a version, which changes by compare-and-set only, and one small record for each member's heartbeat.
 * It must give what a shared file system gives: a read sees every write that ended before the read began, on all machines.
 *
 * Calls return 0 or -errno or one of lib/error.h, and may block as long as the backend does. One thread uses a store.
 */
#ifndef RN_CLUSTER_CLUSTER_STORE_H
#define RN_CLUSTER_CLUSTER_STORE_H

#include "cluster/cluster_object.h"
#include "lib/log.h"

/* A heartbeat, as the member wrote it last. */
struct cluster_beat {
	char name[CLUSTER_NAME_SIZE];
	uint64_t incarnation;
	uint64_t count;	  /* grows with each beat of a run */
	uint64_t wall_ns; /* the writer's time of day, read just before it wrote */
};

struct cluster_store;

struct cluster_store_ops {
	/* Bytes of the object and its version. -ENOENT: there is none yet; its version is 0. size: CLUSTER_BYTES_MAX. */
	int (*read)(struct cluster_store *s, uint8_t *bytes, size_t size, size_t *len,
		    uint64_t *version);
	/*
	 * Compare-and-set: replaces the object if its version is still that one. RN_ECHANGED: it is not. With any other error the
	 * object may or may not have been replaced; the caller reads it again. 0: the new object is on disk.
	 */
	int (*swap)(struct cluster_store *s, uint64_t version, const uint8_t *bytes, size_t len);
	/* Writes a member's heartbeat. It need not be on disk, but others must see it. */
	int (*beat)(struct cluster_store *s, const struct cluster_beat *beat);
	/* The heartbeat of a member. -ENOENT: it has none; -EBADMSG: it is being written or damaged. */
	int (*look)(struct cluster_store *s, const char *name, struct cluster_beat *beat);
	/*
	 * That run, of the caller, has its files through those clients of the file system, and no others; n is 0 when it has released all. -EBUSY: another
	 * member has one of them; -ESHUTDOWN: one is being evicted. Does nothing if the backend cannot evict.
	 */
	int (*use)(struct cluster_store *s, const struct cluster_self *self,
		   const uint64_t *clients, unsigned n);
	/*
	 * Has the file system drop the clients through which that run of a member and its earlier runs had their files, with their locks; after
	 * this returned 0 those clients can write nothing more. Not those that the caller or a later run uses: the member was started again on the
	 * same machine, where the last run's keeper (daemon/keeper.h) releases what it had. -EINPROGRESS: not yet, ask again. -EOPNOTSUPP: the
	 * backend cannot, and locks stay until the file system itself gives the client up.
	 */
	int (*evict)(struct cluster_store *s, const char *name, uint64_t incarnation);
	void (*close)(struct cluster_store *s);
};

struct cluster_store {
	const struct cluster_store_ops *ops;
};

struct cluster_store_cfg {
	const char *
		path; /* for the backend of files: an existing directory of the cluster file system */
	/* Settings of the backend for RADOS; not NULL. ceph_user is without "client."; ceph_fs empty: all file systems of that Ceph cluster. */
	const char *cluster, *pool, *ceph_conf, *ceph_user, *ceph_fs;
	uint64_t own_client; /* CephFS client that is never evicted; 0: not known before use() */
	uint32_t dead_ms;    /* time limit of each call, where the backend can set one */
	bool is_rados;
};

/* Opens a store. The backends have one each (cluster/store_file.c, cluster/store_rados.c). Logs failures; log may be NULL. */
int cluster_store_open(const struct cluster_store_cfg *cfg, const struct rn_logger *log,
		       struct cluster_store **store);
int cluster_store_file_open(const char *path, struct cluster_store **store);
int cluster_store_rados_open(const struct cluster_store_cfg *cfg, const struct rn_logger *log,
			     struct cluster_store **store);

/* rn_error_text(), with words for an object that is damaged or of another version. */
const char *cluster_store_error_text(int rc);

/* The client of CephFS by which this machine has that file; 0: it is on no CephFS. -ESHUTDOWN: it was evicted; or -errno. */
int cluster_cephfs_client(const char *path, uint64_t *client);

/* The object itself, decoded; a cluster without members if there is none. */
int cluster_store_read(struct cluster_store *s, struct cluster_object *o, uint64_t *version);
int cluster_store_swap(struct cluster_store *s, uint64_t version, const struct cluster_object *o);
/* Returns when the object has another version than that, or after so many milliseconds. */
int cluster_store_wait(struct cluster_store *s, uint64_t version, unsigned ms);

#endif
