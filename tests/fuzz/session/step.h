/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz input is a session: a list of steps that a client, or several, take against the running
 * server. One step in the input:
 *
 *   octet 0     what (modulo SS_OPS)
 *   octet 1     connection (modulo SS_CONNS)
 *   octet 2     how: its meaning is the step's
 *   octets 3-4  length of the data that follow, big-endian; cut to what is left of the input
 *
 * Any bytes decode to some session; what is left at the end and is no whole step is ignored.
 */
#ifndef RN_TESTS_FUZZ_SESSION_STEP_H
#define RN_TESTS_FUZZ_SESSION_STEP_H

#include <stddef.h>
#include <stdint.h>

#define SS_CONNS                                                                                   \
	6u /* the first SS_TCP_CONNS by TCP, the others by RDMA where there is a device            \
	    */
#define SS_TCP_CONNS 4u
#define SS_STEPS_MAX 48u
#define SS_DATA_MAX 4096u
#define SS_STEP_HEAD 5u
#define SS_INPUT_MAX (64u << 10)

enum ss_op {
	SS_RECORD, /* data: an RPC message, sent as one record; how: see SS_CUT_* */
	SS_RAW,	   /* data: as they are. By RDMA: the whole Send, its transport header included */
	SS_REPEAT, /* the connection's last message again; how: on which connection */
	SS_FLOOD,  /* data: an RPC message, sent how times over with xids of their own, not waiting
		     */
	SS_WAIT,   /* until everything asked on the connection is answered */
	SS_CONNECT, /* how: the client's address (tcp_client.h), and by RDMA its manners; implied by the first use
		     */
	SS_SHUT, /* sends no more, but takes replies */
	SS_RESET,
	SS_CLOSE, /* in good order, but without waiting for replies */
	SS_MUTE,  /* takes no replies until the next SS_WAIT, or the end */
	SS_LOCAL, /* somebody changes the file system under the server; how: what */
	SS_ADMIN, /* what the daemon's main thread does; how: reload, counters, the second's tick */
	SS_FAULT, /* the fabric does something wrong, once; how: see faults.h */
	SS_AS,	  /* calls on the connection come from another user from here on; how: users.c */
	SS_LEASE, /* of a local process; how: see leases.h */
	SS_TIME, /* goes on for NFSv4's leases, and the server's clock ticks; how: how long, how often */
	SS_MOUNT, /* file systems come and go; how: see mounts.c */
	SS_DISK,  /* fails, or is well again, or is put to the test; how: see disk.c */
	SS_HOSTS, /* the exports are read again; how: which hosts are in no line any more */
	SS_OPS,
};

/* How a record is put on a stream. */
#define SS_CUT_FRAGMENTS 0x0fu /* into so many record fragments, besides the one it is anyway */
#define SS_CUT_HELD 0x10u      /* not sent before the next one: both come in one segment */
#define SS_CUT_SLOWLY 0x20u    /* a few octets at a time */
#define SS_CUT_SHORT 0x40u     /* the last octets are left out: the record stays incomplete */

struct ss_step {
	uint8_t op, conn, how;
	uint16_t len;
	const uint8_t *data;
};

/* Fills at most SS_STEPS_MAX steps that point into data; returns how many. */
unsigned ss_decode(const uint8_t *data, size_t size, struct ss_step *steps);
/* The reverse; stops at a step that does not fit. Returns the size. out may not overlap the data.
 */
size_t ss_encode(const struct ss_step *steps, unsigned n, uint8_t *out, size_t max);

#endif
