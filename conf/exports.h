/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The export table: exports(5) files read into an immutable, reference-counted set.
 *
 * A reload builds a new table and swaps the pointer; users of the old one keep their reference
 * until they are done. Nothing in a published table ever changes, so it is read without locks. All
 * strings belong to the table.
 *
 * An error in any client or option of a path leaves out that whole export, not only the client in
 * error: with one line of an access list gone, a client meant to be restricted would fall through
 * to a wider line. For the same reason the table keeps its path, so that the line of a directory
 * above does not give away what the line in error was to restrict.
 */
#ifndef RINGNFS_CONF_EXPORTS_H
#define RINGNFS_CONF_EXPORTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conf/diag.h"
#include "conf/export_opts.h"

/* In order of precedence, exports(5) "Machine Name Formats". */
enum exp_client_kind {
	EXP_CLIENT_HOST, /* one address, or a name that resolves to addresses */
	EXP_CLIENT_NETWORK,
	EXP_CLIENT_WILDCARD,
	EXP_CLIENT_NETGROUP,
	EXP_CLIENT_ANY,
};

/* An address: 4 or 16 octets in network order; IPv4-mapped IPv6 is stored as IPv4. */
struct exp_addr {
	uint8_t len; /* 0 = none, 4 or 16 */
	uint8_t bytes[16];
};

struct exp_client {
	enum exp_client_kind kind;
	/* As MOUNT EXPORT shows it: "192.0.2.0/24", "*.example.org", "@lab", "*". */
	char *spec;
	/* Host name, wildcard pattern or netgroup (without '@'), lower case but for netgroups; NULL
	 * for addresses. */
	char *name;
	struct exp_addr addr; /* HOST by address and NETWORK */
	uint8_t prefix;	      /* NETWORK: bits */
	uint32_t gss; /* flavour of a line for gss/krb5 and its like, which is for ANY; else 0 */
	const char *file; /* the table's; NULL if the line is not from a file */
	unsigned line;
	/* Options that the client's own list gives, and those of the line's defaults (-OPTIONS) that the
	 * own list leaves: bits of enum exp_flag and enum exp_given. The others have their built-in values. */
	uint32_t own, inherited;
	struct exp_opts opts;
};

struct exp_export {
	char *path; /* absolute, without trailing or doubled slashes */
	/* Stable over restarts and reloads: fsid= if given, else from the UUID or the path. */
	uint32_t id;
	unsigned index; /* in the table */
	unsigned n_clients;
	struct exp_client *clients; /* in the order of the file */
};

/* A path whose lines are in error: nobody reaches it, by the line of a directory above neither. */
struct exp_refused {
	char *path;
	const char *file; /* the table's: where the first of its lines is */
	unsigned line;
};

struct exp_table {
	unsigned n_exports, n_refused;
	struct exp_export *exports; /* sorted by path */
	struct exp_refused *refused;
	struct exp_export **by_id;
	char **files; /* names of the files that it was read from */
	size_t n_files;
	unsigned refs; /* atomic; through exp_table_ref() and exp_table_unref() */
};

struct exp_load_opts {
	const char *file; /* NULL: none */
	const char *text; /* NULL: read from the file; else its content, of text_len octets */
	size_t text_len;
	const char *dir; /* NULL: none; its *.exports are read in version order */
	bool strict;	 /* any error fails the load */
	bool check_paths; /* a path that does not exist, or is neither a directory nor a regular file, is an error */
	/* False if the file system of that path does not answer; the path is then not looked at.
	 * NULL: all answer. */
	bool (*answers)(void *ctx, const char *path);
	void *answers_ctx;
};

/*
 * Read the files. 0 and a table with one reference (perhaps empty: look at diags->errors), or
 * -EINVAL under strict with an error in a file, -ENOMEM.
 */
int exp_table_load(const struct exp_load_opts *opts, struct cfg_diags *diags,
		   struct exp_table **table);

/* The same for one text in memory, named `name` in diagnostics; opts->file and opts->dir are not
 * used. */
int exp_table_parse(const char *name, const char *text, size_t len,
		    const struct exp_load_opts *opts, struct cfg_diags *diags,
		    struct exp_table **table) __attribute__((nonnull(4, 5, 6)));

struct exp_table *exp_table_ref(struct exp_table *table);
void exp_table_unref(struct exp_table *table);

const struct exp_export *exp_table_by_path(const struct exp_table *table, const char *path);
const struct exp_export *exp_table_by_id(const struct exp_table *table, uint32_t id);

/* Drops doubled and trailing slashes and "." of an absolute path in place, as in tables; false when there is a "..". */
bool exp_path_clean(char *path);

/* 0 if `path` is the root of a mount, as the option mountpoint= asks; -ENXIO if it is not, or
 * -errno. Called at each MNT, since the answer changes without a reload. */
int exp_check_mountpoint(const char *path);

#endif
