/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record file, state_dir/nlm-hosts: the state number, and one line for each host. The file is
 * replaced as a whole, so that a crash leaves the old contents or the new. Names come from peers and
 * are written in hexadecimal.
 */
#ifndef RN_NSM_NSM_RECORDS_H
#define RN_NSM_NSM_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nsm/nsm.h"

#define NSM_RECORDS_NAME "nlm-hosts"
#define NSM_MONITORS_NAME "nsm-monitors" /* see nsm/monitor.c */
#define NSM_HOSTS_MAX 8192u		 /* in the table; all that a file has are read */

/* A text that grows; zeroed at first. After a failed allocation it stays as it is, with failed set. */
struct nsm_text {
	char *data;
	size_t len, size;
	bool failed;
};

void nsm_text_begin(struct nsm_text *t, uint32_t state);
void nsm_text_add(struct nsm_text *t, const struct nsm_peer *host);
void nsm_text_end(struct nsm_text *t, unsigned hosts); /* hosts: number of those added */
/* Parts of lines: anything, an address, and bytes as hexadecimal digits, both behind a blank. */
void nsm_text_put(struct nsm_text *t, const char *text, size_t len);
void nsm_text_put_address(struct nsm_text *t, const struct rpc_address *a);
void nsm_text_put_bytes(struct nsm_text *t, const uint8_t *bytes, uint32_t len);
void nsm_text_free(struct nsm_text *t);

/* Reads a whole text, and calls each for every host, in the order of the text. A result of each
 * other than 0 ends the walk and is returned. -EINVAL: the text is damaged or not complete; each may
 * have been called. */
int nsm_text_read(const char *data, size_t len, uint32_t *state,
		  int (*each)(void *ctx, const struct nsm_peer *host), void *ctx);

/* Reads a file. 0 and a text to be freed; -ENOENT; other -errno. */
int nsm_records_load(const char *dir, const char *name, struct nsm_text *out);
/* Replaces a file, durably. Beside it stays a file NAME.new, the text before, with blocks for the next one. 0 or
 * -errno. */
int nsm_records_save(const char *dir, const char *name, const struct nsm_text *t);
/* Moves a damaged file aside. 0 or -errno. */
int nsm_records_set_aside(const char *dir, const char *name);

/* A text that is read line by line. */
struct nsm_reader {
	const char *at, *end;
	char line[2 * NSM_NAME_MAX + 256];
};
/* Moves to the next line, which ends by a newline. */
bool nsm_read_line(struct nsm_reader *r);
/* The text behind a word and a blank, or NULL. */
char *nsm_behind(char *line, const char *word);
/* Each is false if the text, which may be NULL, is no such thing as a whole. */
bool nsm_read_number(const char *text, uint32_t *out);
bool nsm_read_address(char *text, struct rpc_address *out);
bool nsm_read_bytes(const char *text, uint8_t *out, uint32_t size, uint32_t *len);

/* State number of a run: odd, and above that of the run before. 0: there was none. */
uint32_t nsm_next_state(uint32_t last);

#endif
