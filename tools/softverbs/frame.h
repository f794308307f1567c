/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of a link: a header and `len` bytes. Both ends are of the same build and on the same
 * machine, so fields are in host order. */
#ifndef SV_FRAME_H
#define SV_FRAME_H

#include <stdint.h>

#define SV_FRAME_DATA 65536u /* largest len */
/* Most bytes that one frame lets the peer read from the sender's memory */
#define SV_PULL_DATA 262144u
#define SV_PULL_IOVS 64u

enum sv_frame_type {
	SV_FRAME_HELLO = 1, /* raddr: address of the nonce, value: the nonce; qpn: the slot */
	SV_FRAME_PULL_OK,   /* the sender of this frame can read the receiver's memory */
	SV_FRAME_CM,	    /* opcode: the connection manager's type */
	SV_FRAME_REQUEST,   /* part of a work request, opcode: enum sv_op */
	SV_FRAME_RESPONSE,  /* data of an RDMA Read or the value of an atomic operation */
	SV_FRAME_ACK,	    /* all requests up to seq, other than Reads, have completed */
	SV_FRAME_NAK,	    /* the request seq was refused, opcode: enum sv_nak */
	SV_FRAME_PULLED,    /* a Read's requester has taken all data of the responses */
	/* Asks for SYNCED with the same value once all earlier frames are handled */
	SV_FRAME_SYNC,
	SV_FRAME_SYNCED,
	SV_FRAME_DROP, /* a fault: the connection is lost */
};

enum sv_op { SV_OP_SEND = 1, SV_OP_WRITE, SV_OP_READ, SV_OP_SWAP, SV_OP_ADD };

enum sv_nak {
	SV_NAK_RNR = 1,	  /* value: microseconds to wait */
	SV_NAK_ACCESS,	  /* key, bounds, rights */
	SV_NAK_INVALID,	  /* message too long, too many Reads, opcode not allowed */
	SV_NAK_OPERATION, /* the responder has failed */
	/* The queue pair is not connected yet; the request counts as a lost packet */
	SV_NAK_NOT_READY,
	SV_NAK_NO_QP,  /* the queue pair does not exist or is in the error state */
	SV_NAK_SILENT, /* a fault: the responder pretends to be dead */
};

#define SV_FLAG_LAST 1u /* the last frame of its message */
#define SV_FLAG_IMM 2u	/* imm is valid */
#define SV_FLAG_INV 4u	/* imm is a key to be invalidated */
#define SV_FLAG_SOLICITED 8u
/* The bytes are struct sv_pull: read the data from the sender's memory. */
#define SV_FLAG_PULL 16u

struct sv_frame {
	uint32_t len; /* bytes that follow */
	uint8_t type;
	uint8_t opcode;
	uint16_t flags;
	uint32_t qpn;	 /* the receiver's queue pair number */
	uint32_t from;	 /* the sender's queue pair number */
	uint32_t seq;	 /* number of the work request, counted by the requester */
	uint32_t offset; /* position of these data in the message */
	uint32_t total;	 /* bytes of the message */
	/* Bytes of data in this frame (len), or to be pulled from the sender's memory */
	uint32_t bytes;
	uint32_t rkey;
	uint32_t imm; /* value from the application; in an iWARP Read the sink's key */
	uint64_t raddr;
	/* Operands of atomics; in an iWARP Read [0] is the sink's address; else see sv_frame_type
	 * and sv_nak */
	uint64_t value[2];
};

struct sv_pull {
	uint64_t addr;
	uint64_t len;
};

#endif
