/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/session/ask.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/tree.h"

#define BACK SS_BASE "/back"
#define PROBE "probe"
#define WRITES 4u
#define ALL_WRITES ((1u << WRITES) - 1)
#define PAGE 4096

static struct {
	bool there; /* the failing disk could be made */
	bool known; /* verifier is set */
	uint64_t verifier;
	unsigned rounds;
	uint8_t data[SS_ASK_DATA];
} disk;

/* No journal and initialized tables, so that only data can be lost. */
static const char make[] =
	"exec 2>/dev/null && mkdir " BACK " && mount -t tmpfs -o size=8m none " BACK
	" && truncate -s 64M " BACK "/img && mkfs.ext4 -q -b 4096 -O ^has_journal -E "
	"nodiscard,lazy_itable_init=0 " BACK "/img && mount -o loop,errors=continue " BACK
	"/img " SS_DISK_DIR;

const char *ss_disk_start(void)
{
	if (mkdir(SS_DISK_DIR, 0777) < 0)
		return strerror(errno);
	disk.there = system(make) == 0;
	int fd = open(SS_DISK_DIR "/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0 || chmod(SS_DISK_DIR, 0777) < 0)
		return strerror(errno);
	close(fd);
	sync();
	return disk.there ? NULL : "no loop mount of ext4 here";
}

static void fail(bool on)
{
	if (disk.there)
		ss_tree_fill(BACK "/filler", on);
}

void ss_disk_end(void)
{
	fail(false);
	ss_tree_full(false);
	ss_errors_end();
}

/*
 * Data that differ in each round. No byte is zero, because zeros would take no space on the disk.
 */
static void make_data(void)
{
	disk.rounds++;
	for (size_t i = 0; i < sizeof(disk.data); i++)
		disk.data[i] = (uint8_t)(1 + (disk.rounds * 31 + i * 7 + (i >> 8)) % 255);
}

/*
 * Returns the blocks of deleted files to the tmpfs, so that a failing disk has no space left over.
 */
static void trim(void)
{
	struct fstrim_range all = { .len = UINT64_MAX };
	int fd = open(SS_DISK_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		(void)ioctl(fd, FITRIM, &all);
		close(fd);
	}
}

/* Creates an empty file that no session knows, while the disk works. */
static bool new_probe(uint16_t port, const struct ss_values *v, struct ss_fh *fh)
{
	fail(false);
	if (!disk.there)
		return false;
	int fd = open(SS_DISK_DIR "/" PROBE, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC | O_NOFOLLOW,
		      0666);
	if (fd < 0)
		return false;
	bool ok = fsync(fd) == 0;
	close(fd);
	trim();
	make_data();
	return ok && ss_ask_look_up(port, &v->fh[SS_FH_DISK], PROBE, fh) == 0;
}

/*
 * Bit i is set if no block of WRITE i is on the disk. Reads the disk and not the page cache. A
 * WRITE that is lost in part is not counted: the loop device reports a write cut short by the full
 * file below as success.
 */
static unsigned lost_writes(void)
{
	static uint8_t got[PAGE];
	int fd = open(SS_DISK_DIR "/" PROBE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	unsigned lost = 0;

	if (fd < 0)
		return 0;
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (unsigned i = 0; i < WRITES; i++) {
		unsigned there = 0;

		for (off_t at = 0; at < (off_t)SS_ASK_DATA; at += PAGE)
			there += pread(fd, got, PAGE, (off_t)i * SS_ASK_DATA + at) == PAGE &&
				 !memcmp(got, disk.data + at, PAGE);
		lost |= there ? 0 : 1u << i;
	}
	close(fd);
	return lost;
}

/* WRITE and COMMIT on a disk that fails before the COMMIT or before the WRITEs. The replies must
 * not deny a loss. */
static void check_unstable(bool fails_before, uint16_t port, struct ss_values *v)
{
	struct ss_ask_write w = { .data = disk.data };
	uint64_t before = 0, after = 0, got;
	struct ss_fh fh;

	if (!new_probe(port, v, &fh))
		return;
	if (fails_before)
		fail(true);
	for (unsigned i = 0; i < WRITES; i++) {
		w.offset = (uint64_t)i * SS_ASK_DATA;
		if (ss_ask_write(port, &fh, &w, &got) != 0 || (i && got != before))
			/* the server promised nothing, or the client must send the data again */
			return;
		before = got;
	}
	fail(true);
	bool told = ss_ask_commit(port, &fh, &after) != 0 || after != before;
	/* The next COMMIT must report the loss too. */
	bool told_again = ss_ask_commit(port, &fh, &after) != 0 || after != before;
	if (lost_writes() == ALL_WRITES && !(told && told_again))
		ss_finding("%s COMMIT says OK with the verifier of WRITEs that are lost",
			   told ? "the second" : "a");
	if (told)
		ss_count(SS_N_DISK_LOST);
}

static void check_stable(uint16_t port, struct ss_values *v)
{
	struct ss_ask_write w = { .data = disk.data, .stable = true };
	unsigned done = 0;
	uint64_t verifier;
	struct ss_fh fh;

	if (!new_probe(port, v, &fh))
		return;
	fail(true);
	for (unsigned i = 0; i < WRITES; i++) {
		w.offset = (uint64_t)i * SS_ASK_DATA;
		if (ss_ask_write(port, &fh, &w, &verifier) == 0)
			done |= 1u << i;
	}
	if (lost_writes() & done)
		ss_finding("a stable WRITE is acknowledged and lost");
	if (done != ALL_WRITES)
		ss_count(SS_N_DISK_STABLE);
}

void ss_disk_step(unsigned how, uint16_t port, struct ss_values *v)
{
	switch (how & 7) {
	case 0:
		fail(true);
		break;
	case 1:
		fail(false);
		break;
	case 2:
	case 3:
		check_unstable(how & 1, port, v);
		break;
	case 4:
		check_stable(port, v);
		break;
	case 5:
		ss_tree_full(true);
		ss_count(SS_N_DISK_FULL);
		break;
	case 6:
		ss_tree_full(false);
		break;
	default:
		ss_errors_arm(how >> 3);
	}
}

void ss_disk_forget_verifier(void)
{
	disk.known = false;
}

/* The tree's tmpfs loses no data at any fault, so its verifier must stay. */
void ss_disk_check_verifier(uint16_t port, const struct ss_fh *fh)
{
	uint64_t now;

	if (ss_ask_commit(port, fh, &now) != 0)
		return;
	if (disk.known && now != disk.verifier)
		ss_finding("the verifier of an export that lost nothing has changed");
	disk.verifier = now;
	disk.known = true;
}
