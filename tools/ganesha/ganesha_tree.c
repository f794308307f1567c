/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ganesha/ganesha_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/utf8.h"

#define DEPTH_MAX 16u

enum token { END, WORD, OPEN, CLOSE, EQUALS, COMMA, SEMICOLON, WRONG };

struct reader {
	const char *at, *end;
	unsigned line;
	struct ganesha_error *err;
	bool failed;

	/* The token that was read last. */
	enum token token;
	bool quoted;
	char *word; /* WORD; owned */
	unsigned word_line;
};

static void ganesha_parse_fail(struct reader *r, unsigned line, const char *text)
{
	if (!r->failed) {
		r->err->line = line;
		snprintf(r->err->text, sizeof(r->err->text), "%s", text);
	}
	r->failed = true;
	r->token = WRONG;
}

static void skip_blanks(struct reader *r)
{
	while (r->at < r->end && (strchr(" \t\r\n\f\v", *r->at) || *r->at == '#') && *r->at) {
		if (*r->at == '#')
			while (r->at < r->end && *r->at != '\n')
				r->at++;
		if (r->at < r->end)
			r->line += *r->at++ == '\n';
	}
}

static bool ganesha_ends_word(char c)
{
	return !c || strchr(" \t\r\n\f\v#{}=,;\"'", c);
}

static void keep_word(struct reader *r, const char *from, size_t len)
{
	free(r->word);
	r->word = strndup(from, len);
	r->token = r->word ? WORD : WRONG;
	if (!r->word)
		ganesha_parse_fail(r, 0, "");
}

/* A double quote is escaped by a backslash in a string between double quotes. Between single quotes nothing is. */
static void read_string(struct reader *r, char quote)
{
	const unsigned line = r->line;
	const char *from = ++r->at;
	char *to;

	for (; r->at < r->end && *r->at && *r->at != quote; r->at++) {
		r->line += *r->at == '\n';
		if (quote == '"' && *r->at == '\\' && r->at + 1 < r->end && r->at[1])
			r->line += *++r->at == '\n';
	}
	if (r->at >= r->end || !*r->at) {
		ganesha_parse_fail(r, line, "the string has no end: its closing quote is missing");
		return;
	}
	keep_word(r, from, (size_t)(r->at++ - from));
	if (r->token != WORD || quote != '"')
		return;
	to = r->word;
	for (const char *s = r->word; *s; s++) {
		s += s[0] == '\\' && s[1];
		*to++ = *s;
	}
	*to = '\0';
}

static void next_token(struct reader *r)
{
	static const char marks[] = "{}=,;";
	const char *mark, *from;

	if (r->failed)
		return;
	skip_blanks(r);
	r->word_line = r->line;
	r->quoted = false;
	r->token = END;
	if (r->at >= r->end)
		return;
	if (!*r->at) {
		ganesha_parse_fail(r, r->line, "a NUL octet: this is no text file");
		return;
	}
	mark = strchr(marks, *r->at);
	if (mark) {
		r->token = OPEN + (enum token)(mark - marks);
		r->at++;
	} else if (*r->at == '"' || *r->at == '\'') {
		r->quoted = true;
		read_string(r, *r->at);
	} else {
		for (from = r->at; r->at < r->end && !ganesha_ends_word(*r->at);)
			r->at++;
		keep_word(r, from, (size_t)(r->at - from));
	}
}

/* Takes the word over. */
static struct ganesha_item *item_new(struct reader *r)
{
	struct ganesha_item *item = calloc(1, sizeof(*item));

	if (!item) {
		ganesha_parse_fail(r, 0, "");
		return NULL;
	}
	item->name = r->word;
	item->line = r->word_line;
	r->word = NULL;
	return item;
}

static bool add_value(struct reader *r, struct ganesha_item *item)
{
	char **more = realloc(item->value, (item->n + 1) * sizeof(*more));

	if (!more) {
		ganesha_parse_fail(r, 0, "");
		return false;
	}
	item->value = more;
	item->value[item->n++] = r->word;
	r->word = NULL;
	return true;
}

/* Values, from behind = up to the ; */
static void parse_values(struct reader *r, struct ganesha_item *item)
{
	next_token(r);
	while (r->token == WORD && add_value(r, item)) {
		const unsigned line = r->word_line;

		next_token(r);
		if (r->token == SEMICOLON)
			return;
		if (r->token != COMMA) {
			ganesha_parse_fail(r, line, "a \";\" is missing behind this value");
			return;
		}
		next_token(r);
	}
	if (r->token != SEMICOLON)
		ganesha_parse_fail(r, item->line, "a value is expected, and a \";\" behind it");
}

static void parse_block(struct reader *r, struct ganesha_item *block, unsigned depth);

/* The name was read. */
static void parse_item(struct reader *r, struct ganesha_item *item, unsigned depth)
{
	next_token(r);
	if (r->token == EQUALS) {
		parse_values(r, item);
	} else if (r->token == OPEN && depth == DEPTH_MAX) {
		ganesha_parse_fail(r, item->line, "blocks within too many others: there may be 16");
	} else if (r->token == OPEN) {
		item->block = true;
		parse_block(r, item, depth + 1);
		if (r->token != CLOSE)
			ganesha_parse_fail(r, item->line,
					   "the block has no end: its \"}\" is missing");
	} else {
		ganesha_parse_fail(r, item->line, "a name without \"= VALUE;\" or \"{\" behind it");
	}
}

/* Reads up to the end of the block, which stays the last token. */
static void parse_block(struct reader *r, struct ganesha_item *block, unsigned depth)
{
	struct ganesha_item **to = &block->first;

	for (next_token(r); r->token == WORD || r->token == SEMICOLON; next_token(r)) {
		if (r->token == SEMICOLON)
			continue;
		const bool directive = !r->quoted && r->word[0] == '%';

		if (r->quoted || (directive && depth > 0)) {
			ganesha_parse_fail(
				r, r->word_line,
				r->quoted ? "a name is expected, and not a string"
					  : "a directive within a block: it stands between blocks");
			return;
		}
		*to = item_new(r);
		if (!*to)
			return;
		if (directive) {
			next_token(r);
			if (r->token == WORD)
				add_value(r, *to);
			else
				ganesha_parse_fail(r, (*to)->line, "the name of a file is missing");
		} else {
			parse_item(r, *to, depth);
		}
		to = &(*to)->next;
	}
}

struct ganesha_item *ganesha_parse(const char *text, size_t len, struct ganesha_error *err)
{
	const size_t bom = rn_utf8_bom(text, len);
	struct reader r = { .at = text + bom, .end = text + len, .line = 1, .err = err };
	struct ganesha_item *tree = calloc(1, sizeof(*tree));

	*err = (struct ganesha_error){ .line = 0 };
	if (!tree)
		return NULL;
	tree->block = true;
	parse_block(&r, tree, 0);
	if (!r.failed && r.token != END)
		ganesha_parse_fail(&r, r.word_line,
				   r.token == CLOSE ? "a \"}\" without its \"{\""
						    : "the name of a block is expected");
	free(r.word);
	if (!r.failed)
		return tree;
	ganesha_free(tree);
	return NULL;
}

void ganesha_free(struct ganesha_item *item)
{
	struct ganesha_item *next;

	for (; item; item = next) {
		next = item->next;
		ganesha_free(item->first);
		for (size_t i = 0; i < item->n; i++)
			free(item->value[i]);
		free(item->value);
		free(item->name);
		free(item);
	}
}

const struct ganesha_item *ganesha_find(const struct ganesha_item *block, const char *name,
					const struct ganesha_item *after)
{
	const struct ganesha_item *item = after ? after->next : block ? block->first : NULL;

	while (item && strcasecmp(item->name, name) != 0)
		item = item->next;
	return item;
}
