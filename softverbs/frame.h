/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes over a link: a header and `len` bytes. Both ends are of the same build, on the same
 * machine, so fields are in host order.
 */
#ifndef SV_FRAME_H
#define SV_FRAME_H

#include <stdint.h>

#define SV_FRAME_DATA 65536u /* most bytes after a header */
#define SV_PULL_DATA 262144u /* most bytes that one frame lets the peer read from memory */
#define SV_PULL_IOVS 64u

enum sv_frame_type {
	SV_FRAME_HELLO = 1, /* raddr: where the nonce is, value: the nonce; qpn: the slot */
	SV_FRAME_PULL_OK,   /* the sender of this frame can read the receiver's memory */
	SV_FRAME_CM,	    /* opcode: the connection manager's type */
	SV_FRAME_REQUEST,   /* of a work request, opcode: enum sv_op */
	SV_FRAME_RESPONSE,  /* data of an RDMA Read or the value of an atomic operation */
	SV_FRAME_ACK,	    /* all requests up to seq, other than Reads, are done */
	SV_FRAME_NAK,	    /* the request seq was refused, opcode: enum sv_nak */
	SV_FRAME_PULLED,    /* a Read's requester has taken all data of the responses */
	SV_FRAME_SYNC,	    /* value: to be given back when all frames before have been handled */
	SV_FRAME_SYNCED,
	SV_FRAME_DROP, /* a fault: the connection is lost */
};

enum sv_op { SV_OP_SEND = 1, SV_OP_WRITE, SV_OP_READ, SV_OP_SWAP, SV_OP_ADD };

enum sv_nak {
	SV_NAK_RNR = 1,	  /* value: microseconds to wait */
	SV_NAK_ACCESS,	  /* key, bounds, rights */
	SV_NAK_INVALID,	  /* message too long, too many Reads, opcode not allowed */
	SV_NAK_OPERATION, /* the responder's own fault */
	SV_NAK_NOT_READY, /* the queue pair is not yet connected: like a packet that is lost */
	SV_NAK_NO_QP,	  /* there is none, or it is in the error state */
	SV_NAK_SILENT,	  /* a fault: the responder pretends to be dead */
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
	uint32_t qpn;	 /* of the receiver */
	uint32_t from;	 /* the sender's */
	uint32_t seq;	 /* of the work request, counted by the requester */
	uint32_t offset; /* of these data in the message */
	uint32_t total;	 /* bytes of the message */
	uint32_t bytes;	 /* bytes of data that this frame stands for: len, unless they are pulled */
	uint32_t rkey;
	uint32_t imm; /* as the application gave it; of an iWARP Read the sink's key */
	uint64_t raddr;
	uint64_t value[2]; /* operands of atomics; [0] of an iWARP Read the sink's address; others
			      as said above */
};

struct sv_pull {
	uint64_t addr;
	uint64_t len;
};

#endif
