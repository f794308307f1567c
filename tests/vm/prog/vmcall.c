/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs commands of one machine on another, over TCP.
 *
 *   vmcall serve PORT FILE               runs the commands that come; creates FILE when it listens
 *   vmcall HOST PORT DEAD ARGUMENT...    runs a command there: leading NAME=VALUE arguments go to
 *                                        its environment, the rest is the command. Prints its
 *                                        output and exits with its status. 125: the machine cannot
 *                                        be reached, or the file DEAD says that it has died.
 *
 * There is one connection for each command. The request is the arguments, each with a zero byte,
 * and the end of the stream; the answer is the output and, as the last four bytes, a zero byte and
 * three digits. Several commands may run at once. Their standard input is empty.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { REQUEST = 1 << 16, ARGS = 256, TRAILER = 4, GONE = 125 };

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET };

	sa.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
	if (inet_pton(AF_INET, host, &sa.sin_addr) != 1)
		errx(2, "bad address %s", host);
	return sa;
}

/* Runs the command in place of this process. */
static void carry_out(int s, char *request, size_t len)
{
	char *arg[ARGS + 1] = { 0 }, *end = request + len;
	int n = 0, null = open("/dev/null", O_RDONLY);

	for (char *p = request; p < end && n < ARGS; p += strlen(p) + 1) {
		if (n == 0 && strchr(p, '=')) {
			putenv(p);
			continue;
		}
		arg[n++] = p;
	}
	dup2(null, 0);
	dup2(s, 1);
	dup2(s, 2);
	if (n == 0)
		errx(2, "no command");
	execvp(arg[0], arg);
	err(127, "%s", arg[0]);
}

/* Serves one connection, in a child process. */
static void serve_one(int s)
{
	static char request[REQUEST + 1];
	size_t len = 0;
	ssize_t n;
	char trailer[TRAILER + 1] = "";
	int status = 0;
	pid_t pid;

	while (len < REQUEST && (n = recv(s, request + len, REQUEST - len, 0)) > 0)
		len += (size_t)n;
	pid = fork();
	if (pid == 0)
		carry_out(s, request, len);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		err(2, "fork");
	snprintf(trailer + 1, TRAILER, "%03d",
		 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	send(s, trailer, TRAILER, MSG_NOSIGNAL);
	/* Shut down explicitly, because background processes of the command may hold the socket
	 * open. */
	shutdown(s, SHUT_RDWR);
}

static void serve(const char *port, const char *ready)
{
	struct sockaddr_in sa = address("0.0.0.0", port);
	int on = 1, fd, c, s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(s, 64) < 0)
		err(2, "port %s", port);
	fd = open(ready, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd < 0)
		err(2, "%s", ready);
	close(fd);
	signal(SIGCHLD, SIG_IGN); /* the children are not waited for */
	for (;;) {
		c = accept4(s, NULL, NULL, SOCK_CLOEXEC);
		if (c < 0)
			continue;
		if (fork() == 0) {
			close(s);
			signal(SIGCHLD, SIG_DFL);
			serve_one(c);
			_exit(0);
		}
		close(c);
	}
}

/* Waits for the socket; false once the file says that the machine has died. */
static bool readable(int s, short events, const char *dead)
{
	struct pollfd p = { .fd = s, .events = events };

	for (;;) {
		int n = poll(&p, 1, 250);

		if (n > 0)
			return true;
		if ((n < 0 && errno != EINTR) || access(dead, F_OK) == 0)
			return false;
	}
}

static void put(const char *p, size_t len)
{
	if (fwrite(p, 1, len, stdout) != len)
		err(2, "output");
}

/* Copies the output without its trailer; returns the exit status in the trailer. */
static int result(int s, const char *dead)
{
	static char buf[1 << 16];
	size_t have = 0;
	ssize_t n;

	while (readable(s, POLLIN, dead) && (n = recv(s, buf + have, sizeof(buf) - have, 0)) > 0) {
		have += (size_t)n;
		if (have > TRAILER) {
			put(buf, have - TRAILER);
			memmove(buf, buf + have - TRAILER, TRAILER);
			have = TRAILER;
		}
	}
	if (have == TRAILER && buf[0] == 0) {
		buf[TRAILER] = 0;
		return (int)strtol(buf + 1, NULL, 10);
	}
	put(buf, have);
	fflush(stdout);
	errx(GONE, "the machine has gone");
}

static int call(char **argv)
{
	struct sockaddr_in sa = address(argv[0], argv[1]);
	static char request[REQUEST];
	size_t len = 0, n;
	int s = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	for (char **arg = argv + 3; *arg; arg++) {
		n = strlen(*arg) + 1;
		if (n > sizeof(request) - len)
			errx(2, "the command is too long");
		memcpy(request + len, *arg, n);
		len += n;
	}
	if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) < 0 && errno != EINPROGRESS)
		err(GONE, "connect");
	if (!readable(s, POLLOUT, argv[2]))
		errx(GONE, "the machine has gone");
	fcntl(s, F_SETFL, 0);
	if (send(s, request, len, MSG_NOSIGNAL) != (ssize_t)len || shutdown(s, SHUT_WR) < 0)
		err(GONE, "send");
	return result(s, argv[2]);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "serve") == 0)
		serve(argv[2], argv[3]);
	if (argc < 5)
		errx(2, "see the comment at the top of vmcall.c");
	return call(argv + 1);
}
