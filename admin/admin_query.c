/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/admin_query.h"

#include <ctype.h>
#include <errno.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 32 /* bytes of a number, its NUL included */

/* The part of the query behind `name=`, not decoded, and its length. A parameter without = has an empty value. */
static const char *admin_query_find(const char *query, const char *name, size_t *len)
{
	const size_t name_len = strlen(name);

	for (const char *p = query; p; p = strchr(p, '&')) {
		p += *p == '&';
		const size_t part = strcspn(p, "&");

		if (part < name_len || strncmp(p, name, name_len) != 0 ||
		    (part > name_len && p[name_len] != '='))
			continue;
		*len = part > name_len ? part - name_len - 1 : 0;
		return p + part - *len;
	}
	return NULL;
}

int admin_query_text(const struct admin_request *req, const char *name, char *value, size_t size)
{
	size_t len = 0, raw_len = 0;
	const char *raw = admin_query_find(req->query, name, &raw_len);

	value[0] = '\0';
	if (!raw)
		return -ENOENT;
	char *copy = strndup(raw, raw_len);
	char *text = copy ? evhttp_uridecode(copy, 1, &len) : NULL;
	int rc = text ? 0 : -ENOMEM;

	if (text && (len >= size || strlen(text) != len))
		rc = -EINVAL;
	if (!rc)
		memcpy(value, text, len + 1);
	free(text);
	free(copy);
	return rc;
}

int admin_query_number(const struct admin_request *req, const char *name, uint64_t max,
		       uint64_t *value)
{
	char text[NUMBER_MAX], *end;
	int rc = admin_query_text(req, name, text, sizeof(text));

	if (rc)
		return rc;
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	const unsigned long long n = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);

	if (errno || *end || n > max)
		return -EINVAL;
	*value = n;
	return 0;
}
