/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of a request's query, `?name=value&...` (RFC 3986 section 3.4), with % and + decoded. A parameter that
 * is there twice counts once, with its first value. */
#ifndef RN_ADMIN_ADMIN_QUERY_H
#define RN_ADMIN_ADMIN_QUERY_H

#include <stddef.h>
#include <stdint.h>

#include "admin/admin.h"

/* The value as text. 0; -ENOENT: there is no such parameter, and value is empty; -EINVAL: it has more than
 * size - 1 bytes, or a NUL. -ENOMEM. */
int admin_query_text(const struct admin_request *req, const char *name, char *value, size_t size);
/* The value as a decimal number, or a hexadecimal one after 0x, from 0 to max. Errors as above; -EINVAL also if it
 * is no number, or a larger one. *value stays as it is on errors. */
int admin_query_number(const struct admin_request *req, const char *name, uint64_t max,
		       uint64_t *value);

#endif
