/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths and names of files as JSON, which takes UTF-8 alone. */
#ifndef RN_DAEMON_ADMIN_TEXT_H
#define RN_DAEMON_ADMIN_TEXT_H

#include <jansson.h>

/* The text; if it is no UTF-8, with each byte beyond ASCII as \xNN. NULL: no memory, or text is NULL. */
json_t *control_text(const char *text);

#endif
