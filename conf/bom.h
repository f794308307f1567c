/* SPDX-License-Identifier: BSD-2-Clause */
/* The byte order mark that some editors put before a text in UTF-8. */
#ifndef RINGNFS_CONF_BOM_H
#define RINGNFS_CONF_BOM_H

#include <stddef.h>
#include <string.h>

/* Octets to skip at the beginning of a text: 3 or 0. */
static inline size_t cfg_bom_length(const char *text, size_t len)
{
	return len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

#endif
