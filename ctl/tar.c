/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/saved_file.h"

#define BLOCK 512u
#define SIZE_MOST 077777777777u /* bytes of a file: eleven octal digits */

struct header {
	char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type;
	char linkname[100], magic[6], version[2], uname[32], gname[32], devmajor[8], devminor[8];
	char prefix[155], pad[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static void tar_put(struct tar *t, const void *data, size_t len)
{
	if (!t->error)
		t->error = rn_write_all(t->fd, data, len);
}

int tar_open(struct tar *t, const char *path, const char *folder)
{
	*t = (struct tar){ .now = time(NULL), .folder = folder };
	t->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	return t->fd < 0 ? -errno : 0;
}

/* The checksum counts its own field as blanks. */
static void seal(struct header *h)
{
	const unsigned char *bytes = (const unsigned char *)h;
	unsigned sum = 0;

	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += bytes[i];
	snprintf(h->checksum, sizeof(h->checksum), "%06o", sum);
}

void tar_add(struct tar *t, const char *name, const void *data, size_t len)
{
	static const char zeros[BLOCK];
	struct header h;

	memset(&h, 0, sizeof(h));
	const int n = snprintf(h.name, sizeof(h.name), "%s/%s", t->folder, name);

	if (n < 0 || (size_t)n >= sizeof(h.name) || len > SIZE_MOST) {
		t->error = t->error ? t->error : -ENAMETOOLONG;
		return;
	}
	strcpy(h.mode, "0000600");
	strcpy(h.uid, "0000000");
	strcpy(h.gid, "0000000");
	snprintf(h.size, sizeof(h.size), "%011llo", (unsigned long long)len);
	snprintf(h.mtime, sizeof(h.mtime), "%011llo", (unsigned long long)t->now & SIZE_MOST);
	h.type = '0';
	memcpy(h.magic, "ustar", sizeof(h.magic));
	memcpy(h.version, "00", sizeof(h.version));
	seal(&h);
	tar_put(t, &h, sizeof(h));
	tar_put(t, data, len);
	tar_put(t, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

int tar_close(struct tar *t)
{
	static const char end[2 * BLOCK];

	tar_put(t, end, sizeof(end));
	if (!t->error && fsync(t->fd) < 0 && errno != EINVAL)
		t->error = -errno;
	if (close(t->fd) < 0 && !t->error)
		t->error = -errno;
	return t->error;
}
