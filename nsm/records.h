/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The record file, state_dir/nlm-hosts: the state number, and one line for each host. The file is
 * replaced as a whole, so that a crash leaves the old contents or the new. Names come from peers and
 * are written in hexadecimal.
 */
#ifndef RN_NSM_RECORDS_H
#define RN_NSM_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "nsm/nsm.h"

#define NSM_RECORDS_NAME "nlm-hosts"
#define NSM_HOSTS_MAX 8192u

/* A text that grows; zeroed at first. After a failed allocation it stays as it is, with failed set. */
struct nsm_text {
	char *data;
	size_t len, size;
	bool failed;
};

void nsm_text_begin(struct nsm_text *t, uint32_t state);
void nsm_text_add(struct nsm_text *t, const struct nsm_peer *host);
void nsm_text_end(struct nsm_text *t, unsigned hosts); /* hosts: number of those added */
void nsm_text_free(struct nsm_text *t);

/* Reads a whole text, and calls each for every host, in the order of the text. A result of each
 * other than 0 ends the walk and is returned. -EINVAL: the text is damaged or not complete; each may
 * have been called. */
int nsm_text_read(const char *data, size_t len, uint32_t *state,
		  int (*each)(void *ctx, const struct nsm_peer *host), void *ctx);

/* Reads the file. 0 and a text to be freed; -ENOENT; other -errno. */
int nsm_records_load(const char *dir, struct nsm_text *out);
/* Replaces the file, durably. 0 or -errno. */
int nsm_records_save(const char *dir, const struct nsm_text *t);
/* Moves a damaged file aside. 0 or -errno. */
int nsm_records_set_aside(const char *dir);

/* State number of a run: odd, and above that of the run before. 0: there was none. */
uint32_t nsm_next_state(uint32_t last);

#endif
