/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ganesha/ganesha_clients.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define SPEC_MAX 1024
#define BITS 128u
#define MAPPED 96u /* bits before an IPv4 address */

static bool ganesha_client_set_address(struct ganesha_client *c, const char *text)
{
	struct in_addr in4;

	if (inet_pton(AF_INET6, text, c->address) == 1)
		return true;
	if (inet_pton(AF_INET, text, &in4) != 1)
		return false;
	memset(c->address, 0, 10);
	memset(c->address + 10, 0xff, 2);
	memcpy(c->address + 12, &in4, sizeof(in4));
	return true;
}

/* ADDRESS or ADDRESS/BITS */
static bool parse_address(struct ganesha_client *c)
{
	const size_t len = strcspn(c->spec, "/");
	const bool v6 = memchr(c->spec, ':', len) != NULL;
	char text[INET6_ADDRSTRLEN], *end;

	if (len >= sizeof(text))
		return false;
	memcpy(text, c->spec, len);
	text[len] = '\0';
	c->prefix = BITS;
	if (!ganesha_client_set_address(c, text))
		return false;
	if (!c->spec[len])
		return true;
	const unsigned long bits = strtoul(c->spec + len + 1, &end, 10);

	c->prefix = (unsigned)bits + (v6 ? 0 : MAPPED);
	return c->spec[len + 1] >= '0' && c->spec[len + 1] <= '9' && !*end &&
	       bits <= (v6 ? BITS : BITS - MAPPED);
}

static bool ganesha_client_is_name(const char *text, const char *more)
{
	for (const char *s = text; *s; s++) {
		const bool plain = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') ||
				   (*s >= '0' && *s <= '9');

		if (!plain && !strchr(more, *s))
			return false;
	}
	return *text && *text != '-';
}

#define CLIENT                                                                                     \
	"a name, an address, a network such as 192.0.2.0/24, a pattern such as *.example.org, a "  \
	"netgroup such as @lab, or * is expected"

/*
 * nfs-ganesha holds a pattern against the text of the address first, and then against the name; exports(5) has it for names
 * alone. A pattern that can match an address has the letters of hexadecimal numbers only, and none of them behind a dot: dots
 * are in IPv4 addresses and at the end of mapped ones. Octets within brackets are not looked at.
 */
static bool can_match_address(const char *pattern)
{
	bool dot = false;

	for (const char *s = pattern; *s; s++) {
		if (*s == '[') {
			s += strcspn(s, "]");
		} else if (*s == '.') {
			dot = true;
		} else if (!strchr("*?", *s) && !(*s >= '0' && *s <= '9') &&
			   (dot || *s < 'a' || *s > 'f')) {
			return false;
		}
	}
	return true;
}

/* True if each bracket has its end, and something within. */
static bool brackets_end(const char *pattern)
{
	for (const char *s = pattern; (s += strcspn(s, "[]")), *s; s++) {
		const size_t empty = s[0] == '[' && s[1] == '!' ? 2 : 1, len = strcspn(s, "]");

		if (*s == ']' || !s[len] || len <= empty)
			return false;
		s += len;
	}
	return true;
}

/* True if the name's last label is a number: such a text is a short or a wrong address, and no host has it as its name. */
static bool is_number(const char *name)
{
	const char *dot = strrchr(name, '.');
	const char *label = dot ? dot + 1 : name;

	return *label >= '0' && *label <= '9' &&
	       (!label[strspn(label, "0123456789")] || strncasecmp(label, "0x", 2) == 0);
}

/* An address without a length, a name or a pattern. */
static const char *classify_host(struct ganesha_client *c)
{
	c->kind = GANESHA_HOST;
	if (c->has_address)
		return NULL;
	if (!strpbrk(c->spec, "*?["))
		return ganesha_client_is_name(c->spec, "._-") && !is_number(c->spec) ? NULL
										     : CLIENT;
	c->kind = GANESHA_PATTERN;
	if (!ganesha_client_is_name(c->spec, "._-*?[]!") || !brackets_end(c->spec))
		return CLIENT;
	return can_match_address(c->spec)
		       ? "nfs-ganesha holds this pattern against addresses, too, and exports(5) "
			 "against names alone: name the network, such as 192.0.2.0/24"
		       : NULL;
}

/* Why it cannot be converted, or NULL. In nfs-ganesha 0.0.0.0 is another word for *. */
static const char *classify(struct ganesha_client *c)
{
	if (strcmp(c->spec, "*") == 0 || strcmp(c->spec, "0.0.0.0") == 0) {
		c->kind = GANESHA_ANY;
		c->spec = "*";
		return NULL;
	}
	if (c->spec[0] == '@') {
		c->kind = GANESHA_NETGROUP;
		return ganesha_client_is_name(c->spec + 1, "._-") ? NULL : CLIENT;
	}
	c->has_address = parse_address(c);
	if (!strchr(c->spec, '/'))
		return classify_host(c);
	c->kind = GANESHA_NETWORK;
	return c->has_address ? NULL : CLIENT;
}

int ganesha_clients_add(struct ganesha_said *said, struct ganesha_clients *all, const char *spec,
			unsigned line, const struct ganesha_rights *rights)
{
	struct ganesha_client c = { .spec = spec, .line = line, .rights = *rights };
	const size_t room = all->n < all->room ? all->room : 2 * all->room + 8;
	struct ganesha_client *more = all->client;

	const char *wrong = strlen(spec) > SPEC_MAX ? CLIENT : classify(&c);

	if (wrong) {
		ganesha_say(said, GANESHA_ERROR, line, "Clients: %s: %s", spec, wrong);
		return -EINVAL;
	}
	if (room != all->room)
		more = realloc(all->client, room * sizeof(*more));
	if (!more)
		return -ENOMEM;
	all->client = more;
	all->room = room;
	all->client[all->n++] = c;
	return 0;
}

void ganesha_clients_free(struct ganesha_clients *all)
{
	free(all->client);
	*all = (struct ganesha_clients){ .n = 0 };
}

/* True if the first bits are the same. */
static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	const unsigned bytes = bits / 8;
	const uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

	return memcmp(a, b, bytes) == 0 && (bits % 8 == 0 || ((a[bytes] ^ b[bytes]) & mask) == 0);
}

/* True if each machine that is b is also a. */
static bool ganesha_client_covers(const struct ganesha_client *a, const struct ganesha_client *b)
{
	if (a->kind == GANESHA_NETGROUP)
		return strcmp(a->spec, b->spec) == 0;
	if (a->kind == GANESHA_ANY || strcasecmp(a->spec, b->spec) == 0)
		return true;
	return a->has_address && b->has_address && a->prefix <= b->prefix &&
	       same_bits(a->address, b->address, a->prefix);
}

/* False if no machine is both. */
static bool overlap(const struct ganesha_client *a, const struct ganesha_client *b)
{
	return !a->has_address || !b->has_address || ganesha_client_covers(a, b) ||
	       ganesha_client_covers(b, a);
}

static bool same_rights(const struct ganesha_rights *a, const struct ganesha_rights *b)
{
	char *x = ganesha_rights_options(a), *y = ganesha_rights_options(b);
	const bool same = x && y && strcmp(x, y) == 0;

	free(x);
	free(y);
	return same;
}

static void mark_covered(struct ganesha_said *said, struct ganesha_clients *all, size_t at)
{
	struct ganesha_client *c = &all->client[at];

	for (size_t i = 0; i < at && !c->never; i++) {
		if (all->client[i].never || !ganesha_client_covers(&all->client[i], c))
			continue;
		c->never = true;
		ganesha_say(said, GANESHA_NOTE, c->line,
			    "%s is left out: nfs-ganesha never comes to it, as %s in line %u is "
			    "before it",
			    c->spec, all->client[i].spec, all->client[i].line);
	}
}

/* The first stands before the second. False: there is no line of exports(5) that does the same. */
static bool ganesha_clients_check_pair(struct ganesha_said *said,
				       const struct ganesha_client *first,
				       const struct ganesha_client *second)
{
	const bool denied = ganesha_rights_none(&first->rights);

	if (ganesha_rights_none(&second->rights) || !overlap(first, second))
		return true;
	if (denied) {
		ganesha_say(said, GANESHA_ERROR, first->line,
			    "%s has no access, and would have it here by %s in line %u: name those "
			    "who may use the export in the place of %s",
			    first->spec, second->spec, second->line, second->spec);
		return false;
	}
	if (second->kind >= first->kind || same_rights(&first->rights, &second->rights))
		return true;
	ganesha_say(said, GANESHA_ERROR, first->line,
		    "%s counts before %s in line %u for a machine that is both, and here it is the "
		    "other way round: give both the same rights, or name such machines one by one",
		    first->spec, second->spec, second->line);
	return false;
}

bool ganesha_clients_check(struct ganesha_said *said, struct ganesha_clients *all)
{
	bool good = true;

	for (size_t i = 0; i < all->n; i++)
		mark_covered(said, all, i);
	for (size_t i = 0; i < all->n; i++) {
		for (size_t j = i + 1; j < all->n; j++) {
			if (!all->client[i].never && !all->client[j].never)
				good &= ganesha_clients_check_pair(said, &all->client[i],
								   &all->client[j]);
		}
	}
	return good;
}
