/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/tls_users.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "conf/exports_private.h"
#include "lib/utf8.h"

#define UID_LAST 4294967294ull /* the next number stands for nobody */
#define SHOWN 80	       /* bytes of a word that a message repeats */

struct word {
	const char *text;
	size_t len;
	unsigned col;
};

struct parser {
	const char *file;
	struct cfg_diags *diags;
	struct cfg_tls_users *users;
	unsigned cap, line;
	bool any; /* a line with * has come */
	int rc;
};

static const struct {
	const char *prefix;
	enum cfg_tls_id kind;
} kinds[] = {
	{ "dns:", CFG_ID_DNS },
	{ "email:", CFG_ID_EMAIL },
	{ "uri:", CFG_ID_URI },
	{ "sha256:", CFG_ID_SHA256 },
};

#define wrong(p, w, ...)                                                                           \
	cfg_diag_add((p)->diags, (struct cfg_position){ (p)->file, (p)->line, (w)->col },          \
		     CFG_ERROR, __VA_ARGS__)
/* For "%.*s". */
#define shown(w) (int)((w)->len < SHOWN ? (w)->len : SHOWN), (w)->text

static bool tls_word_is(const struct word *w, const char *text)
{
	return w->len == strlen(text) && memcmp(w->text, text, w->len) == 0;
}

static bool has_only(const char *text, const char *others)
{
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(others, *text))
			return false;
	return true;
}

static bool check_dns(struct parser *p, const struct word *w, char *id)
{
	if (id[0] && has_only(id, ".-_")) {
		for (; *id; id++)
			*id = (char)tolower((unsigned char)*id);
		return true;
	}
	wrong(p, w,
	      "'%.*s' is no host name: write it as the certificate has it, without wildcards and "
	      "addresses, as dns:client.example.org",
	      shown(w));
	return false;
}

static bool check_email(struct parser *p, const struct word *w, char *id)
{
	char *at = strrchr(id, '@');

	if (!at || at == id || !at[1]) {
		wrong(p, w, "'%.*s' is no address: write it as email:user@example.org", shown(w));
		return false;
	}
	for (; *at; at++)
		*at = (char)tolower((unsigned char)*at);
	return true;
}

static bool check_uri(struct parser *p, const struct word *w, const char *id)
{
	const char *colon = strchr(id, ':');

	if (colon && colon != id && colon[1])
		return true;
	wrong(p, w, "'%.*s' is no URI: write it as uri:spiffe://example.org/client", shown(w));
	return false;
}

/* Takes out the colons. */
static bool check_sha256(struct parser *p, const struct word *w, char *id)
{
	size_t n = 0;

	for (const char *c = id; *c; c++) {
		if (isxdigit((unsigned char)*c))
			id[n++] = (char)tolower((unsigned char)*c);
		else if (*c != ':' || n % 2)
			n = RN_CERT_SHA256_HEX + 1;
		if (n > RN_CERT_SHA256_HEX)
			break;
	}
	if (n == RN_CERT_SHA256_HEX) {
		id[n] = '\0';
		return true;
	}
	wrong(p, w,
	      "a fingerprint has 64 hexadecimal digits, with or without colons: write what openssl "
	      "x509 -noout -fingerprint -sha256 -in FILE prints behind '='");
	return false;
}

static bool check_id(struct parser *p, const struct word *w, struct cfg_tls_user *to)
{
	switch (to->kind) {
	case CFG_ID_DNS:
		return check_dns(p, w, to->id);
	case CFG_ID_EMAIL:
		return check_email(p, w, to->id);
	case CFG_ID_URI:
		return check_uri(p, w, to->id);
	case CFG_ID_SHA256:
		return check_sha256(p, w, to->id);
	case CFG_ID_ANY:
		break;
	}
	return true;
}

static bool tls_user_take_id(struct parser *p, const struct word *w, struct cfg_tls_user *to)
{
	size_t skip = 0;

	to->kind = CFG_ID_ANY;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !skip; i++) {
		const size_t len = strlen(kinds[i].prefix);

		if (w->len >= len && strncasecmp(w->text, kinds[i].prefix, len) == 0) {
			to->kind = kinds[i].kind;
			skip = len;
		}
	}
	if (!skip && !tls_word_is(w, "*")) {
		wrong(p, w,
		      "'%.*s' is no identity: write dns:NAME, email:ADDRESS, uri:URI, "
		      "sha256:FINGERPRINT, or * for all other certificates",
		      shown(w));
		return false;
	}
	if (w->len - skip > RN_CERT_NAME_MAX) {
		wrong(p, w, "the identity is longer than %u bytes: use sha256:FINGERPRINT",
		      RN_CERT_NAME_MAX);
		return false;
	}
	to->id = skip ? strndup(w->text + skip, w->len - skip) : strdup("");
	if (!to->id)
		p->rc = -ENOMEM;
	return to->id && check_id(p, w, to);
}

/* Reads digits up to the end of the word or a colon. */
static bool tls_user_parse_number(const char **from, const char *end, uint32_t *to)
{
	uint64_t n = 0;
	const char *c = *from;

	for (; c < end && isdigit((unsigned char)*c); c++) {
		n = n * 10 + (uint64_t)(*c - '0');
		if (n > UID_LAST)
			return false;
	}
	*to = (uint32_t)n;
	const bool some = c > *from;

	*from = c;
	return some;
}

static bool tls_user_take_number(struct parser *p, const struct word *w, struct cfg_tls_user *to)
{
	const char *c = w->text, *end = w->text + w->len;

	to->as = CFG_AS_NUMBER;
	if (tls_user_parse_number(&c, end, &to->uid) && c < end && *c++ == ':' &&
	    tls_user_parse_number(&c, end, &to->gid) && c == end)
		return true;
	wrong(p, w, "'%.*s' is no user: write UID:GID, as 1000:100, or the user's name", shown(w));
	return false;
}

static bool tls_user_take_name(struct parser *p, const struct word *w, struct cfg_tls_user *to)
{
	to->as = CFG_AS_NAME;
	to->name = strndup(w->text, w->len);
	if (!to->name) {
		p->rc = -ENOMEM;
		return false;
	}
	if (w->len <= CFG_TLS_USER_NAME_MAX && !strpbrk(to->name, ":/@#\"'*"))
		return true;
	wrong(p, w, "'%.*s' is no user: write a user's name, UID:GID, @call or @nobody", shown(w));
	return false;
}

static bool take_user(struct parser *p, const struct word *w, struct cfg_tls_user *to)
{
	if (tls_word_is(w, "@call"))
		to->as = CFG_AS_CALL;
	else if (tls_word_is(w, "@nobody"))
		to->as = CFG_AS_NOBODY;
	else if (isdigit((unsigned char)w->text[0]))
		return tls_user_take_number(p, w, to);
	else
		return tls_user_take_name(p, w, to);
	return true;
}

/* Root must be asked for. Other names of root are found when they are looked up. */
static bool check_root(struct parser *p, const struct word *w, const struct cfg_tls_user *to)
{
	const bool root = to->as == CFG_AS_NUMBER ? !to->uid || !to->gid
						  : to->name && strcmp(to->name, "root") == 0;

	if (!root || to->root)
		return true;
	wrong(p, w,
	      "'%.*s' is root, or root's group: give another user, or write the word root behind "
	      "it to allow that",
	      shown(w));
	return false;
}

static bool take_words(struct parser *p, const struct word w[4], unsigned n,
		       struct cfg_tls_user *to)
{
	to->line = p->line;
	if (!tls_user_take_id(p, &w[0], to))
		return false;
	if (n < 2) {
		wrong(p, &w[0],
		      "there is no user for '%.*s': write a user's name, UID:GID, @call or @nobody "
		      "behind it",
		      shown(&w[0]));
		return false;
	}
	if (!take_user(p, &w[1], to))
		return false;
	to->root = n > 2 && tls_word_is(&w[2], "root");
	if (n > 3 || (n == 3 && (!to->root || to->as > CFG_AS_NUMBER))) {
		wrong(p, &w[n - 1],
		      "'%.*s' is too much: a line has an identity, a user, and the word root if "
		      "the "
		      "user may be root",
		      shown(&w[n - 1]));
		return false;
	}
	return check_root(p, &w[1], to);
}

static struct cfg_tls_user *cfg_tls_users_room(struct parser *p)
{
	struct cfg_tls_users *u = p->users;

	if (u->n == p->cap) {
		const unsigned cap = p->cap ? p->cap * 2 : 16;
		struct cfg_tls_user *more = realloc(u->lines, cap * sizeof(*more));

		if (!more) {
			p->rc = -ENOMEM;
			return NULL;
		}
		u->lines = more;
		p->cap = cap;
	}
	return &u->lines[u->n];
}

static void cfg_tls_users_add(struct parser *p, const struct word w[4], unsigned n)
{
	struct cfg_tls_user to = { 0 }, *place;

	if (p->any)
		wrong(p, &w[0], "lines behind * are never used: put that line last");
	if (p->users->n == CFG_TLS_USERS_MAX) {
		wrong(p, &w[0], "there are more than %d lines: take some out", CFG_TLS_USERS_MAX);
		p->rc = -EINVAL;
		return;
	}
	if (take_words(p, w, n, &to) && (place = cfg_tls_users_room(p))) {
		*place = to;
		p->users->n++;
		p->any = to.kind == CFG_ID_ANY;
		return;
	}
	free(to.id);
	free(to.name);
}

/* Words of a line up to its comment; the fourth stands for all that are too many. */
static unsigned tls_users_split_line(const char *text, size_t len, struct word w[4])
{
	unsigned n = 0;
	size_t at = 0;

	while (at < len && n < 4) {
		while (at < len && (text[at] == ' ' || text[at] == '\t'))
			at++;
		if (at == len || text[at] == '#')
			break;
		w[n] = (struct word){ text + at, 0, (unsigned)at + 1 };
		while (at < len && text[at] != ' ' && text[at] != '\t')
			at++;
		w[n].len = (size_t)(text + at - w[n].text);
		n++;
	}
	return n;
}

/* Bytes that no name has, and that a message must not repeat. */
static bool is_clean(struct parser *p, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		const struct word at = { text + i, 1, (unsigned)i + 1 };

		if ((unsigned char)text[i] >= ' ' || text[i] == '\t')
			continue;
		wrong(p, &at, "the byte 0x%02x is no text: write the line anew",
		      (unsigned char)text[i]);
		return false;
	}
	return true;
}

static void take_line(struct parser *p, const char *text, size_t len)
{
	struct word w[4];
	unsigned n;

	p->line++;
	if (len > 0 && text[len - 1] == '\r')
		len--;
	if (!is_clean(p, text, len))
		return;
	n = tls_users_split_line(text, len, w);
	if (n > 0)
		cfg_tls_users_add(p, w, n);
}

static int by_identity(const void *one, const void *other)
{
	const struct cfg_tls_user *a = *(struct cfg_tls_user *const *)one;
	const struct cfg_tls_user *b = *(struct cfg_tls_user *const *)other;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	const int rc = strcmp(a->id, b->id);

	return rc ? rc : (a->line > b->line) - (a->line < b->line);
}

static int find_doubles(struct parser *p)
{
	const unsigned n = p->users->n;
	struct cfg_tls_user **sorted = calloc(n ? n : 1, sizeof(struct cfg_tls_user *));

	if (!sorted)
		return -ENOMEM;
	for (unsigned i = 0; i < n; i++)
		sorted[i] = &p->users->lines[i];
	qsort(sorted, n, sizeof(struct cfg_tls_user *), by_identity);
	for (unsigned i = 1; i < n; i++) {
		const struct cfg_tls_user *a = sorted[i - 1], *b = sorted[i];
		const struct word at = { .col = 1 };

		if (a->kind != b->kind || strcmp(a->id, b->id) != 0)
			continue;
		p->line = b->line;
		wrong(p, &at, "line %u has this identity, too: take one of them out", a->line);
	}
	free(sorted);
	return 0;
}

int cfg_tls_users_parse(const char *file, const char *text, size_t len, struct cfg_diags *diags,
			struct cfg_tls_users **out)
{
	const unsigned errors = diags->errors;
	struct parser p = { .file = file, .diags = diags };
	size_t at = rn_utf8_bom(text, len);

	*out = NULL;
	p.users = calloc(1, sizeof(*p.users));
	if (!p.users)
		return -ENOMEM;
	while (at < len && !p.rc) {
		const char *end = memchr(text + at, '\n', len - at);
		const size_t n = end ? (size_t)(end - text) - at : len - at;

		take_line(&p, text + at, n);
		at += n + 1;
	}
	if (!p.rc)
		p.rc = find_doubles(&p);
	if (!p.rc && diags->errors > errors)
		p.rc = -EINVAL;
	if (p.rc)
		cfg_tls_users_free(p.users);
	else
		*out = p.users;
	return p.rc;
}

struct loading {
	struct cfg_diags *diags;
	struct cfg_tls_users **out;
	int rc;
};

static int on_text(void *arg, const char *path, const char *text, size_t len)
{
	struct loading *l = arg;

	l->rc = cfg_tls_users_parse(path, text, len, l->diags, l->out);
	return 0;
}

static void on_unread(void *arg, const char *path, int error)
{
	struct loading *l = arg;

	l->rc = -EINVAL;
	cfg_diag_add(l->diags, (struct cfg_position){ .file = path }, CFG_ERROR,
		     "cannot be read: %s: correct the path, or take out tls.user_map",
		     strerror(error));
}

int cfg_tls_users_load(const char *file, struct cfg_diags *diags, struct cfg_tls_users **out)
{
	struct loading l = { .diags = diags, .out = out };
	const struct exp_file_sink sink = { on_text, on_unread, &l };

	*out = NULL;
	const int rc = exp_files_read(file, NULL, &sink);

	return rc ? rc : l.rc;
}

void cfg_tls_users_free(struct cfg_tls_users *users)
{
	if (!users)
		return;
	for (unsigned i = 0; i < users->n; i++) {
		free(users->lines[i].id);
		free(users->lines[i].name);
	}
	free(users->lines);
	free(users);
}

static bool same_email(const char *a, const char *b)
{
	const char *at = strrchr(b, '@');
	const size_t local = at ? (size_t)(at - b) : 0;

	return at && strncmp(a, b, local) == 0 && strcasecmp(a + local, at) == 0;
}

static bool tls_user_has_name(const struct rn_certificate *cert, const struct cfg_tls_user *u)
{
	for (unsigned i = 0; i < cert->nnames; i++) {
		const struct rn_cert_name *n = &cert->names[i];

		if (u->kind == CFG_ID_DNS && n->kind == RN_CERT_DNS &&
		    strcasecmp(u->id, n->text) == 0)
			return true;
		if (u->kind == CFG_ID_EMAIL && n->kind == RN_CERT_EMAIL &&
		    same_email(u->id, n->text))
			return true;
		if (u->kind == CFG_ID_URI && n->kind == RN_CERT_URI && strcmp(u->id, n->text) == 0)
			return true;
	}
	return false;
}

const struct cfg_tls_user *cfg_tls_users_find(const struct cfg_tls_users *users,
					      const struct rn_certificate *cert)
{
	for (unsigned i = 0; i < users->n; i++) {
		const struct cfg_tls_user *u = &users->lines[i];

		if (u->kind == CFG_ID_ANY ||
		    (u->kind == CFG_ID_SHA256 && strcmp(u->id, cert->sha256) == 0) ||
		    tls_user_has_name(cert, u))
			return u;
	}
	return NULL;
}
