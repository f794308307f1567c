/* SPDX-License-Identifier: BSD-2-Clause */
/* Delegations and local processes: what their tests share. */
#ifndef RN_TESTS_DELEG_LOCAL_H
#define RN_TESTS_DELEG_LOCAL_H

#include <stdatomic.h>
#include <sys/types.h>

#include "tests/unit/vfs_io_fixture.h"
#include "vfs/base/instance.h"
#include "vfs/deleg.h"
#include "vfs/hold/file.h"
#include "vfs/hold/file_change.h"

struct deleg {
	struct vfs_deleg d;
	_Atomic unsigned recalls;
};

/* A served directory, with the threads that learn of local processes. */
void dl_open(struct fx *f);
/* Expects that no lease is left. */
void dl_close(struct fx *f);
uint64_t dl_leases(const struct fx *f);

/* vfs_deleg_give, even if the file was recalled lately. */
int dl_give(struct fx *f, struct vfs_node *n, struct deleg *d, const void *client,
	    enum vfs_deleg_type type);
/* Waits for the recall. True if there was one, once. */
bool dl_is_recalled(struct deleg *d);

/* A local process that does something with the path, and exits with its errno. */
pid_t dl_start(int (*run)(const char *path), const char *path);
int dl_end_of(pid_t pid);

#endif
