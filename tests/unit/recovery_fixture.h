/* SPDX-License-Identifier: BSD-2-Clause */
/* The recovery code without the rest of the server, on a fresh state directory, with clients that
 * consist of a record only. One test at a time, in its own process. */
#ifndef RN_TESTS_RECOVERY_FIXTURE_H
#define RN_TESTS_RECOVERY_FIXTURE_H

#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "rpc/worker.h"

struct rec_client {
	struct rec_client *next; /* made before it */
	struct nfs4_record rec;
	char id[64];
	/* One operation that may wait. */
	struct rpc_request req;
	struct nfs4_compound c;
	unsigned bits;
	int status; /* of nfs4_record_for() */
	bool went_on;
};

extern struct nfs4_server srv;
extern char state_dir[64];
extern char db_path[128];

void rec_start(void); /* for TestSuite's init */
void rec_stop(void);
void rec_up(void); /* after rec_down(): acts as a restart; the test must make its clients anew */
void rec_down(void);

/* Makes a confirmed client, whose verifier repeats the given byte. Freed by rec_stop. */
struct rec_client *rec_client(const char *id, uint8_t verifier, bool sessions);
/* Starts nfs4_record_for(), which may wait. */
void rec_begin(struct rec_client *cl, unsigned bits);
/* Runs the worker until cl goes on, for up to 5 s. */
void rec_wait(struct rec_client *cl);
/* rec_begin() and rec_wait(); asserts that the record was written. */
void rec_record(struct rec_client *cl, unsigned bits);
/* Waits until grace has ended, or for 5 s. */
bool rec_grace_ends(void);

#endif
