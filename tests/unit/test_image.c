/* SPDX-License-Identifier: BSD-2-Clause */
/* The image of a server's state: what is written is read, by other versions too, and nothing that is damaged is. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/image.h"
#include "lib/util.h"

struct thing {
	uint64_t number;
	uint8_t small;
	bool flag;
	uint8_t id[4];
	struct image_bytes name;
	int fd;
	uint32_t later; /* a member that the older version does not have */
};

static const struct image_field thing_fields[] = {
	IMAGE_NUMBER(1, struct thing, number), IMAGE_NUMBER(2, struct thing, small),
	IMAGE_NUMBER(3, struct thing, flag),   IMAGE_FIXED(4, struct thing, id),
	IMAGE_BYTES(5, struct thing, name),    IMAGE_FD(6, struct thing, fd),
	IMAGE_NUMBER(7, struct thing, later),
};
static const struct image_kind thing_kind = { 1, 7, thing_fields };
static const struct image_kind old_kind = { 1, 6, thing_fields };
/* The same record in another version. */
struct other_thing {
	uint8_t number;
	uint64_t small;
	uint8_t id[6];
};
static const struct image_field other_fields[] = {
	IMAGE_NUMBER(1, struct other_thing, number),
	IMAGE_NUMBER(2, struct other_thing, small),
	IMAGE_FIXED(4, struct other_thing, id),
};
static const struct image_kind other_kind = { 1, 3, other_fields };
static const struct image_kind hint_kind = { IMAGE_MAY_SKIP | 1, 1, other_fields };

static const struct thing example = {
	.number = 0x0123456789abcdef,
	.small = 7,
	.flag = true,
	.id = { 1, 2, 3, 4 },
	.name = { (const uint8_t *)"a name", 6 },
	.fd = -1,
	.later = 42,
};

static int sealed(struct image_writer *w)
{
	int fd;

	cr_assert_eq(image_seal(w, &fd), 0);
	fd = dup(fd);
	image_writer_free(w);
	return fd;
}

static struct image_writer *begun(void)
{
	struct image_writer *w;

	cr_assert_eq(image_write(&w), 0);
	image_begin(w, "things");
	return w;
}

static struct image_reader *image_of(int fd, struct image_at *at)
{
	struct image_reader *r;

	cr_assert_eq(image_read(fd, &r), 0);
	cr_assert(image_enter(r, "things", at));
	return r;
}

Test(image, what_is_written_is_read)
{
	struct image_writer *w = begun();
	struct thing t = { 0 };
	struct image_at at;

	image_put(w, &thing_kind, &example);
	image_begin(w, "empty");
	struct image_reader *r = image_of(sealed(w), &at);

	cr_assert_eq(image_next(&at), 1);
	cr_assert_eq(image_get(&at, &thing_kind, &t), 0);
	cr_expect_eq(t.number, example.number);
	cr_expect_eq(t.small, 7);
	cr_expect(t.flag);
	cr_expect(memcmp(t.id, example.id, 4) == 0);
	cr_expect_eq(t.name.len, 6);
	cr_expect(memcmp(t.name.at, "a name", 6) == 0);
	cr_expect_eq(t.fd, -1);
	cr_expect_eq(t.later, 42);
	cr_expect_eq(image_next(&at), 0);
	cr_expect_eq(image_get(&at, &thing_kind, &t), -EPROTO);
	cr_expect_str_eq(image_unread(r), "empty");
	cr_expect(image_enter(r, "empty", &at));
	cr_expect_eq(image_next(&at), 0);
	cr_expect_not(image_enter(r, "nothing", &at));
	cr_expect_eq(image_unread(r), NULL);
	image_reader_free(r);
}

Test(image, versions_differ)
{
	struct image_writer *w = begun();
	struct thing t = { .later = 99 };
	struct other_thing o = { 0 };
	struct image_at at;

	image_put(w, &old_kind, &example);
	image_put(w, &thing_kind, &(struct thing){ .number = 200, .small = 3, .id = { 9 } });
	image_put(w, &thing_kind, &example);
	image_put(w, &hint_kind, &o);
	struct image_reader *r = image_of(sealed(w), &at);

	cr_expect_eq(image_get(&at, &thing_kind, &t), 0);
	cr_expect_eq(t.later, 99, "a member without a field keeps its value");
	cr_expect_eq(image_get(&at, &other_kind, &o), 0);
	cr_expect_eq(o.number, 200);
	cr_expect_eq(o.small, 3);
	cr_expect_eq(o.id[0], 9);
	cr_expect_eq(image_skip(&at), -EPROTO, "state must not be skipped");
	cr_expect_eq(image_get(&at, &other_kind, &o), -EPROTO, "the number does not fit");
	cr_expect_eq(image_next(&at), IMAGE_MAY_SKIP | 1);
	cr_expect_eq(image_skip(&at), 0);
	cr_expect_eq(image_next(&at), 0);
	image_reader_free(r);
}

Test(image, descriptors_are_taken_once_and_closed_if_not)
{
	const int a = open("/dev/null", O_RDONLY | O_CLOEXEC), b = dup(a);
	struct image_writer *w = begun();
	struct thing t = { .fd = a }, u;
	struct image_at at;
	int fd;

	image_put(w, &thing_kind, &t);
	t.fd = b;
	image_put(w, &thing_kind, &t);
	t.fd = a;
	image_put(w, &thing_kind, &t);
	cr_assert_eq(image_seal(w, &fd), 0);
	cr_assert_eq(image_pass(w), 0);
	cr_expect_eq(fcntl(a, F_GETFD), 0);
	cr_expect_eq(fcntl(fd, F_GETFD), 0);
	fd = dup(fd);
	image_writer_free(w);

	struct image_reader *r = image_of(fd, &at);

	cr_expect_eq(fcntl(a, F_GETFD), FD_CLOEXEC);
	cr_assert_eq(image_get(&at, &thing_kind, &u), 0);
	cr_expect_eq(u.fd, a);
	cr_assert_eq(image_get(&at, &other_kind, &(struct other_thing){ 0 }), 0);
	cr_expect_eq(image_get(&at, &thing_kind, &u), -EPROTO, "it was taken before");
	cr_expect_eq(u.fd, -1);
	image_reader_free(r);
	cr_expect_eq(fcntl(a, F_GETFD), FD_CLOEXEC, "the reader has closed what was taken");
	cr_expect_eq(fcntl(b, F_GETFD), -1, "the reader has not closed what nobody took");
	close(a);
}

/* A file with those bytes, sealed. */
static int image_file(const uint8_t *bytes, size_t len, bool seal)
{
	const int fd = memfd_create("test", MFD_ALLOW_SEALING);

	cr_assert_eq(write(fd, bytes, len), (ssize_t)len);
	if (seal)
		cr_assert_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK), 0);
	return fd;
}

Test(image, nothing_damaged_is_read)
{
	struct image_writer *w = begun();
	struct image_reader *r = NULL;
	uint8_t bytes[4096];

	image_put(w, &thing_kind, &example);
	const int fd = sealed(w);
	const ssize_t len = pread(fd, bytes, sizeof(bytes), 0);

	close(fd);
	cr_assert(len > 0 && len < (ssize_t)sizeof(bytes));
	for (ssize_t i = 0; i < len; i++) {
		bytes[i] ^= 0x10;
		cr_expect_neq(image_read(image_file(bytes, (size_t)len, true), &r), 0, "byte %zd",
			      i);
		bytes[i] ^= 0x10;
	}
	for (ssize_t i = 0; i < len; i++)
		cr_expect_eq(image_read(image_file(bytes, (size_t)i, true), &r), IMAGE_DAMAGED);
	cr_expect_eq(image_read(image_file(bytes, (size_t)len, false), &r), IMAGE_DAMAGED,
		     "somebody could change it");
	rn_put32(bytes + 12, IMAGE_FORMAT + 1);
	cr_expect_eq(image_read(image_file(bytes, (size_t)len, true), &r), IMAGE_TOO_NEW);
	rn_put32(bytes + 12, IMAGE_READERS);
	rn_put32(bytes + 8, IMAGE_READS - 1);
	cr_expect_eq(image_read(image_file(bytes, (size_t)len, true), &r), IMAGE_TOO_OLD);
}

/* The checksum is right, but a length is not: the reader checks both. */
Test(image, lengths_beyond_their_whole)
{
	uint8_t record[24] = { 0 };
	struct thing t;
	struct image_at at = { NULL, record, record + sizeof(record) };

	rn_put32(record, 1);
	rn_put32(record + 4, 17);
	cr_expect_eq(image_next(&at), 0);
	cr_expect_eq(image_get(&at, &thing_kind, &t), -EPROTO);
	rn_put32(record + 4, 16);
	rn_put32(record + 8, 5u << 16 | 13);
	cr_expect_eq(image_get(&at, &thing_kind, &t), -EPROTO);
	at.at = record;
	rn_put32(record + 8, 5u << 16 | 0xffff);
	rn_put32(record + 12, 9);
	cr_expect_eq(image_get(&at, &thing_kind, &t), -EPROTO);
}

/* Records of more than the writer keeps in memory at a time, with bytes and numbers of all lengths. */
Test(image, is_long)
{
	static const uint32_t lengths[] = { 0, 1, 65534, 65535, 65536, 300000 };
	static uint8_t name[300000];
	struct image_writer *w = begun();
	struct image_reader *r;
	struct image_at at;

	memset(name, 'x', sizeof(name));
	for (unsigned i = 0; i < 64; i++) {
		const struct thing t = { .number = UINT64_C(1) << i,
					 .name = { name, lengths[i % rn_array_size(lengths)] },
					 .fd = -1 };

		image_put(w, &thing_kind, &t);
	}
	image_begin(w, "others");
	image_put(w, &thing_kind, &example);
	r = image_of(sealed(w), &at);
	for (unsigned i = 0; i < 64; i++) {
		struct thing t = { 0 };

		cr_assert_eq(image_get(&at, &thing_kind, &t), 0);
		cr_expect_eq(t.number, UINT64_C(1) << i);
		cr_assert_eq(t.name.len, lengths[i % rn_array_size(lengths)]);
		cr_expect(memcmp(t.name.at, name, t.name.len) == 0);
	}
	cr_expect_eq(image_next(&at), 0);
	cr_assert(image_enter(r, "others", &at));
	cr_expect_eq(image_next(&at), 1);
	image_reader_free(r);
}
