/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of exports(5): characters and words, paths, clients. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "conf/exports_private.h"
#include "lib/utf8.h"

void exp_source_init(struct exp_source *src, const char *file, const char *text, size_t len)
{
	*src = (struct exp_source){ .file = file, .text = text, .len = len, .line = 1, .col = 1 };
	src->off = rn_utf8_bom(text, len);
}

static int octet_at(const struct exp_source *src, size_t off)
{
	return off < src->len ? (unsigned char)src->text[off] : EOF;
}

/* Length of a line end at off: 0 when there is none. */
static size_t line_end(const struct exp_source *src, size_t off)
{
	if (octet_at(src, off) == '\n')
		return 1;
	return octet_at(src, off) == '\r' && octet_at(src, off + 1) == '\n' ? 2 : 0;
}

static void skip_line_end(struct exp_source *src, size_t n)
{
	src->off += n;
	src->line++;
	src->col = 1;
}

static bool is_blank(int c)
{
	return c == ' ' || c == '\t';
}

static struct exp_char exp_source_get(struct exp_source *src)
{
	struct exp_char ch = { octet_at(src, src->off), src->line, src->col };
	size_t end;

	if (ch.c == EOF)
		return ch;
	end = line_end(src, src->off);
	if (end) {
		ch.c = '\n';
		skip_line_end(src, end);
		return ch;
	}
	end = ch.c == '\\' ? line_end(src, src->off + 1) : 0;
	src->off++;
	src->col++;
	if (end) {
		ch.c = ' ';
		skip_line_end(src, end);
		while (is_blank(octet_at(src, src->off))) {
			src->off++;
			src->col++;
		}
	}
	return ch;
}

struct exp_char exp_source_peek(const struct exp_source *src)
{
	struct exp_source copy = *src;

	return exp_source_get(&copy);
}

/* A comment continues with its line, as in exportfs(8). */
void exp_source_skip_blanks(struct exp_source *src)
{
	int c = exp_source_peek(src).c;

	while (is_blank(c)) {
		exp_source_get(src);
		c = exp_source_peek(src).c;
	}
	if (c != '#')
		return;
	while (c != '\n' && c != EOF) {
		exp_source_get(src);
		c = exp_source_peek(src).c;
	}
}

bool exp_source_next_line(struct exp_source *src)
{
	for (;;) {
		int c;

		exp_source_skip_blanks(src);
		c = exp_source_peek(src).c;
		if (c == EOF)
			return false;
		if (c != '\n')
			return true;
		exp_source_get(src);
	}
}

struct word_reader {
	struct exp_source *src;
	struct exp_word *word;
	struct cfg_diags *diags;
	bool options;
	bool quoted;
	bool in_list;
	bool done;
	bool too_long;
	struct exp_char quote;
	struct exp_char bracket;
};

static void word_error(struct word_reader *r, struct exp_char ch, const char *text)
{
	struct cfg_position at = { r->src->file, ch.line, ch.col };

	r->word->errors++;
	cfg_diag_add(r->diags, at, CFG_ERROR, "%s", text);
}

static void word_append(struct word_reader *r, struct exp_char ch, int octet, bool literal)
{
	struct exp_word *word = r->word;

	if (word->len == EXP_WORD_MAX) {
		if (!r->too_long)
			word_error(r, ch, "the word is too long: at most 8191 octets");
		r->too_long = true;
		return;
	}
	word->text[word->len] = (char)octet;
	word->at[word->len].line = ch.line;
	word->at[word->len].col = ch.col & 0x7fffffff;
	word->at[word->len].literal = literal;
	word->len++;
}

static bool is_octal(int c)
{
	return c >= '0' && c <= '7';
}

/* The backslash is read: three octal digits, or it stands for itself. */
static void word_escape(struct word_reader *r, struct exp_char backslash)
{
	struct exp_source *src = r->src;
	int value = 0;

	for (size_t i = 0; i < 3; i++) {
		if (!is_octal(octet_at(src, src->off + i))) {
			struct cfg_position at = { src->file, backslash.line, backslash.col };

			cfg_diag_add(
				r->diags, at, CFG_WARNING,
				"a backslash that is not followed by three octal digits stands "
				"for itself: write \\134");
			word_append(r, backslash, '\\', true);
			return;
		}
		value = value * 8 + octet_at(src, src->off + i) - '0';
	}
	src->off += 3;
	src->col += 3;
	if (value == 0 || value > 0377)
		word_error(r, backslash, "an octet is written \\001 to \\377");
	else
		word_append(r, backslash, value, true);
}

static bool exp_source_ends_word(int c)
{
	return is_blank(c) || c == '\n' || c == EOF;
}

static void word_list_end(struct word_reader *r)
{
	struct exp_char next = exp_source_peek(r->src);

	r->in_list = false;
	r->done = true;
	if (!exp_source_ends_word(next.c) && next.c != '#')
		word_error(r, next, "white space is missing after \")\"");
}

/* One character outside quotes. */
static void word_plain(struct word_reader *r, struct exp_char ch)
{
	if (is_blank(ch.c)) {
		word_error(r, ch, "white space within the brackets: write \"(rw,sync)\"");
		while (is_blank(exp_source_peek(r->src).c))
			exp_source_get(r->src);
	} else if (ch.c == '\\') {
		word_escape(r, ch);
	} else {
		word_append(r, ch, ch.c, false);
		if (r->options && ch.c == '(' && !r->in_list) {
			r->in_list = true;
			r->bracket = ch;
		} else if (ch.c == ')' && r->in_list) {
			word_list_end(r);
		}
	}
}

static void word_step(struct word_reader *r)
{
	struct exp_char ch = exp_source_peek(r->src);

	if (ch.c == '\n' || ch.c == EOF || (is_blank(ch.c) && !r->quoted && !r->in_list)) {
		r->done = true;
		return;
	}
	exp_source_get(r->src);
	if (ch.c == '\0') {
		word_error(r, ch, "a NUL octet: this is no text file");
	} else if (ch.c == '"') {
		r->quoted = !r->quoted;
		r->quote = ch;
	} else if (!r->quoted) {
		word_plain(r, ch);
	} else if (ch.c == '\\') {
		word_escape(r, ch);
	} else {
		word_append(r, ch, ch.c, true);
	}
}

void exp_source_word(struct exp_source *src, bool options, struct exp_word *word,
		     struct cfg_diags *diags)
{
	struct word_reader r = { .src = src, .word = word, .diags = diags, .options = options };
	struct exp_char end;

	word->len = 0;
	word->errors = 0;
	word->start = (struct cfg_position){ src->file, src->line, src->col };
	while (!r.done)
		word_step(&r);
	word->text[word->len] = '\0';
	end = exp_source_peek(src);
	word->at[word->len].line = end.line;
	word->at[word->len].col = end.col & 0x7fffffff;
	word->at[word->len].literal = false;
	if (r.quoted)
		word_error(&r, r.quote, "the closing double quote is missing");
	if (r.in_list)
		word_error(&r, r.bracket, "the closing \")\" is missing");
}

/*
 * Lines of exports(5): PATH [-DEFAULTS]... [CLIENT[(OPTIONS)]]...
 *
 * After an error the rest of the line is parsed, so that one run shows all errors in it; its drafts
 * are marked bad.
 */

struct line_parser {
	struct exp_builder *builder;
	struct cfg_diags *diags;
	struct exp_source src;
	struct exp_word *word;
	/* The line being parsed. */
	char *path;
	struct cfg_position at;
	bool bad;	  /* an error that concerns all clients of the line */
	bool bare_client; /* the last client came without options */
	unsigned clients;
	struct exp_options defaults;
};

static int line_error(struct line_parser *p, struct cfg_position at, const char *text)
{
	cfg_diag_add(p->diags, at, CFG_ERROR, "%s", text);
	p->bad = true;
	return -EINVAL;
}

static int exp_line_parse_path(struct line_parser *p)
{
	const struct exp_word *word = p->word;

	exp_source_word(&p->src, false, p->word, p->diags);
	p->at = word->start;
	p->bad = word->errors;
	if (p->bad)
		return 0;
	if (word->text[0] != '/') {
		line_error(p, p->at,
			   word->text[0]
				   ? "an export begins with an absolute path: \"/\" is missing"
				   : "the path is empty");
		return 0;
	}
	if (word->len > EXP_PATH_MAX) {
		line_error(p, p->at,
			   "the path is longer than 1024 octets, which MOUNT cannot carry");
		return 0;
	}
	p->path = strdup(word->text);
	if (!p->path)
		return -ENOMEM;
	if (!exp_path_clean(p->path))
		line_error(p, p->at, "the path has a \"..\": write the directory's own path");
	return 0;
}

static int draft_options(struct line_parser *p, struct exp_draft *draft, size_t open)
{
	const struct exp_word *word = p->word;
	size_t end = word->len;
	int rc;

	rc = exp_options_copy(&draft->options, &p->defaults);
	if (rc)
		return rc;
	draft->client.inherited = p->defaults.given;
	draft->options.given = 0;
	if (open < word->len) {
		if (word->text[end - 1] == ')' && !word->at[end - 1].literal)
			end--;
		if (end < open + 1)
			end = open + 1;
		rc = exp_options_parse(&draft->options, &p->src, word, open + 1, end, p->diags);
	}
	if (draft->client.gss && (draft->options.given & EXP_GIVEN_SEC)) {
		cfg_diag_add(p->diags, word->start, CFG_ERROR,
			     "%s and sec= in one entry: write the machines and sec= instead",
			     draft->client.spec);
		rc = rc ? rc : -EINVAL;
	}
	exp_options_finish(&draft->options);
	draft->client.own = draft->options.given;
	draft->client.inherited &= ~draft->client.own;
	return rc;
}

static size_t find_open(const struct exp_word *word)
{
	size_t i = 0;

	while (i < word->len && (word->text[i] != '(' || word->at[i].literal))
		i++;
	return i;
}

/* The word is (OPTIONS), which exports(5) applies to all machines: seldom what is meant, since the
 * whole world may use the export then. True if that is an error. */
static bool report_world(struct line_parser *p)
{
	const bool strict = p->builder->strict;

	cfg_diag_add(
		p->diags, p->word->start, strict ? CFG_ERROR : CFG_WARNING,
		p->bare_client
			? "ALL MACHINES MAY USE THIS EXPORT: a blank before \"(\" makes the "
			  "options theirs, not those of the machine before; write "
			  "MACHINE(OPTIONS), or *(OPTIONS) if all are meant"
			: "ALL MACHINES MAY USE THIS EXPORT: there is none before \"(\"; write "
			  "MACHINE(OPTIONS), or *(OPTIONS) if all are meant");
	return strict;
}

/* The word is CLIENT, CLIENT(OPTIONS) or (OPTIONS). */
static int exp_line_add_client(struct line_parser *p)
{
	size_t open = find_open(p->word);
	struct exp_draft draft = { .at = p->at, .bad = p->bad || p->word->errors };
	int rc;

	if (!open && p->word->len)
		draft.bad |= report_world(p);
	p->bare_client = open == p->word->len;
	p->clients++;
	rc = exp_client_parse(&draft.client, &p->src, p->word, open, p->diags);
	draft.client.file = p->src.file;
	draft.bad |= rc == -EINVAL;
	if (rc != -ENOMEM) {
		rc = draft_options(p, &draft, open);
		draft.bad |= rc == -EINVAL;
	}
	if (rc != -ENOMEM && p->path) {
		draft.path = strdup(p->path);
		rc = draft.path ? 0 : -ENOMEM;
	}
	if (rc == -ENOMEM || !p->path) {
		exp_draft_free(&draft);
		return rc == -ENOMEM ? rc : 0;
	}
	return exp_builder_add(p->builder, &draft);
}

/* A line without machines is for the world, as in exportfs(8). */
static int add_world(struct line_parser *p)
{
	p->word->len = 0;
	p->word->errors = 0;
	p->word->text[0] = '\0';
	p->bare_client = false;
	if (!p->bad)
		cfg_diag_add(p->diags, p->at, CFG_WARNING,
			     "no machine is given: all machines may use the export; write *(ro) to "
			     "say so");
	p->word->start = p->at;
	return exp_line_add_client(p);
}

static int parse_word(struct line_parser *p)
{
	const struct exp_word *word = p->word;
	int rc;

	exp_source_word(&p->src, true, p->word, p->diags);
	if (!word->len) {
		if (!word->errors)
			line_error(p, word->start,
				   "an empty machine name: write * for all machines");
		p->bad = true;
		return 0;
	}
	if (word->text[0] != '-' || word->at[0].literal)
		return exp_line_add_client(p);
	p->bad |= word->errors;
	p->bare_client = false;
	rc = exp_options_parse(&p->defaults, &p->src, word, 1, word->len, p->diags);
	p->bad |= rc == -EINVAL;
	return rc == -ENOMEM ? rc : 0;
}

static bool line_goes_on(struct line_parser *p)
{
	int c;

	exp_source_skip_blanks(&p->src);
	c = exp_source_peek(&p->src).c;
	return c != '\n' && c != EOF;
}

/* An error found late in the line marks the clients before it too. */
static void mark_bad(struct line_parser *p, size_t first)
{
	for (size_t i = first; i < p->builder->n; i++)
		p->builder->drafts[i].bad = true;
}

static int exp_line_parse(struct line_parser *p)
{
	size_t first = p->builder->n;
	int rc = exp_line_parse_path(p);

	while (!rc && line_goes_on(p))
		rc = parse_word(p);
	if (!rc && !p->clients)
		rc = add_world(p);
	if (p->bad)
		mark_bad(p, first);
	return rc;
}

static void line_reset(struct line_parser *p)
{
	free(p->path);
	p->path = NULL;
	p->bad = false;
	p->bare_client = false;
	p->clients = 0;
	exp_options_free(&p->defaults);
	exp_options_init(&p->defaults);
}

int exp_builder_parse(struct exp_builder *builder, const char *name, const char *text, size_t len,
		      struct cfg_diags *diags)
{
	struct line_parser p = { .builder = builder, .diags = diags };
	const char *file = exp_builder_file(builder, name);
	int rc = 0;

	p.word = malloc(sizeof(*p.word));
	if (!p.word || !file) {
		free(p.word);
		return -ENOMEM;
	}
	exp_source_init(&p.src, file, text, len);
	exp_options_init(&p.defaults);
	while (!rc && exp_source_next_line(&p.src)) {
		line_reset(&p);
		rc = exp_line_parse(&p);
	}
	free(p.path);
	exp_options_free(&p.defaults);
	free(p.word);
	return rc;
}
