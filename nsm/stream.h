/* SPDX-License-Identifier: BSD-2-Clause */
/* A TCP connection for one call: a message is sent, and one reply read, without waiting. */
#ifndef RN_NSM_STREAM_H
#define RN_NSM_STREAM_H

#include "nsm/nsm_call.h"

#define NSM_REPLY_MAX 2048u /* bytes; longer replies end the connection */

struct nsm_stream {
	int fd; /* -1: none */
	uint8_t *out;
	size_t out_len, sent;
	size_t body; /* bytes of whole fragments at the start of in */
	size_t len;  /* bytes in `in`: body, then a record mark, then a part of its fragment */
	uint8_t in[NSM_REPLY_MAX];
};

/* Begins to connect to d's peer and port, from its local address and a privileged port if one can be had.
 * The message is copied. 0 or -errno. */
int nsm_stream_open(struct nsm_stream *s, const struct nsm_datagram *d);
void nsm_stream_close(struct nsm_stream *s);
/* Events of poll() that it waits for. */
short nsm_stream_events(const struct nsm_stream *s);
/* Goes on. The length of the reply, which is at s->in; 0: it has not come yet; or -errno. */
int nsm_stream_step(struct nsm_stream *s);

#endif
