/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conf/diag.h"
#include "conf/exports.h"
#include "conf/exports_private.h"

enum option_value { VALUE_NONE, VALUE_NEEDED, VALUE_MAY };

struct option_ctx {
	struct exp_options *options;
	struct cfg_diags *diags;
	struct cfg_position at;	      /* position of the option */
	struct cfg_position value_at; /* position of its value */
	/* Places of the octets of the value, for lists within it. */
	const struct exp_source *src;
	const struct exp_word *word;
	size_t value_from;
};

struct option_row {
	const char *name;
	enum option_value value;
	uint32_t set;
	uint32_t clear;
	int (*apply)(struct option_ctx *ctx, char *value);
	const char *hint; /* the right form, for an option with a value; a note, for one without */
	uint32_t given;	  /* bit of enum exp_given, for an option with a value */
};

static int exp_option_fail(struct option_ctx *ctx, const char *text, const char *value)
{
	cfg_diag_add(ctx->diags, ctx->value_at, CFG_ERROR, text, value);
	return -EINVAL;
}

static int parse_id(struct option_ctx *ctx, const char *value, uint32_t *id)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(value, &end, 10);
	if (errno || *end || end == value || isspace((unsigned char)*value) || number < INT32_MIN ||
	    number > UINT32_MAX || (uint32_t)number == UINT32_MAX)
		return exp_option_fail(
			ctx, "\"%s\" is not an id: give a number from 0 to 4294967294", value);
	*id = (uint32_t)number;
	return 0;
}

static int apply_anonuid(struct option_ctx *ctx, char *value)
{
	return parse_id(ctx, value, &ctx->options->opts.anonuid);
}

static int apply_anongid(struct option_ctx *ctx, char *value)
{
	return parse_id(ctx, value, &ctx->options->opts.anongid);
}

static int exp_option_hex_digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower(c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* 32 hexadecimal digits with any punctuation between them. */
static bool parse_uuid(const char *value, uint8_t uuid[16])
{
	unsigned n = 0;

	memset(uuid, 0, 16);
	for (; *value; value++) {
		int digit = exp_option_hex_digit((unsigned char)*value);

		if (digit < 0 && !ispunct((unsigned char)*value))
			return false;
		if (digit < 0)
			continue;
		if (n == 32)
			return false;
		uuid[n / 2] = (uint8_t)(uuid[n / 2] << 4 | digit);
		n++;
	}
	return n == 32;
}

static int apply_fsid(struct option_ctx *ctx, char *value)
{
	struct exp_opts *opts = &ctx->options->opts;
	unsigned long long number;
	uint8_t uuid[16];
	char *end;

	if (parse_uuid(value, uuid)) {
		memcpy(opts->uuid, uuid, sizeof(uuid));
		opts->has_uuid = true;
		return 0;
	}
	errno = 0;
	number = strtoull(value, &end, 0);
	if (!strcmp(value, "root"))
		number = 0;
	else if (errno || *end || end == value || !isdigit((unsigned char)*value) ||
		 number > UINT32_MAX)
		return exp_option_fail(
			ctx,
			"\"%s\" is no fsid: give a number below 4294967296, \"root\", or a "
			"UUID of 32 hexadecimal digits",
			value);
	opts->fsid = (uint32_t)number;
	opts->has_fsid = true;
	return 0;
}

static const struct {
	const char *name;
	int flavor;
} flavor_names[] = {
	{ "sys", EXP_AUTH_SYS },     { "unix", EXP_AUTH_SYS },	{ "none", EXP_AUTH_NONE },
	{ "null", EXP_AUTH_NONE },   { "krb5", EXP_AUTH_KRB5 }, { "krb5i", EXP_AUTH_KRB5I },
	{ "krb5p", EXP_AUTH_KRB5P },
};

enum { N_FLAVOR_NAMES = sizeof(flavor_names) / sizeof(flavor_names[0]) };

const char *exp_flavor_name(uint32_t flavor)
{
	for (unsigned i = 0; i < N_FLAVOR_NAMES; i++) {
		if ((uint32_t)flavor_names[i].flavor == flavor)
			return flavor_names[i].name;
	}
	return "unknown";
}

static int flavor_by_name(struct option_ctx *ctx, const char *name)
{
	struct cfg_suggest suggest = { .word = name };

	for (unsigned i = 0; i < N_FLAVOR_NAMES; i++) {
		if (!strcmp(name, flavor_names[i].name))
			return flavor_names[i].flavor;
		cfg_suggest_try(&suggest, flavor_names[i].name);
	}
	if (!suggest.best)
		return exp_option_fail(
			ctx,
			"unknown security flavour \"%s\": sys, krb5, krb5i, krb5p and none are "
			"known",
			name);
	cfg_diag_add(ctx->diags, ctx->value_at, CFG_ERROR,
		     "unknown security flavour \"%s\": did you mean \"%s\"?", name, suggest.best);
	return -EINVAL;
}

static void exp_options_add_flavor(struct exp_options *options, uint32_t flavor)
{
	struct exp_opts *opts = &options->opts;
	uint32_t i = 0;

	while (i < opts->n_flavors && opts->flavors[i].flavor != flavor)
		i++;
	/* The array has room for every known flavour. */
	if (i == opts->n_flavors && i < EXP_MAX_FLAVORS) {
		opts->flavors[i].flavor = flavor;
		opts->flavors[i].flags = opts->flags & EXP_FLAVOR_FLAGS;
		opts->n_flavors++;
	}
	options->active |= 1u << i;
}

static int apply_sec(struct option_ctx *ctx, char *value)
{
	struct exp_options *options = ctx->options;
	char *next = value;
	int rc = 0;

	/* The first sec= of a list starts the set anew. */
	if (!options->active)
		options->opts.n_flavors = 0;
	options->active = 0;
	while (next) {
		char *name = strsep(&next, ":");
		int flavor;

		ctx->value_at = exp_word_position(ctx->src, ctx->word,
						  ctx->value_from + (size_t)(name - value));
		flavor = flavor_by_name(ctx, name);
		if (flavor < 0)
			rc = flavor;
		else
			exp_options_add_flavor(options, (uint32_t)flavor);
	}
	return rc;
}

static int apply_mountpoint(struct option_ctx *ctx, char *value)
{
	struct exp_options *options = ctx->options;

	free(options->mp_path);
	options->mp_path = NULL;
	options->mp = EXP_MP_SELF;
	if (!value)
		return 0;
	if (*value != '/')
		return exp_option_fail(ctx, "\"%s\" is not absolute: write mountpoint=/PATH",
				       value);
	options->mp_path = strdup(value);
	if (!options->mp_path)
		return -ENOMEM;
	options->mp = EXP_MP_PATH;
	return 0;
}

static int apply_xprtsec(struct option_ctx *ctx, char *value)
{
	static const struct {
		const char *name;
		uint32_t flag;
	} all[] = { { "none", EXP_NO_PLAIN }, { "tls", EXP_NO_TLS }, { "mtls", EXP_NO_MTLS } };
	uint32_t left_out = EXP_XPRTSEC;
	char *next = value;

	while (next) {
		const char *name = strsep(&next, ":");
		unsigned i = 0;

		while (i < 3 && strcmp(name, all[i].name) != 0)
			i++;
		if (i == 3)
			return exp_option_fail(
				ctx,
				"unknown transport security \"%s\": none, tls and mtls are "
				"known, as in xprtsec=tls:mtls",
				name);
		left_out &= ~all[i].flag;
	}
	ctx->options->opts.flags = (ctx->options->opts.flags & ~(uint32_t)EXP_XPRTSEC) | left_out;
	return 0;
}

static int set_locations(struct option_ctx *ctx, const char *value, uint32_t flag)
{
	struct exp_options *options = ctx->options;
	size_t at;
	const char *error = exp_locations_error(value, &at);

	if (error) {
		cfg_diag_add(ctx->diags,
			     exp_word_position(ctx->src, ctx->word, ctx->value_from + at),
			     CFG_ERROR, "%s", error);
		return -EINVAL;
	}
	free(options->locations);
	options->locations = strdup(value);
	if (!options->locations)
		return -ENOMEM;
	options->opts.flags = (options->opts.flags & ~(uint32_t)EXP_REFER) | flag;
	return 0;
}

static int apply_refer(struct option_ctx *ctx, char *value)
{
	return set_locations(ctx, value, EXP_REFER);
}

static int apply_replicas(struct option_ctx *ctx, char *value)
{
	return set_locations(ctx, value, 0);
}

static int apply_reexport(struct option_ctx *ctx, char *value)
{
	(void)value;
	cfg_diag_add(ctx->diags, ctx->at, CFG_ERROR,
		     "reexport= is not supported: signed file handles of NFS mounts would be too "
		     "long; send clients to the server itself by refer=, and give fsid= to what is "
		     "no NFS mount");
	return -EINVAL;
}

static int apply_squash_ids(struct option_ctx *ctx, char *value)
{
	(void)value;
	cfg_diag_add(ctx->diags, ctx->at, CFG_ERROR,
		     "squash_uids= and squash_gids= are not supported: use root_squash or "
		     "all_squash with anonuid= and anongid=");
	return -EINVAL;
}

#define FLAG(name_, set_, clear_)                                                                  \
	{                                                                                          \
		name_, VALUE_NONE, set_, clear_, NULL, NULL, 0                                     \
	}
#define NOTED(name_, set_, clear_, note_)                                                          \
	{                                                                                          \
		name_, VALUE_NONE, set_, clear_, NULL, note_, 0                                    \
	}

static const struct option_row option_rows[] = {
	FLAG("ro", 0, EXP_RW),
	FLAG("rw", EXP_RW, 0),
	FLAG("sync", 0, EXP_ASYNC),
	FLAG("async", EXP_ASYNC, 0),
	FLAG("secure", 0, EXP_INSECURE),
	FLAG("insecure", EXP_INSECURE, 0),
	FLAG("root_squash", EXP_ROOT_SQUASH, 0),
	FLAG("no_root_squash", 0, EXP_ROOT_SQUASH),
	FLAG("all_squash", EXP_ALL_SQUASH, 0),
	FLAG("no_all_squash", 0, EXP_ALL_SQUASH),
	FLAG("no_subtree_check", 0, EXP_SUBTREE_CHECK),
	NOTED("subtree_check", EXP_SUBTREE_CHECK, 0,
	      "subtree_check is accepted and changes nothing: no_subtree_check is what is done"),
	FLAG("crossmnt", EXP_CROSSMNT, 0),
	FLAG("nocrossmnt", 0, EXP_CROSSMNT),
	FLAG("nohide", EXP_NOHIDE, 0),
	FLAG("hide", 0, EXP_NOHIDE),
	NOTED("wdelay", EXP_WDELAY, 0,
	      "wdelay is accepted and changes nothing: writes are gathered by the disk's own "
	      "flushes"),
	FLAG("no_wdelay", 0, EXP_WDELAY),
	FLAG("acl", 0, EXP_NO_ACL),
	FLAG("no_acl", EXP_NO_ACL, 0),
	FLAG("secure_locks", 0, EXP_NO_AUTH_NLM),
	FLAG("auth_nlm", 0, EXP_NO_AUTH_NLM),
	FLAG("insecure_locks", EXP_NO_AUTH_NLM, 0),
	FLAG("no_auth_nlm", EXP_NO_AUTH_NLM, 0),
	NOTED("pnfs", EXP_PNFS, 0, "pnfs is accepted and changes nothing"),
	FLAG("no_pnfs", 0, EXP_PNFS),
	FLAG("security_label", EXP_SECURITY_LABEL, 0),
	FLAG("no_security_label", 0, EXP_SECURITY_LABEL),
	FLAG("rdirplus", 0, EXP_NO_RDIRPLUS),
	FLAG("nordirplus", EXP_NO_RDIRPLUS, 0),
	FLAG("sign_fh", EXP_SIGN_FH, 0),
	FLAG("nfs_only", EXP_NFS_ONLY, 0),
	FLAG("no_nfs_only", 0, EXP_NFS_ONLY),
	{ "anonuid", VALUE_NEEDED, 0, 0, apply_anonuid, "anonuid=UID", EXP_GIVEN_ANONUID },
	{ "anongid", VALUE_NEEDED, 0, 0, apply_anongid, "anongid=GID", EXP_GIVEN_ANONGID },
	{ "fsid", VALUE_NEEDED, 0, 0, apply_fsid, "fsid=NUMBER, fsid=root or fsid=UUID",
	  EXP_GIVEN_FSID },
	{ "sec", VALUE_NEEDED, 0, 0, apply_sec, "sec=sys", EXP_GIVEN_SEC },
	{ "mountpoint", VALUE_MAY, 0, 0, apply_mountpoint, NULL, EXP_GIVEN_MOUNTPOINT },
	{ "mp", VALUE_MAY, 0, 0, apply_mountpoint, NULL, EXP_GIVEN_MOUNTPOINT },
	{ "xprtsec", VALUE_NEEDED, 0, 0, apply_xprtsec, "xprtsec=tls:mtls", EXP_GIVEN_XPRTSEC },
	{ "refer", VALUE_NEEDED, 0, 0, apply_refer, "refer=/PATH@HOST", EXP_GIVEN_LOCATIONS },
	{ "replicas", VALUE_NEEDED, 0, 0, apply_replicas, "replicas=/PATH@HOST",
	  EXP_GIVEN_LOCATIONS },
	{ "reexport", VALUE_MAY, 0, 0, apply_reexport, NULL, 0 },
	{ "squash_uids", VALUE_MAY, 0, 0, apply_squash_ids, NULL, 0 },
	{ "squash_gids", VALUE_MAY, 0, 0, apply_squash_ids, NULL, 0 },
};

enum { N_OPTIONS = sizeof(option_rows) / sizeof(option_rows[0]) };

static const struct option_row *option_by_name(struct option_ctx *ctx, const char *name)
{
	struct cfg_suggest suggest = { .word = name };

	for (unsigned i = 0; i < N_OPTIONS; i++) {
		if (!strcmp(name, option_rows[i].name))
			return &option_rows[i];
		cfg_suggest_try(&suggest, option_rows[i].name);
	}
	if (suggest.best)
		cfg_diag_add(ctx->diags, ctx->at, CFG_ERROR,
			     "unknown option \"%s\": did you mean \"%s\"?", name, suggest.best);
	else
		cfg_diag_add(ctx->diags, ctx->at, CFG_ERROR,
			     "unknown option \"%s\": exports(5) lists the options", name);
	return NULL;
}

static void apply_flags(struct exp_options *options, const struct option_row *row)
{
	struct exp_opts *opts = &options->opts;
	bool by_flavor = options->active && ((row->set | row->clear) & EXP_FLAVOR_FLAGS);

	if (!by_flavor)
		opts->flags = (opts->flags | row->set) & ~row->clear;
	for (uint32_t i = 0; i < opts->n_flavors; i++) {
		uint32_t *flags = &opts->flavors[i].flags;

		if (!by_flavor || (options->active & 1u << i))
			*flags = ((*flags | row->set) & ~row->clear) & EXP_FLAVOR_FLAGS;
	}
}

/* One option, as a string of its own. */
static int apply_option(struct option_ctx *ctx, char *text)
{
	char *value = strchr(text, '=');
	const struct option_row *row;

	if (value)
		*value++ = '\0';
	row = option_by_name(ctx, text);
	if (!row)
		return -EINVAL;
	if (value && row->value == VALUE_NONE) {
		cfg_diag_add(ctx->diags, ctx->at, CFG_ERROR,
			     "option \"%s\" takes no value: write it without \"=\"", text);
		return -EINVAL;
	}
	if ((!value || !*value) && row->value == VALUE_NEEDED) {
		cfg_diag_add(ctx->diags, ctx->at, CFG_ERROR,
			     "option \"%s\" needs a value: write %s", text, row->hint);
		return -EINVAL;
	}
	ctx->options->given |= row->set | row->clear | row->given;
	if (row->apply) {
		ctx->value_from += value ? (size_t)(value - text) : 0;
		ctx->value_at = exp_word_position(ctx->src, ctx->word, ctx->value_from);
		return row->apply(ctx, value);
	}
	if (row->hint)
		cfg_diag_add(ctx->diags, ctx->at, CFG_NOTE, "%s", row->hint);
	apply_flags(ctx->options, row);
	return 0;
}

/* Octets [from, to) are one option; an empty one is nothing, as in exportfs(8). */
static int parse_option(struct option_ctx *ctx, size_t from, size_t to)
{
	char text[EXP_WORD_MAX + 1];

	if (from == to)
		return 0;
	ctx->at = exp_word_position(ctx->src, ctx->word, from);
	ctx->value_from = from;
	memcpy(text, ctx->word->text + from, to - from);
	text[to - from] = '\0';
	return apply_option(ctx, text);
}

int exp_options_parse(struct exp_options *options, const struct exp_source *src,
		      const struct exp_word *word, size_t from, size_t to, struct cfg_diags *diags)
{
	struct option_ctx ctx = { .options = options, .diags = diags, .src = src, .word = word };
	size_t start = from;
	int rc = 0;

	options->active = 0;
	for (size_t i = from; i <= to; i++) {
		int one;

		if (i < to && (word->text[i] != ',' || word->at[i].literal))
			continue;
		one = parse_option(&ctx, start, i);
		if (one == -ENOMEM)
			return one;
		if (one)
			rc = one;
		start = i + 1;
	}
	options->active = 0;
	return rc;
}

void exp_options_init(struct exp_options *options)
{
	*options = (struct exp_options){
		.opts = {
			.flags = EXP_ROOT_SQUASH | EXP_WDELAY,
			.anonuid = 65534,
			.anongid = 65534,
		},
	};
}

void exp_options_free(struct exp_options *options)
{
	free(options->mp_path);
	options->mp_path = NULL;
	free(options->locations);
	options->locations = NULL;
}

int exp_options_copy(struct exp_options *to, const struct exp_options *from)
{
	*to = *from;
	to->mp_path = from->mp_path ? strdup(from->mp_path) : NULL;
	to->locations = from->locations ? strdup(from->locations) : NULL;
	if ((to->mp_path || !from->mp_path) && (to->locations || !from->locations))
		return 0;
	exp_options_free(to);
	return -ENOMEM;
}

void exp_options_finish(struct exp_options *options)
{
	struct exp_opts *opts = &options->opts;

	if (!opts->n_flavors)
		exp_options_add_flavor(options, EXP_AUTH_SYS);
	opts->flags = (opts->flags & ~(uint32_t)EXP_FLAVOR_FLAGS) | opts->flavors[0].flags;
}
