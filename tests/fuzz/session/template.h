/* SPDX-License-Identifier: BSD-2-Clause */
/* Templates of valid calls, with marks for handles (message.h), from which sessions are made. */
#ifndef RN_TESTS_FUZZ_SESSION_TEMPLATE_H
#define RN_TESTS_FUZZ_SESSION_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SS_TEMPLATE_MAX 1024u
#define SS_EXPORT "/mnt/rw" /* mount point of the driver's tree, in its own mount namespace */

unsigned ss_template_count(void);
const char *ss_template_name(unsigned i);
/* out has room for SS_TEMPLATE_MAX bytes; returns the size. */
size_t ss_template(unsigned i, uint8_t *out);

/* Calls that the table of samples lacks, with data of every size. */
size_t ss_template_read(uint8_t *out, unsigned handle, uint64_t offset, uint32_t count);
size_t ss_template_write(uint8_t *out, unsigned handle, uint64_t offset, uint32_t stable,
			 uint8_t size);
size_t ss_template_readdir(uint8_t *out, unsigned handle, bool plus, bool from_cookie,
			   uint32_t count);

/* CREATE of "private" or of a new name, with the verifier of mark X k. */
size_t ss_template_exclusive(uint8_t *out, bool new_name, uint8_t k);

/* Chunks that an RDMA call offers (RFC 8166 section 4), as indexes into ss_sizes; 0 for none. */
struct ss_chunks {
	uint8_t read, write, reply;
	uint32_t read_position;
	bool long_call; /* the message itself goes by a Read chunk at position zero */
};
/* Puts the transport header and, unless long_call, the message. */
size_t ss_template_rdma(const struct ss_chunks *c, const uint8_t *msg, size_t len, uint8_t *out);

#endif
