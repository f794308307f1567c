/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/softverbs/cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tools/softverbs/cm_hooks.h"

struct sv_cm *cm_root(void)
{
	return sv_fabric.cm;
}

static int make_root(void)
{
	struct sv_cm *cm = calloc(1, sizeof(*cm));

	if (!cm)
		return -ENOMEM;
	for (unsigned i = 0; i < CM_BUCKETS; i++)
		LIST_INIT(&cm->ids[i]);
	cm->next_number = 1;
	pthread_mutex_init(&cm->device_lock, NULL);
	pthread_mutex_init(&cm->ack_lock, NULL);
	pthread_cond_init(&cm->acked, NULL);
	int err = cm_port_open(cm);
	if (err) {
		free(cm);
		return err;
	}
	sv_fabric.cm = cm;
	return 0;
}

int cm_open(void)
{
	int err = sv_open();

	if (err)
		return err;
	sv_lock();
	if (!sv_fabric.cm)
		err = make_root();
	sv_unlock();
	return err;
}

/* The objects belong to the parent of the fork(): they are left alone, and the child starts with
 * none. */
void sv_cm_forget(void)
{
	if (sv_fabric.cm)
		cm_port_close(sv_fabric.cm);
	sv_fabric.cm = NULL;
}

/* Programs look for the kernel's connection manager before they use librdmacm. Here it is always
 * present. */
SV_EXPORT int access(const char *path, int mode);
int access(const char *path, int mode)
{
	if (strcmp(path, "/dev/infiniband/rdma_cm") == 0)
		return 0;
	return syscall(SYS_faccessat, AT_FDCWD, path, mode);
}
