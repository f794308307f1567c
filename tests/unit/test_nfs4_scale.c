/* SPDX-License-Identifier: BSD-2-Clause */
/* Many opens and locks of one client: memory for each, and the time of operations, which must not
 * grow with their number. SCALE=100000 gives the figures of doc/performance.md. */
#include <malloc.h>
#include <stdlib.h>
#include <time.h>

#include "tests/unit/nfs3_suite.h"
#include "tests/unit/nfs4_opens.h"

NFS3_SUITE(nfs4_scale);

#define PARTS 10

static struct op_client client;
static struct op_owner owner;
static int n;

struct held_file {
	struct op_file file;
	struct nfs4_stateid lock;
};
static struct held_file *held;

struct cost {
	size_t heap, budget;
	double us[PARTS]; /* microseconds of one operation in each tenth of the run */
};

/* Processor time of this process, in microseconds: other work on the machine does not change it. */
static double spent_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void measure(const char *what, void (*one)(int i), struct cost *c)
{
	size_t heap = mallinfo2().uordblks, budget = f->budget.used;

	for (int part = 0; part < PARTS; part++) {
		double from = spent_us();

		for (int i = n / PARTS * part; i < n / PARTS * (part + 1); i++)
			one(i);
		c->us[part] = (spent_us() - from) / (n / PARTS);
	}
	c->heap = mallinfo2().uordblks - heap;
	c->budget = f->budget.used - budget;
	printf("nfs4_scale: %d %s: %ld bytes each (%ld of the budget), %.1f us each at first, %.1f "
	       "at last\n",
	       n, what, (long)c->heap / n, (long)c->budget / n, c->us[0], c->us[PARTS - 1]);
}

static void make_one(int i)
{
	char name[16];
	int fd;

	snprintf(name, sizeof(name), "f%d", i);
	fd = open(fix_path(f, name), O_CREAT | O_WRONLY, 0644);
	cr_assert_geq(fd, 0);
	close(fd);
}

static void open_one(int i)
{
	char name[16];
	const struct op_how how = { .fh = &f->root, .name = name };

	snprintf(name, sizeof(name), "f%d", i);
	cr_assert_eq(op_open(f, &owner, &how, &held[i].file), NFS4_OK, "open %d", i);
}

static void lock_one(int i)
{
	const struct op_range r = { .type = 2, .offset = 0, .length = 10 };
	char name[16];
	struct op_owner o = { &client, name, 1 };

	snprintf(name, sizeof(name), "locker%d", i % 100);
	cr_assert_eq(op_lock_first(f, &owner, &o, &held[i].file, &r, &held[i].lock, NULL), NFS4_OK,
		     "lock %d", i);
}

static void read_one(int i)
{
	cr_assert_eq(op_read(f, &client, &held[i].file.fh, &held[i].lock), NFS4_OK, "read %d", i);
}

static void unlock_one(int i)
{
	const struct op_range r = { .type = 2, .offset = 0, .length = 10 };

	cr_assert_eq(op_unlock(f, &owner, &held[i].file.fh, &r, &held[i].lock), NFS4_OK,
		     "unlock %d", i);
}

static void close_one(int i)
{
	cr_assert_eq(op_close(f, &owner, &held[i].file), NFS4_OK, "close %d", i);
}

/* The factor is far above noise, and far below the cost of a walk over all objects. */
static void expect_flat(const char *what, const struct cost *c)
{
	cr_expect_lt(c->us[PARTS - 1], 20 * c->us[0] + 200, "%s: %.1f us, then %.1f us", what,
		     c->us[0], c->us[PARTS - 1]);
}

Test(nfs4_scale, opens_and_locks_of_one_client, .timeout = 600)
{
	static struct cost opens, locks, reads, unlocks, closes;
	struct nfs4_held h;

	NEED_FIXTURE();
	n = getenv("SCALE") ? atoi(getenv("SCALE")) : 2000;
	held = calloc((size_t)n, sizeof(*held));
	cr_assert(held && n >= 100);
	f->budget.max = (size_t)1 << 30;
	cr_assert_eq(op_client_new(f, &client, 1, "client"), NFS4_OK);
	owner = (struct op_owner){ &client, "owner", 1 };
	for (int i = 0; i < n; i++)
		make_one(i);
	measure("opens", open_one, &opens);
	measure("locks", lock_one, &locks);
	nfs4_held(f->server4, &h);
	cr_expect_eq(h.opens, (uint64_t)n);
	cr_expect_eq(h.locks, (uint64_t)n);
	measure("READs", read_one, &reads);
	measure("unlocks", unlock_one, &unlocks);
	measure("closes", close_one, &closes);
	nfs4_held(f->server4, &h);
	cr_expect_eq(h.opens + h.locks, 0);
	expect_flat("OPEN", &opens);
	expect_flat("LOCK", &locks);
	expect_flat("READ", &reads);
	expect_flat("LOCKU", &unlocks);
	expect_flat("CLOSE", &closes);
	free(held);
}
