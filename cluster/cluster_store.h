/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The place where members of a cluster keep the shared object and their heartbeats: the interface, and the backends that implement it.
 *
 * A backend keeps one object of bytes with a version, which changes by compare-and-set only, and one small record for each member's heartbeat.
 * It must give what a shared file system gives: a read sees every write that ended before the read began, on all machines. The interface fits
 * RADOS: versions are those of rados_get_last_version() and rados_write_op_assert_version(), heartbeats are an omap with the members' names
 * as keys, wait is a watch for rados_notify2(), and evict a command to the monitors.
 *
 * Calls return 0 or -errno or one of lib/error.h, and may block as long as the backend does. One thread uses a store.
 */
#ifndef RN_CLUSTER_CLUSTER_STORE_H
#define RN_CLUSTER_CLUSTER_STORE_H

#include "cluster/cluster_object.h"

/* A heartbeat as its member has written it last. */
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
	/* Returns when the object has another version than that, or after so many milliseconds. */
	int (*wait)(struct cluster_store *s, uint64_t version, unsigned ms);
	/*
	 * Has the file system drop the clients through which that run of a member and its earlier runs had their files, with their locks; after
	 * this returned 0 those clients can write nothing more. The caller's own client stays: its member was started again on the
	 * same machine, where the last run's keeper (daemon/keeper.h) releases what it had. -EOPNOTSUPP: the backend cannot, and locks stay until the file
	 * system itself gives the client up.
	 */
	int (*evict)(struct cluster_store *s, const char *name, uint64_t incarnation);
	void (*close)(struct cluster_store *s);
};

struct cluster_store {
	const struct cluster_store_ops *ops;
};

/* Backend of files in a directory of the cluster file system (cluster/store_file.c). The directory is there. */
int cluster_store_file_open(const char *path, struct cluster_store **store);

/* rn_error_text(), with words for an object that is damaged or of another version. */
const char *cluster_store_error_text(int rc);

/* The object itself, decoded; a cluster without members if there is none. */
int cluster_store_read(struct cluster_store *s, struct cluster_object *o, uint64_t *version);
int cluster_store_swap(struct cluster_store *s, uint64_t version, const struct cluster_object *o);

#endif
