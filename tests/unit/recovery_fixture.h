/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recovery without the rest of the server, on a fresh state directory, and clients made of a
 * record each. One test at a time, in a process of its own.
 */
#ifndef RN_TESTS_RECOVERY_FIXTURE_H
#define RN_TESTS_RECOVERY_FIXTURE_H

#include "nfs4/recovery/grace.h"
#include "nfs4/recovery/recovery.h"
#include "nfs4/recovery/recovery_private.h"
#include "nfs4/recovery/wheel.h"
#include "rpc/worker.h"

struct rec_client {
	struct nfs4_record rec;
	char id[64];
	/* One operation that may wait. */
	struct rpc_request req;
	struct nfs4_compound c;
	int rc; /* that it went on with */
	bool went_on;
};

extern struct nfs4_server srv;
extern char state_dir[64];
extern char db_path[128];

void rec_start(void); /* for TestSuite's init */
void rec_stop(void);
void rec_up(void); /* after rec_down: as after a restart, whose clients have to be made again */
void rec_down(void);

/* A client that is confirmed; verifier is repeated. Never freed. */
struct rec_client *rec_client(const char *id, uint8_t verifier, bool sessions);
/* Starts nfs4_record_for(); what it returns. */
int rec_begin(struct rec_client *cl, unsigned bits);
/* Runs what has been posted to the worker until cl goes on, for up to 5 s. */
void rec_wait(struct rec_client *cl);
/* Both, and it must have been written. */
void rec_record(struct rec_client *cl, unsigned bits);
/* Waits until grace has ended, or for 5 s. */
bool rec_grace_ends(void);

#endif
