/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/deleg_local.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/kernel_can.h"

#define WAIT_MS 20000 /* for what must happen */

static void count_recall(struct vfs_deleg *d)
{
	atomic_fetch_add(&((struct deleg *)d)->recalls, 1);
}

static const struct vfs_deleg_ops ops = { .recall = count_recall };

void dl_open(struct fx *f)
{
	NEED_KERNEL_CAN(watch_files);
	fx_open(f, FX_SYSCALL, VFS_IO_BUFFERED, NULL);
	cr_assert_eq(vfs_leases_start(f->vfs), 0);
}

void dl_close(struct fx *f)
{
	cr_expect_eq(dl_leases(f), 0);
	vfs_leases_stop(f->vfs);
	fx_close(f);
}

uint64_t dl_leases(const struct fx *f)
{
	return atomic_load(&f->vfs->files->leases);
}

int dl_give(struct fx *f, struct vfs_node *n, struct deleg *d, const void *client,
	    enum vfs_deleg_type type)
{
	*d = (struct deleg){ .d = { .ops = &ops, .client = client, .type = type } };
	memset(&f->vfs->files->recalled, 0, sizeof(f->vfs->files->recalled));
	return vfs_deleg_give(&f->ctx, n, &d->d);
}

bool dl_is_recalled(struct deleg *d)
{
	for (unsigned i = 0; i < WAIT_MS && atomic_load(&d->recalls) == 0; i++)
		usleep(1000);
	return atomic_load(&d->recalls) == 1;
}

pid_t dl_start(int (*run)(const char *path), const char *path)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0)
		_exit(run(path) < 0 ? errno : 0);
	return pid;
}

int dl_end_of(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}
