/* SPDX-License-Identifier: BSD-2-Clause */
/* The record file of monitors: names as callers may choose them, files that are cut off, and restarts of the
 * machine. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nsm/monitor.h"

static struct nsm_monitor *add(struct nsm_monitor_list *list, const char *name, const char *my)
{
	struct nsm_monitor *m = calloc(1, sizeof(*m));

	cr_assert(m);
	m->name_len = (uint32_t)strlen(name);
	memcpy(m->name, name, m->name_len);
	m->my.name_len = (uint32_t)strlen(my);
	memcpy(m->my.name, my, m->my.name_len);
	cr_assert(nsm_name_address(m->name, m->name_len, &m->addr));
	m->my.prog = UINT32_MAX;
	m->my.proc = 16;
	memset(m->priv, 0xa5, sizeof(m->priv));
	LIST_INSERT_HEAD(list, m, link);
	return m;
}

static struct nsm_text text_of_two(struct nsm_monitor_list *list)
{
	struct nsm_text t = { .data = NULL };

	add(list, "10.0.0.1", "a name\nend 0\n");
	add(list, "fe80::1", "")->former = true;
	nsm_monitors_put(list, &t);
	cr_assert_not(t.failed);
	return t;
}

Test(nsm_monitor, what_is_written_is_read)
{
	struct nsm_monitor_list list = LIST_HEAD_INITIALIZER(list),
				got = LIST_HEAD_INITIALIZER(got);
	struct nsm_text t = text_of_two(&list);
	const struct nsm_monitor *m;
	unsigned n = 0;

	cr_assert_eq(nsm_monitors_read(t.data, t.len, &got), 0);
	LIST_FOREACH (m, &got, link) {
		const bool first = m->name_len == 8;

		n++;
		cr_expect_eq(m->former, !first);
		cr_expect_eq(m->due, !first, "who is to be told still is told");
		cr_expect_eq(m->my.prog, UINT32_MAX);
		cr_expect_eq(m->my.proc, 16);
		cr_expect_eq(m->my.name_len, first ? 13 : 0);
		cr_expect_eq(m->priv[15], 0xa5);
		cr_expect_eq(m->addr.bytes[15], 1);
	}
	cr_expect_eq(n, 2);
	nsm_monitors_free(&got);
	nsm_monitors_free(&list);
	nsm_text_free(&t);
}

Test(nsm_monitor, every_file_that_is_cut_off)
{
	struct nsm_monitor_list list = LIST_HEAD_INITIALIZER(list);
	struct nsm_text t = text_of_two(&list);

	for (size_t len = 0; len < t.len; len++) {
		struct nsm_monitor_list got = LIST_HEAD_INITIALIZER(got);

		cr_expect_eq(nsm_monitors_read(t.data, len, &got), -EINVAL, "%zu", len);
		nsm_monitors_free(&got);
	}
	nsm_monitors_free(&list);
	nsm_text_free(&t);
}

Test(nsm_monitor, a_restart_of_the_machine)
{
	struct nsm_monitor_list list = LIST_HEAD_INITIALIZER(list),
				got = LIST_HEAD_INITIALIZER(got);
	struct nsm_text t = { .data = NULL };
	char *boot;

	add(&list, "10.0.0.1", "me");
	nsm_monitors_put(&list, &t);
	nsm_text_put(&t, "", 1);
	boot = strstr(t.data, "boot ");
	cr_assert(boot);
	boot[5] = boot[5] == 'x' ? 'y' : 'x';
	cr_assert_eq(nsm_monitors_read(t.data, t.len - 1, &got), 0);
	cr_expect(LIST_FIRST(&got)->former && LIST_FIRST(&got)->due);
	nsm_monitors_free(&got);
	nsm_monitors_free(&list);
	nsm_text_free(&t);
}

Test(nsm_monitor, names_that_are_addresses)
{
	static const char *const bad[] = {
		"", "host", "10.0.0", "10.0.0.1 ", "::g", "10.0.0.1%lo"
	};
	const uint8_t nul[] = { '1', '0', '.', '0', '.', '0', '.', '1', 0, 'x' };
	struct rpc_address a;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(
			nsm_name_address((const uint8_t *)bad[i], (uint32_t)strlen(bad[i]), &a),
			"%s", bad[i]);
	cr_expect_not(nsm_name_address(nul, sizeof(nul), &a), "a name with a NUL inside");
	cr_expect(nsm_name_address((const uint8_t *)"10.2.3.4", 8, &a));
	cr_expect(a.bytes[10] == 0xff && a.bytes[12] == 10 && a.bytes[15] == 4);
	cr_expect(nsm_name_address((const uint8_t *)"::ffff:10.2.3.4", 15, &a));
	cr_expect(a.bytes[12] == 10);
}
