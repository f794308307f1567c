/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From texts to a table. Internal to the exports parser.
 *
 * The parser adds one draft for each client of each line, errors included; exp_builder_finish()
 * sorts them into exports, leaves out those in error, and moves the strings of the others into the
 * table.
 */
#ifndef RINGNFS_CONF_EXPORTS_BUILDER_H
#define RINGNFS_CONF_EXPORTS_BUILDER_H

#include "conf/exports.h"
#include "conf/exports_options.h"

struct exp_draft {
	char *path;
	struct cfg_place at; /* place of the path; the file's name belongs to the builder */
	size_t seq;	     /* order of appearance */
	bool bad;
	struct exp_client client;
	struct exp_options options;
};

struct exp_builder {
	struct exp_draft *drafts;
	size_t n;
	size_t cap;
	char **files;
	size_t n_files;
	bool strict; /* options for all machines, written behind a blank, are an error */
};

void exp_builder_init(struct exp_builder *builder);
void exp_builder_free(struct exp_builder *builder);

/* The builder's own copy of a file name, or NULL. */
const char *exp_builder_file(struct exp_builder *builder, const char *name);

/* Take over the draft's strings (also on error). 0 or -ENOMEM. */
int exp_builder_add(struct exp_builder *builder, struct exp_draft *draft);
void exp_draft_free(struct exp_draft *draft);

/* Parse one text into drafts. 0 or -ENOMEM; errors in the text are in diags. */
int exp_builder_parse(struct exp_builder *builder, const char *name, const char *text, size_t len,
		      struct cfg_diags *diags);

/* Make the table; the drafts are used up. 0 or -ENOMEM. */
int exp_builder_finish(struct exp_builder *builder, const struct exp_load_opts *opts,
		       struct cfg_diags *diags, struct exp_table **table);

/* Give each export its id; `drafts[i]` is the first draft of exports[i]. Marks bad[i]. */
struct exp_id_request {
	const struct exp_draft *first;
	const char *path;
	bool has_fsid;
	bool has_uuid;
	uint32_t fsid;
	const uint8_t *uuid;
	uint32_t id; /* the id found */
};

void exp_assign_ids(struct exp_id_request *requests, size_t n, struct cfg_diags *diags);

#endif
