/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses one statement of a fault script, words in a fixed order (README.md): [in NAME] on POINT
 * [NTH] [qp K] [every M] [times T] [chance N [seed S]] : ACTION [ARGUMENT] */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/fault.h"

struct word {
	const char *name;
	unsigned value;
	unsigned points; /* for an action: the points at which it may happen */
};

#define AT_POSTS (SV_AT_SEND | SV_AT_WRITE | SV_AT_READ | SV_AT_ATOMIC | SV_AT_POST)
#define AT_QPS (AT_POSTS | SV_AT_REQUEST | SV_AT_COMPLETION)

static const struct word points[] = {
	{ "send", SV_AT_SEND, 0 },
	{ "write", SV_AT_WRITE, 0 },
	{ "read", SV_AT_READ, 0 },
	{ "atomic", SV_AT_ATOMIC, 0 },
	{ "post", SV_AT_POST, 0 },
	{ "request", SV_AT_REQUEST, 0 },
	{ "completion", SV_AT_COMPLETION, 0 },
	{ "reg-mr", SV_AT_REG_MR, 0 },
	{ "dereg-mr", SV_AT_DEREG_MR, 0 },
	{ NULL, 0, 0 },
};

static const struct word actions[] = {
	{ "drop-connection", SV_DROP_CONNECTION, AT_QPS },
	{ "device-removed", SV_DEVICE_REMOVED, AT_QPS },
	{ "stop-reading", SV_STOP_READING, AT_QPS },
	{ "rnr", SV_RNR, SV_AT_REQUEST },
	{ "full-sq", SV_FULL_SQ, AT_POSTS },
	{ "delay", SV_DELAY, AT_POSTS | SV_AT_COMPLETION },
	{ "reorder", SV_REORDER, SV_AT_COMPLETION },
	{ "fail", SV_FAIL, AT_POSTS | SV_AT_REG_MR | SV_AT_DEREG_MR },
	{ NULL, 0, 0 },
};

struct words {
	char text[512];
	char *save;
	char *next; /* ends with NULL */
};

static void words_init(struct words *w, const char *statement)
{
	size_t len = 0;

	/* Makes the colon a word of its own, even without spaces around it. */
	for (; *statement && len < sizeof(w->text) - 4; statement++) {
		if (*statement == ':')
			w->text[len++] = ' ';
		w->text[len++] = *statement;
		if (*statement == ':')
			w->text[len++] = ' ';
	}
	w->text[len] = '\0';
	w->next = strtok_r(w->text, " \t\r", &w->save);
}

static char *rule_take_word(struct words *w)
{
	char *word = w->next;

	if (word)
		w->next = strtok_r(NULL, " \t\r", &w->save);
	return word ? word : (char *)"";
}

static bool take_if(struct words *w, const char *what)
{
	if (!w->next || strcmp(w->next, what) != 0)
		return false;
	rule_take_word(w);
	return true;
}

/* Parses a number of at least 1, which must be the whole word. */
static int rule_parse_number(const char *word, uint64_t *out)
{
	char *end;

	errno = 0;
	unsigned long long n = strtoull(word, &end, 10);
	if (end == word || *end || errno || !n || *word == '-')
		return -EINVAL;
	*out = n;
	return 0;
}

/* Parses "KEY N", if present. */
static int rule_parse_option(struct words *w, const char *key, uint32_t *out)
{
	uint64_t n;

	if (!take_if(w, key))
		return 0;
	if (rule_parse_number(rule_take_word(w), &n) < 0 || n > UINT32_MAX)
		return -EINVAL;
	*out = (uint32_t)n;
	return 0;
}

static const struct word *rule_find_word(const struct word *list, const char *name)
{
	for (; list->name; list++)
		if (strcmp(list->name, name) == 0)
			return list;
	return NULL;
}

/* Parses a time such as 20ms, 5us or 1s. */
static int parse_time(const char *word, uint64_t *usec)
{
	static const struct {
		const char *unit;
		uint64_t usec;
	} units[] = { { "us", 1 }, { "ms", 1000 }, { "s", 1000000 } };
	char *end;
	unsigned long long n = strtoull(word, &end, 10);

	for (unsigned i = 0; i < 3; i++)
		if (end != word && strcmp(end, units[i].unit) == 0 && n && n < 1000000000) {
			*usec = n * units[i].usec;
			return 0;
		}
	return -EINVAL;
}

static int parse_action(struct words *w, struct sv_rule *rule)
{
	const struct word *action = rule_find_word(actions, rule_take_word(w));
	uint64_t n = ENOMEM;
	int err = 0;

	if (!action || !(action->points & rule->point))
		return -EINVAL;
	rule->action = (enum sv_action)action->value;
	if (rule->action == SV_DELAY) {
		err = parse_time(rule_take_word(w), &rule->arg);
	} else if (rule->action == SV_FAIL) {
		if (w->next)
			err = rule_parse_number(rule_take_word(w), &n);
		rule->arg = n;
		if (n > 4095)
			err = -EINVAL;
	}
	return !err && w->next ? -EINVAL : err;
}

static int parse_counts(struct words *w, struct sv_rule *rule)
{
	uint32_t seed = 1, times = 0;
	uint64_t n;

	rule->nth = rule->every = 1;
	if (w->next && rule_parse_number(w->next, &n) == 0) {
		if (n > UINT32_MAX)
			return -EINVAL;
		rule->nth = (uint32_t)n;
		rule_take_word(w);
	}
	if (rule_parse_option(w, "qp", &rule->qp) < 0)
		return -EINVAL;
	bool repeated =
		w->next && (strcmp(w->next, "every") == 0 || strcmp(w->next, "chance") == 0);
	if (rule_parse_option(w, "every", &rule->every) < 0 ||
	    rule_parse_option(w, "times", &times) < 0)
		return -EINVAL;
	repeated = repeated || (w->next && strcmp(w->next, "chance") == 0);
	if (rule_parse_option(w, "chance", &rule->one_in) < 0 ||
	    rule_parse_option(w, "seed", &seed) < 0)
		return -EINVAL;
	/* Fires once unless the statement says otherwise. */
	rule->times = times || repeated ? times : 1;
	rule->random = seed * 0x9e3779b97f4a7c15u;
	return 0;
}

int sv_rule_parse(const char *statement, struct sv_rule *rule)
{
	struct words w;
	bool mine = true;

	words_init(&w, statement);
	if (take_if(&w, "in"))
		mine = strcmp(rule_take_word(&w), sv_fabric.name) == 0;
	if (!take_if(&w, "on"))
		return -EINVAL;
	const struct word *point = rule_find_word(points, rule_take_word(&w));
	if (!point)
		return -EINVAL;
	rule->point = (enum sv_point)point->value;
	if (parse_counts(&w, rule) < 0 || !take_if(&w, ":") || parse_action(&w, rule) < 0)
		return -EINVAL;
	return mine ? 0 : 1;
}
