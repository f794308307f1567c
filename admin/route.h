/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the handler that answers a request. */
#ifndef RN_ADMIN_ROUTE_H
#define RN_ADMIN_ROUTE_H

#include "admin/admin.h"

enum { ADMIN_ALLOW_MAX = 64 };

/* The handler of that method and path. NULL: there is none; allow then has the methods that the path
 * takes, with commas between, and is empty if the path is unknown. */
const struct admin_handler *admin_route(const struct admin_handler *handlers, size_t n,
					const char *method, const char *path,
					char allow[ADMIN_ALLOW_MAX]);

#endif
