/* SPDX-License-Identifier: BSD-2-Clause */
#include "vfs/mount_table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTINFO "/proc/self/mountinfo"
#define CHUNK ((size_t)64 << 10)

static int mount_table_read(int fd, char **text)
{
	size_t room = 0, len = 0;
	char *buf = NULL;

	for (;;) {
		ssize_t n;

		if (room - len < CHUNK) {
			char *more = realloc(buf, room + 4 * CHUNK);

			if (!more)
				break;
			buf = more;
			room += 4 * CHUNK;
		}
		n = read(fd, buf + len, room - len - 1);
		if (n <= 0) {
			int rc = n < 0 ? -errno : 0;

			buf[len] = '\0';
			*text = buf;
			if (rc != 0)
				free(buf);
			return rc;
		}
		len += (size_t)n;
	}
	free(buf);
	return -ENOMEM;
}

/* mountinfo shows space, tab, newline and backslash as \ooo. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++, to++) {
		*to = *s;
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 3;
		}
	}
	*to = '\0';
}

/* The type stands behind optional fields, "- type source options". The kernel escapes blanks in all fields. */
static void find_type(char *rest, struct vfs_mount_entry *e)
{
	char *type = strstr(rest, " - "), *next;

	e->type = e->fs_options = "";
	if (!type)
		return;
	next = type + 3;
	e->type = strsep(&next, " ");
	if (next && strsep(&next, " ") && next)
		e->fs_options = next;
}

/* "id parent dev root mountpoint options ... - type ...". Path and type stay in the line. */
static bool mount_table_parse_line(char *line, struct vfs_mount_entry *e)
{
	unsigned long long id, parent;
	int from = 0, to = 0;

	if (sscanf(line, "%llu %llu %*s %*s %n%*s%n", &id, &parent, &from, &to) != 2 || to <= from)
		return false;
	char *options = line + to + (line[to] != '\0');

	line[to] = '\0';
	unescape(line + from);
	*e = (struct vfs_mount_entry){ .id = id,
				       .parent = parent,
				       .path = line + from,
				       .read_only = strncmp(options, "ro", 2) == 0 };
	find_type(options, e);
	return true;
}

static size_t count_lines(const char *text)
{
	size_t n = 1;

	for (; (text = strchr(text, '\n')) != NULL; text++)
		n++;
	return n;
}

int vfs_mount_table_load(struct vfs_mount_table *out)
{
	int fd = open(MOUNTINFO, O_RDONLY | O_CLOEXEC);
	char *next, *line;
	int rc;

	*out = (struct vfs_mount_table){ .n = 0 };
	if (fd < 0)
		return -errno;
	rc = mount_table_read(fd, &out->text);
	close(fd);
	if (rc != 0)
		return rc;
	out->entry = calloc(count_lines(out->text), sizeof(out->entry[0]));
	if (!out->entry) {
		free(out->text);
		return -ENOMEM;
	}
	for (next = out->text; (line = strsep(&next, "\n")) != NULL;)
		out->n += mount_table_parse_line(line, &out->entry[out->n]);
	return 0;
}

void vfs_mount_table_free(struct vfs_mount_table *t)
{
	free(t->entry);
	free(t->text);
	*t = (struct vfs_mount_table){ .n = 0 };
}

const struct vfs_mount_entry *vfs_mount_table_find(const struct vfs_mount_table *t, uint64_t id)
{
	for (size_t i = 0; i < t->n; i++) {
		if (t->entry[i].id == id)
			return &t->entry[i];
	}
	return NULL;
}

bool vfs_mount_table_shows(const struct vfs_mount_table *t, uint64_t id, const char *path)
{
	const struct vfs_mount_entry *e = vfs_mount_table_find(t, id);

	if (!e || strcmp(e->path, path) != 0)
		return false;
	for (size_t i = 0; i < t->n; i++) {
		if (t->entry[i].parent == id && t->entry[i].id != id &&
		    strcmp(t->entry[i].path, path) == 0)
			return false;
	}
	return true;
}

bool vfs_mount_has_option(const struct vfs_mount_entry *e, const char *option)
{
	const size_t len = strlen(option);

	for (const char *at = e->fs_options; *at; at += *at == ',') {
		const size_t n = strcspn(at, ",");

		if (n == len && strncmp(at, option, len) == 0)
			return true;
		at += n;
	}
	return false;
}

int vfs_mount_table_watch(void)
{
	int fd = open(MOUNTINFO, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

bool vfs_mount_table_changed(int watch_fd)
{
	struct pollfd p = { .fd = watch_fd, .events = POLLPRI };

	return poll(&p, 1, 0) != 0 && (p.revents & (POLLPRI | POLLERR | POLLNVAL));
}

/* The kernel tells the mount before it finds that the handle has no room. */
static int mount_id_of(int dirfd, const char *name, uint64_t *id)
{
	struct file_handle h = { .handle_bytes = 0 };
	int mnt_id;

	if (name_to_handle_at(dirfd, name, &h, &mnt_id, *name ? 0 : AT_EMPTY_PATH) != 0 &&
	    errno != EOVERFLOW)
		return -errno;
	*id = (uint64_t)(uint32_t)mnt_id;
	return 0;
}

int vfs_statx_mount(int dirfd, const char *name, int flags, unsigned mask, struct statx *sx)
{
	uint64_t id = 0;
	int rc;

	if (statx(dirfd, name, flags, mask | STATX_MNT_ID, sx) != 0)
		return -errno;
	/* qemu-user hands on a mask that has the bit, and a zero. */
	if (sx->stx_mask & STATX_MNT_ID && sx->stx_mnt_id != 0)
		return 0;
	rc = mount_id_of(dirfd, name, &id);
	if (rc != 0)
		return rc;
	sx->stx_mnt_id = id;
	sx->stx_mask |= STATX_MNT_ID;
	return 0;
}
