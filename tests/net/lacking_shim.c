/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into ringnfsd by tests/net/lacking.py: takes away what a kernel, an emulator or a container may lack.
 *
 * $LACKING has words NAME=ERRNO: the system call, or its use, fails so from then on, by a seccomp filter. The word STATX=BITS
 * takes these bits out of the mask that statx(2) answers, and puts nonsense into the fields; ZERO_MOUNT=1 puts a zero there and leaves
 * the mask.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EX_NOSHIM 99 /* the test skips what cannot be taken away here */
#define CACHESTAT_NUMBER 451
#define TMPFILE_BIT (O_TMPFILE & ~O_DIRECTORY)

/* mask is not 0: calls only whose argument arg, masked, is value. */
static const struct row {
	const char *name;
	uint32_t number, arg, mask, value;
} rows[] = {
#define CALL(name)                                                                                 \
	{                                                                                          \
#name, SYS_##name, 0, 0, 0                                                         \
	}
	CALL(clone3),
	CALL(close_range),
	CALL(copy_file_range),
	CALL(faccessat2),
	CALL(fadvise64),
	CALL(fallocate),
	CALL(fanotify_init),
	CALL(fanotify_mark),
	CALL(getrandom),
	CALL(io_uring_enter),
	CALL(io_uring_register),
	CALL(io_uring_setup),
	CALL(madvise),
	CALL(membarrier),
	CALL(memfd_create),
	CALL(mlock),
	CALL(name_to_handle_at),
	CALL(open_by_handle_at),
	CALL(open_tree),
	CALL(openat2),
	CALL(preadv2),
	CALL(pwritev2),
	CALL(quotactl_fd),
	CALL(renameat2),
	CALL(sched_getaffinity),
	CALL(sched_setaffinity),
	CALL(setpriority),
	CALL(splice),
	CALL(statx),
	CALL(sync_file_range),
	CALL(syncfs),
	CALL(sysinfo),
	CALL(tee),
	CALL(vmsplice),
	{ "cachestat", CACHESTAT_NUMBER, 0, 0, 0 },
	{ "F_OFD_SETLK", SYS_fcntl, 1, UINT32_MAX, F_OFD_SETLK },
	{ "F_SETLEASE", SYS_fcntl, 1, UINT32_MAX, 1024 },
	{ "F_SETPIPE_SZ", SYS_fcntl, 1, UINT32_MAX, 1031 },
	{ "FICLONERANGE", SYS_ioctl, 1, UINT32_MAX, FICLONERANGE },
	{ "O_TMPFILE", SYS_openat, 2, TMPFILE_BIT, TMPFILE_BIT },
	{ "RENAME_NOREPLACE", SYS_renameat2, 4, UINT32_MAX, 1 },
};

static uint32_t hidden; /* bits of statx's mask */
static bool zero_mount; /* statx tells 0 for the mount's number, as under qemu-user */

static void give_up(const char *what)
{
	fprintf(stderr, "lacking_shim: %s: %s\n", what, strerror(errno));
	_exit(EX_NOSHIM);
}

/* A filter for each word: the kernel runs them all, and the strictest answer counts. */
static void take_away(const struct row *row, uint32_t error)
{
	const uint32_t arg = offsetof(struct seccomp_data, args) + row->arg * 8 +
			     (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? 4 : 0);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->number, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, arg),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, row->mask),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, row->value, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	/* A sanitizer has started a thread by now. */
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
		give_up(row->name);
}

static void take_word(const char *word, const char *value)
{
	if (strcmp(word, "STATX") == 0) {
		hidden = (uint32_t)strtoul(value, NULL, 0);
		return;
	}
	if (strcmp(word, "ZERO_MOUNT") == 0) {
		zero_mount = true;
		return;
	}
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, word) == 0) {
			take_away(&rows[i], (uint32_t)atoi(value));
			return;
		}
	}
	errno = EINVAL;
	give_up(word);
}

__attribute__((constructor)) static void begin(void)
{
	const char *all = getenv("LACKING");
	char *words = all ? strdup(all) : NULL, *next = words, *word;

	while (next && (word = strsep(&next, " ")) != NULL) {
		char *value = strchr(word, '=');

		if (value) {
			*value = '\0';
			take_word(word, value + 1);
		}
	}
	free(words);
}

int statx(int fd, const char *restrict path, int flags, unsigned mask, struct statx *restrict sx)
{
	static int (*_Atomic next)(int, const char *, int, unsigned, struct statx *);
	int rc;

	if (!next)
		next = (int (*)(int, const char *, int, unsigned, struct statx *))dlsym(RTLD_NEXT,
											"statx");
	rc = next(fd, path, flags, mask, sx);
	if (rc != 0)
		return rc;
	sx->stx_mask &= ~hidden;
	if (zero_mount)
		sx->stx_mnt_id = 0;
	if (hidden & STATX_MNT_ID)
		sx->stx_mnt_id = UINT32_MAX;
	if (hidden & STATX_BTIME)
		sx->stx_btime.tv_sec = -1;
	return 0;
}
