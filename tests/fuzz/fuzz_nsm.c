/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The status monitor's input. The first byte says which: a datagram with a call, from root of this machine or
 * from another host, or a reply by TCP that comes in pieces.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nsm/nsm_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A monitor without threads and files: records count as written, as they do when the disk fails. */
static struct nsm *make(void)
{
	struct nsm *n = calloc(1, sizeof(*n));

	if (!n)
		abort();
	pthread_mutex_init(&n->lock, NULL);
	pthread_cond_init(&n->changed, NULL);
	TAILQ_INIT(&n->waiting);
	TAILQ_INIT(&n->calls.list);
	n->calls.fd = n->wake = -1;
	n->failing = true;
	return n;
}

static void call(const uint8_t *data, size_t size, bool local)
{
	struct nsm_datagram d = { .port = local ? 700 : 40000, .data = data, .len = size };
	struct nsm *n = make();
	uint8_t out[256];

	d.peer.bytes[10] = d.peer.bytes[11] = 0xff;
	d.peer.bytes[12] = local ? 127 : 10;
	d.peer.bytes[15] = 1;
	if (nsm_answer(n, &d, out, sizeof(out)) > size)
		abort();
	nsm_answer_free(n);
	nsm_monitors_free(&n->monitors);
	pthread_cond_destroy(&n->changed);
	pthread_mutex_destroy(&n->lock);
	free(n);
}

static void reply(const uint8_t *data, size_t size)
{
	struct nsm_stream s = { .fd = -1 };
	int pair[2], rc = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0)
		abort();
	s.fd = pair[0];
	while (size > 0 && rc == 0) {
		const size_t piece = data[0] % 64u + 1u < size ? data[0] % 64u + 1u : size;

		if (write(pair[1], data, piece) != (ssize_t)piece)
			abort();
		data += piece;
		size -= piece;
		rc = nsm_stream_step(&s);
		if (rc > (int)sizeof(s.in))
			abort();
	}
	nsm_stream_close(&s);
	close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1 || size > NSM_DATAGRAM_MAX)
		return 0;
	if (data[0] % 3 == 2)
		reply(data + 1, size - 1);
	else
		call(data + 1, size - 1, data[0] % 3 == 1);
	return 0;
}
