/* SPDX-License-Identifier: BSD-2-Clause */
/* Values as text: names of files, bytes and addresses of clients. */
#include "daemon/admin/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/host.h"
#include "lib/util.h"

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

json_t *client_printable(const uint8_t *bytes, uint32_t len)
{
	char *text = malloc(4 * (size_t)len + 1), *to = text;

	if (!text)
		return NULL;
	for (uint32_t i = 0; i < len; i++)
		to += sprintf(to, bytes[i] >= 0x20 && bytes[i] < 0x7f ? "%c" : "\\x%02x", bytes[i]);
	*to = '\0';
	json_t *s = json_string(text);

	free(text);
	return s;
}

json_t *client_address(const uint8_t addr[16])
{
	char text[RN_ADDRESS_TEXT];

	rn_address_text(addr, text);
	return json_string(text);
}
