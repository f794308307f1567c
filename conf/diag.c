/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/diag.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

void cfg_diags_init(struct cfg_diags *diags)
{
	memset(diags, 0, sizeof(*diags));
}

void cfg_diags_free(struct cfg_diags *diags)
{
	for (unsigned i = 0; i < diags->n; i++) {
		free(diags->items[i].file);
		free(diags->items[i].text);
	}
	free(diags->items);
	cfg_diags_init(diags);
}

static struct cfg_diag *diags_slot(struct cfg_diags *diags)
{
	if (diags->n >= CFG_DIAG_MAX)
		return NULL;
	if (diags->n == diags->cap) {
		unsigned cap = diags->cap ? diags->cap * 2 : 16;
		struct cfg_diag *items = realloc(diags->items, cap * sizeof(*items));

		if (!items)
			return NULL;
		diags->items = items;
		diags->cap = cap;
	}
	return &diags->items[diags->n];
}

/* The earlier note that says the same of the same file, or NULL. A hundred equal lines would hide what is wrong. */
static struct cfg_diag *said_before(struct cfg_diags *diags, const struct cfg_diag *note)
{
	for (unsigned i = 0; i < diags->n; i++) {
		struct cfg_diag *d = &diags->items[i];

		if (d->severity == CFG_NOTE && d->line && strcmp(d->text, note->text) == 0 &&
		    strcmp(d->file, note->file) == 0)
			return d;
	}
	return NULL;
}

void cfg_diag_add(struct cfg_diags *diags, struct cfg_position at, enum cfg_severity severity,
		  const char *fmt, ...)
{
	struct cfg_diag *diag = diags_slot(diags);
	va_list ap;

	diags->errors += severity == CFG_ERROR;
	diags->warnings += severity == CFG_WARNING;
	if (!diag) {
		diags->dropped++;
		return;
	}
	*diag = (struct cfg_diag){
		.severity = severity,
		.line = at.line,
		.col = at.col,
		.file = strdup(at.file ? at.file : ""),
	};
	va_start(ap, fmt);
	if (vasprintf(&diag->text, fmt, ap) < 0)
		diag->text = NULL;
	va_end(ap);
	if (!diag->file || !diag->text) {
		free(diag->file);
		free(diag->text);
		diags->dropped++;
		return;
	}
	struct cfg_diag *before = severity == CFG_NOTE && at.line ? said_before(diags, diag) : NULL;

	if (before) {
		before->again++;
		free(diag->file);
		free(diag->text);
		return;
	}
	diags->n++;
}

static const char *cfg_severity_name(enum cfg_severity severity)
{
	switch (severity) {
	case CFG_ERROR:
		return "error";
	case CFG_WARNING:
		return "warning";
	case CFG_NOTE:
		break;
	}
	return "note";
}

void cfg_diag_format(const struct cfg_diag *diag, char *buf, size_t size)
{
	const char *severity = cfg_severity_name(diag->severity);

	if (diag->line && diag->col)
		snprintf(buf, size, "%s:%u:%u: %s: %s", diag->file, diag->line, diag->col, severity,
			 diag->text);
	else if (diag->line)
		snprintf(buf, size, "%s:%u: %s: %s", diag->file, diag->line, severity, diag->text);
	else
		snprintf(buf, size, "%s: %s: %s", diag->file, severity, diag->text);
	const size_t len = strlen(buf);

	if (diag->again)
		snprintf(buf + len, size - len, " (and %u times more in this file)", diag->again);
}

void cfg_diags_print(const struct cfg_diags *diags, FILE *out)
{
	for (unsigned i = 0; i < diags->n; i++) {
		char line[2048];

		cfg_diag_format(&diags->items[i], line, sizeof(line));
		fprintf(out, "%s\n", line);
	}
	if (diags->dropped)
		fprintf(out, "%u further messages are not shown\n", diags->dropped);
}

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment over three rows of the usual table. */
unsigned cfg_edit_distance(const char *a, const char *b)
{
	unsigned rows[3][CFG_WORD_MAX + 1];
	unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];
	size_t na = strnlen(a, CFG_WORD_MAX);
	size_t nb = strnlen(b, CFG_WORD_MAX);

	for (size_t j = 0; j <= nb; j++)
		prev[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *spare = before;

		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned change = a[i - 1] != b[j - 1];

			cur[j] = min3(prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    before[j - 2] + 1 < cur[j])
				cur[j] = before[j - 2] + 1;
		}
		before = prev;
		prev = cur;
		cur = spare;
	}
	return prev[nb];
}

void cfg_suggest_try(struct cfg_suggest *suggest, const char *candidate)
{
	size_t len = strlen(suggest->word);
	unsigned limit = len < 6 ? 2 : (unsigned)(len / 3);
	unsigned distance;

	if (!len || len > CFG_WORD_MAX)
		return;
	distance = cfg_edit_distance(suggest->word, candidate);
	/* A word that shares nothing is not similar. */
	if (distance > limit || distance >= len || distance >= strlen(candidate))
		return;
	if (!suggest->best || distance < suggest->distance) {
		suggest->best = candidate;
		suggest->distance = distance;
	}
}
