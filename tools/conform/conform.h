/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cases, verdicts, and the state of a running case.
 *
 * A case is a function that does things to the server and returns. It passed unless it, or a helper
 * that it called, has called cf_fail() or cf_skip(); the first verdict stays. Helpers that can fail
 * return false or NULL after they have given the verdict, so a case can end at once:
 *	if (!(reply = cf_ask(t, call)))
 *		return;
 *
 * Each case has a connection of its own and, in t->deadline, an end to all its waiting.
 */
#ifndef RN_CONFORM_CONFORM_H
#define RN_CONFORM_CONFORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "tools/conform/conform_conn.h"

#define CF_FH_MAX 128u
struct cf_fh {
	uint32_t len;
	uint8_t data[CF_FH_MAX];
};

enum cf_verdict { CF_PASS, CF_FAIL, CF_SKIP, CF_WARN };

struct cf_test;

struct cf_case {
	const char *id;	       /* unique, lower case and dashes */
	const char *paragraph; /* "RFC 8166 4.3.2" */
	const char *title;     /* the requirement checked, one line */
	void (*run)(struct cf_test *t);
	long arg; /* for functions that serve several cases: t->arg */
	unsigned flags;
};
enum {
	CF_OWN_CONN = 1, /* the case opens its connections itself */
	CF_NFS4 = 2,	 /* skipped where NFSv4 is not served */
	CF_LONG = 4,	 /* the case has ten times the time */
	CF_SHOULD = 8,	 /* the paragraph says SHOULD: a server that differs gets a warning */
	CF_GSS = 16,	 /* skipped without --gss */
};

/* Cases are numbered first, first + 1, ...: a number stays with its case. */
struct cf_group {
	const char *name;
	unsigned first;
	const struct cf_case *cases;
	unsigned ncases;
};
extern const struct cf_group *const cf_groups[]; /* conform_registry.c; NULL at the end */

/* State of the whole run, fixed once the cases start. */
struct cf_login;
struct cf_run {
	const char *host, *port;
	const char *export_path;
	const char *v4_path; /* the same directory's path from NFSv4's root */
	const char *mount_port;
	uint32_t uid, gid;
	uint32_t inline_size;
	int timeout_ms;	      /* timeout of each case */
	struct cf_fh root;    /* handle of the export's root */
	struct cf_fh scratch; /* directory in it for the cases' files */
	char scratch_name[48];
	bool has_nfs4;
	char why_no_nfs4[128];
	uint32_t next_xid;
	unsigned gss_flavors;	/* of --gss: see cf_gss_flavors; 0: no case uses Kerberos */
	struct cf_login *login; /* NULL without --gss */
};

struct cf_back;
struct cf_gss;
struct cf_memory;
struct cf_reply;
struct cf4_session;

struct cf_test {
	struct cf_run *run;
	const struct cf_case *c;
	unsigned number;
	long arg;
	struct cf_conn *conn; /* connection for calls; NULL before cf_open of a CF_OWN_CONN case */
	int64_t started, deadline;
	int64_t took_ms;
	enum cf_verdict verdict;
	char expected[512];
	char seen[1024];
	struct cf_memory *memory;
	uint8_t *out;		     /* CF_INLINE_MAX bytes: the message being sent */
	struct cf_conn *conns[8];    /* open connections, closed after the case */
	struct cf4_session *session; /* session to destroy after the case */
	struct cf_gss *gss;	     /* context to destroy after the case; see conform_gss.h */
	/* Takes a call from the server that comes among replies; false: verdict. NULL: a call is
	 * taken for a bad reply. See back.h. */
	bool (*take_call)(struct cf_test *t, const struct cf_reply *call);
	struct cf_back *back;
};

#define CF_PRINTF(a, b) __attribute__((format(printf, a, b)))

/* Gives the verdict and returns false. expected: the paragraph's demand. */
bool cf_fail(struct cf_test *t, const char *expected, const char *seen, ...) CF_PRINTF(3, 4);
bool cf_skip(struct cf_test *t, const char *reason, ...) CF_PRINTF(2, 3);
/* Appends len bytes as words to what was seen. */
void cf_seen_words(struct cf_test *t, const void *data, size_t len);

/* Zeroed memory until the end of the case; never NULL. */
void *cf_alloc(struct cf_test *t, size_t size);
void *cf_alloc_raw(struct cf_test *t, size_t size); /* not zeroed */
/* For cases with long loops: frees the memory allocated since the mark. */
struct cf_memory *cf_mark(const struct cf_test *t);
void cf_release(struct cf_test *t, struct cf_memory *mark);

/* A further connection, or the first of a CF_OWN_CONN case; it becomes t->conn. NULL: verdict. o
 * NULL: options of the command line. */
struct cf_conn *cf_open(struct cf_test *t, const struct cf_conn_options *o);
struct cf_conn_options cf_default_options(const struct cf_run *run);
/* Closes c; t->conn is NULL if it was that one. */
void cf_close(struct cf_test *t, struct cf_conn *c, bool polite);
/* Closes t->conn and opens another like it: also a check that the server still accepts. */
bool cf_reopen(struct cf_test *t);

uint32_t cf_xid(struct cf_test *t);

#endif
