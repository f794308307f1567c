/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/unit/recovery_fixture.h"

#include <criterion/criterion.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/budget.h"
#include "lib/util.h"

struct nfs4_server srv;
char state_dir[64];
char db_path[128];
static struct rpc_worker worker;
static struct rpc_server rpc;
static struct rn_budget budget;
static struct rec_client *clients; /* all that were made */

void rec_up(void)
{
	cr_assert_eq(nfs4_recovery_new(&srv), 0);
}

void rec_down(void)
{
	nfs4_recovery_free(&srv);
}

void rec_start(void)
{
	/* In memory where possible, so that a slow disk does not delay the tests. */
	strcpy(state_dir, "/dev/shm/ringnfs-recovery-XXXXXX");
	if (!mkdtemp(state_dir)) {
		strcpy(state_dir, "/tmp/ringnfs-recovery-XXXXXX");
		cr_assert_not_null(mkdtemp(state_dir));
	}
	snprintf(db_path, sizeof(db_path), "%s/" NFS4_DB_NAME, state_dir);
	srv.cfg.state_dir = state_dir;
	srv.cfg.lease_seconds = 90;
	srv.cfg.grace_seconds = 90;
	cr_assert_eq(rn_inbox_init(&worker.inbox), 0);
	rn_budget_init(&budget, 1u << 20);
	worker.stacks = rn_stacks_new(&budget, 4096);
	cr_assert_not_null(worker.stacks);
	cr_assert_eq(rpc_waits_new(NULL, &rpc.waits), 0);
	srv.cfg.waits = rpc.waits;
	rec_up();
}

static void free_clients(void)
{
	while (clients) {
		struct rec_client *cl = clients;

		clients = cl->next;
		free(cl);
	}
}

void rec_stop(void)
{
	char cmd[128];

	rec_down();
	free_clients();
	rpc_waits_free(rpc.waits);
	rn_fiber_put(worker.spare);
	worker.spare = NULL;
	rn_stacks_free(worker.stacks);
	rn_inbox_fini(&worker.inbox);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", state_dir);
	cr_expect_eq(system(cmd), 0);
}

struct rec_client *rec_client(const char *id, uint8_t verifier, bool sessions)
{
	struct rec_client *cl = calloc(1, sizeof(*cl));
	uint8_t v[NFS4_VERIFIER_SIZE];

	memset(v, verifier, sizeof(v));
	cl->next = clients;
	clients = cl;
	snprintf(cl->id, sizeof(cl->id), "%s", id);
	nfs4_record_init(&cl->rec, cl->id, (uint32_t)strlen(cl->id), v, sessions);
	nfs4_record_confirmed(&srv, &cl->rec);
	return cl;
}

static void record(struct rpc_request *req)
{
	struct rec_client *cl = rn_container_of(req, struct rec_client, req);

	cl->status = nfs4_record_for(&cl->c, &cl->rec, cl->bits);
	cl->went_on = true;
}

void rec_begin(struct rec_client *cl, unsigned bits)
{
	cl->went_on = false;
	cl->bits = bits;
	cl->req.worker = &worker;
	cl->req.server = &rpc;
	cl->req.work = record;
	cl->c.req = &cl->req;
	cl->c.server = &srv;
	cr_assert(rpc_is_ready(&worker));
	rpc_run(&cl->req);
}

void rec_wait(struct rec_client *cl)
{
	struct pollfd p = { .fd = worker.inbox.fd, .events = POLLIN };
	eventfd_t n;

	while (!cl->went_on) {
		cr_assert_eq(poll(&p, 1, 5000), 1, "nothing came back");
		eventfd_read(p.fd, &n);
		struct rn_inbox_node *node = rn_inbox_take(&worker.inbox);

		while (node) {
			struct rpc_request *req = rn_container_of(node, struct rpc_request, node);

			node = node->next;
			rpc_run(req);
		}
	}
}

void rec_record(struct rec_client *cl, unsigned bits)
{
	rec_begin(cl, bits);
	rec_wait(cl);
	cr_assert_eq(cl->status, NFS4_OK);
	cr_assert(nfs4_record_has(&cl->rec, bits));
}

bool rec_grace_ends(void)
{
	for (unsigned i = 0; i < 5000 && nfs4_in_grace(&srv); i++)
		usleep(1000);
	return !nfs4_in_grace(&srv);
}
