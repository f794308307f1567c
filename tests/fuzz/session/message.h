/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a message in an input cannot say itself, because it is only known when the server runs, is
 * marked in it by four octets: 0xf1 'F', a letter, and an octet k.
 *
 *   H  handle k as a counted opaque: see enum ss_handle
 *   C  the cookie (8 octets), V the cookie verifier, of the last directory reply
 *   B  a counted opaque of ss_sizes[k] octets, with its pad
 *   D  the same number of octets, bare and unpadded
 *   S  a segment of an RDMA chunk (handle, length, offset): ss_sizes[k] octets of the client's
 *      memory
 *   Q  SEQUENCE's session id, sequence id of slot k, the slot and the highest slot
 *   Y  the session id alone
 *   K  the client id of minor version 0 (k = 0) or of a session's client, T what confirms it
 *   W  a word that tells the clients of a session apart
 *   A  the universal address for callbacks of minor version 0, as a counted opaque
 *   N  the next sequence id of CREATE_SESSION
 *   X  a verifier of an EXCLUSIVE create: the times of SS_FH_PRIVATE (k = 0), or one of three
 *   P  handle k in the form of NFSv2: 32 octets, p the same as a counted opaque; c NFSv2's cookie (4 octets)
 *   I  the last stateid of an open (k = 0), a lock (1), a delegation (2) or an asynchronous copy (3);
 *      4 more: the other client's. O the owner's next sequence id
 */
#ifndef RN_TESTS_FUZZ_SESSION_MESSAGE_H
#define RN_TESTS_FUZZ_SESSION_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#define SS_MESSAGE_MAX (2u << 20) /* above the server's limit */
#define SS_HANDLE_MAX 64u
#define SS_PACKED_SIZE 32u
#define SS_SLOTS 4u

/* Kinds of stateids that are learned from replies. */
enum ss_stateid { SS_OPEN, SS_LOCK, SS_DELEG, SS_COPY, SS_STATEIDS };
#define SS_OTHERS SS_STATEIDS /* added: the other client's stateid */

enum ss_handle {
	SS_FH_ROOT,
	SS_FH_FILE,
	SS_FH_LINK,
	SS_FH_DIR,
	SS_FH_BIG,
	SS_FH_FIFO,
	SS_FH_RO_ROOT,
	SS_FH_RO_FILE,
	SS_FH_RO_MANY,
	SS_FH_SQUASHED,
	SS_FH_STALE,
	SS_FH_NEW, /* from here to SS_FH_NEW_END: handles from replies of this session */
	SS_FH_NEW_END = 16,
	SS_FH_SECRET = SS_FH_NEW_END, /* a file that only its owner may read */
	/* an empty file of the same owner, whose times are a verifier of an EXCLUSIVE create */
	SS_FH_PRIVATE,
	SS_FH_LEASED, /* the file that a local process has a lease of, at times */
	SS_FH_LATE,   /* root of an export on which another file system is mounted at times */
	SS_FH_CROSS,  /* root of an export with such a mount below it */
	SS_FH_DISK,   /* root of a file system that loses data at times */
	SS_FH_DISK_FILE,
	SS_FH_KRB, /* root of an export for krb5p alone */
	SS_FH_TLS, /* root of an export for TLS alone */
	SS_FH_COUNT,
};

struct ss_fh {
	uint32_t len;
	uint8_t bytes[SS_HANDLE_MAX];
};

extern const uint32_t ss_sizes[32];

/* Values that marks stand for. */
struct ss_values {
	struct ss_fh fh[SS_FH_COUNT];
	unsigned next_new;
	uint8_t packed[SS_FH_COUNT][SS_PACKED_SIZE]; /* the same objects by NFSv2; zeros: unknown */
	unsigned next_packed;
	uint32_t cookie2; /* of NFSv2's last directory reply */
	uint64_t cookie, cookieverf, exclusive;
	uint64_t change, size; /* of the last reply that had these two attributes alone */
	/* values of NFSv4 */
	uint64_t clientid[2];
	uint8_t confirm[8], session[16], stateid[SS_STATEIDS][16];
	uint32_t client;	       /* number of the client that uses these values */
	uint16_t cb_port;	       /* callbacks of minor version 0 are taken there */
	const struct ss_values *other; /* values of the other client; NULL: there is none */
	uint32_t create_seqid, owner_seqid, slot_seqid[SS_SLOTS];
	/* Client memory that RDMA segments name. */
	uint32_t rkey;
	uint64_t address;
};

void ss_learn_handle(struct ss_values *v, const uint8_t *bytes, uint32_t len);
void ss_learn_packed(struct ss_values *v, const uint8_t bytes[SS_PACKED_SIZE]);

/* Copies the message with values in place of marks; some values count up with each use. out has
 * room for SS_MESSAGE_MAX bytes. Returns the length. */
size_t ss_expand(const uint8_t *data, size_t len, struct ss_values *v, uint8_t *out);

static inline uint32_t ss_word(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline void ss_set_word(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

#endif
