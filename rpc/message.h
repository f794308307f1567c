/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RFC 5531 messages: the call header as decoded, credentials, and the replies that refuse a call.
 */
#ifndef RN_RPC_MESSAGE_H
#define RN_RPC_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>

#include "rpc/xdr_in.h"
#include "rpc/xdr_out.h"

#define RPC_VERSION 2u
#define RPC_AUTH_BYTES_MAX 400u	  /* RFC 5531 section 8.2 */
#define RPC_AUTH_SYS_GIDS_MAX 16u /* RFC 5531 appendix A */
#define RPC_MACHINE_NAME_MAX 255u

enum rpc_msg_type { RPC_CALL = 0, RPC_REPLY = 1 };
enum rpc_reply_stat { RPC_MSG_ACCEPTED = 0, RPC_MSG_DENIED = 1 };
enum rpc_accept_stat {
	RPC_SUCCESS = 0,
	RPC_PROG_UNAVAIL = 1,
	RPC_PROG_MISMATCH = 2,
	RPC_PROC_UNAVAIL = 3,
	RPC_GARBAGE_ARGS = 4,
	RPC_SYSTEM_ERR = 5,
};
enum rpc_reject_stat { RPC_RPC_MISMATCH = 0, RPC_AUTH_ERROR = 1 };
enum rpc_auth_stat {
	RPC_AUTH_OK = 0,
	RPC_AUTH_BADCRED = 1,
	RPC_AUTH_REJECTEDCRED = 2,
	RPC_AUTH_BADVERF = 3,
	RPC_AUTH_REJECTEDVERF = 4,
	RPC_AUTH_TOOWEAK = 5,
	RPC_AUTH_FAILED = 7,
	RPC_GSS_CREDPROBLEM = 13, /* RFC 2203 section 5.1 */
	RPC_GSS_CTXPROBLEM = 14,
};
enum rpc_auth_flavor {
	RPC_AUTH_NONE = 0,
	RPC_AUTH_SYS = 1,
	RPC_AUTH_SHORT = 2,
	RPC_RPCSEC_GSS = 6,
	RPC_AUTH_TLS = 7, /* asks for TLS: RFC 9289 section 4.1 */
};

/* Security flavour of a call, by its number as a pseudo flavour (RFC 2203, RFC 2623): flavour,
 * mechanism and service together. Values are those on the wire in SECINFO and MOUNT. */
enum rpc_sec {
	RPC_SEC_NONE = 0,
	RPC_SEC_SYS = 1,
	RPC_SEC_KRB5 = 390003,
	RPC_SEC_KRB5I = 390004,
	RPC_SEC_KRB5P = 390005,
};

/* Security flavours as bits of a set. */
enum rpc_sec_bit {
	RPC_SEC_BIT_NONE = 1 << 0,
	RPC_SEC_BIT_SYS = 1 << 1,
	RPC_SEC_BIT_KRB5 = 1 << 2,
	RPC_SEC_BIT_KRB5I = 1 << 3,
	RPC_SEC_BIT_KRB5P = 1 << 4,
};

static inline uint8_t rpc_sec_bit(enum rpc_sec sec)
{
	if (sec >= RPC_SEC_KRB5 && sec <= RPC_SEC_KRB5P)
		return (uint8_t)(RPC_SEC_BIT_KRB5 << (sec - RPC_SEC_KRB5));
	return sec == RPC_SEC_SYS ? RPC_SEC_BIT_SYS : RPC_SEC_BIT_NONE;
}

/* Protection of a connection by its transport (RFC 9289). */
enum rpc_protection {
	RPC_PLAIN,
	RPC_TLS,	/* encrypted; the client has proved no identity */
	RPC_MUTUAL_TLS, /* the client has proved an identity by a certificate */
};

struct rpc_principal;

/*
 * The credential: AUTH_NONE leaves uid and gid 0 and must be squashed by the export. Under
 * RPCSEC_GSS the principal is what the call has proved; rpc_server.identify fills in uid and gid,
 * and groups past the first 16 come from struct nfs_groups as with manage-gids.
 */
struct rpc_cred {
	enum rpc_auth_flavor flavor;
	enum rpc_sec sec;
	enum rpc_protection protection; /* of the connection that the call came over */
	/* NULL unless RPCSEC_GSS. Valid as long as the request; a copy of the credential that lives
	 * longer takes a reference. */
	const struct rpc_principal *principal;
	/* True if uid and gid are the user of the connection's certificate, whose groups are looked up. */
	bool mapped;
	/* True if the name service has not told in time which user that is. uid and gid are nobody's then, and the call must touch no
	 * file: its client is told to come again. */
	bool unknown;
	uint32_t uid, gid;
	uint32_t ngids;
	uint32_t gids[RPC_AUTH_SYS_GIDS_MAX];
};

struct rpc_call {
	uint32_t xid, rpcvers, prog, vers, proc;
	struct rpc_cred cred;
	/* Under RPCSEC_GSS: bodies of the credential and the verifier, in the arena, and the number of bytes from the
	 * xid to the end of the credential, which the verifier signs. */
	const uint8_t *auth, *verf;
	uint32_t auth_len, verf_len, verf_flavor;
	size_t signed_len;
};

/* Result of decoding a call header. */
enum rpc_header_result {
	RPC_HEADER_OK,
	RPC_HEADER_NOT_A_CALL, /* too short for an answer, or a reply: close or drop */
	RPC_HEADER_MISMATCH,   /* rpcvers is not 2: reply RPC_MISMATCH */
	RPC_HEADER_AUTH,       /* *stat says why: reply AUTH_ERROR */
	/* The credential is RPCSEC_GSS, for rpc/security.h to judge; *stat is for servers without it. */
	RPC_HEADER_SECURED,
	RPC_HEADER_GARBAGE, /* header cut short after the version: reply GARBAGE_ARGS */
};

enum rpc_header_result rpc_decode_call(struct xdr_in *x, struct rpc_call *call,
				       enum rpc_auth_stat *stat);

/* Header of a call, with an xid of 0 and an AUTH_NONE verifier. body: the credential's, len bytes. */
struct rpc_callee {
	uint32_t prog, vers, proc;
};
void rpc_put_call(struct xdr_out *x, const struct rpc_callee *to, enum rpc_auth_flavor flavor,
		  const uint8_t *body, uint32_t len);

/* Reply headers; each starts at the writer's position. The verifier is AUTH_NONE. */
void rpc_put_accepted(struct xdr_out *x, uint32_t xid, enum rpc_accept_stat stat);
/* The answer to a question for TLS: RFC 9289 section 4.1. */
void rpc_put_starttls(struct xdr_out *x, uint32_t xid);
void rpc_put_prog_mismatch(struct xdr_out *x, uint32_t xid, uint32_t low, uint32_t high);
void rpc_put_rpc_mismatch(struct xdr_out *x, uint32_t xid);
void rpc_put_auth_error(struct xdr_out *x, uint32_t xid, enum rpc_auth_stat stat);

/*
 * A call looked at before it is decoded, to find out where it is to be run or where its data are to
 * lie. Nothing is checked but lengths: whoever looks must not rely on what is found.
 */
struct rpc_peek {
	uint32_t prog, vers, proc;
};

/* Moves x from the start of a message to the arguments. False: it is no call, or cut off. */
bool rpc_peek_call(struct xdr_in *x, struct rpc_peek *out);

#endif
