/* SPDX-License-Identifier: BSD-2-Clause */
#include "admin/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "lib/util.h"
#include "lib/utf8.h"

/* Bounds of the buckets, as powers of two of a nanosecond: finer where file systems answer. */
static const unsigned char bounds[] = { 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
					22, 23, 24, 25, 26, 28, 30, 32, 34 };

int metrics_begin(struct metrics *m, enum metrics_format format)
{
	*m = (struct metrics){ .format = format };
	m->out = open_memstream(&m->text, &m->len);
	return m->out ? 0 : -ENOMEM;
}

/* The help texts are constants without characters that have to be escaped. */
static void put_comment(const struct metrics *m, const char *what, const char *suffix,
			const char *text)
{
	fprintf(m->out, "# %s %s%s %s\n", what, m->family->name, suffix, text);
}

void metrics_family(struct metrics *m, const struct metrics_family *f)
{
	static const char *const words[] = {
		[METRICS_COUNTER] = "counter",
		[METRICS_GAUGE] = "gauge",
		[METRICS_HISTOGRAM] = "histogram",
		[METRICS_INFO] = "info",
	};
	const bool open = m->format == METRICS_OPENMETRICS;
	const char *suffix = "", *type = words[f->type];

	if (!open && f->type == METRICS_COUNTER)
		suffix = "_total";
	if (!open && f->type == METRICS_INFO) {
		suffix = "_info";
		type = "gauge";
	}
	m->family = f;
	put_comment(m, "HELP", suffix, f->help);
	put_comment(m, "TYPE", suffix, type);
	if (open && f->unit)
		put_comment(m, "UNIT", suffix, f->unit);
}

static void metrics_put_text(FILE *out, const char *text)
{
	for (size_t len; *text; text += len ? len : 1) {
		len = rn_utf8_printable(text);
		if (len == 0)
			fprintf(out, "\\\\x%02x", (unsigned char)*text);
		else if (*text == '"' || *text == '\\')
			fprintf(out, "\\%c", *text);
		else
			fwrite(text, 1, len, out);
	}
}

/* The name and the labels of a value, up to the value. le: the bound of a bucket, or NULL. */
static void put_labels(const struct metrics *m, const char *suffix, const char *le, va_list labels)
{
	const char *join = "{", *name;
	va_list ap;

	fprintf(m->out, "%s%s", m->family->name, suffix);
	va_copy(ap, labels);
	while ((name = va_arg(ap, const char *))) {
		fprintf(m->out, "%s%s=\"", join, name);
		metrics_put_text(m->out, va_arg(ap, const char *));
		fputc('"', m->out);
		join = ",";
	}
	va_end(ap);
	if (le)
		fprintf(m->out, "%sle=\"%s\"", join, le);
	if (le || *join == ',')
		fputc('}', m->out);
	fputc(' ', m->out);
}

static const char *suffix_of(const struct metrics *m)
{
	switch (m->family->type) {
	case METRICS_COUNTER:
		return "_total";
	case METRICS_INFO:
		return "_info";
	case METRICS_GAUGE:
	case METRICS_HISTOGRAM:
		break;
	}
	return "";
}

static void put_nano(const struct metrics *m, uint64_t value)
{
	fprintf(m->out, "%" PRIu64 ".%09" PRIu64 "\n", value / 1000000000, value % 1000000000);
}

void metrics_value(struct metrics *m, uint64_t value, ...)
{
	va_list labels;

	va_start(labels, value);
	put_labels(m, suffix_of(m), NULL, labels);
	va_end(labels);
	fprintf(m->out, "%" PRIu64 "\n", value);
}

void metrics_nano(struct metrics *m, uint64_t value, ...)
{
	va_list labels;

	va_start(labels, value);
	put_labels(m, suffix_of(m), NULL, labels);
	va_end(labels);
	put_nano(m, value);
}

void metrics_durations(struct metrics *m, const struct rn_durations *d, ...)
{
	char le[32];
	va_list labels;

	va_start(labels, d);
	for (unsigned i = 0; i < rn_array_size(bounds); i++) {
		const uint64_t ns = UINT64_C(1) << bounds[i];

		snprintf(le, sizeof(le), "%.12g", (double)ns / 1e9);
		put_labels(m, "_bucket", le, labels);
		fprintf(m->out, "%" PRIu64 "\n", rn_durations_within(d, ns));
	}
	put_labels(m, "_bucket", "+Inf", labels);
	fprintf(m->out, "%" PRIu64 "\n", d->count);
	put_labels(m, "_sum", NULL, labels);
	put_nano(m, d->sum_ns);
	put_labels(m, "_count", NULL, labels);
	fprintf(m->out, "%" PRIu64 "\n", d->count);
	va_end(labels);
}

char *metrics_end(struct metrics *m, size_t *len)
{
	bool failed;

	if (m->format == METRICS_OPENMETRICS)
		fputs("# EOF\n", m->out);
	failed = ferror(m->out) != 0;
	failed |= fclose(m->out) != 0;
	if (failed) {
		free(m->text);
		return NULL;
	}
	*len = m->len;
	return m->text;
}

const char *metrics_content_type(enum metrics_format format)
{
	return format == METRICS_OPENMETRICS
		       ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
		       : "text/plain; version=0.0.4; charset=utf-8";
}
