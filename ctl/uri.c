/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/uri.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *uri_new(const char *path)
{
	return strdup(path);
}

char *uri_add(char *uri, const char *name, const char *value)
{
	const size_t len = uri ? strlen(uri) : 0;
	char *more = uri ? realloc(uri, len + strlen(name) + 3 * strlen(value) + 3) : NULL;

	if (!more) {
		free(uri);
		return NULL;
	}
	char *to = more + len + sprintf(more + len, "%c%s=", strchr(more, '?') ? '&' : '?', name);

	for (const unsigned char *s = (const unsigned char *)value; *s; s++)
		to += sprintf(to, isalnum(*s) || strchr("-._~", *s) ? "%c" : "%%%02X", *s);
	*to = '\0';
	return more;
}
