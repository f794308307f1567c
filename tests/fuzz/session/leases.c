/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/leases.h"

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "tests/fuzz/session/ask.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/tree.h"

#define TRIES 1000

static int lease_fd = -1;
static int lease_type;

/* The kernel signals the holder when a lease is broken. The driver asks F_GETLEASE instead. */
void ss_leases_start(void)
{
	signal(SIGIO, SIG_IGN);
}

bool ss_leases_held(void)
{
	return lease_fd >= 0;
}

void ss_leases_end(void)
{
	if (lease_fd < 0)
		return;
	if (fcntl(lease_fd, F_GETLEASE) != lease_type)
		ss_count(SS_N_LEASE_BROKEN);
	fcntl(lease_fd, F_SETLEASE, F_UNLCK);
	close(lease_fd);
	lease_fd = -1;
}

/* Takes a lease of a new file. The server has not opened it, so the kernel grants the lease. */
static void take(int type, uint16_t port, struct ss_values *v)
{
	ss_leases_end();
	unlink(SS_LEASED_FILE);
	int fd = open(SS_LEASED_FILE, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0666);
	if (fd < 0)
		return; /* a client has created the file first, or the disk is full */
	(void)!write(fd, "leased", 6);
	if (type == F_RDLCK) {
		close(fd);
		fd = open(SS_LEASED_FILE, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	}
	struct ss_fh got;
	if (fd >= 0 && ss_ask_look_up(port, &v->fh[SS_FH_ROOT], "leased", &got) == 0)
		v->fh[SS_FH_LEASED] = got;
	if (fd >= 0 && fcntl(fd, F_SETLEASE, type) == 0) {
		lease_fd = fd;
		lease_type = type;
		ss_count(SS_N_LEASE_TAKEN);
	} else if (fd >= 0) {
		close(fd);
	}
}

/* READ must answer JUKEBOX while the lease is held, and succeed soon after it is given up. */
static void read_leased(uint16_t port, struct ss_values *v)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	int64_t since = ss_now_ms(), status;

	take(F_WRLCK, port, v);
	if (lease_fd < 0)
		return;
	status = ss_ask_read(port, &v->fh[SS_FH_LEASED]);
	/* A call of the session may have begun to break the lease, and may even wait for that. */
	if (status == 0 && fcntl(lease_fd, F_GETLEASE) == F_WRLCK)
		ss_finding("READ of a file that a local process has a lease of");
	if (ss_now_ms() - since > SS_HANG_MS / 3)
		ss_finding("READ waits for the lease of a local process");
	ss_leases_end();
	for (int i = 0; status == SS_ASK_JUKEBOX && i < TRIES; i++) {
		nanosleep(&pause, NULL);
		status = ss_ask_read(port, &v->fh[SS_FH_LEASED]);
	}
	if (status == SS_ASK_JUKEBOX)
		ss_finding("READ goes on to be put off when the lease is given up");
}

void ss_leases_step(unsigned how, uint16_t port, struct ss_values *v)
{
	switch (how % 4) {
	case 0:
		take(F_WRLCK, port, v);
		break;
	case 1:
		take(F_RDLCK, port, v);
		break;
	case 2:
		ss_leases_end();
		break;
	default:
		read_leased(port, v);
	}
}
