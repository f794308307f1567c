/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The image of a server's state, which a server hands to the one that takes its place (doc/design/upgrade.md): a sealed file in memory
 * with a format number, lengths and a checksum.
 *
 * An image has sections by name, one for each part of the server; a section has records; a record has a kind and fields with tags.
 * A kind is described once, by a table of its fields, from which the writer and the reader come. A reader skips fields that it does not
 * know, and leaves members whose field is missing as they are. A kind or a section that it does not know is an error, as state would be
 * lost, unless the kind has IMAGE_MAY_SKIP. So a tag or a kind is never used again for something else.
 *
 * Descriptors are in the image by their numbers: the next program has them by the same. One thread uses a writer or a reader.
 */
#ifndef RN_LIB_IMAGE_H
#define RN_LIB_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IMAGE_FORMAT 1u	 /* of the images that this version writes */
#define IMAGE_READS 1u	 /* the oldest format that it reads */
#define IMAGE_READERS 1u /* the oldest version that can read what it writes, by its IMAGE_FORMAT */

#define IMAGE_MAY_SKIP                                                                             \
	0x8000u /* kinds from here on: whoever does not know them goes on without them */

struct image_bytes {
	const uint8_t *at; /* in the image; NULL: there was no such field */
	uint32_t len;
};

enum image_how {
	IMAGE_NUMBER_FIELD, /* bool, or unsigned of 1, 2, 4 or 8 bytes. Another version may have another size, if the value fits */
	IMAGE_FIXED_FIELD, /* bytes of just the member's size; shorter ones are followed by zeros */
	IMAGE_BYTES_FIELD, /* struct image_bytes */
	IMAGE_FD_FIELD,	   /* int; -1: none */
};

struct image_field {
	uint16_t tag;
	uint8_t how; /* enum image_how */
	uint16_t at, size;
};

#define IMAGE_MEMBER(tag, how, type, member)                                                       \
	{                                                                                          \
		tag, how, offsetof(type, member), sizeof(((type *)0)->member)                      \
	}
#define IMAGE_NUMBER(tag, type, member) IMAGE_MEMBER(tag, IMAGE_NUMBER_FIELD, type, member)
#define IMAGE_FIXED(tag, type, member) IMAGE_MEMBER(tag, IMAGE_FIXED_FIELD, type, member)
#define IMAGE_BYTES(tag, type, member) IMAGE_MEMBER(tag, IMAGE_BYTES_FIELD, type, member)
#define IMAGE_FD(tag, type, member) IMAGE_MEMBER(tag, IMAGE_FD_FIELD, type, member)

struct image_kind {
	uint16_t kind; /* unique in its section */
	uint16_t nfields;
	const struct image_field *fields;
};

struct image_writer;

int image_write(struct image_writer **out); /* 0 or -errno */
/* The image is for a server on another machine: descriptors are left out (-1). To be called before anything is put. Parts ask, and leave out what is of
 * this machine alone. */
void image_for_elsewhere(struct image_writer *w);
bool image_is_for_elsewhere(const struct image_writer *w);
void image_begin(struct image_writer *w, const char *section);
/* Adds a record. An error is kept until image_seal(). */
void image_put(struct image_writer *w, const struct image_kind *kind, const void *object);
/* Ends the image: nobody can change it any more. *fd is its file, which is closed by an exec unless image_pass() follows. 0 or -errno. */
int image_seal(struct image_writer *w, int *fd);
/* Lets the descriptors of the image, and its own, stay open in the next program. 0 or -errno. */
int image_pass(struct image_writer *w);
/* Frees the writer and closes the image. Descriptors that the image names stay open. */
void image_writer_free(struct image_writer *w);

struct image_reader;

enum image_fault {
	IMAGE_DAMAGED = 1, /* no image, cut short, or the checksum differs */
	IMAGE_TOO_NEW,	   /* this version cannot read it */
	IMAGE_TOO_OLD,
	IMAGE_NO_MEMORY,
};
const char *image_fault_text(enum image_fault fault);

/* Takes fd, also if it fails, and then the descriptors that the image names, which an exec closes from now on. 0, or an enum image_fault. */
int image_read(int fd, struct image_reader **out);
/* Closes descriptors that nobody has taken, and the image. NULL is allowed. */
void image_reader_free(struct image_reader *r);
/* Name of a section that nobody has entered, or NULL. */
const char *image_unread(const struct image_reader *r);

/* A place in a section. */
struct image_at {
	struct image_reader *reader;
	const uint8_t *at, *end;
};
/* Goes to the first record of a section. False: there is none. */
bool image_enter(struct image_reader *r, const char *section, struct image_at *at);
/* Kind of the record that comes; 0: there is no more. */
uint16_t image_next(struct image_at *at);
/* Passes a record that the caller does not know. 0; -EPROTO: it may not be passed. */
int image_skip(struct image_at *at);
/* Fills the members of object that the record has. An object's descriptor is -1, or the caller's from now on. 0, or -EPROTO: a field does not
 * fit its member, or names a descriptor that is not there or was taken. */
int image_get(struct image_at *at, const struct image_kind *kind, void *object);

#endif
