/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz input is a session: a list of steps that one or several clients take against the running
 * server. One step in the input:
 *
 * octet 0: operation (modulo SS_OPS)
 *
 * octet 1: connection (modulo SS_CONNS)
 *
 * octet 2, how: a parameter of the operation
 *
 * octets 3-4: length of the data that follow, big-endian; cut to the rest of the input
 *
 * Any bytes decode to some session. An incomplete step at the end is ignored.
 */
#ifndef RN_TESTS_FUZZ_SESSION_STEP_H
#define RN_TESTS_FUZZ_SESSION_STEP_H

#include <stddef.h>
#include <stdint.h>

#define SS_CONNS                                                                                   \
	6u /* the first SS_TCP_CONNS go by TCP, the others by RDMA where there is a device */
#define SS_TCP_CONNS 4u
#define SS_STEPS_MAX 48u
#define SS_DATA_MAX 4096u
#define SS_STEP_HEAD 5u
#define SS_INPUT_MAX (64u << 10)

enum ss_op {
	SS_RECORD, /* data: an RPC message, sent as one record; how: see SS_CUT_* */
	/* data: bytes to send unchanged. By RDMA: one whole Send, with its transport header */
	SS_RAW,
	SS_REPEAT, /* sends the connection's last message again; how: on which connection */
	SS_FLOOD,  /* data: an RPC message, sent how times with different xids, without waiting */
	SS_WAIT,   /* waits until all calls on the connection are answered */
	/* how: the client's address (tcp_client.h), and by RDMA its sizes; implied by the first use */
	SS_CONNECT,
	SS_SHUT, /* ends the client's direction, but takes replies */
	SS_RESET,
	SS_CLOSE, /* closes in good order, but without waiting for replies */
	SS_MUTE,  /* reads no replies until the next SS_WAIT, or the end */
	SS_LOCAL, /* a local user changes the file system under the server; how: which change */
	SS_ADMIN, /* work of the daemon's main thread; how: reload, counters, tick of a second */
	SS_FAULT, /* one fault of the fabric; how: see faults.h */
	/* later calls on the connection come from another user; how: see users.c, and 128 for another
	 * client */
	SS_AS,
	SS_LEASE, /* lease of a local process; how: see leases.h */
	/* NFSv4's leases age, and the server's clock ticks; how: how long, how many ticks */
	SS_TIME,
	SS_MOUNT,  /* mounts or unmounts file systems; how: see mounts.c */
	SS_DISK,   /* breaks, repairs or tests a disk; how: see disk.c */
	SS_HOSTS,  /* reloads the exports; how: which hosts lose their exports */
	SS_ANSWER, /* answers the oldest call of the server; how: see back.h */
	/* Kerberos contexts; how: bits 0-1 which; 2-3 SS_GSS_*; 4-6 the realm's client, or 4-7 a defect
	 * of DESTROY; data: place and extent of a defect */
	SS_GSS,
	/* later calls on the connection are sealed; how: bits 0-1 by which context, 2-3 service (0: no
	 * longer), 4-7 defect of the next one; data: its place and extent, choice of the number */
	SS_SEAL,
	/* TLS; how: bits 0-2 SS_TLS_*, 3 another way of it, 4-7 the client's manners (tls_client.h);
	 * data: plain octets, or a call */
	SS_TLS,
	/* data: an RPC message, sent by UDP from a socket of its own; how: bits 0-3 the client's address, 4-6 how often
	 * more, 7 no message but any octets */
	SS_DATAGRAM,
	SS_OPS,
};

#define SS_DATAGRAM_RAW 0x80u

enum { SS_GSS_MAKE, SS_GSS_START, SS_GSS_DESTROY, SS_GSS_SPOILT };
enum {
	SS_TLS_WHOLE, /* asks, and shakes hands until the end */
	SS_TLS_ASK,   /* asks; bit 3: with octets right behind the question */
	SS_TLS_FLY,   /* one flight of the handshake */
	SS_TLS_REKEY, /* bit 3: both directions */
	SS_TLS_CLOSE, /* close_notify */
	SS_TLS_RAW,   /* data as they are, past the session */
	SS_TLS_BENT,  /* data under TLS, with a bit flipped */
	SS_TLS_HELLO, /* asks, with the handshake's first flight right behind */
};

/* SS_CUT_*: how a record is put on a stream. */
#define SS_CUT_FRAGMENTS 0x0fu /* number of additional record fragments */
#define SS_CUT_HELD 0x10u      /* kept until the next record is sent: both come in one segment */
#define SS_CUT_SLOWLY 0x20u    /* sends a few octets at a time */
#define SS_CUT_SHORT 0x40u     /* omits the last octets: the record stays incomplete */

struct ss_step {
	uint8_t op, conn, how;
	uint16_t len;
	const uint8_t *data;
};

/* Decodes at most SS_STEPS_MAX steps, which point into data; returns their number. */
unsigned ss_decode(const uint8_t *data, size_t size, struct ss_step *steps);
/*
 * Encodes steps up to the first that does not fit; returns the size. out may not overlap the data.
 */
size_t ss_encode(const struct ss_step *steps, unsigned n, uint8_t *out, size_t max);

#endif
