/* SPDX-License-Identifier: BSD-2-Clause */
/* File handles as a client sends them. The first byte chooses whether there is a MAC. An accepted
 * handle must encode to the same bytes again, so that a file has one handle. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/fs/handle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t secret[16 + 1] = "fuzzing's secret";
	const uint8_t *key = size && data[0] & 1 ? secret : NULL;
	struct vfs_fh fh = { 0 }, again;
	struct vfs_handle h;

	if (size < 2)
		return 0;
	/* The second byte may claim a length beyond the buffer: the decoder must not believe it. */
	fh.len = data[1];
	memcpy(fh.data, data + 2, size - 2 < VFS_FH_MAX ? size - 2 : VFS_FH_MAX);
	if (vfs_handle_parse(&fh, key, &h) != 0 || vfs_handle_check(&fh, key) != 0)
		return 0;
	if (vfs_handle_encode(&h, key, &again) != 0 || again.len != fh.len ||
	    memcmp(again.data, fh.data, fh.len) != 0)
		abort();
	return 0;
}
