/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP connection to the server under test. Nothing blocks: bytes wait in its buffer until the
 * socket takes them, in ss_tcp_ready(). Replies are checked as they come; what the server may not
 * do is a finding.
 */
#ifndef RN_TESTS_FUZZ_SESSION_TCP_CLIENT_H
#define RN_TESTS_FUZZ_SESSION_TCP_CLIENT_H

#include "tests/fuzz/session/debts.h"
#include "tests/fuzz/session/message.h"

struct ss_tcp {
	int fd; /* -1: there is none */
	struct ss_stream stream;
	struct ss_debts debts;
	struct ss_values *values; /* learns from replies */
	uint8_t *out;
	size_t out_len, out_cap;
	size_t slow_left; /* of out: goes a few octets at a time */
	uint8_t *in;
	size_t in_len, in_cap;
	size_t msg_len;	  /* of in: whole fragments of the record that is coming */
	bool held;	  /* out waits for more */
	bool muted;	  /* takes nothing */
	bool was_muted;	  /* in its life: the server may have lost patience */
	bool shut;	  /* has sent the end of its stream, or will when out is empty */
	bool ended;	  /* the server has closed */
	bool lost_count;  /* more was sent than debts has room for */
	int64_t span_at;  /* milliseconds: since then */
	size_t span_sent; /* so many octets were sent */
	enum ss_from from;
	struct ss_call about; /* of the record that is being written: claims and client */
};

/* 0 or -errno. address: bits 0-1 one of four hosts, bits 2-3 of which network: admitted, read-only, in
 * no line, squashed (tree.h). */
int ss_tcp_open(struct ss_tcp *c, uint16_t port, uint8_t address, uint32_t max_record,
		struct ss_values *values);
/* reset: not in good order. */
void ss_tcp_close(struct ss_tcp *c, bool reset);
void ss_tcp_free(struct ss_tcp *c);

/* Bytes of the stream; false: there is no room for what it would make the server owe. */
bool ss_tcp_write(struct ss_tcp *c, const uint8_t *p, size_t n);
/* One record, cut as how says (SS_CUT_*). claims: SS_CLAIM_REPEATED or 0. */
bool ss_tcp_record(struct ss_tcp *c, const uint8_t *msg, size_t len, uint8_t how, uint8_t claims);
void ss_tcp_shut(struct ss_tcp *c);

/* poll(2)'s events that it waits for; 0: none. */
short ss_tcp_events(const struct ss_tcp *c);
/* Goes on after poll(2). True: something moved. */
bool ss_tcp_ready(struct ss_tcp *c, short events);
/* Has a record been under way for a second at less than the rate that the server wants when memory is
 * short? It remembers that for a minute, and may close connections of such a client. */
bool ss_tcp_is_slow(struct ss_tcp *c, int64_t now_ms);
/* Is everything sent and answered, or the connection at its end? */
bool ss_tcp_settled(const struct ss_tcp *c);

#endif
