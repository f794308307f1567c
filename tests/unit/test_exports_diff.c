/* SPDX-License-Identifier: BSD-2-Clause */
/* Differences of two tables of exports, as JSON. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/admin/admin_exports_diff.h"

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

/* "PATH change: CLIENT change +GAINED -LOST; ..." */
static void expect(const char *was, const char *is, const char *want)
{
	struct exp_table *a = was ? parse(was) : NULL, *b = is ? parse(is) : NULL;
	json_t *diff = exports_diff(a, b), *e, *c, *option;
	size_t i, j, k, len;
	char *text;
	FILE *out = open_memstream(&text, &len);

	json_array_foreach(diff, i, e)
	{
		fprintf(out, "%s %s:", json_string_value(json_object_get(e, "path")),
			json_string_value(json_object_get(e, "change")));
		json_array_foreach(json_object_get(e, "clients"), j, c)
		{
			fprintf(out, " %s %s", json_string_value(json_object_get(c, "client")),
				json_string_value(json_object_get(c, "change")));
			json_array_foreach(json_object_get(c, "gained"), k, option)
				fprintf(out, " +%s", json_string_value(option));
			json_array_foreach(json_object_get(c, "lost"), k, option)
				fprintf(out, " -%s", json_string_value(option));
		}
		fputc(';', out);
	}
	fclose(out);
	cr_expect_str_eq(text, want, "%s", text);
	free(text);
	json_decref(diff);
	exp_table_unref(a);
	exp_table_unref(b);
}

Test(exports_diff, exports)
{
	expect(NULL, NULL, "");
	expect("/a *\n", NULL, "/a removed: * removed;");
	expect(NULL, "/a *\n", "/a added: * added;");
	expect("/a *\n/c *\n/d *\n", "/b *\n/c *\n/e *\n",
	       "/a removed: * removed;/b added: * added;/d removed: * removed;/e added: * added;");
	expect("/a *\n/b x y\n", "/b x y\n/a *\n", "");
}

Test(exports_diff, clients)
{
	expect("/a x y\n", "/a y z\n", "/a changed: x removed z added;");
	expect("/a x y\n", "/a y x\n", "");
	expect("/a -rw x y\n", "/a x(rw) y(ro)\n", "/a changed: y changed +ro -rw;");
	expect("/a x(rw,fsid=3)\n", "/a x(fsid=4,async)\n",
	       "/a changed: x changed +async +fsid=4 +ro -sync -fsid=3 -rw;");
}

/* The same option behind two flavours, and behind one of them. */
Test(exports_diff, flavours)
{
	expect("/a x(sec=sys,rw,sec=none,rw,all_squash)\n",
	       "/a x(sec=sys,rw,sec=none,ro,all_squash)\n", "/a changed: x changed +ro -rw;");
	expect("/a x(sec=sys:none)\n", "/a x(sec=none:sys)\n",
	       "/a changed: x changed +sec=none:sys -sec=sys:none;");
}
