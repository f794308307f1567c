/* SPDX-License-Identifier: BSD-2-Clause */
/* Processor time, from /proc: of the server, of this program, and of everybody else. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "load.h"

#define PF_KTHREAD 0x00200000u

/* Processor time of a process and of its children that have ended, in ticks. */
struct ticks {
	double sum;
	bool kernel; /* a thread of the kernel */
};

/* False if the process has gone. */
static bool read_ticks(const char *pid, struct ticks *t)
{
	char path[300], text[1024], *end;
	unsigned long user, system;
	long children_user, children_system;
	unsigned flags;
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return false;
	n = fread(text, 1, sizeof(text) - 1, f);
	fclose(f);
	text[n] = 0;
	/* The name, in parentheses, may have blanks. */
	end = strrchr(text, ')');
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u %*u %*u %*u %*u %lu %lu %ld %ld",
			   &flags, &user, &system, &children_user, &children_system) != 5)
		return false;
	t->sum = (double)(user + system) + (double)(children_user + children_system);
	t->kernel = flags & PF_KTHREAD;
	return true;
}

/* True for the server, this program, and processes that stand for idle. */
static bool ours(const struct load *l, int pid)
{
	unsigned i;

	for (i = 0; i < l->o.nidle; i++)
		if (l->o.idle[i] == pid)
			return true;
	return pid == l->o.server_pid || pid == getpid();
}

/*
 * Ticks that others have used. A process that ends leaves its time to its parent, so the sum grows by
 * what was used in between. Threads of the kernel do not count: they write back what the server wrote.
 */
static double others_ticks(const struct load *l)
{
	double sum = 0;
	struct ticks t;
	struct dirent *e;
	DIR *d = opendir("/proc");

	if (!d)
		die("/proc cannot be read");
	while ((e = readdir(d)))
		if (isdigit((unsigned char)e->d_name[0]) && !ours(l, atoi(e->d_name)) &&
		    read_ticks(e->d_name, &t) && !t.kernel)
			sum += t.sum;
	closedir(d);
	return sum;
}

/* Seconds that all threads of the server have used, those of its rings included. */
static double server_seconds(int pid)
{
	struct timespec t;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t))
		die("no process %d", pid);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void machine(struct usage *u)
{
	double user, nice, system, idle, iowait, irq, softirq, steal;
	FILE *f = fopen("/proc/stat", "r");

	if (!f || fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle,
			 &iowait, &irq, &softirq, &steal) != 8)
		die("/proc/stat cannot be read");
	fclose(f);
	u->softirq = irq + softirq;
	u->steal = steal;
	u->all = user + nice + system + idle + iowait + u->softirq + steal;
}

void load_usage(const struct load *l, struct usage *u)
{
	struct rusage own;

	u->ns = now_ns();
	u->server = l->o.server_pid ? server_seconds(l->o.server_pid) : 0;
	getrusage(RUSAGE_SELF, &own);
	u->own = (double)(own.ru_utime.tv_sec + own.ru_stime.tv_sec) +
		 (double)(own.ru_utime.tv_usec + own.ru_stime.tv_usec) / 1e6;
	machine(u);
	u->others = others_ticks(l);
}
