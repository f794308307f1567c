/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For test_cm.c: both ends of a connection in one process, events that must come within WAIT_MS,
 * and a runner that gives each test a process and a fabric of its own. A check that fails ends the
 * process.
 */
#ifndef SV_CM_TESTLIB_H
#define SV_CM_TESTLIB_H

#include <errno.h>
#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS 60000

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                 \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) != 0) {                                                                 \
			fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,              \
				strerror(errno));                                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)
#define FAILS(call, why)                                                                           \
	do {                                                                                       \
		errno = 0;                                                                         \
		int ret_ = (call);                                                                 \
		if (ret_ != -1 || errno != (why)) {                                                \
			fprintf(stderr, "%s:%d: %s: %d, %s\n", __FILE__, __LINE__, #call, ret_,    \
				strerror(errno));                                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

struct ends {
	struct rdma_event_channel *sch, *cch; /* the server's and the client's */
	struct rdma_cm_id *listener, *server, *client;
	uint16_t port;
	int backlog;
};

struct cm_test {
	const char *name;
	void (*run)(void);
};
#define T(name)                                                                                    \
	{                                                                                          \
#name, test_##name                                                                 \
	}

struct sockaddr_storage address(const char *host, uint16_t port);
bool is_addr(const struct sockaddr *sa, const char *host);

/* Waits for the event, which must be of this type. */
struct rdma_cm_event *next_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type);
void take_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status);
void wait_readable(struct rdma_event_channel *ch);
void no_event(struct rdma_event_channel *ch);

struct ends open_ends(void); /* unbound ids of a listener and a client */
void start_listening(struct ends *e, const char *host);
struct ends listening(const char *host, void *context);
struct rdma_cm_id *new_client(struct ends *e, const char *from, const char *to); /* resolved */
void resolved(struct ends *e, const char *from, const char *to);
void take_request(struct ends *e);
struct ends requested(const char *host);
struct ends connected(const char *host);
void close_ends(struct ends *e);

void end_process(pid_t pid); /* SIGKILL */
int run_tests(const struct cm_test *tests, size_t n, const char *only);

#endif
