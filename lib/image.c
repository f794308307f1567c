/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * As bytes, with all numbers in network order: a head of IMAGE_HEAD bytes (magic, format, oldest reader, length, checksum of what
 * follows), and sections: SECTION_NAME bytes of its name, its length; records: kind, length; fields: tag, length, bytes. A length of a field
 * that does not fit is LONG, and follows as four bytes. A number has no more bytes than it needs, 0 has none. A list of the descriptors is
 * the section "descriptors", which is written last.
 */
#include "lib/image.h"

#define XXH_INLINE_ALL
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "lib/saved_file.h"
#include "lib/util.h"

#define MAGIC "ringnfs\n"
#define IMAGE_HEAD 40u
#define HEAD_SUMMED                                                                                \
	24u /* bytes of the head that the checksum covers, after all that follows the head */
#define SECTION_NAME 16u
#define SECTION_HEAD (SECTION_NAME + 8u)
#define RECORD_HEAD 8u
#define FIELD_HEAD 4u
#define LONG 0xffffu
#define CHUNK (256u << 10)
#define SECTIONS_MAX 32u

struct image_writer {
	int fd;
	int rc; /* the first error */
	uint8_t *buf;
	size_t used, size;
	uint64_t written; /* bytes of the file before buf, without the head */
	bool elsewhere;
	uint64_t section; /* place of the open section's head, likewise; UINT64_MAX: none is open */
	int *fds;
	size_t nfds, fds_size;
};

int image_write(struct image_writer **out)
{
	struct image_writer *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->section = UINT64_MAX;
	w->fd = memfd_create("ringnfs-state", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->fd < 0 || lseek(w->fd, IMAGE_HEAD, SEEK_SET) < 0) {
		const int rc = -errno;

		image_writer_free(w);
		return rc;
	}
	*out = w;
	return 0;
}

void image_for_elsewhere(struct image_writer *w)
{
	w->elsewhere = true;
}

bool image_is_for_elsewhere(const struct image_writer *w)
{
	return w->elsewhere;
}

void image_writer_free(struct image_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	if (w->buf) {
		explicit_bzero(w->buf, w->size);
		free(w->buf);
	}
	free(w->fds);
	free(w);
}

/* Room for so many more bytes behind those used; NULL: there was an error, now or before. */
static uint8_t *image_room(struct image_writer *w, size_t len)
{
	if (w->rc)
		return NULL;
	if (len > w->size - w->used) {
		const size_t size = rn_max(w->size * 2, w->used + len + CHUNK);
		uint8_t *buf = malloc(size);

		if (!buf) {
			w->rc = -ENOMEM;
			return NULL;
		}
		if (w->buf) {
			memcpy(buf, w->buf, w->used);
			explicit_bzero(w->buf, w->used);
			free(w->buf);
		}
		w->buf = buf;
		w->size = size;
	}
	w->used += len;
	return w->buf + w->used - len;
}

static void image_flush(struct image_writer *w)
{
	if (!w->rc)
		w->rc = rn_write_all(w->fd, w->buf, w->used);
	w->written += w->used;
	w->used = 0;
}

static void end_section(struct image_writer *w)
{
	uint8_t len[8];

	if (w->section == UINT64_MAX || w->rc)
		return;
	image_flush(w);
	rn_put64(len, w->written - w->section - SECTION_HEAD);
	if (!w->rc && pwrite(w->fd, len, sizeof(len),
			     (off_t)(IMAGE_HEAD + w->section + SECTION_NAME)) != sizeof(len))
		w->rc = -EIO;
	w->section = UINT64_MAX;
}

void image_begin(struct image_writer *w, const char *section)
{
	end_section(w);
	uint8_t *head = image_room(w, SECTION_HEAD);

	if (!head)
		return;
	w->section = w->written + (uint64_t)(head - w->buf);
	memset(head, 0, SECTION_HEAD);
	memcpy(head, section, strnlen(section, SECTION_NAME));
}

static void note_fd(struct image_writer *w, int fd)
{
	if (fd < 0 || w->rc)
		return;
	if (w->nfds == w->fds_size) {
		const size_t size = w->fds_size * 2 + 64;
		int *fds = reallocarray(w->fds, size, sizeof(*fds));

		if (!fds) {
			w->rc = -ENOMEM;
			return;
		}
		w->fds = fds;
		w->fds_size = size;
	}
	w->fds[w->nfds++] = fd;
}

static uint64_t image_number(const void *p, size_t size)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 8:
		return memcpy(&v8, p, size), v8;
	case 4:
		return memcpy(&v4, p, size), v4;
	case 2:
		return memcpy(&v2, p, size), v2;
	default:
		return *(const uint8_t *)p;
	}
}

static void image_put_field(struct image_writer *w, uint16_t tag, const void *bytes, size_t len)
{
	const size_t head = FIELD_HEAD + (len < LONG ? 0 : 4);
	uint8_t *p = len > UINT32_MAX ? NULL : image_room(w, head + len);

	if (!p) {
		w->rc = w->rc ? w->rc : -EFBIG;
		return;
	}
	rn_put32(p, (uint32_t)tag << 16 | (uint32_t)rn_min(len, (size_t)LONG));
	if (len >= LONG)
		rn_put32(p + FIELD_HEAD, (uint32_t)len);
	if (len)
		memcpy(p + head, bytes, len);
}

static void image_put_number(struct image_writer *w, uint16_t tag, uint64_t number)
{
	uint8_t bytes[8];
	unsigned len = 0;

	rn_put64(bytes, number);
	while (len < 8 && number >> (8 * len) != 0)
		len++;
	image_put_field(w, tag, bytes + 8 - len, len);
}

static void image_put_member(struct image_writer *w, const struct image_field *f, const uint8_t *at)
{
	const struct image_bytes *b = (const void *)at;
	int fd;

	switch ((enum image_how)f->how) {
	case IMAGE_NUMBER_FIELD:
		image_put_number(w, f->tag, image_number(at, f->size));
		break;
	case IMAGE_FIXED_FIELD:
		image_put_field(w, f->tag, at, f->size);
		break;
	case IMAGE_BYTES_FIELD:
		if (b->at)
			image_put_field(w, f->tag, b->at, b->len);
		break;
	case IMAGE_FD_FIELD:
		memcpy(&fd, at, sizeof(fd));
		fd = w->elsewhere ? -1 : fd;
		image_put_number(w, f->tag, (uint32_t)fd);
		note_fd(w, fd);
		break;
	}
}

void image_put(struct image_writer *w, const struct image_kind *kind, const void *object)
{
	if (w->used >= CHUNK)
		image_flush(w);
	uint8_t *head = image_room(w, RECORD_HEAD);
	const size_t at = head ? (size_t)(head - w->buf) : 0;

	for (unsigned i = 0; i < kind->nfields; i++)
		image_put_member(w, &kind->fields[i], (const uint8_t *)object + kind->fields[i].at);
	if (w->rc)
		return;
	rn_put32(w->buf + at, kind->kind);
	if (w->used - at - RECORD_HEAD > UINT32_MAX)
		w->rc = -EFBIG;
	rn_put32(w->buf + at + 4, (uint32_t)(w->used - at - RECORD_HEAD));
}

struct image_descriptor {
	int fd;
};
static const struct image_field descriptor_fields[] = {
	{ 1, IMAGE_NUMBER_FIELD, offsetof(struct image_descriptor, fd), sizeof(int) },
};
static const struct image_kind descriptor_kind = { 1, 1, descriptor_fields };

/* The checksum of all that has been written, and of the head. */
static int sum_up(const struct image_writer *w, const uint8_t *head, XXH128_hash_t *out)
{
	const size_t size = IMAGE_HEAD + w->written;
	uint8_t *map = mmap(NULL, size, PROT_READ, MAP_PRIVATE, w->fd, 0);
	XXH3_state_t state;

	if (map == MAP_FAILED)
		return -errno;
	XXH3_128bits_reset(&state);
	XXH3_128bits_update(&state, map + IMAGE_HEAD, w->written);
	XXH3_128bits_update(&state, head, HEAD_SUMMED);
	*out = XXH3_128bits_digest(&state);
	munmap(map, size);
	return 0;
}

static void image_put_head(struct image_writer *w)
{
	uint8_t head[IMAGE_HEAD] = MAGIC;
	XXH128_hash_t sum;

	rn_put32(head + 8, IMAGE_FORMAT);
	rn_put32(head + 12, IMAGE_READERS);
	rn_put64(head + 16, w->written);
	w->rc = sum_up(w, head, &sum);
	if (w->rc)
		return;
	rn_put64(head + 24, sum.high64);
	rn_put64(head + 32, sum.low64);
	if (pwrite(w->fd, head, sizeof(head), 0) != (ssize_t)sizeof(head))
		w->rc = -EIO;
}

int image_seal(struct image_writer *w, int *fd)
{
	const size_t nfds = w->nfds;

	image_begin(w, "descriptors");
	for (size_t i = 0; i < nfds; i++)
		image_put(w, &descriptor_kind, &(struct image_descriptor){ w->fds[i] });
	end_section(w);
	if (w->buf)
		explicit_bzero(w->buf, w->size); /* secrets have passed through it */
	if (!w->rc)
		image_put_head(w);
	if (!w->rc &&
	    fcntl(w->fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		w->rc = -errno;
	*fd = w->rc ? -1 : w->fd;
	return w->rc;
}

int image_pass(struct image_writer *w)
{
	for (size_t i = 0; i < w->nfds; i++)
		if (fcntl(w->fds[i], F_SETFD, 0) < 0)
			return -errno;
	return fcntl(w->fd, F_SETFD, 0) < 0 ? -errno : 0;
}

struct image_section {
	char name[SECTION_NAME + 1];
	const uint8_t *at, *end;
	bool entered;
};

struct image_reader {
	int fd;
	uint8_t *map; /* NULL: not mapped */
	size_t size;
	struct image_section section[SECTIONS_MAX];
	unsigned nsections;
	bool *untaken; /* by the number of a descriptor of the image */
	size_t nuntaken;
};

const char *image_fault_text(enum image_fault fault)
{
	switch (fault) {
	case IMAGE_DAMAGED:
		return "it is damaged";
	case IMAGE_TOO_NEW:
		return "a newer version has written it, in a form that this one does not know";
	case IMAGE_TOO_OLD:
		return "an older version has written it, in a form that this one does not know any "
		       "more";
	case IMAGE_NO_MEMORY:
		return "there is no memory for it";
	}
	return "?";
}

static int map_image(struct image_reader *r)
{
	struct stat st;

	if (fcntl(r->fd, F_SETFD, FD_CLOEXEC) < 0 || fstat(r->fd, &st) < 0 ||
	    st.st_size < (off_t)IMAGE_HEAD)
		return IMAGE_DAMAGED;
	/* Only a sealed file is read, since no other process can change it meanwhile. */
	const int seals = fcntl(r->fd, F_GET_SEALS);
	if (seals < 0 || (seals & (F_SEAL_WRITE | F_SEAL_SHRINK)) != (F_SEAL_WRITE | F_SEAL_SHRINK))
		return IMAGE_DAMAGED;
	void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, r->fd, 0);
	if (map == MAP_FAILED)
		return IMAGE_NO_MEMORY;
	r->map = map;
	r->size = (size_t)st.st_size;
	return 0;
}

static int check_head(const struct image_reader *r)
{
	const uint8_t *head = r->map;

	if (memcmp(head, MAGIC, 8) != 0)
		return IMAGE_DAMAGED;
	if (rn_get32(head + 12) > IMAGE_FORMAT)
		return IMAGE_TOO_NEW;
	if (rn_get32(head + 8) < IMAGE_READS)
		return IMAGE_TOO_OLD;
	if (rn_get64(head + 16) != r->size - IMAGE_HEAD)
		return IMAGE_DAMAGED;
	XXH3_state_t state;

	XXH3_128bits_reset(&state);
	XXH3_128bits_update(&state, head + IMAGE_HEAD, r->size - IMAGE_HEAD);
	XXH3_128bits_update(&state, head, HEAD_SUMMED);
	const XXH128_hash_t sum = XXH3_128bits_digest(&state);
	return sum.high64 == rn_get64(head + 24) && sum.low64 == rn_get64(head + 32)
		       ? 0
		       : IMAGE_DAMAGED;
}

static int find_sections(struct image_reader *r)
{
	const uint8_t *at = r->map + IMAGE_HEAD, *end = r->map + r->size;

	while (at < end) {
		if ((size_t)(end - at) < SECTION_HEAD || r->nsections == SECTIONS_MAX)
			return IMAGE_DAMAGED;
		const uint64_t len = rn_get64(at + SECTION_NAME);
		if (len > (size_t)(end - at) - SECTION_HEAD)
			return IMAGE_DAMAGED;
		struct image_section *s = &r->section[r->nsections++];

		memcpy(s->name, at, SECTION_NAME);
		s->at = at + SECTION_HEAD;
		s->end = s->at + len;
		at = s->end;
	}
	return 0;
}

/* Next descriptor of the list; -1: the list ends; less: the list is damaged. */
static int next_fd(struct image_at *at)
{
	struct image_descriptor d = { -1 };

	if (!image_next(at))
		return -1;
	return image_get(at, &descriptor_kind, &d) == 0 && d.fd >= 0 ? d.fd : -2;
}

static int find_fds(struct image_reader *r)
{
	struct image_at list, at;
	int fd, most = -1;

	if (!image_enter(r, "descriptors", &list))
		return IMAGE_DAMAGED;
	at = list;
	while ((fd = next_fd(&at)) >= 0)
		most = fd > most ? fd : most;
	/* The number is larger than a descriptor of the writer can have been. */
	if (fd != -1 || most > sysconf(_SC_OPEN_MAX))
		return IMAGE_DAMAGED;
	r->untaken = calloc((size_t)most + 2, sizeof(*r->untaken));
	if (!r->untaken)
		return IMAGE_NO_MEMORY;
	r->nuntaken = (size_t)most + 1;
	while ((fd = next_fd(&list)) >= 0) {
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return IMAGE_DAMAGED;
		r->untaken[fd] = true;
	}
	return 0;
}

int image_read(int fd, struct image_reader **out)
{
	struct image_reader *r = calloc(1, sizeof(*r));
	int rc;

	if (!r) {
		close(fd);
		return IMAGE_NO_MEMORY;
	}
	r->fd = fd;
	rc = map_image(r);
	if (!rc)
		rc = check_head(r);
	if (!rc)
		rc = find_sections(r);
	if (!rc)
		rc = find_fds(r);
	if (rc) {
		image_reader_free(r);
		return rc;
	}
	*out = r;
	return 0;
}

void image_reader_free(struct image_reader *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->nuntaken; i++)
		if (r->untaken[i])
			close((int)i);
	free(r->untaken);
	if (r->map)
		munmap(r->map, r->size);
	close(r->fd);
	free(r);
}

const char *image_unread(const struct image_reader *r)
{
	for (unsigned i = 0; i < r->nsections; i++)
		if (!r->section[i].entered)
			return r->section[i].name;
	return NULL;
}

bool image_enter(struct image_reader *r, const char *section, struct image_at *at)
{
	for (unsigned i = 0; i < r->nsections; i++) {
		struct image_section *s = &r->section[i];

		if (strncmp(s->name, section, SECTION_NAME) != 0)
			continue;
		s->entered = true;
		*at = (struct image_at){ r, s->at, s->end };
		return true;
	}
	return false;
}

/* The whole record that comes; its length, without its head, or SIZE_MAX: the section ends, or is damaged. */
static size_t record_length(const struct image_at *at)
{
	const size_t left = (size_t)(at->end - at->at);

	if (left < RECORD_HEAD || rn_get32(at->at + 4) > left - RECORD_HEAD)
		return SIZE_MAX;
	return rn_get32(at->at + 4);
}

uint16_t image_next(struct image_at *at)
{
	return record_length(at) == SIZE_MAX ? 0 : (uint16_t)rn_get32(at->at);
}

int image_skip(struct image_at *at)
{
	const size_t len = record_length(at);

	if (len == SIZE_MAX || (rn_get32(at->at) & IMAGE_MAY_SKIP) == 0)
		return -EPROTO;
	at->at += RECORD_HEAD + len;
	return 0;
}

static bool set_number(void *to, size_t size, const uint8_t *bytes, size_t len)
{
	uint64_t v = 0;

	if (len > 8)
		return false;
	for (size_t i = 0; i < len; i++)
		v = v << 8 | bytes[i];
	if (size < 8 && v >> (8 * size) != 0)
		return false;
	const uint32_t v4 = (uint32_t)v;
	const uint16_t v2 = (uint16_t)v;
	const uint8_t v1 = (uint8_t)v;

	memcpy(to,
	       size == 8   ? (const void *)&v
	       : size == 4 ? (const void *)&v4
	       : size == 2 ? (const void *)&v2
			   : &v1,
	       size);
	return true;
}

/* The descriptor is the caller's from now on. */
static bool take_fd(struct image_reader *r, int *to, const uint8_t *bytes, size_t len)
{
	uint32_t number;

	if (!set_number(&number, sizeof(number), bytes, len))
		return false;
	*to = -1;
	if (number == UINT32_MAX)
		return true;
	if (number >= r->nuntaken || !r->untaken[number])
		return false;
	r->untaken[number] = false;
	*to = (int)number;
	return true;
}

static bool set_member(struct image_reader *r, const struct image_field *f, uint8_t *to,
		       const uint8_t *bytes, uint32_t len)
{
	switch ((enum image_how)f->how) {
	case IMAGE_NUMBER_FIELD:
		return set_number(to, f->size, bytes, len);
	case IMAGE_FIXED_FIELD:
		if (len > f->size)
			return false;
		memset(to, 0, f->size);
		memcpy(to, bytes, len);
		return true;
	case IMAGE_BYTES_FIELD:
		*(struct image_bytes *)(void *)to = (struct image_bytes){ bytes, len };
		return true;
	case IMAGE_FD_FIELD:
		return take_fd(r, (int *)(void *)to, bytes, len);
	}
	return false;
}

/* Finds the field of a tag. *next: index where it is expected, as writers follow the order of the table. */
static const struct image_field *image_field_of(const struct image_kind *kind, uint32_t tag,
						unsigned *next)
{
	for (unsigned i = 0; i < kind->nfields; i++) {
		const unsigned at = (*next + i) % kind->nfields;

		if (kind->fields[at].tag == tag) {
			*next = at + 1;
			return &kind->fields[at];
		}
	}
	return NULL;
}

struct image_one_field {
	uint32_t tag, len;
	const uint8_t *bytes;
};

/* Reads the field at p. Returns where the next one begins, or NULL if the field is cut short. */
static const uint8_t *take_field(const uint8_t *p, const uint8_t *end, struct image_one_field *f)
{
	size_t head = FIELD_HEAD;

	if ((size_t)(end - p) < head)
		return NULL;
	f->tag = rn_get32(p) >> 16;
	f->len = rn_get32(p) & LONG;
	if (f->len == LONG) {
		head += 4;
		if ((size_t)(end - p) < head)
			return NULL;
		f->len = rn_get32(p + FIELD_HEAD);
	}
	if (f->len > (size_t)(end - p) - head)
		return NULL;
	f->bytes = p + head;
	return f->bytes + f->len;
}

int image_get(struct image_at *at, const struct image_kind *kind, void *object)
{
	const size_t len = record_length(at);
	const uint8_t *p = at->at + RECORD_HEAD;
	struct image_one_field one;
	unsigned next = 0;

	for (unsigned i = 0; i < kind->nfields; i++)
		if (kind->fields[i].how == IMAGE_FD_FIELD)
			*(int *)(void *)((uint8_t *)object + kind->fields[i].at) = -1;
	if (len == SIZE_MAX || rn_get32(at->at) != kind->kind)
		return -EPROTO;
	at->at = p + len;
	while (p < at->at) {
		p = take_field(p, at->at, &one);
		if (!p)
			return -EPROTO;
		const struct image_field *f = image_field_of(kind, one.tag, &next);

		if (f && !set_member(at->reader, f, (uint8_t *)object + f->at, one.bytes, one.len))
			return -EPROTO;
	}
	return 0;
}
