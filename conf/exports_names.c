/* SPDX-License-Identifier: BSD-2-Clause */
#include "conf/exports_names.h"

#include <errno.h>

static struct cfg_place exp_client_place(const struct exp_client *c)
{
	return (struct cfg_place){ .file = c->file ? c->file : "temporary", .line = c->line };
}

/* False if the name service does not answer. */
static bool check_host(const struct exp_export *e, const struct exp_client *c,
		       const struct exp_resolver *resolver, struct cfg_diags *diags)
{
	const struct cfg_place at = exp_client_place(c);
	struct exp_addr addrs[EXP_MAX_ADDRS];
	int n = resolver->forward(resolver->arg, c->name, addrs, EXP_MAX_ADDRS);

	if (n > 0)
		return true;
	if (n == 0 || n == -ENOENT) {
		cfg_diag_add(diags, at, CFG_WARNING,
			     "%s: host %s has no address: it is not let in before the name "
			     "service knows it",
			     e->path, c->name);
		return true;
	}
	cfg_diag_add(diags, at, CFG_WARNING,
		     "%s: the name service does not answer for host %s: it is not let in "
		     "before that, and further names were not checked",
		     e->path, c->name);
	return false;
}

static void check_netgroup(const struct exp_export *e, const struct exp_client *c,
			   const struct exp_resolver *resolver, struct cfg_diags *diags)
{
	const struct cfg_place at = exp_client_place(c);

	if (resolver->has_netgroup && !resolver->has_netgroup(resolver->arg, c->name))
		cfg_diag_add(diags, at, CFG_WARNING,
			     "%s: netgroup @%s is unknown or empty: it lets nobody in", e->path,
			     c->name);
}

void exp_names_check(const struct exp_table *table, const struct exp_resolver *resolver,
		     struct cfg_diags *diags)
{
	for (unsigned i = 0; i < table->n_exports; i++) {
		const struct exp_export *e = &table->exports[i];

		for (unsigned j = 0; j < e->n_clients; j++) {
			const struct exp_client *c = &e->clients[j];

			if (c->kind == EXP_CLIENT_NETGROUP)
				check_netgroup(e, c, resolver, diags);
			if (c->kind == EXP_CLIENT_HOST && c->name &&
			    !check_host(e, c, resolver, diags))
				return;
		}
	}
}
