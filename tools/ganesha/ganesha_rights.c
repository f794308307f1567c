/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/ganesha/ganesha_rights.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "lib/util.h"

struct reading {
	struct ganesha_said *said;
	struct ganesha_rights *r;
	bool failed;
};

struct word {
	const char *word;
	unsigned value;
};

static void ganesha_rights_wrong(struct reading *g, const struct ganesha_item *item,
				 const char *value, const char *right)
{
	ganesha_say(g->said, GANESHA_ERROR, item->line, "%s = %s: %s is expected", item->name,
		    value, right);
	g->failed = true;
}

/* The one value; NULL: there are others, which was said. */
static const char *one_value(struct reading *g, const struct ganesha_item *item, const char *right)
{
	if (item->n == 1)
		return item->value[0];
	ganesha_rights_wrong(g, item, item->n ? "several values" : "nothing", right);
	return NULL;
}

static bool find_word(const struct word *words, size_t n, const char *word, unsigned *value)
{
	for (size_t i = 0; i < n; i++) {
		if (strcasecmp(words[i].word, word) == 0) {
			*value = words[i].value;
			return true;
		}
	}
	return false;
}

/* The value of one word. False: it is wrong, which was said. */
static bool take_word(struct reading *g, const struct ganesha_item *item, const struct word *words,
		      size_t n, const char *right, unsigned *value)
{
	const char *word = one_value(g, item, right);

	if (word && find_word(words, n, word, value))
		return true;
	if (word)
		ganesha_rights_wrong(g, item, word, right);
	return false;
}

/* The bits of a list of words. */
static void take_bits(struct reading *g, const struct ganesha_item *item, const struct word *words,
		      size_t n, const char *right, unsigned *bits)
{
	unsigned all = 0, bit;

	for (size_t i = 0; i < item->n; i++) {
		if (find_word(words, n, item->value[i], &bit))
			all |= bit;
		else
			ganesha_rights_wrong(g, item, item->value[i], right);
	}
	*bits = all;
}

static const struct word booleans[] = {
	{ "true", 1 }, { "yes", 1 }, { "on", 1 }, { "false", 0 }, { "no", 0 }, { "off", 0 },
};
#define BOOLEAN "true or false"

bool ganesha_boolean(const char *word, bool *value)
{
	unsigned n;
	const bool good = find_word(booleans, rn_array_size(booleans), word, &n);

	*value = good && n;
	return good;
}

static void take_access(struct reading *g, const struct ganesha_item *item)
{
	static const struct word words[] = {
		{ "none", GANESHA_NO_ACCESS },
		{ "ro", GANESHA_RO },
		{ "rw", GANESHA_RW },
		{ "mdonly", GANESHA_METADATA },
		{ "mdonly_ro", GANESHA_METADATA },
	};
	unsigned value = GANESHA_NO_ACCESS;

	take_word(g, item, words, rn_array_size(words), "RW, RO, MDONLY, MDONLY_RO or None",
		  &value);
	g->r->access = value;
	if (value == GANESHA_METADATA) {
		ganesha_say(g->said, GANESHA_ERROR, item->line,
			    "%s = %s has no counterpart: these clients get no access", item->name,
			    item->value[0]);
		g->r->access = GANESHA_NO_ACCESS;
	}
}

static void take_squash(struct reading *g, const struct ganesha_item *item)
{
	enum { ROOT_ID = 100 };
	static const struct word words[] = {
		{ "root", GANESHA_ROOT_SQUASH },
		{ "root_squash", GANESHA_ROOT_SQUASH },
		{ "rootsquash", GANESHA_ROOT_SQUASH },
		{ "rootid", ROOT_ID },
		{ "root_id_squash", ROOT_ID },
		{ "rootidsquash", ROOT_ID },
		{ "all", GANESHA_ALL_SQUASH },
		{ "all_squash", GANESHA_ALL_SQUASH },
		{ "allsquash", GANESHA_ALL_SQUASH },
		{ "all_anonymous", GANESHA_ALL_SQUASH },
		{ "all_anomnymous", GANESHA_ALL_SQUASH }, /* as its documents spell it */
		{ "allanonymous", GANESHA_ALL_SQUASH },
		{ "no_root_squash", GANESHA_NO_SQUASH },
		{ "none", GANESHA_NO_SQUASH },
		{ "noidsquash", GANESHA_NO_SQUASH },
	};
	unsigned value;

	if (!take_word(g, item, words, rn_array_size(words),
		       "Root_Squash, No_Root_Squash, All_Squash or Root_Id_Squash", &value))
		return;
	if (value == ROOT_ID) {
		ganesha_say(g->said, GANESHA_WARNING, item->line,
			    "%s = %s has no counterpart: root_squash is taken, which maps root's "
			    "group, too",
			    item->name, item->value[0]);
		value = GANESHA_ROOT_SQUASH;
	}
	g->r->squash = value;
}

static bool ganesha_rights_take_id(struct reading *g, const struct ganesha_item *item, uint32_t *id)
{
	static const char right[] = "a number from -2147483648 to 4294967294";
	const char *text = one_value(g, item, right);
	char *end;

	if (!text)
		return false;
	errno = 0;
	const long long n = strtoll(text, &end, 0);

	if (errno || *end || end == text || n < INT32_MIN || n >= UINT32_MAX ||
	    (uint32_t)n == UINT32_MAX) {
		ganesha_rights_wrong(g, item, text, right);
		return false;
	}
	*id = (uint32_t)n;
	return true;
}

static void take_anonuid(struct reading *g, const struct ganesha_item *item)
{
	g->r->has_anonuid |= ganesha_rights_take_id(g, item, &g->r->anonuid);
}

static void take_anongid(struct reading *g, const struct ganesha_item *item)
{
	g->r->has_anongid |= ganesha_rights_take_id(g, item, &g->r->anongid);
}

static void ganesha_rights_take_port(struct reading *g, const struct ganesha_item *item)
{
	unsigned value = 1;

	take_word(g, item, booleans, rn_array_size(booleans), BOOLEAN, &value);
	g->r->privileged = value;
}

/* In the order of the option: clients take the first one that they have. */
static const struct word flavours[] = {
	{ "krb5p", GANESHA_KRB5P }, { "krb5i", GANESHA_KRB5I }, { "krb5", GANESHA_KRB5 },
	{ "sys", GANESHA_SYS },	    { "none", GANESHA_NONE },
};

static void take_sec(struct reading *g, const struct ganesha_item *item)
{
	enum { KERBEROS = GANESHA_KRB5 | GANESHA_KRB5I | GANESHA_KRB5P };

	take_bits(g, item, flavours, rn_array_size(flavours), "sys, none, krb5, krb5i or krb5p",
		  &g->r->sec);
	if (g->r->sec & KERBEROS)
		ganesha_say(
			g->said, GANESHA_NOTE, item->line,
			"%s: Kerberos needs the server's key: see keytab in [gss] of ringnfs.conf",
			item->name);
}

static void put_sec(FILE *out, unsigned sec)
{
	const char *before = ",sec=";

	if (sec == GANESHA_SYS)
		return;
	for (size_t i = 0; i < rn_array_size(flavours); i++) {
		if (!(sec & flavours[i].value))
			continue;
		fprintf(out, "%s%s", before, flavours[i].word);
		before = ":";
	}
}

static void take_protocols(struct reading *g, const struct ganesha_item *item)
{
	static const struct word words[] = {
		{ "3", GANESHA_V3 },	 { "nfs3", GANESHA_V3 },  { "v3", GANESHA_V3 },
		{ "nfsv3", GANESHA_V3 }, { "4", GANESHA_V4 },	  { "nfs4", GANESHA_V4 },
		{ "v4", GANESHA_V4 },	 { "nfsv4", GANESHA_V4 }, { "9p", GANESHA_9P },
	};

	take_bits(g, item, words, rn_array_size(words), "3, 4 or 9P", &g->r->protocols);
	if (g->r->protocols == GANESHA_V3 || g->r->protocols == GANESHA_V4)
		ganesha_say(g->said, GANESHA_NOTE, item->line,
			    "%s: not by export here; for all: enabled in [%s] of ringnfs.conf",
			    item->name, g->r->protocols == GANESHA_V3 ? "nfs4" : "nfs3");
	if (g->r->protocols & GANESHA_9P)
		ganesha_say(g->said, GANESHA_NOTE, item->line, "%s: 9P is not there", item->name);
}

static void take_transports(struct reading *g, const struct ganesha_item *item)
{
	static const struct word words[] = {
		{ "tcp", GANESHA_TCP },
		{ "udp", GANESHA_UDP },
		{ "rdma", GANESHA_RDMA },
	};

	take_bits(g, item, words, rn_array_size(words), "TCP, UDP or RDMA", &g->r->transports);
	ganesha_say(g->said, GANESHA_NOTE, item->line,
		    "%s: not by export here; for all: enabled in [tcp] and [rdma] of ringnfs.conf",
		    item->name);
}

static void take_gids(struct reading *g, const struct ganesha_item *item)
{
	ganesha_say(g->said, GANESHA_NOTE, item->line,
		    "%s: not by export here; for all: manage_gids in [nfs3] and [nfs4] of "
		    "ringnfs.conf",
		    item->name);
}

static void take_delegations(struct reading *g, const struct ganesha_item *item)
{
	ganesha_say(g->said, GANESHA_NOTE, item->line,
		    "%s: not by export here; for all: delegations in [nfs4] of ringnfs.conf",
		    item->name);
}

static void take_commit(struct reading *g, const struct ganesha_item *item)
{
	ganesha_say(g->said, GANESHA_NOTE, item->line,
		    "%s: sync is the default here: what is acknowledged as stable is on disk",
		    item->name);
}

static const struct {
	const char *name;
	void (*take)(struct reading *g, const struct ganesha_item *item);
} rows[] = {
	{ "Access_Type", take_access },
	{ "Anonymous_Gid", take_anongid },
	{ "Anonymous_Uid", take_anonuid },
	{ "Delegations", take_delegations },
	{ "Manage_Gids", take_gids },
	{ "NFS_Commit", take_commit },
	{ "PrivilegedPort", ganesha_rights_take_port },
	{ "Privileged_Port", ganesha_rights_take_port },
	{ "Protocols", take_protocols },
	{ "SecType", take_sec },
	{ "Squash", take_squash },
	{ "Transports", take_transports },
};

struct ganesha_rights ganesha_rights_default(void)
{
	return (struct ganesha_rights){ .access = GANESHA_NO_ACCESS,
					.squash = GANESHA_ROOT_SQUASH,
					.sec = GANESHA_SYS,
					.protocols = GANESHA_V3 | GANESHA_V4,
					.transports = GANESHA_TCP };
}

bool ganesha_rights_has(const char *name)
{
	for (size_t i = 0; i < rn_array_size(rows); i++)
		if (strcasecmp(rows[i].name, name) == 0)
			return true;
	return false;
}

bool ganesha_rights_read(struct ganesha_said *said, const struct ganesha_item *block,
			 struct ganesha_rights *r)
{
	struct reading g = { .said = said, .r = r };

	for (size_t i = 0; i < rn_array_size(rows); i++) {
		const struct ganesha_item *item = ganesha_find(block, rows[i].name, NULL);

		if (!item)
			continue;
		if (item->block) {
			ganesha_rights_wrong(&g, item, "{ }", "a value");
			continue;
		}
		rows[i].take(&g, item);
		item = ganesha_find(block, rows[i].name, item);
		if (!item)
			continue;
		ganesha_say(said, GANESHA_ERROR, item->line,
			    "%s is there twice: leave out the one that does not count", item->name);
		g.failed = true;
	}
	return !g.failed;
}

bool ganesha_rights_none(const struct ganesha_rights *r)
{
	return (r->access != GANESHA_RO && r->access != GANESHA_RW) || !r->sec ||
	       !(r->protocols & (GANESHA_V3 | GANESHA_V4));
}

char *ganesha_rights_options(const struct ganesha_rights *r)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	fputs(r->access == GANESHA_RW ? "rw" : "ro", out);
	if (!r->privileged)
		fputs(",insecure", out);
	if (r->squash != GANESHA_ROOT_SQUASH)
		fputs(r->squash == GANESHA_NO_SQUASH ? ",no_root_squash" : ",all_squash", out);
	if (r->has_anonuid)
		fprintf(out, ",anonuid=%" PRIu32, r->anonuid);
	if (r->has_anongid)
		fprintf(out, ",anongid=%" PRIu32, r->anongid);
	put_sec(out, r->sec);
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}
