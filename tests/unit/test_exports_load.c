/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of the export table: which are read, their order, and the effect of errors in them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conf/exports.h"

struct tree {
	char root[64];
	char file[96];
	char dir[96];
	struct cfg_diags diags;
	struct exp_table *table;
};

static void tree_make(struct tree *t)
{
	memset(t, 0, sizeof(*t));
	strcpy(t->root, "/tmp/ringnfs-exports-XXXXXX");
	cr_assert(mkdtemp(t->root) != NULL);
	snprintf(t->file, sizeof(t->file), "%s/exports", t->root);
	snprintf(t->dir, sizeof(t->dir), "%s/exports.d", t->root);
	cr_assert(mkdir(t->dir, 0755) == 0);
	cfg_diags_init(&t->diags);
}

static void tree_drop(struct tree *t)
{
	char command[128];

	exp_table_unref(t->table);
	cfg_diags_free(&t->diags);
	snprintf(command, sizeof(command), "rm -r %s", t->root);
	cr_assert(system(command) == 0);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *out;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	out = fopen(path, "w");
	cr_assert(out != NULL);
	fputs(text, out);
	fclose(out);
}

static int load(struct tree *t, bool strict, bool check_paths)
{
	const struct exp_load_opts opts = {
		.file = t->file, .dir = t->dir, .strict = strict, .check_paths = check_paths
	};

	exp_table_unref(t->table);
	t->table = NULL;
	cfg_diags_free(&t->diags);
	return exp_table_load(&opts, &t->diags, &t->table);
}

/* Other servers change the files, too. */
Test(exports_load, a_promise_that_a_cluster_cannot_keep)
{
	struct exp_load_opts opts = { .strict = false };
	struct tree t;

	tree_make(&t);
	put(t.root, "exports", "/a m(rw)\n/b m(rw) n(rw,nfs_only)\n");
	opts.file = t.file;
	for (unsigned shared = 0; shared < 2; shared++) {
		opts.shared = shared;
		cfg_diags_free(&t.diags);
		cr_assert_eq(exp_table_load(&opts, &t.diags, &t.table), 0);
		cr_expect_eq(t.diags.errors, shared);
		cr_expect_eq(t.table->n_exports, 2 - shared);
		cr_expect_eq(t.table->n_refused, shared);
		for (size_t i = 0; shared && i < t.diags.n; i++)
			if (t.diags.items[i].severity == CFG_ERROR) {
				cr_expect_eq(t.diags.items[i].line, 2);
				cr_expect(strstr(t.diags.items[i].text, "remove the option"));
			}
		exp_table_unref(t.table);
		t.table = NULL;
	}
	tree_drop(&t);
}

Test(exports_load, file_and_directory_in_order)
{
	struct tree t;
	const struct exp_export *export;

	tree_make(&t);
	put(t.root, "exports", "/a m(anonuid=1)");
	put(t.dir, "2.exports", "/a two(anonuid=2)\n/a m(anonuid=9)");
	put(t.dir, "10.exports", "/a ten(anonuid=10)");
	put(t.dir, "1.exports", "/a one");
	put(t.dir, ".hidden.exports", "/hidden x");
	put(t.dir, ".exports", "/hidden x");
	put(t.dir, "other.conf", "/hidden x");
	put(t.dir, "x.exports~", "/hidden x");
	cr_assert(load(&t, true, false) == 0);
	cr_assert(t.table->n_exports == 1);
	export = &t.table->exports[0];
	cr_assert(export->n_clients == 4);
	cr_expect_str_eq(export->clients[0].spec, "m");
	cr_expect_str_eq(export->clients[1].spec, "one");
	cr_expect_str_eq(export->clients[2].spec, "two");
	cr_expect_str_eq(export->clients[3].spec, "ten", "versions in their order: 2 before 10");
	cr_expect(export->clients[0].opts.anonuid == 1, "of two lines the first holds");
	cr_expect(t.diags.warnings == 1 && strstr(t.diags.items[0].file, "2.exports"));
	tree_drop(&t);
}

Test(exports_load, missing_files)
{
	struct tree t;

	tree_make(&t);
	cr_assert(load(&t, false, false) == 0);
	cr_expect(t.diags.errors == 1 && t.table->n_exports == 0);
	cr_expect_str_eq(t.diags.items[0].text, "cannot be read: No such file or directory");
	cr_expect(load(&t, true, false) == -EINVAL);
	cr_expect(t.table == NULL);
	put(t.root, "exports", "");
	cr_expect(rmdir(t.dir) == 0 && load(&t, true, false) == 0, "no directory, no error");
	tree_drop(&t);
}

Test(exports_load, strict)
{
	struct tree t;

	tree_make(&t);
	put(t.root, "exports", "/a x(rw)\n/b x(bogus)");
	cr_expect(load(&t, false, false) == 0 && t.table->n_exports == 1 && t.diags.errors == 1);
	cr_expect(load(&t, true, false) == -EINVAL && t.table == NULL);
	put(t.root, "exports", "/a");
	cr_expect(load(&t, true, false) == 0 && t.diags.warnings == 1, "a warning is no error");
	tree_drop(&t);
}

Test(exports_load, paths)
{
	char text[512];
	struct tree t;
	int n = 0;

	tree_make(&t);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "%s x\n", t.dir);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "  %s/none x\n", t.dir);
	n += snprintf(text + n, sizeof(text) - (size_t)n, "/dev/null x\n%s x\n", t.file);
	put(t.root, "exports", text);
	cr_assert(load(&t, false, true) == 0);
	cr_expect(t.table->n_exports == 2 && exp_table_by_path(t.table, t.dir) &&
		  exp_table_by_path(t.table, t.file));
	cr_assert(t.diags.errors == 2 && t.diags.n == 4);
	cr_expect(strstr(t.diags.items[0].text, "is neither a directory nor a regular file") &&
		  t.diags.items[0].line == 3);
	cr_expect(strstr(t.diags.items[2].text, "No such file or directory") &&
		  t.diags.items[2].line == 2 && t.diags.items[2].col == 3);
	tree_drop(&t);
}

/* A path that comes with a mount: waits only if all its lines have mp and the mount is missing. */
Test(exports_load, paths_that_wait_for_a_mount)
{
	static const struct {
		const char *clients;
		bool waits;
	} of[] = { { "x(mp)", true },	 { "x(mp=/no/such)", true }, { "x(mp) y(mp=/no)", true },
		   { "x(mp) y", false }, { "x(mp=/proc)", false },   { "x", false } };
	char text[128];
	struct tree t;

	tree_make(&t);
	for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		snprintf(text, sizeof(text), "/no/such/directory %s", of[i].clients);
		put(t.root, "exports", text);
		cr_assert(load(&t, false, true) == 0);
		cr_expect_eq(t.table->n_exports, of[i].waits, "%s", of[i].clients);
		cr_expect_eq(t.diags.errors, !of[i].waits, "%s", of[i].clients);
	}
	tree_drop(&t);
}

Test(exports_load, table_lives_while_it_is_referenced)
{
	struct exp_table *held;
	struct tree t;

	tree_make(&t);
	put(t.root, "exports", "/a x(mp=/b)");
	cr_assert(load(&t, false, false) == 0);
	held = exp_table_ref(t.table);
	exp_table_unref(t.table);
	t.table = NULL;
	cr_expect_str_eq(held->exports[0].clients[0].opts.mountpoint, "/b");
	exp_table_unref(held);
	tree_drop(&t);
}

Test(exports_load, mountpoint_check)
{
	struct tree t;

	tree_make(&t);
	cr_expect(exp_check_mountpoint("/proc") == 0);
	cr_expect(exp_check_mountpoint(t.dir) == -ENXIO);
	cr_expect(exp_check_mountpoint("/no/such/directory") == -ENOENT);
	tree_drop(&t);
}
