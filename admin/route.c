/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/route.h"

#include <stdio.h>
#include <string.h>

static void admin_allow_add(char allow[ADMIN_ALLOW_MAX], const char *method)
{
	const size_t len = strlen(allow);

	snprintf(allow + len, ADMIN_ALLOW_MAX - len, "%s%s", len ? ", " : "", method);
}

const struct admin_handler *admin_route(const struct admin_handler *handlers, size_t n,
					const char *method, const char *path,
					char allow[ADMIN_ALLOW_MAX])
{
	allow[0] = '\0';
	for (size_t i = 0; i < n; i++) {
		if (strcmp(handlers[i].path, path) != 0)
			continue;
		if (strcmp(handlers[i].method, method) == 0)
			return &handlers[i];
		admin_allow_add(allow, handlers[i].method);
	}
	return NULL;
}
