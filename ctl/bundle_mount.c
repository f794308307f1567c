/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of mountinfo in a support bundle. Most file systems hide their passwords there, and some do not. */
#include <string.h>
#include <strings.h>

#include "ctl/bundle.h"
#include "lib/util.h"

#define HIDDEN "<hidden>"

/* True if the option's name has one of these words in it. */
static bool names_secret(const char *option, size_t len)
{
	static const char *const words[] = { "pass", "secret", "token", "key",
					     "cred", "auth",   "user" };

	for (size_t i = 0; i < rn_array_size(words); i++) {
		const size_t n = strlen(words[i]);

		for (size_t at = 0; at + n <= len; at++)
			if (strncasecmp(option + at, words[i], n) == 0)
				return true;
	}
	return false;
}

/* A URL loses what is between "://" and the last "@", which may be USER:PASSWORD. */
static void put_url(FILE *out, const char *text, size_t len)
{
	const char *scheme = memmem(text, len, "://", 3);
	const char *at = scheme ? memrchr(scheme, '@', len - (size_t)(scheme - text)) : NULL;

	if (!at) {
		fwrite(text, 1, len, out);
		return;
	}
	fwrite(text, 1, (size_t)(scheme + 3 - text), out);
	fputs(HIDDEN, out);
	fwrite(at, 1, len - (size_t)(at - text), out);
}

/* An option NAME, or NAME=VALUE. */
static void bundle_put_option(FILE *out, const char *option, size_t len)
{
	const char *equals = memchr(option, '=', len);
	const size_t name = equals ? (size_t)(equals - option) : len;

	if (equals && names_secret(option, name)) {
		fwrite(option, 1, name + 1, out);
		fputs(HIDDEN, out);
	} else {
		put_url(out, option, len);
	}
}

void bundle_put_mount(FILE *out, const char *line)
{
	while (*line) {
		const size_t len = strcspn(line, " ,\n");

		bundle_put_option(out, line, len);
		line += len;
		if (*line)
			fputc(*line++, out);
	}
}
