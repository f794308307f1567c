/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of the settings: text to field and back. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/diag.h"
#include "conf/settings_schema.h"

#define NFS_PORT 2049u

struct unit {
	char letter;
	uint64_t factor;
};

/* Largest first, for printing. */
static const struct unit size_units[] = {
	{ 'T', 1ull << 40 }, { 'G', 1ull << 30 }, { 'M', 1ull << 20 }, { 'K', 1ull << 10 }, { 0, 1 }
};
static const struct unit second_units[] = {
	{ 'd', 86400 }, { 'h', 3600 }, { 'm', 60 }, { 's', 1 }
};
static const struct unit plain_units[] = { { 0, 1 } };

static const struct unit *units_of(enum cfg_type type, unsigned *n)
{
	switch (type) {
	case CFG_SIZE:
		*n = sizeof(size_units) / sizeof(size_units[0]);
		return size_units;
	case CFG_SECONDS:
		*n = sizeof(second_units) / sizeof(second_units[0]);
		return second_units;
	default:
		*n = 1;
		return plain_units;
	}
}

static const void *field_of(const struct cfg_row *row, const struct cfg_settings *settings)
{
	return (const char *)settings + row->offset;
}

static void *field_for(const struct cfg_row *row, struct cfg_settings *settings)
{
	return (char *)settings + row->offset;
}

static void print_number(enum cfg_type type, uint64_t value, char *text, size_t size)
{
	unsigned n;
	const struct unit *units = units_of(type, &n);

	for (unsigned i = 0; i < n; i++) {
		const char letter[2] = { units[i].letter };

		if (value ? value % units[i].factor : i + 1 < n)
			continue;
		/* Zero has no unit. */
		snprintf(text, size, "%llu%s", (unsigned long long)(value / units[i].factor),
			 value ? letter : "");
		return;
	}
}

static void range_of_words(const struct cfg_row *row, char text[CFG_TEXT_MAX])
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; row->words[i]; i++) {
		const char *join = !i ? "" : row->words[i + 1] ? ", " : " or ";

		len += (size_t)snprintf(text + len, CFG_TEXT_MAX - len, "%s%s", join,
					row->words[i]);
		if (len >= CFG_TEXT_MAX)
			return;
	}
}

static void range_of_number(const struct cfg_row *row, char text[CFG_TEXT_MAX])
{
	char min[32], max[32], step[32] = "";

	print_number(row->type, row->min, min, sizeof(min));
	print_number(row->type, row->max, max, sizeof(max));
	if (row->step)
		print_number(row->type, row->step, step, sizeof(step));
	snprintf(text, CFG_TEXT_MAX, "%s%s to %s%s%s", row->zero ? "0, or " : "", min, max,
		 row->step ? " in steps of " : "", step);
}

static void range_of_path(const struct cfg_row *row, char text[CFG_TEXT_MAX])
{
	char most[48] = "";

	if (row->max)
		snprintf(most, sizeof(most), " of at most %llu octets",
			 (unsigned long long)row->max);
	snprintf(text, CFG_TEXT_MAX, "an absolute path%s%s", most, row->zero ? ", or nothing" : "");
}

void cfg_value_range(const struct cfg_row *row, char text[CFG_TEXT_MAX])
{
	switch (row->type) {
	case CFG_BOOL:
		snprintf(text, CFG_TEXT_MAX, "yes or no");
		break;
	case CFG_UINT:
	case CFG_SIZE:
	case CFG_SECONDS:
		range_of_number(row, text);
		break;
	case CFG_PATH:
		range_of_path(row, text);
		break;
	case CFG_NAME:
		snprintf(text, CFG_TEXT_MAX, "a name without blanks of at most %llu octets%s",
			 (unsigned long long)row->max, row->zero ? ", or nothing" : "");
		break;
	case CFG_ENUM:
		range_of_words(row, text);
		break;
	case CFG_SERVERS:
		snprintf(text, CFG_TEXT_MAX,
			 "up to %d IPv4 or IPv6 addresses with commas between, each with :PORT if "
			 "that is not %u, and an IPv6 address then in brackets",
			 CFG_MAX_ADDRS, NFS_PORT);
		break;
	case CFG_PORTS:
		snprintf(text, CFG_TEXT_MAX,
			 "up to %d of ADDRESS:PORT, with commas between; an IPv6 address is in "
			 "brackets",
			 CFG_MAX_ADDRS);
		break;
	case CFG_ADDRS:
		snprintf(text, CFG_TEXT_MAX, "up to %d IPv4 or IPv6 addresses, with commas between",
			 CFG_MAX_ADDRS);
		break;
	}
}

static int cfg_value_refuse(const struct cfg_row *row, const char *text, char wrong[CFG_TEXT_MAX])
{
	char range[CFG_TEXT_MAX];
	const char *hint = strchr(text, '#') ? "; a comment after a value begins with \" ;\"" : "";

	cfg_value_range(row, range);
	snprintf(wrong, CFG_TEXT_MAX, "\"%.60s\" is not right: %s.%s takes %.110s%s", text,
		 row->section, row->name, range, hint);
	return -EINVAL;
}

static int parse_bool(const struct cfg_row *row, bool *field, const char *text,
		      char wrong[CFG_TEXT_MAX])
{
	static const char *const yes[] = { "yes", "true", "on", "1" };
	static const char *const no[] = { "no", "false", "off", "0" };

	for (unsigned i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (!strcasecmp(text, yes[i]) || !strcasecmp(text, no[i])) {
			*field = !strcasecmp(text, yes[i]);
			return 0;
		}
	}
	return cfg_value_refuse(row, text, wrong);
}

static int parse_number(const struct cfg_row *row, uint64_t *field, const char *text,
			char wrong[CFG_TEXT_MAX])
{
	uint64_t factor = 1;
	uint64_t value;
	unsigned n;
	const struct unit *units = units_of(row->type, &n);
	char *end;

	if (!isdigit((unsigned char)*text))
		return cfg_value_refuse(row, text, wrong);
	errno = 0;
	value = strtoull(text, &end, 10);
	if (errno || (end[0] && end[1]))
		return cfg_value_refuse(row, text, wrong);
	if (*end) {
		unsigned i = 0;

		while (i < n && (!units[i].letter ||
				 tolower(units[i].letter) != tolower((unsigned char)*end)))
			i++;
		if (i == n)
			return cfg_value_refuse(row, text, wrong);
		factor = units[i].factor;
	}
	if (__builtin_mul_overflow(value, factor, &value))
		return cfg_value_refuse(row, text, wrong);
	if (!(row->zero && !value) && (value < row->min || value > row->max))
		return cfg_value_refuse(row, text, wrong);
	if (row->step && value % row->step)
		return cfg_value_refuse(row, text, wrong);
	*field = value;
	return 0;
}

static int cfg_value_parse_path(const struct cfg_row *row, char **field, const char *text,
				char wrong[CFG_TEXT_MAX])
{
	char *copy;

	if (*text != '/' && !(row->zero && !*text))
		return cfg_value_refuse(row, text, wrong);
	if (row->max && strlen(text) > row->max) {
		snprintf(wrong, CFG_TEXT_MAX, "%s.%s: the path has %zu octets, and may have %llu",
			 row->section, row->name, strlen(text), (unsigned long long)row->max);
		return -EINVAL;
	}
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

static int parse_enum(const struct cfg_row *row, int *field, const char *text,
		      char wrong[CFG_TEXT_MAX])
{
	for (int i = 0; row->words[i]; i++) {
		if (!strcasecmp(text, row->words[i])) {
			*field = i;
			return 0;
		}
	}
	return cfg_value_refuse(row, text, wrong);
}

static bool parse_addr(const char *text, struct sockaddr_storage *addr)
{
	struct sockaddr_in *in = (struct sockaddr_in *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)addr;
	char copy[INET6_ADDRSTRLEN + 2];
	size_t len = strlen(text);

	memset(addr, 0, sizeof(*addr));
	if (len >= sizeof(copy))
		return false;
	memcpy(copy, text, len + 1);
	if (len > 2 && copy[0] == '[' && copy[len - 1] == ']') {
		copy[len - 1] = '\0';
		in6->sin6_family = AF_INET6;
		return inet_pton(AF_INET6, copy + 1, &in6->sin6_addr) == 1;
	}
	if (inet_pton(AF_INET, copy, &in->sin_addr) == 1) {
		in->sin_family = AF_INET;
		return true;
	}
	in6->sin6_family = AF_INET6;
	return inet_pton(AF_INET6, copy, &in6->sin6_addr) == 1;
}

/* Takes a port off the end of text: behind the bracket of an IPv6 address, or the only colon. Without one it is
 * usual. 0: it is none. */
static in_port_t cfg_value_take_port(char *text, unsigned usual)
{
	char *colon = strrchr(text, ':');
	unsigned long port;
	char *end;

	if (!colon || (text[0] == '[' ? colon[-1] != ']' : strchr(text, ':') != colon))
		return htons((uint16_t)usual);
	if (!isdigit((unsigned char)colon[1]))
		return 0;
	port = strtoul(colon + 1, &end, 10);
	if (*end || port > UINT16_MAX)
		return 0;
	*colon = '\0';
	return htons((uint16_t)port);
}

static bool parse_with_port(const char *text, unsigned usual, struct sockaddr_storage *addr)
{
	char copy[CFG_VALUE_MAX];
	in_port_t port;

	snprintf(copy, sizeof(copy), "%s", text);
	port = cfg_value_take_port(copy, usual);
	if (!port || !parse_addr(copy, addr))
		return false;
	if (addr->ss_family == AF_INET)
		((struct sockaddr_in *)addr)->sin_port = port;
	else
		((struct sockaddr_in6 *)addr)->sin6_port = port;
	return true;
}

static bool parse_element(enum cfg_type type, const char *text, struct sockaddr_storage *addr)
{
	if (type == CFG_ADDRS)
		return parse_addr(text, addr);
	return parse_with_port(text, type == CFG_SERVERS ? NFS_PORT : 0, addr);
}

static int parse_addrs(const struct cfg_row *row, struct cfg_addrs *field, const char *text,
		       char wrong[CFG_TEXT_MAX])
{
	char copy[CFG_VALUE_MAX];
	char *next = copy;
	char *word;

	if (strlen(text) >= sizeof(copy))
		return cfg_value_refuse(row, text, wrong);
	strcpy(copy, text);
	while ((word = strsep(&next, ", \t"))) {
		if (!*word)
			continue;
		if (field->n == CFG_MAX_ADDRS ||
		    !parse_element(row->type, word, &field->addrs[field->n]))
			return cfg_value_refuse(row, word, wrong);
		field->n++;
	}
	return 0;
}

static int cfg_value_parse_name(const struct cfg_row *row, char **field, const char *text,
				char wrong[CFG_TEXT_MAX])
{
	char *copy;

	if ((!*text && !row->zero) || strlen(text) > row->max || strpbrk(text, " \t"))
		return cfg_value_refuse(row, text, wrong);
	copy = strdup(text);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

int cfg_value_parse(const struct cfg_row *row, struct cfg_settings *settings, const char *text,
		    char wrong[CFG_TEXT_MAX])
{
	void *field = field_for(row, settings);

	switch (row->type) {
	case CFG_BOOL:
		return parse_bool(row, field, text, wrong);
	case CFG_UINT:
	case CFG_SIZE:
	case CFG_SECONDS:
		return parse_number(row, field, text, wrong);
	case CFG_PATH:
		return cfg_value_parse_path(row, field, text, wrong);
	case CFG_NAME:
		return cfg_value_parse_name(row, field, text, wrong);
	case CFG_ENUM:
		return parse_enum(row, field, text, wrong);
	case CFG_ADDRS:
	case CFG_SERVERS:
	case CFG_PORTS:
		return parse_addrs(row, field, text, wrong);
	}
	return -EINVAL;
}

void cfg_value_clear(const struct cfg_row *row, struct cfg_settings *settings)
{
	char **path = field_for(row, settings);
	struct cfg_addrs *addrs = field_for(row, settings);

	if (row->type == CFG_PATH || row->type == CFG_NAME) {
		free(*path);
		*path = NULL;
	} else if (cfg_is_list(row)) {
		addrs->n = 0;
	}
}

/* A port that is the usual one is left out. */
static void print_addr(const struct sockaddr_storage *ss, unsigned usual, char *text, size_t size)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)ss;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)ss;
	const bool v4 = ss->ss_family == AF_INET;
	const unsigned port = ntohs(v4 ? in->sin_port : in6->sin6_port);
	const void *bytes = v4 ? (const void *)&in->sin_addr : &in6->sin6_addr;
	char addr[INET6_ADDRSTRLEN] = "";

	inet_ntop(ss->ss_family, bytes, addr, sizeof(addr));
	if (port == 0 || port == usual)
		snprintf(text, size, "%s", addr);
	else
		snprintf(text, size, v4 ? "%s:%u" : "[%s]:%u", addr, port);
}

static void print_addrs(const struct cfg_addrs *addrs, unsigned usual, char text[CFG_VALUE_MAX])
{
	size_t len = 0;

	text[0] = '\0';
	for (unsigned i = 0; i < addrs->n; i++) {
		char addr[INET6_ADDRSTRLEN + sizeof("[]:65535")];

		print_addr(&addrs->addrs[i], usual, addr, sizeof(addr));
		len += (size_t)snprintf(text + len, CFG_VALUE_MAX - len, "%s%s", i ? ", " : "",
					addr);
	}
}

void cfg_value_print(const struct cfg_row *row, const struct cfg_settings *settings,
		     char text[CFG_VALUE_MAX])
{
	const void *field = field_of(row, settings);
	const char *path;

	switch (row->type) {
	case CFG_BOOL:
		snprintf(text, CFG_VALUE_MAX, "%s", *(const bool *)field ? "yes" : "no");
		break;
	case CFG_UINT:
	case CFG_SIZE:
	case CFG_SECONDS:
		print_number(row->type, *(const uint64_t *)field, text, CFG_VALUE_MAX);
		break;
	case CFG_PATH:
	case CFG_NAME:
		path = *(char *const *)field;
		snprintf(text, CFG_VALUE_MAX, "%s", path ? path : "");
		break;
	case CFG_ENUM:
		snprintf(text, CFG_VALUE_MAX, "%s", row->words[*(const int *)field]);
		break;
	case CFG_ADDRS:
	case CFG_SERVERS:
	case CFG_PORTS:
		print_addrs(field, row->type == CFG_SERVERS ? NFS_PORT : 0, text);
		break;
	}
}
