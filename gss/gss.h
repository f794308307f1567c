/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RPCSEC_GSS version 1 (RFC 2203) with Kerberos V5: krb5, krb5i and krb5p for every program and transport. The versions
 * 2 (RFC 5403) and 3 (RFC 7861) are answered as unknown. doc/design/gss.md says how.
 */
#ifndef RN_GSS_GSS_H
#define RN_GSS_GSS_H

#include <stddef.h>
#include <stdint.h>

#include "lib/budget.h"
#include "lib/image.h"
#include "lib/log.h"
#include "rpc/program.h"

struct gss;

struct gss_config {
	const char *keytab; /* NULL: the system's */
	const char *
		state_dir; /* has the replay cache; NULL: it is where the library has it. Must stay */
	const char *principal; /* as gss_mech_cred_new() has it */
	unsigned max_contexts;
	struct rn_budget *budget; /* a part of it is set aside; must outlive the server */
	const struct rn_logger *log;
};

#define GSS_WHY 256u

/* Bytes that are set aside of a budget of `whole` bytes. */
size_t gss_memory(size_t whole, unsigned max_contexts);

/* 0; -EACCES: there is no key to serve with, and why says what the library says; -ENOMEM. */
int gss_new(const struct gss_config *cfg, struct gss **out, char why[GSS_WHY]);
/* Answers calls that wait for its threads, and takes no more new contexts: the server stops. NULL is allowed. */
void gss_close(struct gss *g);
/* Waits some seconds at most for its threads. True: all memory is freed. False: a thread hangs in the library, and lives on with its memory.
 * No call may be under way. NULL is allowed. */
bool gss_free(struct gss *g);
/* Reads the keytab again, which new contexts are accepted with. 0, or -EACCES: the old keys stay in use. */
int gss_reload(struct gss *g, char why[GSS_WHY]);

/* Sets server->security. */
void gss_secure(struct gss *g, struct rpc_server *server);

/* Hands established contexts to the next program. No call may be under way; contexts are of no use here any more. */
void gss_save(struct gss *g, struct image_writer *w);
/* Takes them, before anybody is served. g NULL: nobody is served under Kerberos any more. 0 or -EPROTO. */
int gss_load(struct gss *g, struct image_reader *image);

/* Lets contexts age at once: for tests. */
void gss_skip_time(struct gss *g, unsigned seconds);

struct gss_stats {
	uint64_t contexts, half_made; /* established ones now, and unfinished ones now */
	uint64_t places;	      /* established ones that there is room for */
	uint64_t grown;		      /* contexts that have copies now */
	uint64_t evicted;	    /* contexts removed to make room for others, since the start */
	uint64_t accepted, refused; /* contexts established, and failed, since the start */
	uint64_t replays;	    /* calls discarded by the sequence window */
	uint64_t unknown, bad; /* calls with no known context, and with a wrong verifier or body */
};
void gss_stats(struct gss *g, struct gss_stats *out);

#endif
