/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of refer= and replicas=: /PATH@HOST[+HOST...][:/PATH@HOST...], an IPv6 address in brackets. */
#ifndef RINGNFS_CONF_EXPORTS_LOCATIONS_H
#define RINGNFS_CONF_EXPORTS_LOCATIONS_H

#include <stdbool.h>
#include <stddef.h>

struct exp_location {
	const char *path; /* absolute */
	size_t path_len;
	const char *hosts; /* names and addresses with '+' between */
	size_t hosts_len;
};

/* The next location of a list without errors, from *list on, which moves behind it; false at the end. */
bool exp_location_next(const char **list, struct exp_location *out);

/* NULL, or what is wrong with the list and what would be right; *at is then the place of the error in it. */
const char *exp_locations_error(const char *list, size_t *at);

#endif
