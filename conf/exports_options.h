/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The option lists of exports(5). Internal to the exports parser.
 *
 * Options before the first sec= hold for every flavour; those of EXP_FLAVOR_FLAGS after a sec= hold
 * for that sec='s flavours alone. A client's own sec= replaces the one of the line's defaults.
 */
#ifndef RINGNFS_CONF_EXPORTS_OPTIONS_H
#define RINGNFS_CONF_EXPORTS_OPTIONS_H

#include "conf/diag.h"
#include "conf/export_opts.h"
#include "conf/exports_source.h"

enum exp_mountpoint_kind { EXP_MP_NONE, EXP_MP_SELF, EXP_MP_PATH };

struct exp_options {
	struct exp_opts opts;
	uint32_t active; /* bits of opts.flavors: the flavours of the last sec= in the list */
	enum exp_mountpoint_kind mp;
	char *mp_path;	 /* EXP_MP_PATH; owned */
	char *locations; /* opts.locations, once they are in a table; owned */
	uint32_t given;	 /* options that were parsed: bits of enum exp_flag and enum exp_given */
};

/* ro,sync,secure,root_squash,wdelay,... with sec=sys. */
void exp_options_init(struct exp_options *options);
void exp_options_free(struct exp_options *options);
int exp_options_copy(struct exp_options *to, const struct exp_options *from);

/* Apply octets [from, to) of the word. 0; -EINVAL after errors (each is reported, correct options
 * are applied); -ENOMEM. */
int exp_options_parse(struct exp_options *options, const struct exp_source *src,
		      const struct exp_word *word, size_t from, size_t to, struct cfg_diags *diags);

/* Set options that were not given: the default flavour. */
void exp_options_finish(struct exp_options *options);

#endif
