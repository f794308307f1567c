/* SPDX-License-Identifier: BSD-2-Clause */
/* Warnings of names in the export table that the name service does not know. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "conf/exports.h"
#include "lib/error.h"

static int fake_forward(void *arg, const char *name, struct exp_addr *addrs, unsigned max)
{
	(void)arg;
	(void)max;
	if (strcmp(name, "silent.example") == 0)
		return -RN_ELATER;
	if (strcmp(name, "known.example") != 0)
		return -ENOENT;
	memset(&addrs[0], 0, sizeof(addrs[0]));
	return 1;
}

static int fake_has_netgroup(void *arg, const char *group)
{
	(void)arg;
	return strcmp(group, "lab") == 0;
}

static void check(const char *text, const char *const *want)
{
	const struct exp_resolver resolver = { .forward = fake_forward,
					       .has_netgroup = fake_has_netgroup };
	const struct exp_load_opts no_checks = { 0 };
	struct exp_table *table;
	struct cfg_diags diags;
	unsigned n = 0;

	cfg_diags_init(&diags);
	cr_assert(exp_table_parse("f", text, strlen(text), &no_checks, &diags, &table) == 0);
	cr_assert(diags.n == 0, "%s", text);
	exp_names_check(table, &resolver, &diags);
	for (; want[n]; n++) {
		cr_assert(n < diags.n, "missing: %s", want[n]);
		cr_expect(strstr(diags.items[n].text, want[n]) != NULL, "%s", diags.items[n].text);
		cr_expect(diags.items[n].severity == CFG_WARNING);
		cr_expect_str_eq(diags.items[n].file, "f");
		cr_expect(diags.items[n].line > 0);
	}
	cr_expect(diags.n == n, "%u messages for %s", diags.n, text);
	exp_table_unref(table);
	cfg_diags_free(&diags);
}

Test(exports_names, known_names_and_addresses_are_silent)
{
	check("/a known.example(rw) 192.0.2.1 10.0.0.0/8 *.example @lab *(ro)",
	      (const char *const[]){ NULL });
}

Test(exports_names, unknown_hosts_and_netgroups_are_warnings)
{
	check("/a nobody.example @nogroup\n/b known.example nobody2.example",
	      (const char *const[]){ "/a: host nobody.example has no address",
				     "/a: netgroup @nogroup is unknown or empty",
				     "/b: host nobody2.example has no address", NULL });
}

Test(exports_names, a_silent_name_service_is_asked_once)
{
	check("/a silent.example nobody.example",
	      (const char *const[]){ "does not answer for host silent.example", NULL });
}
