/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "lib/util.h"

struct flag_name {
	uint32_t bit;
	const char *set;
	const char *clear; /* NULL: not shown */
};

static const struct flag_name common[] = {
	{ EXP_ASYNC, "async", "sync" },
	{ EXP_WDELAY, "wdelay", "no_wdelay" },
	{ EXP_NOHIDE, "nohide", "hide" },
	{ EXP_CROSSMNT, "crossmnt", NULL },
	{ EXP_SUBTREE_CHECK, "subtree_check", "no_subtree_check" },
	{ EXP_NO_AUTH_NLM, "insecure_locks", NULL },
	{ EXP_NO_ACL, "no_acl", NULL },
	{ EXP_PNFS, "pnfs", NULL },
	{ EXP_SECURITY_LABEL, "security_label", NULL },
	{ EXP_NO_RDIRPLUS, "nordirplus", NULL },
	{ EXP_NFS_ONLY, "nfs_only", NULL },
	{ EXP_SIGN_FH, "sign_fh", NULL },
	{ EXP_INSECURE, "insecure", "secure" },
};

/* Options that may differ between security flavours. */
static const struct flag_name by_flavor[] = {
	{ EXP_RW, "rw", "ro" },
	{ EXP_ROOT_SQUASH, "root_squash", "no_root_squash" },
	{ EXP_ALL_SQUASH, "all_squash", "no_all_squash" },
};

struct sink {
	void (*each)(void *ctx, uint32_t bit, const char *text);
	void *ctx;
};

static void put_flags(const struct sink *to, const struct flag_name *names, size_t n,
		      uint32_t flags)
{
	for (size_t i = 0; i < n; i++) {
		const char *text = flags & names[i].bit ? names[i].set : names[i].clear;

		if (text)
			to->each(to->ctx, names[i].bit, text);
	}
}

static void put_values(const struct sink *to, const struct exp_opts *opts)
{
	char text[EXP_OPTION_TEXT];
	size_t len;

	if (opts->mountpoint) {
		snprintf(text, sizeof(text), "mountpoint=%s", opts->mountpoint);
		to->each(to->ctx, EXP_GIVEN_MOUNTPOINT, text);
	}
	if (opts->locations) {
		snprintf(text, sizeof(text), "%s=%s",
			 opts->flags & EXP_REFER ? "refer" : "replicas", opts->locations);
		to->each(to->ctx, EXP_GIVEN_LOCATIONS, text);
	}
	if (opts->has_fsid) {
		snprintf(text, sizeof(text), "fsid=%" PRIu32, opts->fsid);
		to->each(to->ctx, EXP_GIVEN_FSID, text);
	}
	if (opts->has_uuid) {
		len = (size_t)snprintf(text, sizeof(text), "fsid=");
		for (size_t i = 0; i < sizeof(opts->uuid); i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%02x",
						i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
						opts->uuid[i]);
		to->each(to->ctx, EXP_GIVEN_FSID, text);
	}
	snprintf(text, sizeof(text), "anonuid=%" PRIu32, opts->anonuid);
	to->each(to->ctx, EXP_GIVEN_ANONUID, text);
	snprintf(text, sizeof(text), "anongid=%" PRIu32, opts->anongid);
	to->each(to->ctx, EXP_GIVEN_ANONGID, text);
}

/* Nothing if every transport is allowed. */
static void put_xprtsec(const struct sink *to, uint32_t flags)
{
	char text[32] = "xprtsec=";
	size_t len = strlen(text);

	if (!(flags & EXP_XPRTSEC))
		return;
	if (!(flags & EXP_NO_PLAIN))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "none:");
	if (!(flags & EXP_NO_TLS))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "tls:");
	if (!(flags & EXP_NO_MTLS))
		len += (size_t)snprintf(text + len, sizeof(text) - len, "mtls:");
	text[len - 1] = '\0';
	to->each(to->ctx, EXP_GIVEN_XPRTSEC, text);
}

/* Flavours that follow each other and have the same flags share a sec=. */
static void exp_opts_put_flavors(const struct sink *to, const struct exp_opts *opts)
{
	for (uint32_t i = 0, end; i < opts->n_flavors; i = end) {
		const uint32_t flags = opts->flavors[i].flags;
		char text[64] = "sec=";

		for (end = i; end < opts->n_flavors && opts->flavors[end].flags == flags; end++) {
			const size_t len = strlen(text);
			snprintf(text + len, sizeof(text) - len, "%s%s", end > i ? ":" : "",
				 exp_flavor_name(opts->flavors[end].flavor));
		}
		to->each(to->ctx, EXP_GIVEN_SEC, text);
		put_flags(to, by_flavor, rn_array_size(by_flavor), flags);
	}
}

void exp_opts_each(const struct exp_opts *opts,
		   void (*each)(void *ctx, uint32_t bit, const char *text), void *ctx)
{
	const struct sink to = { each, ctx };

	put_flags(&to, common, rn_array_size(common), opts->flags);
	put_xprtsec(&to, opts->flags);
	put_values(&to, opts);
	exp_opts_put_flavors(&to, opts);
}

struct joined {
	FILE *out;
	bool any;
};

static void exp_opts_join(void *ctx, uint32_t bit, const char *text)
{
	struct joined *j = ctx;

	(void)bit;
	fprintf(j->out, "%s%s", j->any ? "," : "", text);
	j->any = true;
}

char *exp_opts_text(const struct exp_opts *opts)
{
	char *text = NULL;
	size_t len;
	struct joined j = { .out = open_memstream(&text, &len) };

	if (!j.out)
		return NULL;
	exp_opts_each(opts, exp_opts_join, &j);
	if (fclose(j.out) == 0)
		return text;
	free(text);
	return NULL;
}
