/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers for programs, on standard output. Clients choose names of files, and JSON leaves U+0080 to U+009F in them as they
 * are, which terminals obey. So a terminal gets ASCII alone.
 */
#ifndef RN_CTL_PUT_JSON_H
#define RN_CTL_PUT_JSON_H

#include <jansson.h>
#include <stddef.h>

/* flags: of json_dumpf(3). 0, or -1: no memory, or it could not be written. */
int put_json(const json_t *json, size_t flags);
/* The text of an answer, and what was read from it; NULL: it is no JSON. */
void put_json_text(const char *text, size_t len, const json_t *json);

#endif
