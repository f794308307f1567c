/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts queued replies on the stream. */
#ifndef RN_TRANSPORT_TCP_SEND_H
#define RN_TRANSPORT_TCP_SEND_H

#include "transport/tcp/tcp_types.h"

/* The content of one send: pieces of as many replies as it takes, or the data in a pipe. */
struct tcp_parcel {
	struct iovec iov[TCP_PARCEL_IOV];
	unsigned niov;
	struct rn_pipe *pipe; /* or NULL */
	size_t bytes;
	bool more; /* the rest of the last reply follows at once */
};

/* Prepares a reply for the queue: its record mark and its size. */
void tcp_send_prepare(struct tcp_req *t);
/* Packs what is left of the first replies of a queue that is not empty. */
void tcp_send_pack(const struct tcp_req_list *out, struct tcp_parcel *p);
/* The same over a connection whose bytes go as they are, as tcp_io.send. */
ssize_t tcp_send_plain(struct tcp_conn *c, const struct tcp_parcel *p);
/* Sends the parcel. Bytes taken by the socket, 0 if it is full, or -errno. */
ssize_t tcp_send_parcel(struct tcp_conn *c, const struct tcp_parcel *p);

#endif
