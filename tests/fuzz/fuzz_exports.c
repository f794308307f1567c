/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses any octets as an exports(5) file, then matches a peer against the resulting table. */
#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/exports.h"
#include "lib/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives every name to the peer, so that host names, netgroups and wildcards all reach the
 * comparison. */
static int any_name(void *arg, const struct exp_addr *addr, char name[EXP_NAME_MAX])
{
	(void)arg;
	(void)addr;
	strcpy(name, "Host1.Example.ORG.");
	return 0;
}

static int any_addr(void *arg, const char *name, struct exp_addr *addrs, unsigned max)
{
	(void)arg;
	(void)max;
	addrs[0] = (struct exp_addr){ .len = 4, .bytes = { 192, 0, 2, 1 } };
	return strlen(name) % 3 == 0 ? -RN_ELATER : strlen(name) % 3 == 1 ? -ENOENT : 1;
}

static int any_group(void *arg, const char *group, const char *const *names, unsigned n)
{
	(void)arg;
	(void)names;
	return n && strlen(group) % 2;
}

static uint64_t no_time(void *arg)
{
	(void)arg;
	return 1;
}

/* Checks the invariants of every table that the parser returns. */
static void check_table(const struct exp_table *table)
{
	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *export = &table->exports[i];

		if (export->index != i || !export->n_clients || export->path[0] != '/' ||
		    strstr(export->path, "//") || exp_table_by_id(table, export->id) != export ||
		    exp_table_by_path(table, export->path) != export)
			abort();
		for (unsigned j = 0; j < export->n_clients; j++) {
			const struct exp_opts *opts = &export->clients[j].opts;

			if (!opts->n_flavors || opts->n_flavors > EXP_MAX_FLAVORS)
				abort();
		}
	}
}

static void match(struct exp_table *table)
{
	static const struct exp_resolver resolver = { any_name, any_addr, any_group,
						      no_time,	NULL,	  NULL };
	static const struct exp_match_conf conf = { .max_peers = 8 };
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(0xc0000201) };
	struct exp_matcher *matcher;

	if (exp_matcher_new(table, &resolver, &conf, &matcher))
		return;
	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *export = &table->exports[i];
		const struct exp_opts *opts;
		const int rc = exp_match(matcher, export, (struct sockaddr *)&in, &opts);

		/* Options that are returned must belong to a client line of this export. */
		if ((rc == 0) != (opts != NULL))
			abort();
		if (opts &&
		    ((const char *)opts < (const char *)export->clients ||
		     (const char *)opts >= (const char *)(export->clients + export->n_clients)))
			abort();
	}
	exp_matcher_free(matcher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct exp_load_opts no_checks;
	struct cfg_diags diags;
	struct exp_table *table;

	cfg_diags_init(&diags);
	if (!exp_table_parse("fuzz", (const char *)data, size, &no_checks, &diags, &table)) {
		check_table(table);
		match(table);
		exp_table_unref(table);
	}
	cfg_diags_free(&diags);
	return 0;
}
