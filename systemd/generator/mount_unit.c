/* SPDX-License-Identifier: BSD-2-Clause */
#include "systemd/generator/mount_unit.h"

#include <stdio.h>
#include <string.h>

static const char suffix[] = ".mount";

/* Not by isalnum(3), which asks the locale. */
static bool unit_char_is_plain(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == ':' || c == '_' || (c == '.' && !first);
}

bool mount_unit_name(const char *path, size_t len, char name[MOUNT_UNIT_SIZE])
{
	size_t n = 0;

	if (len < 2)
		return false;
	for (size_t i = 1; i < len; i++) {
		const char c = path[i] == '/' ? '-' : path[i];
		const bool plain = path[i] == '/' || unit_char_is_plain(c, i == 1);

		if (n + (plain ? 1 : 4) + sizeof(suffix) > MOUNT_UNIT_SIZE)
			return false;
		if (plain)
			name[n++] = c;
		else
			n += (size_t)sprintf(name + n, "\\x%02x", (unsigned char)c);
	}
	memcpy(name + n, suffix, sizeof(suffix));
	return true;
}
