/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_gss.h"

#include <string.h>

#include "lib/util.h"

static const struct {
	const char *client;
	uint32_t flavor;
} names[] = {
	{ "gss/krb5", EXP_AUTH_KRB5 },
	{ "gss/krb5i", EXP_AUTH_KRB5I },
	{ "gss/krb5p", EXP_AUTH_KRB5P },
};

uint32_t exp_gss_flavor(const char *client)
{
	for (unsigned i = 0; i < rn_array_size(names); i++) {
		if (!strcmp(client, names[i].client))
			return names[i].flavor;
	}
	return 0;
}

static void exp_opts_add_flavor(struct exp_opts *to, uint32_t flavor, uint32_t flags)
{
	uint32_t known;

	if (exp_opts_flavor(to, flavor, &known) || to->n_flavors == EXP_MAX_FLAVORS)
		return;
	to->flavors[to->n_flavors++] =
		(struct exp_flavor){ .flavor = flavor, .flags = flags & EXP_FLAVOR_FLAGS };
}

static void warn_of_anonymous(const struct exp_draft *gss, const struct exp_draft *other,
			      struct cfg_diags *diags)
{
	const struct exp_opts *a = &gss->options.opts, *b = &other->options.opts;

	if (a->anonuid != b->anonuid || a->anongid != b->anongid)
		cfg_diag_add(diags, gss->at, CFG_WARNING,
			     "%s: hosts of %s have its anonuid= and anongid= under %s too: write "
			     "sec= instead of %s",
			     gss->path, other->client.spec, gss->client.spec, gss->client.spec);
}

/* xprtsec= is not kept by flavour, so the stricter of both holds for all. */
static void join_transports(const struct exp_draft *gss, struct exp_draft *to,
			    struct cfg_diags *diags)
{
	const uint32_t left_out = gss->options.opts.flags & EXP_XPRTSEC;
	uint32_t *flags = &to->options.opts.flags;

	if ((*flags & EXP_XPRTSEC) != left_out)
		cfg_diag_add(diags, gss->at, CFG_WARNING,
			     "%s: xprtsec= of %s and that of %s hold for both: write sec= instead "
			     "of %s",
			     gss->path, gss->client.spec, to->client.spec, gss->client.spec);
	*flags |= left_out;
}

/* An identity that only a gss/ line gives is that of the export all the same. */
static void copy_identity(struct exp_opts *to, const struct exp_opts *from)
{
	if (from->has_fsid && !to->has_fsid) {
		to->has_fsid = true;
		to->fsid = from->fsid;
	}
	if (from->has_uuid && !to->has_uuid) {
		to->has_uuid = true;
		memcpy(to->uuid, from->uuid, sizeof(to->uuid));
	}
}

/* Adds the flavours of the gss/ lines to an ordinary line. */
static void extend(struct exp_draft *to, const struct exp_draft *drafts, size_t n,
		   struct cfg_diags *diags)
{
	const bool own_sec = (to->client.own | to->client.inherited) & EXP_GIVEN_SEC;

	for (size_t i = 0; i < n; i++) {
		const struct exp_draft *gss = &drafts[i];

		if (gss->client.gss)
			copy_identity(&to->options.opts, &gss->options.opts);
		if (!gss->client.gss || own_sec)
			continue;
		warn_of_anonymous(gss, to, diags);
		join_transports(gss, to, diags);
		exp_opts_add_flavor(&to->options.opts, gss->client.gss, gss->options.opts.flags);
	}
}

/* Makes the first gss/ line one for all hosts, under the flavours of all of them. */
static void unite(struct exp_draft *first, const struct exp_draft *drafts, size_t n,
		  struct cfg_diags *diags)
{
	struct exp_opts *opts = &first->options.opts;

	opts->n_flavors = 0;
	for (size_t i = 0; i < n; i++) {
		if (!drafts[i].client.gss)
			continue;
		copy_identity(opts, &drafts[i].options.opts);
		join_transports(&drafts[i], first, diags);
		exp_opts_add_flavor(opts, drafts[i].client.gss, drafts[i].options.opts.flags);
	}
	opts->flags = (opts->flags & ~(uint32_t)EXP_FLAVOR_FLAGS) | opts->flavors[0].flags;
}

size_t exp_gss_join(struct exp_draft *drafts, size_t n, struct cfg_diags *diags)
{
	bool world = false;
	size_t kept = 0;
	struct exp_draft *first = NULL;

	for (size_t i = 0; i < n; i++) {
		if (drafts[i].client.gss) {
			first = first ? first : &drafts[i];
			continue;
		}
		world |= drafts[i].client.kind == EXP_CLIENT_ANY;
		extend(&drafts[i], drafts, n, diags);
	}
	if (!first)
		return n;
	unite(first, drafts, n, diags);
	for (size_t i = 0; i < n; i++) {
		struct exp_draft moved = drafts[i];

		if (moved.client.gss && (world || &drafts[i] != first)) {
			exp_draft_free(&drafts[i]);
			continue;
		}
		memset(&drafts[i], 0, sizeof(drafts[i]));
		drafts[kept++] = moved;
	}
	return kept;
}
