/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients of an export: addresses, and the text before the options. */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "conf/exports_private.h"

static void addr_set(struct exp_addr *addr, const void *bytes, uint8_t len)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	memset(addr, 0, sizeof(*addr));
	if (len == 16 && !memcmp(bytes, mapped, sizeof(mapped))) {
		bytes = (const uint8_t *)bytes + sizeof(mapped);
		len = 4;
	}
	memcpy(addr->bytes, bytes, len);
	addr->len = len;
}

bool exp_addr_from_sockaddr(const struct sockaddr *sa, struct exp_addr *addr)
{
	struct sockaddr_in in;
	struct sockaddr_in6 in6;

	switch (sa->sa_family) {
	case AF_INET:
		memcpy(&in, sa, sizeof(in));
		addr_set(addr, &in.sin_addr, 4);
		return true;
	case AF_INET6:
		memcpy(&in6, sa, sizeof(in6));
		addr_set(addr, &in6.sin6_addr, 16);
		return true;
	default:
		return false;
	}
}

bool exp_addr_from_text(const char *text, struct exp_addr *addr)
{
	uint8_t bytes[16];

	if (inet_pton(AF_INET, text, bytes) == 1)
		addr_set(addr, bytes, 4);
	else if (inet_pton(AF_INET6, text, bytes) == 1)
		addr_set(addr, bytes, 16);
	else
		return false;
	return true;
}

void exp_addr_to_text(const struct exp_addr *addr, char text[EXP_ADDR_STRLEN])
{
	text[0] = '\0';
	inet_ntop(addr->len == 4 ? AF_INET : AF_INET6, addr->bytes, text, EXP_ADDR_STRLEN);
}

void exp_addr_to_sockaddr(const struct exp_addr *addr, struct sockaddr_storage *sa)
{
	memset(sa, 0, sizeof(*sa));
	if (addr->len == 4) {
		struct sockaddr_in *in = (struct sockaddr_in *)sa;

		in->sin_family = AF_INET;
		memcpy(&in->sin_addr, addr->bytes, 4);
	} else {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)sa;

		in6->sin6_family = AF_INET6;
		memcpy(&in6->sin6_addr, addr->bytes, 16);
	}
}

bool exp_addr_equal(const struct exp_addr *a, const struct exp_addr *b)
{
	return a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

bool exp_addr_within(const struct exp_addr *addr, const struct exp_addr *net, unsigned prefix)
{
	unsigned whole = prefix / 8;
	unsigned rest = prefix % 8;

	if (addr->len != net->len || prefix > addr->len * 8u)
		return false;
	if (memcmp(addr->bytes, net->bytes, whole))
		return false;
	return !rest || !((addr->bytes[whole] ^ net->bytes[whole]) >> (8 - rest));
}

/* Clear the bits past the prefix; true when there were any. */
static bool exp_addr_mask(struct exp_addr *addr, unsigned prefix)
{
	bool cleared = false;

	for (unsigned i = 0; i < addr->len; i++) {
		unsigned keep = prefix >= (i + 1) * 8 ? 8 : prefix > i * 8 ? prefix - i * 8 : 0;
		uint8_t mask = (uint8_t)(0xff00u >> keep);

		cleared |= addr->bytes[i] & (uint8_t)~mask;
		addr->bytes[i] &= mask;
	}
	return cleared;
}

enum { NAME_LIMIT = 255 };

struct client_ctx {
	struct exp_client *client;
	struct cfg_diags *diags;
	const struct exp_source *src;
	const struct exp_word *word;
};

static int fail_at(struct client_ctx *ctx, size_t i, const char *fmt, const char *arg)
{
	cfg_diag_add(ctx->diags, exp_word_position(ctx->src, ctx->word, i), CFG_ERROR, fmt, arg);
	return -EINVAL;
}

static int set_name(struct client_ctx *ctx, enum exp_client_kind kind, const char *name)
{
	ctx->client->kind = kind;
	ctx->client->name = strdup(name);
	return ctx->client->name ? 0 : -ENOMEM;
}

static void lower(char *text)
{
	for (; *text; text++)
		*text = (char)tolower((unsigned char)*text);
}

/* A dotted mask to its length; -1 when its ones are not in front. */
static int mask_bits(const struct exp_addr *mask)
{
	struct exp_addr copy = *mask;
	unsigned bits = 0;

	while (bits < 32 && (mask->bytes[bits / 8] & (0x80 >> bits % 8)))
		bits++;
	return exp_addr_mask(&copy, bits) ? -1 : (int)bits;
}

static int parse_prefix(struct client_ctx *ctx, const char *text, size_t at)
{
	struct exp_client *client = ctx->client;
	unsigned limit = client->addr.len * 8u;
	struct exp_addr mask;
	char *end;
	long bits;

	if (client->addr.len == 4 && exp_addr_from_text(text, &mask) && mask.len == 4) {
		bits = mask_bits(&mask);
		if (bits < 0)
			return fail_at(ctx, at,
				       "the netmask \"%s\" is not contiguous: its ones come first",
				       text);
		client->prefix = (uint8_t)bits;
		return 0;
	}
	bits = strtol(text, &end, 10);
	if (*end || !isdigit((unsigned char)*text) || strlen(text) > 3 || bits > (long)limit)
		return fail_at(ctx, at,
			       limit == 32 ? "bad netmask \"%s\": give 0 to 32, or one like "
					     "255.255.255.0"
					   : "bad prefix length \"%s\": give 0 to 128",
			       text);
	client->prefix = (uint8_t)bits;
	return 0;
}

static int parse_network(struct client_ctx *ctx, char *text, char *slash)
{
	struct exp_client *client = ctx->client;
	char *base = text;
	size_t len = (size_t)(slash - text);
	int rc;

	if (len == 0)
		return fail_at(
			ctx, 0,
			"\"%s\" is a second path: a line has one, and machines behind it; write "
			"a line for each path",
			text);
	client->kind = EXP_CLIENT_NETWORK;
	*slash = '\0';
	if (len > 1 && base[0] == '[' && base[len - 1] == ']') {
		base[len - 1] = '\0';
		base++;
	}
	if (!exp_addr_from_text(base, &client->addr))
		return fail_at(ctx, 0,
			       "\"%s\" is no network address: write ADDRESS/LENGTH or "
			       "ADDRESS/NETMASK",
			       text);
	rc = parse_prefix(ctx, slash + 1, len + 1);
	if (rc)
		return rc;
	if (exp_addr_mask(&client->addr, client->prefix)) {
		char net[EXP_ADDR_STRLEN];

		exp_addr_to_text(&client->addr, net);
		cfg_diag_add(ctx->diags, exp_word_position(ctx->src, ctx->word, 0), CFG_WARNING,
			     "the address has bits past the netmask; the network is %s/%u", net,
			     client->prefix);
	}
	return 0;
}

static int parse_wildcard(struct client_ctx *ctx, char *text)
{
	size_t bad = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789-_.*?[]!^");
	const char *open = strchr(text, '[');

	if (text[bad])
		return fail_at(ctx, bad, "\"%s\" cannot be part of a host name", text + bad);
	for (; open; open = strchr(open, '[')) {
		const char *shut = strchr(open + 1 + (open[1] == '!' || open[1] == '^'), ']');

		if (!shut)
			return fail_at(ctx, (size_t)(open - text),
				       "the closing \"]\" of \"%s\" is missing", open);
		open = shut;
	}
	if (!text[strspn(text, "0123456789.*?[]-")] && strchr(text, '.'))
		cfg_diag_add(ctx->diags, exp_word_position(ctx->src, ctx->word, 0), CFG_WARNING,
			     "a wildcard matches host names, not addresses: write a network as "
			     "192.0.2.0/24");
	lower(text);
	return set_name(ctx, EXP_CLIENT_WILDCARD, text);
}

static int parse_netgroup(struct client_ctx *ctx, const char *text)
{
	if (!text[1])
		return fail_at(ctx, 0, "%s without a name: write @NETGROUP", "\"@\"");
	return set_name(ctx, EXP_CLIENT_NETGROUP, text + 1);
}

static int parse_host(struct client_ctx *ctx, char *text)
{
	struct exp_client *client = ctx->client;
	size_t len = strlen(text);
	size_t bad;

	client->kind = EXP_CLIENT_HOST;
	if (exp_addr_from_text(text, &client->addr))
		return 0;
	if (strchr(text, ':'))
		return fail_at(ctx, 0, "\"%s\" is no IPv6 address", text);
	if (!text[strspn(text, "0123456789.")])
		return fail_at(ctx, 0, "\"%s\" is no IPv4 address: write four numbers up to 255",
			       text);
	bad = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
	if (text[bad])
		return fail_at(ctx, bad, "\"%s\" cannot be part of a host name", text + bad);
	if (text[len - 1] == '.')
		text[len - 1] = '\0';
	lower(text);
	return set_name(ctx, EXP_CLIENT_HOST, text);
}

/* An IPv6 address in square brackets, against the letter of exports(5) but often written. */
static bool bracketed_address(struct client_ctx *ctx, char *text)
{
	size_t len = strlen(text);
	bool is;

	if (len < 4 || text[0] != '[' || text[len - 1] != ']')
		return false;
	text[len - 1] = '\0';
	is = strchr(text, ':') && exp_addr_from_text(text + 1, &ctx->client->addr);
	text[len - 1] = ']';
	if (is)
		ctx->client->kind = EXP_CLIENT_HOST;
	return is;
}

static int parse_gss(struct client_ctx *ctx, const char *text)
{
	ctx->client->kind = EXP_CLIENT_ANY;
	ctx->client->gss = exp_gss_flavor(text);
	if (!ctx->client->gss)
		return fail_at(ctx, 0,
			       "\"%s\" is not known: write gss/krb5, gss/krb5i or gss/krb5p, or "
			       "better sec=",
			       text);
	return 0;
}

static int exp_client_parse_name(struct client_ctx *ctx, char *text)
{
	char *slash = strchr(text, '/');

	if (!text[0] || !strcmp(text, "*")) {
		ctx->client->kind = EXP_CLIENT_ANY;
		return 0;
	}
	if (strlen(text) > NAME_LIMIT)
		return fail_at(ctx, 0, "%s is too long: at most 255 octets", "the machine name");
	if (text[0] == '@')
		return parse_netgroup(ctx, text);
	if (!strncmp(text, "gss/", 4))
		return parse_gss(ctx, text);
	if (slash)
		return parse_network(ctx, text, slash);
	if (bracketed_address(ctx, text))
		return 0;
	if (strpbrk(text, "*?["))
		return parse_wildcard(ctx, text);
	return parse_host(ctx, text);
}

static int make_spec(struct exp_client *client, const char *text)
{
	char addr[EXP_ADDR_STRLEN];
	int n;

	exp_addr_to_text(&client->addr, addr);
	if (client->kind == EXP_CLIENT_NETWORK)
		n = asprintf(&client->spec, "%s/%u", addr, client->prefix);
	else if (client->kind == EXP_CLIENT_ANY && !client->gss)
		n = asprintf(&client->spec, "*");
	else
		n = asprintf(&client->spec, "%s", client->addr.len ? addr : text);
	if (n < 0)
		client->spec = NULL;
	return n < 0 ? -ENOMEM : 0;
}

int exp_client_parse(struct exp_client *client, const struct exp_source *src,
		     const struct exp_word *word, size_t len, struct cfg_diags *diags)
{
	struct client_ctx ctx = { client, diags, src, word };
	char *text = strndup(word->text, len);
	int rc;

	*client = (struct exp_client){ .line = word->start.line };
	if (!text)
		return -ENOMEM;
	rc = exp_client_parse_name(&ctx, text);
	if (!rc)
		rc = make_spec(client, text);
	free(text);
	return rc;
}

void exp_client_free(struct exp_client *client)
{
	free(client->spec);
	free(client->name);
	client->spec = NULL;
	client->name = NULL;
}

bool exp_client_same(const struct exp_client *a, const struct exp_client *b)
{
	if (a->kind != b->kind || a->gss != b->gss || !a->name != !b->name)
		return false;
	if (a->name)
		return !strcmp(a->name, b->name);
	return exp_addr_equal(&a->addr, &b->addr) && a->prefix == b->prefix;
}
