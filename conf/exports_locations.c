/* SPDX-License-Identifier: BSD-2-Clause */
#include <arpa/inet.h>
#include <ctype.h>
#include <string.h>

#include "conf/exports.h"

/* Bytes up to the ':' that ends the hosts of a location. */
static size_t hosts_length(const char *hosts)
{
	bool inside = false; /* true in brackets */
	size_t n = 0;

	while (hosts[n] && (inside || hosts[n] != ':')) {
		if (hosts[n] == '[' || hosts[n] == ']')
			inside = hosts[n] == '[';
		n++;
	}
	return n;
}

bool exp_location_next(const char **list, struct exp_location *out)
{
	const char *path = *list;

	if (!*path)
		return false;
	out->path = path;
	out->path_len = strcspn(path, "@");
	out->hosts = path + out->path_len + 1;
	out->hosts_len = hosts_length(out->hosts);
	*list = out->hosts + out->hosts_len;
	*list += **list == ':';
	return true;
}

static bool exp_location_is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-._", text[i]))
			return false;
	return len > 0 && len < 256;
}

static bool exp_location_is_host(const char *text, size_t len)
{
	char copy[INET6_ADDRSTRLEN];
	struct in6_addr addr;

	if (len == 0 || *text != '[')
		return exp_location_is_name(text, len);
	if (len < 3 || text[len - 1] != ']' || len - 2 >= sizeof(copy))
		return false;
	memcpy(copy, text + 1, len - 2);
	copy[len - 2] = '\0';
	return inet_pton(AF_INET6, copy, &addr) == 1;
}

/* True if one of the hosts is not a valid host; *at moves to its position. */
static bool has_bad_host(const char *hosts, size_t len, size_t *at)
{
	for (size_t from = 0, n; from <= len; from += n + 1) {
		for (n = 0; from + n < len && hosts[from + n] != '+';)
			n++;
		if (!exp_location_is_host(hosts + from, n)) {
			*at += from;
			return true;
		}
	}
	return false;
}

static const char *path_error(const char *at)
{
	const size_t digits = strspn(at, "0123456789");

	if (*at == '/')
		return "a location has no host: write /PATH@HOST";
	if (digits > 0 && (at[digits] == '\0' || at[digits] == ':' || at[digits] == '+'))
		return "a location has no port, as Linux's client asks port 2049 in any case: "
		       "write /PATH@HOST";
	return "a location begins with an absolute path: write /PATH@HOST, with \":\" between "
	       "locations, \"+\" between hosts and an IPv6 address in brackets";
}

const char *exp_locations_error(const char *list, size_t *at)
{
	const char *next = list;
	struct exp_location l;

	*at = 0;
	if (!*list)
		return "there is no location: write /PATH@HOST";
	do {
		const size_t path = strcspn(next, "@:");

		*at = (size_t)(next - list);
		if (*next != '/' || next[path] != '@')
			return path_error(next);
		exp_location_next(&next, &l);
		*at = (size_t)(l.hosts - list);
		if (has_bad_host(l.hosts, l.hosts_len, at))
			return "this is neither a name nor an address: write /PATH@HOST, with "
			       "\"+\" between hosts and an IPv6 address in brackets";
	} while (*next);
	*at = (size_t)(next - 1 - list);
	return next[-1] == ':' ? path_error(next) : NULL;
}
