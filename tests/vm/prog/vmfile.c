/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds a file open in a background process and carries out commands on it, so that one client of a
 * test can hold locks while another tries to get them.
 *
 *   vmfile start NAME FILE FLAGS     opens FILE; FLAGS: r w rw, and letters of c(reate) x(excl)
 *                                    t(runc) a(ppend)
 *   vmfile stop NAME                 ends the process, and with it everything that it holds
 *   vmfile do NAME COMMAND...        one of:
 *     lock posix|ofd r|w|u START LEN [MS]   locks or unlocks; with MS waits for that long
 *     lock flock r|w|u 0 0 [MS]             the whole file by flock(2)
 *     test posix|ofd r|w START LEN          "free", or "TYPE START LEN" of the conflicting lock
 *     read OFF LEN, write OFF TEXT, size, truncate SIZE, sync, mode OCTAL, links
 *     seek hole|data OFF                    the offset
 *     alloc plain|keep|punch|zero|collapse OFF LEN
 *     copy FILE FROM TO LEN                 by copy_file_range; bytes copied
 *     reopen                                opens the file once more and closes that: POSIX locks go
 *   vmfile counter FILE N posix|ofd|flock   N times: lock, add one to the number in FILE, unlock
 *
 * `do` prints the result and exits with 0, or with 1 and the error's text: "busy" if another holds
 * the lock, "timeout" if it did not become free in time. The process listens at the abstract
 * address vmfile.NAME, which each network name space has to itself.
 */
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

enum { LINE = 4096, ARGS = 8 };

static const char *path;
static int fd;

static short lock_type(const char *s)
{
	return *s == 'r' ? F_RDLCK : *s == 'w' ? F_WRLCK : F_UNLCK;
}

/* Interrupts this thread's system call every ms milliseconds; 0 stops that. */
static void interrupt_after(timer_t *timer, long ms)
{
	struct sigevent ev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec at = { .it_value = { ms / 1000, ms % 1000 * 1000000 } };

	ev.sigev_notify_thread_id = gettid();
	at.it_interval = at.it_value;
	if (timer_create(CLOCK_MONOTONIC, &ev, timer) < 0 ||
	    timer_settime(*timer, 0, &at, NULL) < 0)
		err(2, "timer");
}

static int set_lock(int file, const char *kind, const char *type, long long start, long long len,
		    bool wait)
{
	struct flock fl = {
		.l_type = lock_type(type), .l_whence = SEEK_SET, .l_start = start, .l_len = len
	};
	int op;

	if (strcmp(kind, "flock") == 0) {
		op = *type == 'r' ? LOCK_SH : *type == 'w' ? LOCK_EX : LOCK_UN;
		return flock(file, op | (wait ? 0 : LOCK_NB));
	}
	if (strcmp(kind, "ofd") == 0)
		return fcntl(file, wait ? F_OFD_SETLKW : F_OFD_SETLK, &fl);
	return fcntl(file, wait ? F_SETLKW : F_SETLK, &fl);
}

static int do_lock(char **arg, char *out)
{
	long ms = arg[5] ? strtol(arg[5], NULL, 0) : 0;
	timer_t timer;
	int rc, saved;

	if (ms)
		interrupt_after(&timer, ms);
	rc = set_lock(fd, arg[1], arg[2], strtoll(arg[3], NULL, 0), strtoll(arg[4], NULL, 0),
		      ms != 0);
	saved = errno;
	if (ms)
		timer_delete(timer);
	errno = saved;
	if (rc == 0)
		return 0;
	if (errno == EAGAIN || errno == EACCES)
		strcpy(out, "busy");
	else if (errno == EINTR)
		strcpy(out, "timeout");
	return -1;
}

static int do_test(char **arg, char *out)
{
	struct flock fl = { .l_type = lock_type(arg[2]),
			    .l_whence = SEEK_SET,
			    .l_start = strtoll(arg[3], NULL, 0),
			    .l_len = strtoll(arg[4], NULL, 0) };

	if (fcntl(fd, strcmp(arg[1], "ofd") == 0 ? F_OFD_GETLK : F_GETLK, &fl) < 0)
		return -1;
	if (fl.l_type == F_UNLCK)
		strcpy(out, "free");
	else
		snprintf(out, LINE, "%c %lld %lld", fl.l_type == F_RDLCK ? 'r' : 'w',
			 (long long)fl.l_start, (long long)fl.l_len);
	return 0;
}

static int do_alloc(char **arg)
{
	static const struct {
		const char *name;
		int mode;
	} modes[] = {
		{ "plain", 0 },
		{ "keep", FALLOC_FL_KEEP_SIZE },
		{ "punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE },
		{ "zero", FALLOC_FL_ZERO_RANGE },
		{ "collapse", FALLOC_FL_COLLAPSE_RANGE },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(arg[1], modes[i].name) == 0)
			return fallocate(fd, modes[i].mode, strtoll(arg[2], NULL, 0),
					 strtoll(arg[3], NULL, 0));
	errno = EINVAL;
	return -1;
}

static int do_read(char **arg, char *out)
{
	size_t len = strtoul(arg[2], NULL, 0);
	ssize_t n = pread(fd, out, len < LINE ? len : LINE - 1, strtoll(arg[1], NULL, 0));

	if (n >= 0)
		out[n] = 0;
	return n < 0 ? -1 : 0;
}

static int do_write(char **arg)
{
	size_t len = strlen(arg[2]);
	ssize_t n = pwrite(fd, arg[2], len, strtoll(arg[1], NULL, 0));

	if (n >= 0 && (size_t)n != len)
		errno = EIO;
	return n == (ssize_t)len ? 0 : -1;
}

static int do_stat(char *out, bool links)
{
	struct stat st;

	/* glibc's fstat() looks up an empty path. Linux's client then calls an open file without a
	 * name stale, whatever the server is. */
	if (syscall(SYS_fstat, fd, &st) < 0)
		return -1;
	snprintf(out, LINE, "%lld", links ? (long long)st.st_nlink : (long long)st.st_size);
	return 0;
}

static int do_seek(char **arg, char *out)
{
	off_t at = lseek(fd, strtoll(arg[2], NULL, 0),
			 strcmp(arg[1], "hole") == 0 ? SEEK_HOLE : SEEK_DATA);

	if (at >= 0)
		snprintf(out, LINE, "%lld", (long long)at);
	return at < 0 ? -1 : 0;
}

/* Copies until len bytes are copied or the file in ends. Returns their number, or -1. */
static long long copy_from(int in, off_t from, off_t to, long long len)
{
	long long done = 0;

	while (done < len) {
		ssize_t n = copy_file_range(in, &from, fd, &to, (size_t)(len - done), 0);

		if (n < 0)
			return -1;
		if (n == 0)
			break;
		done += n;
	}
	return done;
}

static int do_copy(char **arg, char *out)
{
	int in = open(arg[1], O_RDONLY), saved;
	long long done;

	if (in < 0)
		return -1;
	done = copy_from(in, strtoll(arg[2], NULL, 0), strtoll(arg[3], NULL, 0),
			 strtoll(arg[4], NULL, 0));
	saved = errno;
	close(in);
	errno = saved;
	if (done >= 0)
		snprintf(out, LINE, "%lld", done);
	return done < 0 ? -1 : 0;
}

static int do_reopen(void)
{
	int again = open(path, O_RDONLY);

	return again < 0 ? -1 : close(again);
}

/* Runs one command. Returns 0 with the result in out, or -1 with an errno or a text in out. */
static int command(int n, char **arg, char *out)
{
	const char *c = arg[0];

	if (strcmp(c, "lock") == 0 && n >= 5)
		return do_lock(arg, out);
	if (strcmp(c, "test") == 0 && n == 5)
		return do_test(arg, out);
	if (strcmp(c, "read") == 0 && n == 3)
		return do_read(arg, out);
	if (strcmp(c, "write") == 0 && n == 3)
		return do_write(arg);
	if (strcmp(c, "alloc") == 0 && n == 4)
		return do_alloc(arg);
	if (strcmp(c, "copy") == 0 && n == 5)
		return do_copy(arg, out);
	if (strcmp(c, "seek") == 0 && n == 3)
		return do_seek(arg, out);
	if (strcmp(c, "truncate") == 0 && n == 2)
		return ftruncate(fd, strtoll(arg[1], NULL, 0));
	if (strcmp(c, "mode") == 0 && n == 2)
		return fchmod(fd, (mode_t)strtoul(arg[1], NULL, 8));
	if (strcmp(c, "size") == 0 || strcmp(c, "links") == 0)
		return do_stat(out, *c == 'l');
	if (strcmp(c, "sync") == 0)
		return fsync(fd);
	if (strcmp(c, "reopen") == 0)
		return do_reopen();
	errno = ENOSYS;
	return -1;
}

/* Tells the client this process's id, so that the client can wait for its end, and exits. */
static void stop(int s)
{
	pid_t pid = getpid();

	send(s, &pid, sizeof(pid), MSG_NOSIGNAL);
	recv(s, &pid, sizeof(pid), 0);
	_exit(0);
}

/* Serves one connection: reads a line, writes the result. */
static void *serve(void *p)
{
	int s = (int)(intptr_t)p, n = 0;
	char line[LINE], out[LINE + 2] = "", *arg[ARGS + 1] = { 0 }, *save = NULL;
	ssize_t len = recv(s, line, sizeof(line) - 1, 0);

	if (len > 0) {
		line[len] = 0;
		if (strcmp(line, "stop") == 0)
			stop(s);
		for (char *t = strtok_r(line, " ", &save); t && n < ARGS;
		     t = strtok_r(NULL, " ", &save))
			arg[n++] = t;
		out[0] = '0';
		if (n > 0 && command(n, arg, out + 1) < 0) {
			out[0] = '1';
			if (!out[1])
				snprintf(out + 1, LINE, "%s", strerror(errno));
		}
		send(s, out, strlen(out), MSG_NOSIGNAL);
	}
	close(s);
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

static struct sockaddr_un address(const char *name)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };

	snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "vmfile.%s", name);
	return sa;
}

static int open_flags(const char *s)
{
	int flags = strncmp(s, "rw", 2) == 0 ? O_RDWR : *s == 'w' ? O_WRONLY : O_RDONLY;

	for (; *s; s++)
		flags |= *s == 'c'   ? O_CREAT
			 : *s == 'x' ? O_EXCL
			 : *s == 't' ? O_TRUNC
			 : *s == 'a' ? O_APPEND
				     : 0;
	return flags;
}

static void start(const char *name, const char *flags)
{
	struct sockaddr_un sa = address(name);
	struct sigaction act = { .sa_handler = nothing };
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0), null = open("/dev/null", O_RDWR);
	pthread_t thread;

	fd = open(path, open_flags(flags), 0644);
	if (fd < 0)
		err(1, "%s", path);
	if (s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(s, 8) < 0)
		err(2, "%s", name);
	sigaction(SIGUSR1, &act, NULL);
	if (daemon(0, 1) < 0)
		err(2, "daemon");
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	for (;;) {
		int c = accept(s, NULL, NULL);

		if (c >= 0 && pthread_create(&thread, NULL, serve, (void *)(intptr_t)c) == 0)
			pthread_detach(thread);
	}
}

static int connect_to(const char *name)
{
	struct sockaddr_un sa = address(name);
	int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	if (s < 0 || connect(s, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		err(2, "%s", name);
	return s;
}

static int ask(const char *name, int n, char **arg)
{
	int s = connect_to(name);
	char line[LINE + 2] = "";
	ssize_t len;

	for (int i = 0; i < n; i++)
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%s%s", i ? " " : "",
			 arg[i]);
	if (send(s, line, strlen(line), 0) < 0)
		err(2, "send");
	len = recv(s, line, sizeof(line) - 1, 0);
	if (len <= 0)
		errx(2, "no answer from %s", name);
	line[len] = 0;
	if (line[1])
		puts(line + 1);
	return line[0] != '0';
}

/* Returns only after the process and all its open files are gone. */
static int stop_it(const char *name)
{
	int s = connect_to(name);
	struct pollfd p = { .events = POLLIN };
	pid_t pid;

	if (send(s, "stop", 4, 0) < 0 || recv(s, &pid, sizeof(pid), 0) != sizeof(pid))
		errx(2, "no answer from %s", name);
	p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
	close(s);
	if (p.fd >= 0 && poll(&p, 1, -1) < 0)
		err(2, "poll");
	return 0;
}

static void counter(unsigned n, const char *kind)
{
	char text[32];

	fd = open(path, O_RDWR | O_CREAT, 0644);
	if (fd < 0)
		err(1, "%s", path);
	for (unsigned i = 0; i < n; i++) {
		ssize_t len;

		if (set_lock(fd, kind, "w", 0, 0, true) < 0)
			err(1, "lock");
		len = pread(fd, text, sizeof(text) - 1, 0);
		if (len < 0)
			err(1, "read");
		text[len] = 0;
		len = snprintf(text, sizeof(text), "%010lu", strtoul(text, NULL, 10) + 1);
		if (pwrite(fd, text, (size_t)len, 0) != len)
			err(1, "write");
		if (set_lock(fd, kind, "u", 0, 0, false) < 0)
			err(1, "unlock");
	}
}

int main(int argc, char **argv)
{
	const char *cmd = argc > 2 ? argv[1] : "";

	path = argc > 3 ? argv[3] : NULL;
	if (argc == 5 && strcmp(cmd, "start") == 0) {
		start(argv[2], argv[4]);
	} else if (argc == 5 && strcmp(cmd, "counter") == 0) {
		path = argv[2];
		counter((unsigned)strtoul(argv[3], NULL, 0), argv[4]);
	} else if (argc > 3 && strcmp(cmd, "do") == 0) {
		return ask(argv[2], argc - 3, argv + 3);
	} else if (argc == 3 && strcmp(cmd, "stop") == 0) {
		return stop_it(argv[2]);
	} else {
		errx(2, "see the comment at the top of vmfile.c");
	}
	return 0;
}
