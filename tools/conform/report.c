/* SPDX-License-Identifier: BSD-2-Clause */
/* The output: text for people, TAP version 13, JSON. */
#include <string.h>

#include "tools/conform/run.h"

/* Column of the title, behind the paragraph. */
static const char *strength(const struct cf_case *c)
{
	return c->flags & CF_SHOULD ? ", SHOULD" : "";
}

static bool cf_test_differs(const struct cf_test *t)
{
	return t->verdict == CF_FAIL || t->verdict == CF_WARN;
}

static unsigned cf_report_done(const struct cf_report *r)
{
	return r->passed + r->failed + r->warned + r->skipped;
}

static void json_string(FILE *out, const char *s)
{
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if ((unsigned char)*s < 0x20)
			fprintf(out, "\\u%04x", *s);
		else
			putc(*s, out);
	}
	putc('"', out);
}

static void json_field(FILE *out, const char *name, const char *value, const char *end)
{
	fprintf(out, "\"%s\": ", name);
	json_string(out, value);
	fputs(end, out);
}

void cf_report_begin(struct cf_report *r, const struct cf_run *run, unsigned ncases)
{
	switch (r->format) {
	case CF_TEXT:
		fprintf(r->out, "# %s port %s, export %s; NFSv4: %s\n", run->host, run->port,
			run->export_path, run->has_nfs4 ? "yes" : run->why_no_nfs4);
		break;
	case CF_TAP:
		fprintf(r->out, "TAP version 13\n1..%u\n", ncases);
		break;
	case CF_JSON:
		fprintf(r->out, "{");
		json_field(r->out, "host", run->host, ", ");
		json_field(r->out, "port", run->port, ", ");
		json_field(r->out, "export", run->export_path, ", ");
		fprintf(r->out, "\"nfs4\": %s, \"cases\": [", run->has_nfs4 ? "true" : "false");
		break;
	}
}

static void text_case(struct cf_report *r, const struct cf_test *t)
{
	static const char *const word[] = { "ok", "FAIL", "skip", "WARN" };

	fprintf(r->out, "%s %u %s (%s%s): %s, %lld ms", word[t->verdict], t->number, t->c->id,
		t->c->paragraph, strength(t->c), t->c->title, (long long)t->took_ms);
	if (cf_test_differs(t))
		fprintf(r->out, "\n    expected: %s\n    seen:     %s", t->expected, t->seen);
	if (t->verdict == CF_SKIP)
		fprintf(r->out, ": %s", t->seen);
	fputc('\n', r->out);
}

static void tap_case(struct cf_report *r, const struct cf_test *t)
{
	fprintf(r->out, "%s %u - %u %s (%s%s) %s", cf_test_differs(t) ? "not ok" : "ok",
		cf_report_done(r), t->number, t->c->id, t->c->paragraph, strength(t->c),
		t->c->title);
	if (t->verdict == CF_WARN)
		fputs(" # TODO a SHOULD", r->out);
	if (t->verdict == CF_SKIP)
		fprintf(r->out, " # SKIP %s", t->seen);
	fputc('\n', r->out);
	if (!cf_test_differs(t))
		return;
	fputs("  ---\n  expected: ", r->out);
	json_string(r->out, t->expected);
	fputs("\n  seen: ", r->out);
	json_string(r->out, t->seen);
	fputs("\n  ...\n", r->out);
}

static void json_case(struct cf_report *r, const struct cf_group *g, const struct cf_test *t)
{
	static const char *const word[] = { "pass", "fail", "skip", "warn" };

	fprintf(r->out, "%s\n  {\"number\": %u, \"ms\": %lld, ", cf_report_done(r) > 1 ? "," : "",
		t->number, (long long)t->took_ms);
	json_field(r->out, "id", t->c->id, ", ");
	json_field(r->out, "group", g->name, ", ");
	json_field(r->out, "paragraph", t->c->paragraph, ", ");
	json_field(r->out, "strength", t->c->flags & CF_SHOULD ? "should" : "must", ", ");
	json_field(r->out, "title", t->c->title, ", ");
	json_field(r->out, "result", word[t->verdict], "");
	if (cf_test_differs(t)) {
		fputs(", ", r->out);
		json_field(r->out, "expected", t->expected, "");
	}
	if (t->verdict != CF_PASS) {
		fputs(", ", r->out);
		json_field(r->out, cf_test_differs(t) ? "seen" : "reason", t->seen, "");
	}
	fputs("}", r->out);
}

void cf_report_case(struct cf_report *r, const struct cf_group *g, const struct cf_test *t)
{
	switch (t->verdict) {
	case CF_PASS:
		r->passed++;
		break;
	case CF_FAIL:
		r->failed++;
		break;
	case CF_SKIP:
		r->skipped++;
		break;
	case CF_WARN:
		r->warned++;
		break;
	}
	if (r->format == CF_TEXT)
		text_case(r, t);
	else if (r->format == CF_TAP)
		tap_case(r, t);
	else
		json_case(r, g, t);
	fflush(r->out);
}

void cf_report_end(struct cf_report *r)
{
	if (r->format == CF_JSON)
		fprintf(r->out,
			"\n], \"passed\": %u, \"failed\": %u, \"warned\": %u, \"skipped\": %u}\n",
			r->passed, r->failed, r->warned, r->skipped);
	else
		fprintf(r->out, "%s%u passed, %u failed, %u warned, %u skipped\n",
			r->format == CF_TAP ? "# " : "", r->passed, r->failed, r->warned,
			r->skipped);
}

void cf_report_list(FILE *out, const char *only)
{
	for (const struct cf_group *const *g = cf_groups; *g; g++)
		for (unsigned i = 0; i < (*g)->ncases; i++)
			if (cf_selected(only, *g, i))
				fprintf(out, "%u\t%s\t%s%s\t%s\n", (*g)->first + i,
					(*g)->cases[i].id, (*g)->cases[i].paragraph,
					strength(&(*g)->cases[i]), (*g)->cases[i].title);
}
