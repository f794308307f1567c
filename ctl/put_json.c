/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/put_json.h"

#include <stdio.h>
#include <unistd.h>

int put_json(const json_t *json, size_t flags)
{
	return json_dumpf(json, stdout, flags | (isatty(STDOUT_FILENO) ? JSON_ENSURE_ASCII : 0));
}

void put_json_text(const char *text, size_t len, const json_t *json)
{
	if (!isatty(STDOUT_FILENO))
		fwrite(text, 1, len, stdout);
	else if (json && put_json(json, JSON_INDENT(2)) == 0)
		putchar('\n');
}
