/* SPDX-License-Identifier: BSD-2-Clause */
/* Converts any octets as nfs-ganesha's configuration. Each line that comes out is a comment, empty, or begins with a path. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tools/ganesha/ganesha_exports.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *out, *err;
	size_t out_len, err_len;
	struct ganesha_said said = { .file = "fuzz",
				     .out = open_memstream(&out, &out_len),
				     .err = open_memstream(&err, &err_len) };

	if (!said.out || !said.err)
		abort();
	const int rc = ganesha_to_exports((const char *)data, size, &said);

	fclose(said.out);
	fclose(said.err);
	if (rc == -EINVAL && !said.errors)
		abort();
	for (const char *s = out; *s; s += *s == '\n') {
		if (!strchr("#/\n", *s))
			abort();
		s += strcspn(s, "\n");
	}
	free(out);
	free(err);
	return 0;
}
