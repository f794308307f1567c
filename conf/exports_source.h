/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Characters and words of an exports(5) text, each with its place.
 *
 * Internal to the exports parser. A backslash before the end of a line joins the next line, without
 * its leading blanks, as one space. A word may be quoted in part or in whole; \ooo stands for one
 * octet.
 */
#ifndef RINGNFS_CONF_EXPORTS_SOURCE_H
#define RINGNFS_CONF_EXPORTS_SOURCE_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/diag.h"

enum { EXP_WORD_MAX = 8191 };

struct exp_source {
	const char *file;
	const char *text;
	size_t len;
	size_t off;
	unsigned line;
	unsigned col;
};

struct exp_char {
	int c; /* octet, '\n' or EOF */
	unsigned line;
	unsigned col;
};

struct exp_word {
	size_t len;
	unsigned errors;
	struct cfg_place start;
	char text[EXP_WORD_MAX + 1]; /* terminated */
	/* Place of each octet; literal: it was quoted or escaped and has no special meaning. */
	struct {
		unsigned line;
		unsigned col : 31;
		unsigned literal : 1;
	} at[EXP_WORD_MAX + 1];
};

void exp_source_init(struct exp_source *src, const char *file, const char *text, size_t len);

struct exp_char exp_source_peek(const struct exp_source *src);
struct exp_char exp_source_get(struct exp_source *src);

/* Skip blanks and a comment: next is a word, '\n' or EOF. */
void exp_source_skip_blanks(struct exp_source *src);
/* Skip to the next line that has a word; false at the end of the text. */
bool exp_source_next_line(struct exp_source *src);

/*
 * Read one word. With `options`, a list in round brackets belongs to it and blanks within the
 * brackets are an error. Errors are reported and counted in word->errors; the source always moves
 * on.
 */
void exp_source_word(struct exp_source *src, bool options, struct exp_word *word,
		     struct cfg_diags *diags);

static inline struct cfg_place exp_word_place(const struct exp_source *src,
					      const struct exp_word *word, size_t i)
{
	return (struct cfg_place){ src->file, word->at[i].line, word->at[i].col };
}

#endif
