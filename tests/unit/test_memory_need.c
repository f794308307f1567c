/* SPDX-License-Identifier: BSD-2-Clause */
/* How much memory settings need, and what is said when they do not have it. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/limits.h"

#define MIB(n) ((size_t)(n) << 20)

#define ALL                                                                                        \
	"[rdma]\nenabled = yes\n[gss]\nenabled = yes\nmax_contexts = 1000000\n"                    \
	"[tls]\ncertificate = /cert.pem\n"

static struct cfg_settings settings;
static struct cfg_diags diags;

static void setup(void)
{
	cr_assert_eq(cfg_set_defaults(&settings), 0);
	cfg_diags_init(&diags);
}

static void teardown(void)
{
	cfg_diags_free(&diags);
	cfg_free(&settings);
}

TestSuite(memory_need, .init = setup, .fini = teardown);

static void parse(const char *text)
{
	cr_assert_eq(cfg_parse(&settings, "f", text, strlen(text), &diags), 0);
}

static void set_memory(size_t bytes)
{
	char text[64];

	snprintf(text, sizeof(text), "%zu", bytes);
	cr_assert_eq(cfg_set(&settings, "server.memory_max", text, "--memory", &diags), 0);
}

Test(memory_need, settings_that_are_not_touched_have_the_least_that_can_be_set)
{
	parse("[gss]\nenabled = no\n[server]\nmemory_max = 64M\n");
	cr_assert_eq(memory_need_least(&settings), MIB(64));
	cr_assert_eq(memory_need_check(&settings, MIB(4096), &diags), 0);
	cr_assert_eq(memory_need_budget(&settings, MIB(4096)), MIB(64));
}

static size_t need_with(const char *more)
{
	teardown();
	setup();
	parse("[tcp]\nmax_connections = 32768\n");
	settings.gss.enabled = CFG_NO; /* the machine may have a keytab */
	parse(more);
	return memory_need_least(&settings);
}

Test(memory_need, each_thing_that_is_asked_for_needs_some)
{
	const size_t need = need_with("");

	cr_assert_gt(need, MIB(64));
	cr_assert_gt(need_with("[rdma]\nenabled = yes\n"), need);
	cr_assert_gt(need_with("[gss]\nenabled = yes\n"), need);
	cr_assert_gt(need_with("[tls]\ncertificate = /cert.pem\n"), need);
	cr_assert_lt(need_with("[rdma]\nenabled = no\n"), need);
	cr_assert_lt(need_with("[nfs4]\nenabled = no\n"), need);
	cr_assert_lt(need_with("[tcp]\nenabled = no\n"), need);
}

Test(memory_need, too_little_is_told_with_its_place_and_what_would_be_right)
{
	char want[64];

	parse("# nothing\n[server]\nmemory_max = 64M\n" ALL);
	const size_t need = memory_need_least(&settings);

	cr_assert_eq(memory_need_check(&settings, MIB(4096), &diags), -EINVAL);
	cr_assert_eq(diags.errors, 1);
	cr_assert_str_eq(diags.items[0].file, "f");
	cr_assert_eq(diags.items[0].line, 3);
	snprintf(want, sizeof(want), "make it %zuM or more", need >> 20);
	cr_assert(strstr(diags.items[0].text, want), "%s", diags.items[0].text);
	cr_assert(strstr(diags.items[0].text, "(gss.enabled)"), "%s", diags.items[0].text);
	set_memory(need - 1);
	cr_assert_eq(memory_need_check(&settings, MIB(4096), &diags), -EINVAL);
	cr_assert_str_eq(diags.items[1].file, "--memory");
	set_memory(need);
	cr_assert_eq(memory_need_check(&settings, MIB(4096), &diags), 0);
}

Test(memory_need, by_default_it_is_a_quarter_or_what_is_needed)
{
	parse(ALL);
	const size_t need = memory_need_least(&settings);

	cr_assert_eq(memory_need_budget(&settings, 8 * need), 2 * need);
	cr_assert_eq(memory_need_budget(&settings, 3 * need), need);
	cr_assert_eq(memory_need_check(&settings, 2 * need, &diags), 0);
	cr_assert_eq(memory_need_check(&settings, 2 * need - 1, &diags), -EINVAL);
}

Test(memory_need, by_default_the_place_is_that_of_what_needs_most)
{
	parse("[rdma]\nenabled = yes\n[tcp]\nmax_connections = 1000000\n");
	cr_assert_eq(memory_need_check(&settings, MIB(512), &diags), -EINVAL);
	cr_assert_eq(diags.items[0].line, 4);
	cr_assert(strstr(diags.items[0].text, "by default"), "%s", diags.items[0].text);
}
