/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/hand_over.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/daemon_options.h"
#include "lib/clock.h"

#define VARIABLE "RINGNFS_IMAGE" /* number of the image's descriptor */
#define TRY_SECONDS 20u
#define ARGUMENTS_MAX 64

struct hand_over {
	struct image_reader *image;
};

int hand_over_receive(struct hand_over **out)
{
	const char *text = getenv(VARIABLE);
	int fault = IMAGE_DAMAGED;
	char *end;

	*out = NULL;
	if (!text)
		return 0;
	errno = 0;
	const long fd = strtol(text, &end, 10);
	const bool good = errno == 0 && end != text && *end == '\0' && fd > 2 && fd <= INT32_MAX;
	struct hand_over *h = calloc(1, sizeof(*h));

	unsetenv(VARIABLE);
	if (good)
		fault = h ? image_read((int)fd, &h->image) : IMAGE_NO_MEMORY;
	if (fault) {
		free(h);
		close_range(3, ~0u, 0);
		return fault;
	}
	*out = h;
	return 0;
}

struct image_reader *hand_over_image(struct hand_over *h)
{
	return h ? h->image : NULL;
}

void hand_over_end(struct hand_over *h)
{
	if (!h)
		return;
	image_reader_free(h->image);
	free(h);
}

void hand_over_print_formats(void)
{
	printf("%u %u\n", IMAGE_READS, IMAGE_FORMAT);
}

/* The program's exit status within the time, or -errno. Its standard output goes to out; -1: nowhere. */
static int run_program(const char *program, char *const argv[], int out)
{
	const uint64_t until = rn_now_ms() + TRY_SECONDS * 1000;
	const struct timespec pause = { .tv_nsec = 5 * (long)RN_NS_PER_MS };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	sigset_t none;
	int status;
	pid_t pid;

	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
	posix_spawn_file_actions_init(&actions);
	if (out >= 0)
		posix_spawn_file_actions_adddup2(&actions, out, 1);
	int rc = -posix_spawn(&pid, program, &actions, &attr, argv, environ);

	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	if (rc)
		return rc;
	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (rn_now_ms() >= until)
			kill(pid, SIGKILL);
		nanosleep(&pause, NULL);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : -ETIME;
}

/* Adds an argument; NULL: there are too many. */
static char *const *arguments_with(char *const argv[], const char *more,
				   char *out[ARGUMENTS_MAX + 2])
{
	unsigned n = 0;

	while (argv[n] && n < ARGUMENTS_MAX) {
		out[n] = argv[n];
		n++;
	}
	if (argv[n])
		return NULL;
	out[n] = (char *)more;
	out[n + 1] = NULL;
	return out;
}

/* True if the program says that it reads the images which this one writes. */
static bool reads_images(const char *program)
{
	char *const argv[] = { (char *)program, (char *)"--image-formats", NULL };
	unsigned oldest = 0, newest = 0;
	char text[64] = "";
	int out[2];

	if (pipe2(out, O_CLOEXEC) < 0)
		return false;
	const int status = run_program(program, argv, out[1]);

	close(out[1]);
	if (status == 0 && read(out[0], text, sizeof(text) - 1) > 0)
		(void)sscanf(text, "%u %u", &oldest, &newest);
	close(out[0]);
	return oldest > 0 && oldest <= IMAGE_FORMAT && newest >= IMAGE_READERS;
}

int hand_over_try(const char *program, char *const argv[], const struct rn_logger *log)
{
	char *with[ARGUMENTS_MAX + 2];
	char *const *check = arguments_with(argv, "--check-config", with);
	const int status = check ? run_program(program, check, -1) : -E2BIG;

	if (status != 0) {
		rn_err(log,
		       "no restart: %s does not start with the settings as they are: '%s "
		       "--check-config' says why",
		       program, program);
		return -ENOEXEC;
	}
	return reads_images(program) ? 0 : -EPROTO;
}

int hand_over_run(const char *program, char *const argv[], struct image_writer *w)
{
	char number[16];
	int fd, rc = 0;

	if (w) {
		rc = image_seal(w, &fd);
		if (!rc)
			rc = image_pass(w);
		snprintf(number, sizeof(number), "%d", fd);
		if (!rc && setenv(VARIABLE, number, 1) < 0)
			rc = -errno;
	}
	if (rc)
		return rc;
	execv(program, argv);
	return -errno;
}
