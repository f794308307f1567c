/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows that ringnfs.conf is made of. Internal to conf/. */
#ifndef RINGNFS_CONF_SETTINGS_SCHEMA_H
#define RINGNFS_CONF_SETTINGS_SCHEMA_H

#include "conf/settings.h"

enum cfg_type {
	CFG_BOOL,    /* bool */
	CFG_UINT,    /* uint64_t */
	CFG_SIZE,    /* uint64_t, bytes; K, M, G, T */
	CFG_SECONDS, /* uint64_t; s, m, h, d */
	CFG_PATH,    /* char *, absolute; of at most max octets, if that is not 0 */
	CFG_NAME,    /* char *, a word; of at most max octets */
	CFG_ENUM,    /* int, index of the word */
	CFG_ADDRS,   /* struct cfg_addrs, without ports */
	CFG_SERVERS, /* struct cfg_addrs, with ports; NFS's is the default */
	CFG_PORTS,   /* struct cfg_addrs, each with its port */
};

struct cfg_row {
	const char *section;
	const char *name;
	const char *key; /* SECTION.NAME */
	enum cfg_type type;
	bool zero; /* 0 is allowed beside the range, or an empty path */
	size_t offset;
	uint64_t min;
	uint64_t max;
	uint64_t step;		  /* 0, or the number must be a multiple of it */
	const char *const *words; /* NULL-terminated */
	const char *def;
	const char *text; /* whole sentences */
};

struct cfg_section {
	const char *name;
	const char *text;
};

static inline bool cfg_is_list(const struct cfg_row *row)
{
	return row->type == CFG_ADDRS || row->type == CFG_SERVERS || row->type == CFG_PORTS;
}

extern const struct cfg_row cfg_rows[];
extern const unsigned cfg_n_rows;
extern const struct cfg_section cfg_sections[];
extern const unsigned cfg_n_sections;

enum { CFG_VALUE_MAX = 1024, CFG_TEXT_MAX = 256 };

/* Set the row's field from a text. 0, -ENOMEM, or -EINVAL with a message in `wrong`. A value is
 * added to a list; clear it first with cfg_value_clear(). */
int cfg_value_parse(const struct cfg_row *row, struct cfg_settings *settings, const char *text,
		    char wrong[CFG_TEXT_MAX]);
void cfg_value_clear(const struct cfg_row *row, struct cfg_settings *settings);
/* The field as a text that parses to it again. */
void cfg_value_print(const struct cfg_row *row, const struct cfg_settings *settings,
		     char text[CFG_VALUE_MAX]);
/* Allowed values, as in "0 to 256". */
void cfg_value_range(const struct cfg_row *row, char text[CFG_TEXT_MAX]);

/* Write the manual's list of keys, in mdoc. */
void cfg_print_mdoc(FILE *out);

#endif
