/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One RPC call of any bytes, run through the dispatch by NFSv3 and MOUNT on real directories. Each
 * call must be answered or refused exactly once, and within the size that the client can take.
 *
 * A corpus cannot hold the handles of this run. Four bytes 0xf1 'F' 'H' '0'..'3' stand for the
 * whole opaque handle of the export's root, a file, a symbolic link and a directory. Without root
 * inputs are ignored.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/fuzz/real_dirs.h"
#include "tests/unit/nfs3_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[SAMPLE_OBJECTS] = { NULL, SAMPLE_FILE_NAME, SAMPLE_LINK_NAME,
						   SAMPLE_DIR_NAME };
static struct fixture *f;
static struct vfs_fh objects[SAMPLE_OBJECTS];

static void make_object(enum sample_object o, bool fresh)
{
	struct stat st;
	const char *path = fix_path(f, names[o]);

	if (objects[o].len && lstat(path, &st) == 0 && !fresh)
		return;
	if (o == SAMPLE_FILE)
		close(open(path, O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0644));
	else if (o == SAMPLE_LINK && symlink("target", path) < 0)
		return;
	else if (o == SAMPLE_DIR && mkdir(path, 0755) < 0)
		return;
	fix_lookup(f, &f->root, names[o], &objects[o]);
}

/* Copies the message with handles in place of their marks. */
static size_t expand(const uint8_t *data, size_t size, uint8_t *out)
{
	size_t n = 0;

	for (size_t i = 0; i < size && n + 128 < FUZZ_MESSAGE_MAX; i++) {
		if (size - i >= 4 &&
		    !memcmp(data + i,
			    "\xf1"
			    "FH",
			    3) &&
		    data[i + 3] >= '0' && data[i + 3] < '0' + SAMPLE_OBJECTS) {
			struct xdr_out x;

			xdr_out_init(&x, out + n, 128);
			fix_put_fh(&x, &objects[data[i + 3] - '0']);
			n += x.used;
			i += 3;
		} else {
			out[n++] = data[i];
		}
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t msg[FUZZ_MESSAGE_MAX];
	bool fresh;
	size_t len;

	f = fuzz_real_dirs(&fresh);
	if (!f)
		return 0;
	fix_accept(&f->access, VFS_SEC_SYS);
	vfs_access_accept(&f->access, VFS_SEC_NONE, 0);
	f->reply_max = FIX_REPLY_SIZE;
	objects[SAMPLE_ROOT] = f->root;
	for (enum sample_object o = SAMPLE_FILE; o < SAMPLE_OBJECTS; o++)
		make_object(o, fresh);
	len = expand(data, size, msg);
	/* The message's last byte also sets the largest reply that the client can take. */
	if (len > 0 && msg[len - 1] >= 0x80)
		f->reply_max = (size_t)(msg[len - 1] - 0x7f) * 32;
	fix_send_raw(f, msg, len);
	fuzz_must_be_answered(f);
	return 0;
}
