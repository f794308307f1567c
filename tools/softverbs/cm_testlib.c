/* SPDX-License-Identifier: BSD-2-Clause */
#include "tools/softverbs/cm_testlib.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

struct sockaddr_storage address(const char *host, uint16_t port)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *sin = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)&a;

	if (inet_pton(AF_INET, host, &sin->sin_addr) == 1) {
		a.ss_family = AF_INET;
	} else {
		CHECK(inet_pton(AF_INET6, host, &sin6->sin6_addr) == 1);
		a.ss_family = AF_INET6;
	}
	sin->sin_port = htons(port);
	return a;
}

bool is_addr(const struct sockaddr *sa, const char *host)
{
	char text[INET6_ADDRSTRLEN];
	const void *addr = sa->sa_family == AF_INET6
				   ? (const void *)&((const struct sockaddr_in6 *)sa)->sin6_addr
				   : (const void *)&((const struct sockaddr_in *)sa)->sin_addr;

	return inet_ntop(sa->sa_family, addr, text, sizeof(text)) && strcmp(text, host) == 0;
}

void wait_readable(struct rdma_event_channel *ch)
{
	struct pollfd p = { ch->fd, POLLIN, 0 };

	CHECK(poll(&p, 1, WAIT_MS) == 1);
}

void no_event(struct rdma_event_channel *ch)
{
	struct pollfd p = { ch->fd, POLLIN, 0 };

	CHECK(poll(&p, 1, 0) == 0);
}

struct rdma_cm_event *next_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev;

	wait_readable(ch);
	OK(rdma_get_cm_event(ch, &ev));
	if (ev->event != type) {
		fprintf(stderr, "%s (%d), not %s\n", rdma_event_str(ev->event), ev->status,
			rdma_event_str(type));
		_exit(1);
	}
	return ev;
}

void take_event(struct rdma_event_channel *ch, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *ev = next_event(ch, type);

	if (ev->status != status)
		fprintf(stderr, "%s: status %d, not %d\n", rdma_event_str(type), ev->status,
			status);
	CHECK(ev->status == status);
	OK(rdma_ack_cm_event(ev));
}

struct ends open_ends(void)
{
	struct ends e = { .backlog = 16 };

	e.sch = rdma_create_event_channel();
	e.cch = rdma_create_event_channel();
	CHECK(e.sch && e.cch);
	OK(rdma_create_id(e.sch, &e.listener, NULL, RDMA_PS_TCP));
	OK(rdma_create_id(e.cch, &e.client, NULL, RDMA_PS_TCP));
	return e;
}

void start_listening(struct ends *e, const char *host)
{
	struct sockaddr_storage a = address(host, e->port);

	OK(rdma_bind_addr(e->listener, (struct sockaddr *)&a));
	OK(rdma_listen(e->listener, e->backlog));
	e->port = ntohs(rdma_get_src_port(e->listener));
}

struct ends listening(const char *host, void *context)
{
	struct ends e = open_ends();

	e.listener->context = context;
	start_listening(&e, host);
	return e;
}

static void cm_test_resolve(struct ends *e, struct rdma_cm_id *id, const char *from, const char *to)
{
	struct sockaddr_storage dst = address(to, e->port), src;

	if (from)
		src = address(from, 0);
	OK(rdma_resolve_addr(id, from ? (struct sockaddr *)&src : NULL, (struct sockaddr *)&dst,
			     1000));
	take_event(e->cch, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	OK(rdma_resolve_route(id, 1000));
	take_event(e->cch, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
}

struct rdma_cm_id *new_client(struct ends *e, const char *from, const char *to)
{
	struct rdma_cm_id *id;

	OK(rdma_create_id(e->cch, &id, NULL, RDMA_PS_TCP));
	cm_test_resolve(e, id, from, to);
	return id;
}

void resolved(struct ends *e, const char *from, const char *to)
{
	cm_test_resolve(e, e->client, from, to);
}

void take_request(struct ends *e)
{
	struct rdma_cm_event *ev = next_event(e->sch, RDMA_CM_EVENT_CONNECT_REQUEST);

	e->server = ev->id;
	OK(rdma_ack_cm_event(ev));
}

struct ends requested(const char *host)
{
	struct ends e = listening(host, NULL);

	resolved(&e, NULL, host);
	OK(rdma_connect(e.client, NULL));
	take_request(&e);
	return e;
}

struct ends connected(const char *host)
{
	struct ends e = requested(host);

	OK(rdma_accept(e.server, NULL));
	take_event(e.cch, RDMA_CM_EVENT_CONNECT_RESPONSE, 0);
	OK(rdma_establish(e.client));
	take_event(e.sch, RDMA_CM_EVENT_ESTABLISHED, 0);
	return e;
}

void close_ends(struct ends *e)
{
	if (e->client)
		OK(rdma_destroy_id(e->client));
	if (e->server)
		OK(rdma_destroy_id(e->server));
	if (e->listener)
		OK(rdma_destroy_id(e->listener));
	rdma_destroy_event_channel(e->sch);
	rdma_destroy_event_channel(e->cch);
}

void end_process(pid_t pid)
{
	OK(kill(pid, SIGKILL));
	CHECK(waitpid(pid, NULL, 0) == pid);
}

static bool cm_test_passes(const struct cm_test *t)
{
	char dir[] = "/tmp/softverbs.XXXXXX", command[64];
	int status;

	CHECK(mkdtemp(dir));
	setenv("SOFTVERBS_DIR", dir, 1);
	pid_t pid = fork();
	if (pid == 0) {
		alarm(2 * WAIT_MS / 1000);
		t->run();
		exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	CHECK(system(command) == 0);
	return status == 0;
}

int run_tests(const struct cm_test *tests, size_t n, const char *only)
{
	unsigned passed = 0, failed = 0;

	for (size_t i = 0; i < n; i++) {
		if (only && strcmp(only, tests[i].name) != 0)
			continue;
		bool good = cm_test_passes(&tests[i]);
		passed += good;
		failed += !good;
		printf("%s %s\n", good ? "ok" : "FAIL", tests[i].name);
		fflush(stdout);
	}
	printf("%u passed, %u failed, 0 skipped\n", passed, failed);
	return failed != 0;
}
