/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/ctl_options.h"

#include <stdio.h>
#include <string.h>

static const struct ctl_option *ctl_options_find(const struct ctl_option *options, size_t n,
						 const char *word)
{
	const size_t len = strcspn(word, "=");

	for (size_t i = 0; i < n; i++) {
		if (strlen(options[i].name) == len && strncmp(options[i].name, word, len) == 0)
			return &options[i];
	}
	return NULL;
}

/* Takes the option at argv[at]. The number of words that it has, or 0 if they are wrong. */
static int ctl_options_take(const struct ctl_option *o, int argc, char **argv, int at)
{
	const char *equals = strchr(argv[at], '=');

	if (!o || (!o->value && (equals || *o->given)) || (o->value && *o->value))
		return 0;
	if (!o->value) {
		*o->given = true;
		return 1;
	}
	*o->value = equals ? equals + 1 : argv[at + 1];
	if (!equals && at + 1 >= argc)
		return 0;
	return equals ? 1 : 2;
}

int ctl_options(const struct ctl_option *options, size_t n, int argc, char **argv)
{
	int left = 0;

	for (int at = 0; at < argc;) {
		if (strncmp(argv[at], "--", 2) != 0) {
			argv[left++] = argv[at++];
			continue;
		}
		if (!argv[at][2]) {
			while (++at < argc)
				argv[left++] = argv[at];
			break;
		}
		const int words = ctl_options_take(ctl_options_find(options, n, argv[at] + 2), argc,
						   argv, at);

		if (words == 0) {
			fprintf(stderr, "ringnfsctl: %s: wrong option '%s'; see ringnfsctl(8)\n",
				argv[0], argv[at]);
			return -1;
		}
		at += words;
	}
	return left;
}
