/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/udp_client.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/util.h"
#include "tests/fuzz/session/counts.h"
#include "tests/fuzz/session/finding.h"
#include "tests/fuzz/session/reply.h"
#include "tests/fuzz/session/tcp_client.h"

#define DATAGRAM_MAX 65507u
#define REPLY_MAX ((32u << 10) + 4096u) /* 32 KiB of file data, and headers */
#define ASK_AGAIN_MS 200

static int open_from(uint8_t address, uint16_t port)
{
	const struct sockaddr_in from = ss_client_address(address);
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/* Datagrams of others than the server do not arrive. */
	if (bind(fd, (const struct sockaddr *)&from, sizeof(from)) < 0 ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0) {
		const int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int ss_udp_open(struct ss_udp *u, uint16_t port, uint8_t address, struct ss_values *values)
{
	address &= 15;
	if (u->fd >= 0 && u->address != address)
		ss_udp_close(u);
	u->values = values;
	if (u->fd >= 0)
		return 0;
	const int fd = open_from(address, port);

	if (fd < 0)
		return fd;
	u->fd = fd;
	u->port = port;
	u->address = address;
	u->from = ss_client_from(address);
	u->debts.n = u->debts.open = 0;
	return 0;
}

void ss_udp_close(struct ss_udp *u)
{
	if (u->fd >= 0)
		close(u->fd);
	u->fd = -1;
	u->debts.n = u->debts.open = 0;
}

void ss_udp_send(struct ss_udp *u, const uint8_t *msg, size_t len)
{
	struct ss_call call;

	len = rn_min(len, DATAGRAM_MAX);
	if (u->fd < 0 || u->debts.n == SS_DEBTS_MAX)
		return;
	if (ss_call_parse(msg, len, &call)) {
		call.from = u->from;
		call.datagram = true;
		struct ss_debt *debt = ss_debts_add(&u->debts, &call);
		size_t *longest = &u->longest[debt - u->debts.list];

		*longest = debt->sent > 1 ? rn_max(*longest, len) : len;
	}
	(void)!send(u->fd, msg, len, MSG_NOSIGNAL);
	ss_count(SS_N_DATAGRAMS);
}

static void take_reply(struct ss_udp *u, const uint8_t *msg, size_t len)
{
	struct ss_debt *debt = len >= 4 ? ss_debts_pay(&u->debts, ss_word(msg)) : NULL;

	if (!debt)
		ss_finding("udp: a reply of %zu octets, xid %x, to no call", len,
			   len >= 4 ? ss_word(msg) : 0);
	const struct ss_call *call = &debt->call;

	ss_count(SS_N_DATAGRAM_ANSWERS);
	if (len > REPLY_MAX)
		ss_finding("udp: a reply of %zu octets", len);
	if (u->from == SS_FROM_STRANGER && len > u->longest[debt - u->debts.list])
		ss_finding("udp: a stranger is sent %zu octets for %zu", len,
			   u->longest[debt - u->debts.list]);
	/* One that is sealed, or had a number twice, is judged by its length alone. */
	if (call->prog == UINT32_MAX || call->sealed)
		return;
	const char *bad = ss_reply_check(call, msg, len, NULL, u->values);

	if (bad)
		ss_finding("udp: reply to program %u version %u procedure %u: %s", call->prog,
			   call->vers, call->proc, bad);
}

bool ss_udp_receive(struct ss_udp *u)
{
	static uint8_t msg[DATAGRAM_MAX];
	bool any = false;
	ssize_t n;

	while (u->fd >= 0 && (n = recv(u->fd, msg, sizeof(msg), MSG_DONTWAIT)) >= 0) {
		take_reply(u, msg, (size_t)n);
		any = true;
	}
	return any;
}

bool ss_udp_settled(const struct ss_udp *u)
{
	return u->fd < 0 || !u->debts.open;
}

void ss_udp_ask_alive(uint16_t port)
{
	static uint32_t asked;
	const int64_t until = ss_now_ms() + SS_HANG_MS;
	const int fd = open_from(0, port);
	uint8_t call[40] = { 0 }, reply[64];

	if (fd < 0)
		ss_finding("a socket cannot be had: %s", strerror(-fd));
	ss_set_word(call, 0xa7000000 | asked++);
	ss_set_word(call + 8, 2);
	ss_set_word(call + 12, 100005); /* MOUNT */
	ss_set_word(call + 16, 3);
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		(void)!send(fd, call, sizeof(call), MSG_NOSIGNAL);
		if (poll(&p, 1, ASK_AGAIN_MS) > 0 &&
		    recv(fd, reply, sizeof(reply), MSG_DONTWAIT) == 24)
			break;
		if (ss_now_ms() > until)
			ss_finding("udp: the server does not answer NULL any more");
	}
	close(fd);
	if (memcmp(reply, call, 4) != 0 || ss_word(reply + 4) != 1 || ss_word(reply + 20) != 0)
		ss_finding("udp: NULL fails");
}
