/* SPDX-License-Identifier: BSD-2-Clause */
/* The sequence numbers of a context that have been used (RFC 2203 section 5.3.3.1). Not thread-safe. */
#ifndef RN_GSS_WINDOW_H
#define RN_GSS_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Calls of one context that may overtake each other. Clients are told the number, and keep within it. */
#define GSS_WINDOW 1024u

struct gss_window {
	uint32_t highest; /* 0: none has been used */
	uint64_t used[GSS_WINDOW / 64];
};

/* Uses up a number whose verifier is right. False: it was used before, or is below the window. */
bool gss_window_take(struct gss_window *w, uint32_t seq);

#endif
