/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_source.h"

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

struct exp_char exp_source_get(struct exp_source *src)
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
	struct cfg_place at = { r->src->file, ch.line, ch.col };

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
			struct cfg_place at = { src->file, backslash.line, backslash.col };

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
	word->start = (struct cfg_place){ src->file, src->line, src->col };
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
