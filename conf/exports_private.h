/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the files which read exports(5) call in each other, in the order of reading: words of a text, options, clients,
 * exports that are not complete yet, files and folders, names of hosts. */
#ifndef RN_CONF_EXPORTS_PRIVATE_H
#define RN_CONF_EXPORTS_PRIVATE_H

#include <stdbool.h>
#include <stddef.h>

#include "conf/diag.h"
#include "conf/exports.h"

/*
 * Characters and words of an exports(5) text, each with its position.
 *
 * A backslash before the end of a line joins the next line, without
 * its leading blanks, as one space. A word may be quoted in part or in whole; \ooo stands for one
 * octet.
 */
enum { EXP_WORD_MAX = 8191 };

struct exp_source {
	const char *file;
	const char *text;
	size_t len;
	size_t off;
	unsigned line;
	unsigned col;
};

struct exp_char {
	int c; /* octet, '\n' or EOF */
	unsigned line;
	unsigned col;
};

struct exp_word {
	size_t len;
	unsigned errors;
	struct cfg_position start;
	char text[EXP_WORD_MAX + 1]; /* terminated */
	/* Place of each octet; literal: it was quoted or escaped and has no special meaning. */
	struct {
		unsigned line;
		unsigned col : 31;
		unsigned literal : 1;
	} at[EXP_WORD_MAX + 1];
};

void exp_source_init(struct exp_source *src, const char *file, const char *text, size_t len);

struct exp_char exp_source_peek(const struct exp_source *src);

/* Skip blanks and a comment: next is a word, '\n' or EOF. */
void exp_source_skip_blanks(struct exp_source *src);
/* Skip to the next line that has a word; false at the end of the text. */
bool exp_source_next_line(struct exp_source *src);

/*
 * Read one word. With `options`, a list in round brackets belongs to it and blanks within the
 * brackets are an error. Errors are reported and counted in word->errors; the source always moves
 * on.
 */
void exp_source_word(struct exp_source *src, bool options, struct exp_word *word,
		     struct cfg_diags *diags);

static inline struct cfg_position exp_word_position(const struct exp_source *src,
						    const struct exp_word *word, size_t i)
{
	return (struct cfg_position){ src->file, word->at[i].line, word->at[i].col };
}

/*
 * The option lists of exports(5). Internal to the exports parser.
 *
 * Options before the first sec= hold for every flavour; those of EXP_FLAVOR_FLAGS after a sec= hold
 * for that sec='s flavours alone. A client's own sec= replaces the one of the line's defaults.
 */

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

/* The machine name formats of exports(5). Internal to the exports parser. */

/*
 * Read octets [0, len) of the word as a machine name; none of them is the world. Fills kind, spec,
 * name, addr, prefix and line; the strings go with exp_client_free(), after an error too. 0,
 * -EINVAL with a message, -ENOMEM.
 */
int exp_client_parse(struct exp_client *client, const struct exp_source *src,
		     const struct exp_word *word, size_t len, struct cfg_diags *diags);
void exp_client_free(struct exp_client *client);

/* True if both name the same machines by the same words. */
bool exp_client_same(const struct exp_client *a, const struct exp_client *b);

/*
 * From texts to a table. Internal to the exports parser.
 *
 * The parser adds one draft for each client of each line, errors included; exp_builder_finish()
 * sorts them into exports, leaves out those in error, and moves the strings of the others into the
 * table.
 */

struct exp_draft {
	char *path;
	struct cfg_position at; /* position of the path; the file's name belongs to the builder */
	size_t seq;		/* order of appearance */
	bool bad;
	bool silent; /* the file system of its path or of its mp does not answer */
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

/* An export that is given its id. */
struct exp_id_request {
	const struct exp_draft *first; /* of its drafts */
	const char *path;
	bool has_fsid;
	bool has_uuid;
	uint32_t fsid;
	const uint8_t *uuid;
	uint32_t id; /* the id found */
};

/*
 * Lines for "gss/krb5", "gss/krb5i" and "gss/krb5p", an old form of sec= (exports(5) "RPCSEC_GSS Security"): the
 * options of every host that calls under that flavour. Internal to the exports parser.
 */

/* The flavour of a client so written; 0: it is no such client. */
uint32_t exp_gss_flavor(const char *client);

/* Files that hold tables of exports: one by name, and those of a directory. Internal to conf/. */

struct exp_file_sink {
	/* One file that was read; a result other than 0 ends the reading. */
	int (*text)(void *arg, const char *path, const char *text, size_t len);
	/* A file or the directory that cannot be read. */
	void (*unread)(void *arg, const char *path, int error);
	void *arg;
};

/*
 * Reads the file, then the directory's *.exports in version order; either may be NULL. A directory that does not exist
 * holds no tables. 0, -ENOMEM, or what the sink returned.
 */
int exp_files_read(const char *file, const char *dir, const struct exp_file_sink *sink);

/* Making of tables; for the exports parser alone. */

/* An empty table with room for max exports and one reference, or NULL. */
struct exp_table *exp_table_new(size_t max);
/* Make the index by id, when all exports are in. 0 or -ENOMEM. */
int exp_table_index(struct exp_table *table);
/* Replaces the refused paths by those of another table. 0 or -ENOMEM. */
int exp_table_copy_refused(struct exp_table *to, const struct exp_table *from);

/*
 * Known facts about peers: for each address its name, and for each export the client line that
 * applies to it.
 *
 * A set-associative cache: an address belongs to one set of a few slots, and a new one takes the
 * place of the least recently used of its set. One thread at a time works on one address; the
 * others use the older answer, or wait if there is none. Internal to the matcher. Each lock guards
 * a group of sets and is never held during a look-up. Times are milliseconds of the matcher's
 * clock.
 */

enum {
	EXP_CLIENT_NONE = -1,
	EXP_CLIENT_UNKNOWN =
		-2, /* some line could not be decided, and a wider one must not be used instead */
};

struct exp_peer_name {
	bool known;
	bool failed; /* the last look-up failed; name is from the one before it */
	uint64_t until;
	char name[EXP_NAME_MAX]; /* confirmed by a look-up of its addresses; "" if there is none */
};

enum exp_peers_state {
	EXP_PEERS_HIT, /* ticket->client is the answer */
	/* The caller finds the answer, then calls exp_peers_end() or _give_up() */
	EXP_PEERS_RESOLVE,
	EXP_PEERS_UNCACHED, /* the caller finds the answer, which the cache has no room to keep */
	EXP_PEERS_BUSY,	    /* another thread is finding the answer, and there is no older one */
};

struct exp_peers_ticket {
	enum exp_peers_state state;
	/* Index of the client line, or EXP_CLIENT_*; with RESOLVE the older answer */
	int client;
	bool has_client; /* true if there is an older answer that may still be used */
	struct exp_peer_name name;
	/* Private to the cache. */
	struct exp_peers *peers;
	unsigned set;
	void *slot;
	unsigned export_index;
};

struct exp_peers;

int exp_peers_new(unsigned n_exports, unsigned max_peers, struct exp_peers **peers);
void exp_peers_free(struct exp_peers *peers);

/* Fills the ticket. If another thread works on the address and there is no older answer: waits for
 * that thread if wait is true, else the state is EXP_PEERS_BUSY. */
void exp_peers_begin(struct exp_peers *peers, const struct exp_addr *addr, unsigned export_index,
		     uint64_t now, bool wait, struct exp_peers_ticket *ticket);
/* Keeps ticket->client and ticket->name. The answer is fresh before `until`, and may be used before
 * old_until while it cannot be renewed. */
void exp_peers_end(struct exp_peers_ticket *ticket, uint64_t until, uint64_t old_until);
/* Ends an attempt without a result. The older answer, or "unknown" if there is none, stays in use
 * before `until`; then the next call tries again. */
void exp_peers_give_up(struct exp_peers_ticket *ticket, uint64_t until);

/*
 * Addresses of the host names in an export table, looked up when first needed and kept for a time.
 * Internal to the matcher. Lock order: none; the lock is never held over a look-up.
 */

/* One round of look-ups for one question, and how long its answer is valid. */
struct exp_round {
	const struct exp_resolver *resolver;
	unsigned ttl_ms;
	unsigned fail_ttl_ms;
	uint64_t start;
	uint64_t until; /* end of the answer's validity */
	bool uncertain; /* a look-up failed temporarily */
	bool alone;	/* do not wait for look-ups of other threads */
};

/* False if the round has taken so long that no further server may be asked. */
bool exp_round_may_ask(struct exp_round *round);
/* A look-up has failed temporarily. */
void exp_round_failed(struct exp_round *round, uint64_t now);
void exp_round_until(struct exp_round *round, uint64_t until);

struct exp_hosts;

int exp_hosts_new(const struct exp_table *table, struct exp_hosts **hosts);
void exp_hosts_free(struct exp_hosts *hosts);

/* 1 if addr is one of the name's, 0 if not, -RN_EUNNAMED if that is not known now. The name is one of
 * the table's. */
int exp_hosts_has(struct exp_hosts *hosts, const char *name, const struct exp_addr *addr,
		  struct exp_round *round);

#endif
