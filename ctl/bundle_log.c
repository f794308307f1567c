/* SPDX-License-Identifier: BSD-2-Clause */
/* The log in a support bundle: of the journal, or of the file that the server writes to. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ctl/bundle.h"
#include "lib/clock.h"
#include "lib/util.h"

#define LOG_MOST (4u << 20) /* bytes */
#define JOURNAL_SECONDS 20u /* until the journal is not waited for any more */

extern char **environ;

/* Starts it with its output in the pipe. 0 or an errno. */
static int start_journalctl(const struct bundle *b, int out, pid_t *pid)
{
	/* Other programs had the process's number before it, so its name counts, too: their lines are not ours to give away. */
	char words[][40] = { "journalctl",
			     "--no-pager",
			     "--quiet",
			     "--lines=2000",
			     "--output=short-iso-precise",
			     "_SYSTEMD_UNIT=ringnfsd.service",
			     "+",
			     "_COMM=ringnfsd",
			     "" };
	const size_t n = rn_array_size(words) - (b->pid ? 0 : 3);
	char *argv[rn_array_size(words) + 1] = { NULL };
	posix_spawn_file_actions_t actions;

	snprintf(words[8], sizeof(words[8]), "_PID=%d", (int)b->pid);
	for (size_t i = 0; i < n; i++)
		argv[i] = words[i];
	int err = posix_spawn_file_actions_init(&actions);

	if (err)
		return err;
	err = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
						       O_WRONLY, 0);
	if (!err)
		err = posix_spawnp(pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return err;
}

/* Reads until the end, the time is over, or there is no more room. */
static size_t read_pipe(int fd, char *text)
{
	const uint64_t deadline_ns = rn_now_ns() + JOURNAL_SECONDS * RN_NS_PER_SECOND;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < LOG_MOST && rn_now_ns() < deadline_ns) {
		if (poll(&p, 1, 200) <= 0)
			continue;
		const ssize_t n = read(fd, text + len, LOG_MOST - len);

		if (n == 0 || (n < 0 && errno != EINTR))
			break;
		len += n > 0 ? (size_t)n : 0;
	}
	return len;
}

static size_t read_journal(const struct bundle *b, char *text)
{
	size_t len = 0;
	int ends[2];
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return 0;
	const int err = start_journalctl(b, ends[1], &pid);

	close(ends[1]);
	if (!err) {
		len = read_pipe(ends[0], text);
		kill(pid, SIGKILL); /* it has ended, or is not waited for */
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return len;
}

/* The end of the file that is the server's standard error. */
static size_t read_stderr(const struct bundle *b, char *text)
{
	char path[64];
	struct stat st;
	ssize_t n = 0;

	snprintf(path, sizeof(path), "/proc/%d/fd/2", (int)b->pid);
	/* Only a plain file is opened: a terminal or a pipe would be somebody else's. */
	if (!b->pid || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = pread(fd, text, LOG_MOST, st.st_size > LOG_MOST ? st.st_size - LOG_MOST : 0);
	close(fd);
	return n > 0 ? (size_t)n : 0;
}

void bundle_log(struct bundle *b)
{
	char *text = malloc(LOG_MOST);
	size_t len = text ? read_stderr(b, text) : 0;

	if (text && !len)
		len = read_journal(b, text);
	if (len)
		tar_add(&b->tar, "log.txt", text, len);
	else
		bundle_missing(b, "log.txt", "neither the journal nor a file has it");
	free(text);
}
