/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A UDP socket of a client. Any datagram may be lost and any call dropped, so that no answer is owed. Replies that
 * come are checked: each answers a call, is no longer than doc/design/udp.md allows, and tells a stranger less than he sent.
 */
#ifndef RN_TESTS_FUZZ_SESSION_UDP_CLIENT_H
#define RN_TESTS_FUZZ_SESSION_UDP_CLIENT_H

#include "tests/fuzz/session/debts.h"
#include "tests/fuzz/session/message.h"

struct ss_udp {
	int fd; /* -1 if there is none */
	uint8_t address;
	enum ss_from from;
	uint16_t port; /* the server's */
	struct ss_debts debts;
	size_t longest[SS_DEBTS_MAX]; /* octets of the longest call with the xid of that debt */
	struct ss_values *values;     /* updated from replies */
};

/* address: as for ss_tcp_open(). A socket with another address is closed. 0 or -errno. */
int ss_udp_open(struct ss_udp *u, uint16_t port, uint8_t address, struct ss_values *values);
void ss_udp_close(struct ss_udp *u);
/* Sends a datagram, a call or not. A full socket loses it. */
void ss_udp_send(struct ss_udp *u, const uint8_t *msg, size_t len);
/* Takes all replies that have come; true if there were any. */
bool ss_udp_receive(struct ss_udp *u);
/* True if all calls are answered. */
bool ss_udp_settled(const struct ss_udp *u);

/* Checks that the server answers NULL by UDP; sends it again and again. */
void ss_udp_ask_alive(uint16_t port);

#endif
