/* SPDX-License-Identifier: BSD-2-Clause */
/* The state that a member leaves when it is moved: only that member's next run reads it, once, and nothing but what was written. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cluster_state.h"
#include "lib/util.h"

#define FILE_MAX 4096u

struct state_word {
	uint32_t word;
	int fd;
};
static const struct image_field state_word_fields[] = {
	IMAGE_NUMBER(1, struct state_word, word),
	IMAGE_FD(2, struct state_word, fd),
};
static const struct image_kind state_word_kind = { 1, rn_array_size(state_word_fields),
						   state_word_fields };

static char dir[] = "/tmp/ringnfs-state-XXXXXX";
static char path[PATH_MAX];
static uint8_t file[FILE_MAX];
static size_t file_len;

static const struct cluster_state_of run7 = {
	.dir = dir,
	.member = "lab/a",
	.incarnation = 7,
	.secret = { 1, 2, 3 },
};

static void write_state(void)
{
	struct image_writer *w;
	int fd;

	cr_assert_eq(image_write(&w), 0);
	image_for_elsewhere(w);
	image_begin(w, "words");
	image_put(w, &state_word_kind, &(struct state_word){ 0x5ec4e75, 2 });
	cr_assert_eq(image_seal(w, &fd), 0);
	cr_assert_eq(cluster_state_write(&run7, fd), 0);
	image_writer_free(w);
}

static void state_setup(void)
{
	cr_assert(sodium_init() >= 0);
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/" CLUSTER_STATE_NAME, dir);
	write_state();
	const int fd = open(path, O_RDONLY);

	file_len = (size_t)read(fd, file, sizeof(file));
	cr_assert(file_len > 100 && file_len < sizeof(file));
	close(fd);
}

static void state_teardown(void)
{
	(void)unlink(path);
	cr_assert_eq(rmdir(dir), 0, "nothing else is left");
}

TestSuite(cluster_state, .init = state_setup, .fini = state_teardown);

/* Has the file be these bytes. */
static void put_file(const uint8_t *bytes, size_t len)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

static int take(const struct cluster_state_of *of, struct image_reader **out)
{
	enum image_fault fault = IMAGE_DAMAGED;
	const int rc = cluster_state_take(of, out, &fault);

	cr_assert(access(path, F_OK) < 0 && errno == ENOENT, "it is gone in any case");
	return rc;
}

Test(cluster_state, read_once_without_descriptors)
{
	struct state_word got = { .fd = 0 };
	struct image_reader *r;
	struct image_at at;
	struct stat st;

	cr_assert_eq(stat(path, &st), 0);
	cr_assert_eq(st.st_mode & 0777, 0600u);
	cr_assert_eq(take(&run7, &r), 0);
	cr_assert(image_enter(r, "words", &at));
	cr_assert_eq(image_get(&at, &state_word_kind, &got), 0);
	cr_assert_eq(got.word, 0x5ec4e75u);
	cr_assert_eq(got.fd, -1);
	image_reader_free(r);
	cr_assert_eq(take(&run7, &r), -ENOENT);
}

Test(cluster_state, what_it_has_is_not_in_the_file)
{
	static const uint8_t secret[] = { 0x05, 0xec, 0x4e, 0x75 };

	cr_assert_not(memmem(file, file_len, secret, sizeof(secret)));
	cr_assert_not(memmem(file, file_len, "words", 5));
}

Test(cluster_state, of_another_run_member_or_cluster)
{
	struct cluster_state_of of = run7;
	struct image_reader *r;

	of.incarnation = 8;
	cr_assert_eq(take(&of, &r), -ESTALE);
	put_file(file, file_len);
	of = run7;
	of.member = "lab/b";
	cr_assert_eq(take(&of, &r), -EBADMSG);
	put_file(file, file_len);
	of = run7;
	of.secret[15] ^= 1;
	cr_assert_eq(take(&of, &r), -EBADMSG);
	put_file(file, file_len);
	cr_assert_eq(take(&run7, &r), 0);
	image_reader_free(r);
}

Test(cluster_state, each_byte_damaged_and_each_length)
{
	struct image_reader *r;

	for (size_t i = 0; i < file_len; i++) {
		file[i] ^= 0x10;
		put_file(file, file_len);
		file[i] ^= 0x10;
		const int rc = take(&run7, &r);

		cr_assert(rc == -EBADMSG || (rc == -ESTALE && i >= 16 && i < 24), "byte %zu: %d", i,
			  rc);
	}
	for (size_t len = 0; len < file_len; len++) {
		put_file(file, len);
		cr_assert_eq(take(&run7, &r), -EBADMSG, "%zu bytes", len);
	}
}

Test(cluster_state, no_plain_file_of_this_user_alone)
{
	char real[PATH_MAX + 8];
	struct image_reader *r;

	cr_assert_eq(chmod(path, 0640), 0);
	cr_assert_eq(take(&run7, &r), -EPERM);
	put_file(file, file_len);
	snprintf(real, sizeof(real), "%s.real", path);
	cr_assert_eq(rename(path, real), 0);
	cr_assert_eq(symlink(real, path), 0);
	cr_assert_eq(take(&run7, &r), -ELOOP);
	cr_assert_eq(unlink(real), 0);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_assert_eq(take(&run7, &r), -EPERM);
}

/* A run that dies while it writes leaves nothing that counts, and the next one writes over it. */
Test(cluster_state, half_written)
{
	char half[PATH_MAX + 8];
	struct image_reader *r;

	cr_assert_eq(unlink(path), 0);
	snprintf(half, sizeof(half), "%s.new", path);
	const int fd = open(half, O_WRONLY | O_CREAT, 0600);

	cr_assert_eq(write(fd, file, file_len / 2), (ssize_t)(file_len / 2));
	close(fd);
	cr_assert_eq(take(&run7, &r), -ENOENT);
	cr_assert(access(half, F_OK) < 0);
	write_state();
	cr_assert_eq(take(&run7, &r), 0);
	image_reader_free(r);
}
