/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of exports(5): PATH [-DEFAULTS]... [CLIENT[(OPTIONS)]]...
 *
 * After an error the rest of the line is parsed, so that one run shows all errors in it; its drafts
 * are marked bad.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports_builder.h"
#include "conf/exports_client.h"
#include "conf/exports_paths.h"

struct line_parser {
	struct exp_builder *builder;
	struct cfg_diags *diags;
	struct exp_source src;
	struct exp_word *word;
	/* The line being parsed. */
	char *path;
	struct cfg_place at;
	bool bad;	  /* an error that concerns all clients of the line */
	bool bare_client; /* the last client came without options */
	unsigned clients;
	struct exp_options defaults;
};

static int line_error(struct line_parser *p, struct cfg_place at, const char *text)
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
