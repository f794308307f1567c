/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends over a link. l->out holds bytes that were accepted and not sent yet. While it is not empty,
 * nothing else is sent and no sender is called. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "tools/softverbs/fabric.h"
#include "tools/softverbs/link.h"

/* Limit of queued acknowledgements: a peer that reads none counts as dead */
#define OUT_MAX (64u << 20)
#define SENDS_AT_ONCE 64

static int out_reserve(struct sv_link *l, size_t len)
{
	if (l->out_from == l->out_to)
		l->out_from = l->out_to = 0;
	if (l->out_from && l->out_to + len > l->out_size) {
		memmove(l->out, l->out + l->out_from, l->out_to - l->out_from);
		l->out_to -= l->out_from;
		l->out_from = 0;
	}
	if (l->out_to + len <= l->out_size)
		return 0;
	size_t size = l->out_size ? l->out_size : 4096;
	while (size < l->out_to + len)
		size *= 2;
	uint8_t *p = size > OUT_MAX ? NULL : realloc(l->out, size);
	if (!p)
		return -ENOBUFS;
	l->out = p;
	l->out_size = size;
	return 0;
}

/* Removes the first `sent` bytes from the iovec. */
static int spill(struct sv_link *l, const struct iovec *iov, int n, size_t sent)
{
	for (int i = 0; i < n; i++) {
		size_t skip = sent < iov[i].iov_len ? sent : iov[i].iov_len;
		size_t len = iov[i].iov_len - skip;
		sent -= skip;
		if (out_reserve(l, len) < 0) {
			sv_link_kill(l);
			return -ENOBUFS;
		}
		if (len)
			memcpy(l->out + l->out_to, (const uint8_t *)iov[i].iov_base + skip, len);
		l->out_to += len;
	}
	return 0;
}

/* Returns the bytes that the socket took; ends a broken link. */
static size_t socket_take(struct sv_link *l, struct iovec *iov, int n)
{
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = (size_t)n };
	ssize_t sent = sendmsg(l->watch.fd, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS)
		sv_link_kill(l);
	return sent < 0 ? 0 : (size_t)sent;
}

static void want_room(struct sv_link *l)
{
	uint32_t events = EPOLLIN;

	if (l->dead)
		return;
	if (l->out_from != l->out_to || !TAILQ_EMPTY(&l->senders))
		events |= EPOLLOUT;
	if (events != l->events)
		sv_watch_change(&l->watch, events);
	l->events = events;
}

static int send_iov(struct sv_link *l, struct iovec *iov, int n)
{
	size_t sent = 0;

	if (l->dead)
		return -EPIPE;
	if (l->out_from == l->out_to)
		sent = socket_take(l, iov, n);
	int err = l->dead ? -EPIPE : spill(l, iov, n, sent);
	if (!l->pumping)
		want_room(l);
	return err;
}

int sv_link_send(struct sv_link *l, const struct sv_frame *f, const void *data, size_t len)
{
	struct sv_frame head = *f;
	struct iovec iov[2] = { { &head, sizeof(head) }, { (void *)(uintptr_t)data, len } };

	if (len > SV_FRAME_DATA)
		return -EMSGSIZE;
	head.len = (uint32_t)len;
	return send_iov(l, iov, len ? 2 : 1);
}

int sv_link_send_cm(struct sv_link *l, uint8_t type, const void *data, size_t len)
{
	struct sv_frame f = { .type = SV_FRAME_CM, .opcode = type };

	return sv_link_send(l, &f, data, len);
}

int sv_link_send_data(struct sv_link *l, const struct sv_frame *f, const struct iovec *iov, int n)
{
	struct sv_frame head = *f;
	struct iovec all[SV_PULL_IOVS + 1] = { { &head, sizeof(head) } };

	if (n < 0 || n > (int)SV_PULL_IOVS)
		return -EINVAL;
	if (n)
		memcpy(all + 1, iov, (size_t)n * sizeof(*iov));
	return send_iov(l, all, n + 1);
}

static void flush_out(struct sv_link *l)
{
	while (l->out_from != l->out_to && !l->dead) {
		struct iovec iov = { l->out + l->out_from, l->out_to - l->out_from };
		size_t sent = socket_take(l, &iov, 1);
		if (!sent)
			return;
		l->out_from += sent;
	}
}

void sv_link_pump(struct sv_link *l)
{
	struct sv_sender *s;

	if (l->dead || l->pumping)
		return;
	l->pumping = true;
	flush_out(l);
	for (int i = 0; i < SENDS_AT_ONCE && l->out_from == l->out_to && !l->dead; i++) {
		s = TAILQ_FIRST(&l->senders);
		if (!s)
			break;
		sv_link_unqueue(l, s);
		if (s->send(s, l) && !s->queued && !l->dead) {
			TAILQ_INSERT_TAIL(&l->senders, s, link);
			s->queued = true;
		}
	}
	l->pumping = false;
	want_room(l);
}

void sv_link_queue(struct sv_link *l, struct sv_sender *s)
{
	if (l->dead)
		return;
	if (!s->queued)
		TAILQ_INSERT_TAIL(&l->senders, s, link);
	s->queued = true;
	sv_link_pump(l);
}

void sv_link_unqueue(struct sv_link *l, struct sv_sender *s)
{
	if (s->queued)
		TAILQ_REMOVE(&l->senders, s, link);
	s->queued = false;
}
