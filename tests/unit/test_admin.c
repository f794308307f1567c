/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns of readers at the control socket: root does not wait for them, nor one user for another. Needs root, to be others. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "admin/admin.h"
#include "admin/admin_turns.h"

#define GROUP 54322
#define FIRST_USER 54321
#define SECOND_USER 54324
#define LONG_MS 60000

struct gate {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool open, entered;
	unsigned n;
	uid_t order[64];
};

static struct gate gate = { .lock = PTHREAD_MUTEX_INITIALIZER,
			    .changed = PTHREAD_COND_INITIALIZER };

/* Waits until the gate opens, and notes whose turn it was. */
static void wait_at_gate(void *ctx, const struct admin_request *req, struct admin_reply *r)
{
	(void)ctx;
	pthread_mutex_lock(&gate.lock);
	gate.entered = true;
	pthread_cond_broadcast(&gate.changed);
	while (!gate.open)
		pthread_cond_wait(&gate.changed, &gate.lock);
	gate.order[gate.n++ % 64] = req->peer.uid;
	pthread_mutex_unlock(&gate.lock);
	admin_reply_json(r, json_pack("{s:s}", "query", req->query ? req->query : ""));
}

static void answer(void *ctx, const struct admin_request *req, struct admin_reply *r)
{
	(void)ctx;
	(void)req;
	admin_reply_json(r, json_object());
}

/* Answers by admin_later(), as handlers do that have threads of their own. */
static void answer_later(void *ctx, const struct admin_request *req, struct admin_reply *r)
{
	struct admin_later *later = admin_later(req);

	(void)ctx;
	(void)r;
	admin_reply_json_status(admin_later_reply(later), 202, json_object());
	admin_later_send(later);
}

static const struct admin_handler handlers[] = {
	{ .method = "GET", .path = "/gate", .run = wait_at_gate },
	{ .method = "GET", .path = "/now", .run = answer },
	{ .method = "GET", .path = "/later", .run = answer_later },
};

static char folder[] = "/tmp/test_admin.XXXXXX", path[64];
static struct admin_server *server;

static void discard(void *ctx, enum rn_level level, const char *fmt, va_list ap)
{
	(void)ctx;
	(void)level;
	(void)fmt;
	(void)ap;
}

static void start(void)
{
	static const struct rn_logger quiet = { .level = RN_ERROR, .write = discard };
	const struct admin_config cfg = { .path = path, .log = &quiet };

	if (geteuid() != 0)
		cr_skip("only root can be others");
	cr_assert(mkdtemp(folder));
	chmod(folder, 0755);
	snprintf(path, sizeof(path), "%s/control", folder);
	cr_assert_eq(admin_new(&cfg, &server), 0);
	cr_assert_eq(admin_set_readers(server, GROUP), 0);
	cr_assert_eq(admin_start(server, handlers, sizeof(handlers) / sizeof(handlers[0])), 0);
}

static void stop(void)
{
	admin_free(server);
	unlink(path);
	rmdir(folder);
}

/* A connection by a user, as the kernel notes it at connect(2). By system calls, as those of the library change the
 * server's thread, too. */
static int connect_as(uid_t uid)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(sa.sun_path, path);
	cr_assert(syscall(SYS_setresgid, -1, uid ? GROUP : 0, -1) == 0 &&
		  syscall(SYS_setresuid, -1, uid, -1) == 0);
	cr_expect_eq(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	cr_assert(syscall(SYS_setresuid, -1, 0, -1) == 0 && syscall(SYS_setresgid, -1, 0, -1) == 0);
	return fd;
}

static int ask(uid_t uid, const char *target)
{
	const int fd = connect_as(uid);
	char text[128];
	const int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target);

	cr_expect_eq(write(fd, text, (size_t)n), n);
	return fd;
}

/* The status of the answer, which ends the connection. 0: there is none. */
static int status_of(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char text[2048] = "";

	if (poll(&p, 1, LONG_MS) != 1 || read(fd, text, sizeof(text) - 1) < 12)
		text[0] = '\0';
	close(fd);
	return text[0] ? atoi(text + strlen("HTTP/1.1 ")) : 0;
}

static void await_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	while (!gate.entered)
		pthread_cond_wait(&gate.changed, &gate.lock);
	pthread_mutex_unlock(&gate.lock);
}

static void open_gate(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.open = true;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

Test(admin, root_waits_for_no_reader, .init = start, .fini = stop)
{
	const int reader = ask(FIRST_USER, "/gate?a=b");

	await_gate();
	for (int i = 0; i < 3; i++)
		cr_expect_eq(status_of(ask(0, "/now")), 200);
	cr_expect_eq(status_of(ask(0, "/later")), 202);
	open_gate();
	cr_expect_eq(status_of(reader), 200);
	cr_expect_eq(status_of(ask(FIRST_USER, "/later")), 202);
}

/* Asks as often as a user may, and once more, which is refused. Returns when that is so: all were read then. */
static void ask_too_often(uid_t uid, int fd[ADMIN_TURNS_USER])
{
	struct pollfd p[ADMIN_TURNS_USER + 1];
	unsigned refused = 0;

	for (unsigned i = 0; i <= ADMIN_TURNS_USER; i++)
		p[i] = (struct pollfd){ .fd = ask(uid, "/gate"), .events = POLLIN };
	cr_assert_eq(poll(p, ADMIN_TURNS_USER + 1, LONG_MS), 1);
	while (!p[refused].revents)
		refused++;
	cr_expect_eq(status_of(p[refused].fd), 503);
	p[refused] = p[ADMIN_TURNS_USER];
	for (unsigned i = 0; i < ADMIN_TURNS_USER; i++)
		fd[i] = p[i].fd;
}

/* The first user's second request waits for the first one of the second user. */
Test(admin, users_take_turns, .init = start, .fini = stop)
{
	const int running = ask(FIRST_USER, "/gate");
	int first[ADMIN_TURNS_USER], second[ADMIN_TURNS_USER];

	await_gate();
	ask_too_often(FIRST_USER, first);
	ask_too_often(SECOND_USER, second);
	open_gate();
	cr_expect_eq(status_of(running), 200);
	for (unsigned i = 0; i < ADMIN_TURNS_USER; i++) {
		cr_expect_eq(status_of(first[i]), 200);
		cr_expect_eq(status_of(second[i]), 200);
	}
	for (unsigned i = 0; i < ADMIN_TURNS_USER; i++) {
		cr_expect_eq(gate.order[1 + 2 * i], FIRST_USER);
		cr_expect_eq(gate.order[2 + 2 * i], SECOND_USER);
	}
}

/* Peers that have gone, and a server that ends, while requests wait. */
Test(admin, requests_that_nobody_waits_for, .init = start)
{
	const int first = ask(FIRST_USER, "/gate");

	await_gate();
	for (int i = 0; i < 5; i++)
		close(ask(FIRST_USER, "/gate"));
	cr_expect_eq(status_of(ask(0, "/now")), 200);
	close(first);
	cr_expect_eq(status_of(ask(0, "/now")), 200);
	open_gate();
	stop();
}
