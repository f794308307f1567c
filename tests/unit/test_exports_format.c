/* SPDX-License-Identifier: BSD-2-Clause */
/* Options as text, and where each of them comes from. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"

#define REST "anonuid=65534,anongid=65534,"
#define SQUASH "root_squash,no_all_squash"

static struct exp_table *parse(const char *text)
{
	const struct exp_load_opts none = { .file = NULL };
	struct exp_table *table = NULL;
	struct cfg_diags diags;

	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", text, strlen(text), &none, &diags, &table) == 0);
	cr_assert_eq(diags.errors, 0, "%s", text);
	cfg_diags_free(&diags);
	return table;
}

static const struct {
	const char *options, *want;
} cases[] = {
	{ "", "sync,wdelay,hide,no_subtree_check,secure," REST "sec=sys,ro," SQUASH },
	{ "rw,async,insecure",
	  "async,wdelay,hide,no_subtree_check,insecure," REST "sec=sys,rw," SQUASH },
	{ "crossmnt,nohide,no_wdelay,subtree_check",
	  "sync,no_wdelay,nohide,crossmnt,subtree_check,secure," REST "sec=sys,ro," SQUASH },
	{ "insecure_locks,no_acl,pnfs,security_label,nordirplus,nfs_only,sign_fh",
	  "sync,wdelay,hide,no_subtree_check,insecure_locks,no_acl,pnfs,security_label,nordirplus,"
	  "nfs_only,sign_fh,secure," REST "sec=sys,ro," SQUASH },
	{ "fsid=root,anonuid=7,anongid=-2,mp=/m",
	  "sync,wdelay,hide,no_subtree_check,secure,mountpoint=/"
	  "m,fsid=0,anonuid=7,anongid=4294967294,"
	  "sec=sys,ro," SQUASH },
	{ "replicas=/x@y,refer=/d@[::1]+h",
	  "sync,wdelay,hide,no_subtree_check,secure,refer=/d@[::1]+h," REST "sec=sys,ro," SQUASH },
	{ "refer=/x@y,replicas=/d@h:/e@i",
	  "sync,wdelay,hide,no_subtree_check,secure,replicas=/d@h:/e@i," REST
	  "sec=sys,ro," SQUASH },
	{ "fsid=00112233-4455-6677-8899-aabbccddeeff",
	  "sync,wdelay,hide,no_subtree_check,secure,fsid=00112233-4455-6677-8899-aabbccddeeff," REST
	  "sec=sys,ro," SQUASH },
	{ "sec=none:sys,rw",
	  "sync,wdelay,hide,no_subtree_check,secure," REST "sec=none:sys,rw," SQUASH },
	{ "sec=sys,rw,no_root_squash,sec=none,ro,all_squash",
	  "sync,wdelay,hide,no_subtree_check,secure," REST
	  "sec=sys,rw,no_root_squash,no_all_squash,sec=none,ro,root_squash,all_squash" },
};

/* The text is that which is wanted, and reads back as itself. */
Test(exports_format, texts)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char line[1024];
		const char *options = cases[i].options;

		for (unsigned round = 0; round < 2; round++) {
			snprintf(line, sizeof(line), "/e host(%s)\n", options);
			struct exp_table *table = parse(line);
			char *text = exp_opts_text(&table->exports[0].clients[0].opts);

			cr_expect_str_eq(text, cases[i].want, "%s: %s", line, text);
			free(text);
			exp_table_unref(table);
			options = cases[i].want;
		}
	}
}

Test(exports_format, origins)
{
	struct exp_table *table =
		parse("# first\n/e -rw,insecure,anonuid=5 a(ro,fsid=3) b\n/f c\n");
	const struct exp_client *a = &table->exports[0].clients[0];
	const struct exp_client *b = &table->exports[0].clients[1];
	const struct exp_client *c = &table->exports[1].clients[0];

	cr_expect_eq(a->own, (uint32_t)(EXP_RW | EXP_GIVEN_FSID));
	cr_expect_eq(a->inherited, (uint32_t)(EXP_INSECURE | EXP_GIVEN_ANONUID));
	cr_expect_eq(b->own, 0u);
	cr_expect_eq(b->inherited, (uint32_t)(EXP_RW | EXP_INSECURE | EXP_GIVEN_ANONUID));
	cr_expect_eq(c->own | c->inherited, 0u);
	cr_expect_str_eq(a->file, "f");
	cr_expect_eq(a->line, 2u);
	cr_expect_eq(c->line, 3u);
	exp_table_unref(table);
}
