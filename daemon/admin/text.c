/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/admin/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

json_t *control_text(const char *text)
{
	json_t *string = text ? json_string(text) : NULL;
	char *escaped = text && !string ? malloc(4 * strlen(text) + 1) : NULL, *to = escaped;

	if (!escaped)
		return string;
	for (const unsigned char *s = (const unsigned char *)text; *s; s++)
		to += sprintf(to, *s < 0x80 ? "%c" : "\\x%02x", *s);
	*to = '\0';
	string = json_string(escaped);
	free(escaped);
	return string;
}
