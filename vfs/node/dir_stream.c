/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vfs/base/instance.h"
#include "vfs/node/dir_stream.h"

#define IDLE_MAX 4 /* per directory */

/* Takes the idle stream that stands at cookie, or else any one. */
static struct vfs_dir_stream *dir_stream_take_idle(struct vfs_node *n, uint64_t cookie)
{
	struct vfs_dir_stream **at, *s;

	pthread_mutex_lock(&n->open_lock);
	for (at = &n->streams; *at && (*at)->pos != cookie; at = &(*at)->next)
		;
	if (!*at)
		at = &n->streams;
	s = *at;
	if (s)
		*at = s->next;
	pthread_mutex_unlock(&n->open_lock);
	return s;
}

static int stream_open(struct vfs_node *n, struct vfs_dir_stream **out)
{
	struct vfs_dir_stream *s = calloc(1, sizeof(*s));
	int fd;

	if (!s)
		return -ENOMEM;
	fd = vfs_fd_reopen_data(n->vfs, n->path_fd, O_RDONLY | O_DIRECTORY);
	if (fd < 0) {
		free(s);
		return fd;
	}
	s->fd = fd;
	*out = s;
	return 0;
}

static void stream_close(struct vfs_node *n, struct vfs_dir_stream *s)
{
	vfs_fd_close(n->vfs, s->fd);
	free(s);
}

/*
 * An idle stream may hold what the directory was when it was read last, which another listing has done. btrfs ends it
 * where the directory ended when it was opened, until it is sought, if only to where it stands. ext4 goes on with the
 * entries that it has in memory, past what has come between two of them since, unless it was read elsewhere meanwhile.
 */
static int seek(struct vfs_dir_stream *s, uint64_t cookie)
{
	char entry[512];

	if (cookie != 0 && lseek(s->fd, 0, SEEK_CUR) == (off_t)cookie &&
	    lseek(s->fd, 0, SEEK_SET) == 0 &&
	    syscall(SYS_getdents64, s->fd, entry, sizeof(entry)) < 0)
		return -errno;
	return lseek(s->fd, (off_t)cookie, SEEK_SET) < 0 ? -errno : 0;
}

int vfs_dir_stream_get(struct vfs_node *n, uint64_t cookie, struct vfs_dir_stream **out)
{
	struct vfs_dir_stream *s = dir_stream_take_idle(n, cookie);
	int rc;

	if (!s) {
		rc = stream_open(n, &s);
		if (rc != 0)
			return rc;
	}
	rc = seek(s, cookie);
	if (rc != 0) {
		stream_close(n, s);
		return rc;
	}
	s->pos = cookie;
	*out = s;
	return 0;
}

void vfs_dir_stream_put(struct vfs_node *n, struct vfs_dir_stream *s)
{
	unsigned idle = 0;

	pthread_mutex_lock(&n->open_lock);
	for (const struct vfs_dir_stream *i = n->streams; i; i = i->next)
		idle++;
	if (idle < IDLE_MAX) {
		s->next = n->streams;
		n->streams = s;
		s = NULL;
	}
	pthread_mutex_unlock(&n->open_lock);
	if (s)
		stream_close(n, s);
}

void vfs_dir_streams_close(struct vfs_node *n)
{
	struct vfs_dir_stream *s;

	while ((s = n->streams) != NULL) {
		n->streams = s->next;
		stream_close(n, s);
	}
}
