/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conf/exports_private.h"

struct exp_table *exp_table_new(size_t max)
{
	struct exp_table *table = calloc(1, sizeof(*table));

	if (!table)
		return NULL;
	table->refs = 1;
	table->exports = calloc(max + 1, sizeof(*table->exports));
	table->refused = calloc(max + 1, sizeof(*table->refused));
	if (table->exports && table->refused)
		return table;
	free(table->exports);
	free(table->refused);
	free(table);
	return NULL;
}

static int exp_export_by_id(const void *a, const void *b)
{
	uint32_t x = (*(struct exp_export *const *)a)->id;
	uint32_t y = (*(struct exp_export *const *)b)->id;

	return (x > y) - (x < y);
}

int exp_table_index(struct exp_table *table)
{
	table->by_id = calloc(table->n_exports + 1, sizeof(*table->by_id));
	if (!table->by_id)
		return -ENOMEM;
	for (unsigned i = 0; i < table->n_exports; i++)
		table->by_id[i] = &table->exports[i];
	if (table->n_exports)
		qsort(table->by_id, table->n_exports, sizeof(*table->by_id), exp_export_by_id);
	return 0;
}

static void exp_export_free(struct exp_export *export)
{
	for (unsigned i = 0; i < export->n_clients; i++) {
		struct exp_client *client = &export->clients[i];

		if (client->opts.mountpoint != export->path)
			free((char *)client->opts.mountpoint);
		free((char *)client->opts.locations);
		exp_client_free(client);
	}
	free(export->clients);
	free(export->path);
}

struct exp_table *exp_table_ref(struct exp_table *table)
{
	__atomic_add_fetch(&table->refs, 1, __ATOMIC_RELAXED);
	return table;
}

void exp_table_unref(struct exp_table *table)
{
	if (!table || __atomic_sub_fetch(&table->refs, 1, __ATOMIC_ACQ_REL))
		return;
	for (unsigned i = 0; i < table->n_exports; i++)
		exp_export_free(&table->exports[i]);
	for (unsigned i = 0; i < table->n_refused; i++)
		free(table->refused[i].path);
	for (size_t i = 0; i < table->n_files; i++)
		free(table->files[i]);
	free(table->files);
	free(table->by_id);
	free(table->exports);
	free(table->refused);
	free(table);
}

/* The file's name in the table. */
static const char *own_name(const struct exp_table *table, const char *file)
{
	for (size_t i = 0; i < table->n_files; i++)
		if (strcmp(table->files[i], file) == 0)
			return table->files[i];
	return NULL;
}

int exp_table_copy_refused(struct exp_table *to, const struct exp_table *from)
{
	struct exp_refused *all = calloc(from->n_refused + 1, sizeof(*all));

	if (!all)
		return -ENOMEM;
	free(to->refused);
	to->refused = all;
	for (unsigned i = 0; i < from->n_refused; i++) {
		const struct exp_refused *r = &from->refused[i];

		all[i] = (struct exp_refused){ strdup(r->path), own_name(to, r->file), r->line };
		if (!all[i].path)
			return -ENOMEM;
		to->n_refused++;
	}
	return 0;
}

static int path_cmp(const void *key, const void *item)
{
	return strcmp(key, ((const struct exp_export *)item)->path);
}

const struct exp_export *exp_table_by_path(const struct exp_table *table, const char *path)
{
	if (!table->n_exports)
		return NULL;
	return bsearch(path, table->exports, table->n_exports, sizeof(*table->exports), path_cmp);
}

static int id_cmp(const void *key, const void *item)
{
	uint32_t x = *(const uint32_t *)key;
	uint32_t y = (*(struct exp_export *const *)item)->id;

	return (x > y) - (x < y);
}

const struct exp_export *exp_table_by_id(const struct exp_table *table, uint32_t id)
{
	struct exp_export **found = NULL;

	if (table->n_exports)
		found = bsearch(&id, table->by_id, table->n_exports, sizeof(*table->by_id), id_cmp);
	return found ? *found : NULL;
}

int exp_check_mountpoint(const char *path)
{
	struct statx stx;

	if (statx(AT_FDCWD, path, 0, STATX_TYPE, &stx))
		return -errno;
	if (!(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
		return -EOPNOTSUPP;
	return stx.stx_attributes & STATX_ATTR_MOUNT_ROOT ? 0 : -ENXIO;
}
