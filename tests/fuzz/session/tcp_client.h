/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP connection to the server under test. No call blocks: bytes wait in the connection's buffer
 * until the socket takes them, in ss_tcp_ready(). Replies are checked as they arrive; an invalid
 * one is a finding.
 */
#ifndef RN_TESTS_FUZZ_SESSION_TCP_CLIENT_H
#define RN_TESTS_FUZZ_SESSION_TCP_CLIENT_H

#include <netinet/in.h>

#include "tests/fuzz/session/back.h"
#include "tests/fuzz/session/debts.h"
#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/tls_client.h"

struct ss_tcp {
	int fd; /* -1 if not connected */
	struct ss_stream stream;
	struct ss_debts debts;
	struct ss_back back;
	struct ss_values *values; /* updated from replies */
	uint8_t *out;
	size_t out_len, out_cap;
	size_t slow_left; /* octets of out to send a few at a time */
	uint8_t *in;
	size_t in_len, in_cap;
	size_t msg_len; /* octets of whole fragments in in, of an incomplete record */
	bool held;	/* out is kept until the next record */
	bool muted;	/* replies are not read */
	/* muted at any time, so the server may have closed for lack of progress */
	bool was_muted;
	bool shut;	  /* the stream's end is sent, or will be when out is empty */
	bool ended;	  /* the server has closed */
	bool lost_count;  /* more calls were sent than debts has room for */
	int64_t span_at;  /* start of the measured span, in milliseconds */
	size_t span_sent; /* octets sent since span_at */
	enum ss_from from;
	struct ss_tls tls;
	struct ss_call about; /* claims and client of the record that is being written */
};

/* A client's address: bits 0-1 one of four hosts; bits 2-3 its network: admitted, read-only, in no export, squashed
 * (tree.h). The port is any. */
struct sockaddr_in ss_client_address(uint8_t address);
enum ss_from ss_client_from(uint8_t address);

/* 0 or -errno. */
int ss_tcp_open(struct ss_tcp *c, uint16_t port, uint8_t address, uint32_t max_record,
		struct ss_values *values);
/* Takes a connection that the server has made, to be called back. The server may close it. */
void ss_tcp_adopt(struct ss_tcp *c, int fd, struct ss_values *values);
/* reset: send RST instead of FIN. */
void ss_tcp_close(struct ss_tcp *c, bool reset);
void ss_tcp_free(struct ss_tcp *c);

/* Appends bytes to the stream; false if debts has no room for the calls in them. */
bool ss_tcp_write(struct ss_tcp *c, const uint8_t *p, size_t n);
/* Appends one record, cut as how says (SS_CUT_*). claims: SS_CLAIM_REPEATED or 0. */
bool ss_tcp_record(struct ss_tcp *c, const uint8_t *msg, size_t len, uint8_t how, uint8_t claims);
/* Appends an answer to a call of the server. */
void ss_tcp_answer(struct ss_tcp *c, const uint8_t *msg, size_t len);
void ss_tcp_shut(struct ss_tcp *c);

/* One step of TLS (step.h). For SS_TLS_WHOLE the caller waits for the end of the handshake. */
void ss_tcp_tls(struct ss_tcp *c, uint8_t how, uint32_t xid, const uint8_t *data, size_t len);

/* Events for poll(2); 0: none. */
short ss_tcp_events(const struct ss_tcp *c);
/* Handles events from poll(2). True if bytes were sent or received. */
bool ss_tcp_ready(struct ss_tcp *c, short events);
/*
 * True if a record has been sent for a second at less than the rate that the server demands when
 * memory is short. The server remembers that for a minute, and may close connections of such a
 * client.
 */
bool ss_tcp_is_slow(struct ss_tcp *c, int64_t now_ms);
/* True if everything is sent and answered, or the connection has ended. */
bool ss_tcp_settled(const struct ss_tcp *c);

#endif
