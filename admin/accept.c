/* SPDX-License-Identifier: BSD-2-Clause */
/* Choice of the format by the Accept header (RFC 9110 section 12.5.1). */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "admin/metrics.h"

#define OPENMETRICS "application/openmetrics-text"
#define BLANKS " \t"

/* One element of the list, such as `text/plain;version=0.0.4;q=0.3`. */
struct range {
	const char *text;
	size_t len;
};

/* Takes the next part off, up to the separator. False: there is none. */
static bool next_part(const char **from, char separator, struct range *part)
{
	const char *at = *from, *end;

	if (!at)
		return false;
	at += strspn(at, BLANKS);
	end = strchrnul(at, separator);
	part->text = at;
	part->len = (size_t)(end - at);
	while (part->len > 0 && strchr(BLANKS, at[part->len - 1]))
		part->len--;
	*from = *end ? end + 1 : NULL;
	return true;
}

static bool accept_range_is(const struct range *r, const char *word)
{
	return r->len == strlen(word) && strncasecmp(r->text, word, r->len) == 0;
}

static bool begins(const struct range *r, const char *word)
{
	return r->len >= strlen(word) && strncasecmp(r->text, word, strlen(word)) == 0;
}

/* Thousandths that an element of the list weighs; 0: it does not mean OpenMetrics, or not that version. */
static unsigned weight_of(const struct range *element)
{
	char copy[256];
	const char *rest = copy;
	struct range part;
	double weight = 1;

	if (element->len >= sizeof(copy))
		return 0;
	memcpy(copy, element->text, element->len);
	copy[element->len] = '\0';
	next_part(&rest, ';', &part);
	if (!accept_range_is(&part, OPENMETRICS))
		return 0;
	while (next_part(&rest, ';', &part)) {
		if (begins(&part, "version=") && !accept_range_is(&part, "version=1.0.0"))
			return 0;
		if (begins(&part, "q="))
			weight = strtod(part.text + 2, NULL);
	}
	return weight > 0 && weight <= 1 ? (unsigned)(weight * 1000) : 0;
}

/* OpenMetrics goes to each client that accepts it, since none prefers the older format. */
enum metrics_format metrics_accepted(const char *accept)
{
	struct range element;

	while (next_part(&accept, ',', &element))
		if (weight_of(&element) > 0)
			return METRICS_OPENMETRICS;
	return METRICS_PROMETHEUS;
}
