/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths of the control socket with a query (RFC 3986 section 3.4). */
#ifndef RN_CTL_URI_H
#define RN_CTL_URI_H

/* A copy of the path, to add parameters to. The caller frees it. NULL: no memory. */
char *uri_new(const char *path);
/* Adds `name=value`, encoded, and takes uri over. NULL: no memory, now or before. */
char *uri_add(char *uri, const char *name, const char *value);

#endif
