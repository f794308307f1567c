/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections of the load generator. Requests wait in a ring and leave by writev, several in one if
 * they are ready together; records (RFC 5531 section 11) of any number of fragments are put together
 * in place.
 */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>
#include "load.h"

#define MARK 4u
#define LAST 0x80000000u
#define IOVECS 128u

int conn_socket(const struct load *l, uint16_t port)
{
	struct sockaddr_in to = l->address;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* A reply that is lost must not stop a benchmark for ever. */
	struct timeval patience = { .tv_sec = 30 };

	to.sin_port = htons(port);
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)))
		die("connecting to port %u: %s", port, strerror(errno));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return fd;
}

void conn_init(struct load *l, struct conn *k, unsigned index)
{
	unsigned i;

	k->index = index;
	k->ncalls = l->o.calls;
	k->in_max = (l->o.size > 65536 ? l->o.size : 65536) + 65536;
	k->in = malloc(k->in_max);
	k->calls = calloc(l->o.calls, sizeof(*k->calls));
	k->out = calloc(l->o.calls + 1, sizeof(struct call *));
	if (!k->in || !k->calls || !k->out)
		die("no memory for connection %u", index);
	for (i = 0; i < l->o.calls; i++) {
		k->calls[i].conn = k;
		k->calls[i].index = i;
	}
	k->fd = conn_socket(l, l->o.port);
}

void conn_release(struct conn *k)
{
	close(k->fd);
	free(k->in);
	for (unsigned i = 0; k->calls && i < k->ncalls; i++)
		free(k->calls[i].cipher);
	free(k->calls);
	free(k->out);
}

void conn_queue(struct load *l, struct call *c)
{
	struct conn *k = c->conn;

	k->out[k->out_tail] = c;
	k->out_tail = (k->out_tail + 1) % (l->o.calls + 1);
}

/* Parts of the requests in the ring that are not yet sent; returns their number. */
static unsigned gather(struct load *l, struct conn *k, struct iovec *v)
{
	size_t skip = k->out_done;
	unsigned n = 0, i;

	for (i = k->out_head; i != k->out_tail && n + 2 <= IOVECS; i = (i + 1) % (l->o.calls + 1)) {
		struct call *c = k->out[i];

		if (skip < c->head_len) {
			v[n++] = (struct iovec){ c->head + skip, c->head_len - skip };
			skip = 0;
		} else {
			skip -= c->head_len;
		}
		if (c->data_len > skip)
			v[n++] = (struct iovec){ (uint8_t *)(uintptr_t)c->data + skip,
						 c->data_len - skip };
		skip = 0;
	}
	return n;
}

static void sent(struct load *l, struct conn *k, size_t n)
{
	k->out_done += n;
	while (k->out_head != k->out_tail) {
		struct call *c = k->out[k->out_head];

		if (k->out_done < c->head_len + c->data_len)
			return;
		k->out_done -= c->head_len + c->data_len;
		k->out_head = (k->out_head + 1) % (l->o.calls + 1);
	}
}

static void want_write(struct load *l, struct conn *k, bool want)
{
	struct epoll_event e = { .events = EPOLLIN | (want ? EPOLLOUT : 0u), .data.ptr = k };

	if (want == k->wants_write)
		return;
	k->wants_write = want;
	if (epoll_ctl(l->epoll, EPOLL_CTL_MOD, k->fd, &e))
		die("epoll_ctl: %s", strerror(errno));
}

void conn_flush(struct load *l, struct conn *k)
{
	struct iovec v[IOVECS];
	ssize_t n;

	if (k->rdma) {
		load_rdma_flush(l, k);
		return;
	}
	k->to_flush = false;
	while (k->out_head != k->out_tail) {
		n = writev(k->fd, v, (int)gather(l, k, v));
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			die("sending on connection %u: %s", k->index, strerror(errno));
		sent(l, k, (size_t)n);
	}
	if (l->epoll >= 0)
		want_write(l, k, k->out_head != k->out_tail);
}

bool conn_receive(struct conn *k)
{
	ssize_t n;

	/* Room for the rest of a record: what is done with goes. */
	if (k->start > 0) {
		memmove(k->in, k->in + k->start, k->in_len - k->start);
		k->in_len -= k->start;
		k->start = 0;
	}
	if (k->in_len == k->in_max)
		die("a reply is longer than %zu bytes", k->in_max);
	n = recv(k->fd, k->in + k->in_len, k->in_max - k->in_len, 0);
	if (n == 0)
		die("the server has closed connection %u", k->index);
	if (n < 0 && errno != EAGAIN)
		die("receiving on connection %u: %s", k->index, strerror(errno));
	k->in_len += n > 0 ? (size_t)n : 0;
	return n > 0;
}

bool conn_record(struct conn *k, struct xdr *x)
{
	uint8_t *base = k->in + k->start, *mark;
	size_t have = k->in_len - k->start, len;
	uint32_t word;

	for (;;) {
		/* The first mark stands before the joined bytes, a further one behind them. */
		mark = k->joined ? base + MARK + k->joined : base;
		if (have < (size_t)(mark - base) + MARK)
			return false;
		memcpy(&word, mark, MARK);
		word = ntohl(word);
		len = word & ~LAST;
		if (have - (size_t)(mark - base) - MARK < len)
			return false;
		if (k->joined) {
			memmove(mark, mark + MARK, have - (size_t)(mark - base) - MARK);
			have -= MARK;
			k->in_len -= MARK;
		}
		k->joined += len;
		if (word & LAST)
			break;
	}
	*x = (struct xdr){ .p = base + MARK, .end = base + MARK + k->joined };
	return true;
}

void conn_pop(struct conn *k, struct xdr *record)
{
	k->start = (size_t)(record->end - k->in);
	k->joined = 0;
	if (k->start == k->in_len)
		k->start = k->in_len = 0;
}
