/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ganesha/ganesha_say.h"

#include <stdarg.h>

#include "lib/utf8.h"

#define TEXT_MAX 1024

/* Control characters are written in octal, and so are bytes that are no UTF-8: a terminal obeys none of them. */
static void put_safe(FILE *out, const char *text)
{
	for (size_t len; *text; text += len ? len : 1) {
		len = rn_utf8_printable(text);
		if (len)
			fwrite(text, 1, len, out);
		else
			fprintf(out, "\\%03o", (unsigned)(unsigned char)*text);
	}
}

static void ganesha_put_line(FILE *out, const struct ganesha_said *to, unsigned line,
			     const char *text)
{
	put_safe(out, to->file);
	if (line)
		fprintf(out, ":%u", line);
	fputs(": ", out);
	put_safe(out, text);
	fputc('\n', out);
}

void ganesha_say(struct ganesha_said *to, enum ganesha_weight weight, unsigned line,
		 const char *fmt, ...)
{
	static const char *const names[] = { "", "warning: ", "error: " };
	char text[TEXT_MAX];
	va_list ap;
	int n = snprintf(text, sizeof(text), "%s", names[weight]);

	va_start(ap, fmt);
	vsnprintf(text + n, sizeof(text) - (size_t)n, fmt, ap);
	va_end(ap);
	to->errors += weight == GANESHA_ERROR;
	to->warnings += weight == GANESHA_WARNING;
	fputs("# ", to->out);
	ganesha_put_line(to->out, to, line, text);
	if (weight != GANESHA_NOTE)
		ganesha_put_line(to->err, to, line, text);
}
