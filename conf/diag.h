/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Diagnostics of the configuration parsers: what is wrong, where, and what would be right.
 *
 * A list owns its texts. line and col are 1-based; 0 means "no position in the file". The list is
 * bounded: past CFG_DIAG_MAX messages only the counts go on, so that a hostile or broken file
 * cannot fill the memory.
 */
#ifndef RN_CONF_DIAG_H
#define RN_CONF_DIAG_H

#include <stddef.h>
#include <stdio.h>

enum { CFG_DIAG_MAX = 1000 };

enum cfg_severity {
	CFG_NOTE,
	CFG_WARNING,
	CFG_ERROR,
};

struct cfg_diag {
	enum cfg_severity severity;
	unsigned line;
	unsigned col;
	unsigned again; /* notes: further places of the file that have the same */
	char *file;
	char *text;
};

struct cfg_diags {
	struct cfg_diag *items;
	unsigned n;
	unsigned cap;
	unsigned errors;
	unsigned warnings;
	unsigned dropped; /* messages that were counted but not kept */
};

struct cfg_position {
	const char *file;
	unsigned line;
	unsigned col;
};

void cfg_diags_init(struct cfg_diags *diags);
void cfg_diags_free(struct cfg_diags *diags);

/* Add a message; a list without memory for it still counts it. */
void cfg_diag_add(struct cfg_diags *diags, struct cfg_position at, enum cfg_severity severity,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Write "FILE:LINE:COL: severity: text" lines. */
void cfg_diags_print(const struct cfg_diags *diags, FILE *out);

/* Like cfg_diags_print(), for one message, into a buffer of any size; always terminated. */
void cfg_diag_format(const struct cfg_diag *diag, char *buf, size_t size);

/* The nearest known word to an unknown one, for messages. */

enum { CFG_WORD_MAX = 64 };

/* Letters to insert, delete, replace or swap with their neighbour; words are cut at CFG_WORD_MAX.
 */
unsigned cfg_edit_distance(const char *a, const char *b);

/*
 * Feed candidates one by one; best stays NULL when none is near enough to be what was meant: more
 * than a third of the word would have to change.
 */
struct cfg_suggest {
	const char *word;
	const char *best;
	unsigned distance;
};

void cfg_suggest_try(struct cfg_suggest *suggest, const char *candidate);

#endif
