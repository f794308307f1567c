/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/metrics_text.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_:"
#define BLANKS " \t"

/* Ends the name that begins at p, and sets *next to the character behind it, which is returned. '\0': there is none. */
static char metrics_take_name(char *p, char **next)
{
	const size_t len = strspn(p, NAME_CHARACTERS);
	const char end = p[len];

	if (len == 0 || isdigit((unsigned char)p[0]) || end == '\0')
		return '\0';
	p[len] = '\0';
	*next = p + len + 1;
	return end;
}

/* Takes the escapes out of a value that begins behind its quotation mark. The character behind the closing one, or NULL. */
static char *metrics_take_value(char *p)
{
	char *to = p;

	for (; *p && *p != '"'; p++) {
		if (*p == '\\' && p[1])
			p++;
		else {
			*to++ = *p;
			continue;
		}
		*to++ = *p == 'n' ? '\n' : *p;
	}
	if (!*p)
		return NULL;
	*to = '\0';
	return p + 1;
}

/* Takes name="value" pairs up to the closing brace. The character behind that, or NULL. */
static char *take_labels(char *p, struct metrics_sample *s)
{
	for (;;) {
		char *name = p += strspn(p, BLANKS ","), *value;

		if (*p == '}')
			return p + 1;
		if (metrics_take_name(name, &value) != '=' || *value != '"')
			return NULL;
		p = metrics_take_value(++value);
		if (!p)
			return NULL;
		if (s->nlabels == METRICS_LABELS_MAX)
			continue;
		s->labels[s->nlabels].name = name;
		s->labels[s->nlabels++].value = value;
	}
}

static bool take_sample(char *line, struct metrics_sample *s)
{
	char *rest, *end;

	*s = (struct metrics_sample){ .name = line };
	const char behind = metrics_take_name(line, &rest);

	if (behind == '{')
		rest = take_labels(rest, s);
	else if (behind == '\0' || !strchr(BLANKS, behind))
		rest = NULL;
	if (!rest)
		return false;
	s->value = strtod(rest, &end); /* of "+Inf", too */
	return end != rest && strchr(BLANKS "\r", *end) && !isnan(s->value);
}

bool metrics_next(char **at, struct metrics_sample *s)
{
	while (**at) {
		char *line = *at;

		*at += strcspn(line, "\n");
		if (**at)
			*(*at)++ = '\0';
		if (take_sample(line, s))
			return true;
	}
	return false;
}

const char *metrics_label(const struct metrics_sample *s, const char *name)
{
	for (unsigned i = 0; i < s->nlabels; i++)
		if (strcmp(s->labels[i].name, name) == 0)
			return s->labels[i].value;
	return "";
}
