/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/log_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static bool log_text_stays(uint8_t byte)
{
	return byte >= ' ' && byte < 0x7f && byte != '"' && byte != '\\';
}

void rn_log_text(char *out, size_t size, const void *bytes, size_t len)
{
	static const char more[] = "...";
	const uint8_t *b = bytes;
	size_t n = 0, cut = 0; /* cut: the longest text that "..." fits behind */

	for (size_t i = 0; i < len; i++) {
		const size_t need = log_text_stays(b[i]) ? 1 : 4;

		if (n + sizeof(more) <= size)
			cut = n;
		if (n + need >= size) {
			memcpy(out + cut, more, sizeof(more));
			return;
		}
		if (need == 1)
			out[n] = (char)b[i];
		else
			snprintf(out + n, size - n, "\\x%02x", b[i]);
		n += need;
	}
	out[n] = '\0';
}
