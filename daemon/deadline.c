/* SPDX-License-Identifier: BSD-2-Clause */
#include "daemon/deadline.h"

#include <pthread.h>
#include <string.h>
#include <sysexits.h>
#include <time.h>
#include <unistd.h>

/* Static: there is one deadline, since the process ends only once. */
static struct {
	const struct rn_logger *log;
	unsigned seconds;
} deadline;

static void *deadline_main(void *arg)
{
	const struct timespec limit = { .tv_sec = deadline.seconds };

	(void)arg;
	nanosleep(&limit, NULL);
	rn_warn(deadline.log,
		"a file system does not answer: exiting without the calls that wait for it");
	_exit(EX_OK);
}

void deadline_start(const struct rn_logger *log, unsigned seconds)
{
	pthread_attr_t attr;
	pthread_t thread;
	int rc;

	deadline.log = log;
	deadline.seconds = seconds;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attr, deadline_main, NULL);
	pthread_attr_destroy(&attr);
	if (rc)
		rn_warn(log, "cannot limit the time that stopping takes: %s", strerror(rc));
}
