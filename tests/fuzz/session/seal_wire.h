/* SPDX-License-Identifier: BSD-2-Clause */
/* Bytes of calls under RPCSEC_GSS and of their replies (RFC 2203 section 5), written and read without gss/. */
#ifndef RN_TESTS_FUZZ_SESSION_SEAL_WIRE_H
#define RN_TESTS_FUZZ_SESSION_SEAL_WIRE_H

#include <gssapi/gssapi.h>

#include "tests/fuzz/session/message.h"
#include "tests/fuzz/session/sealed.h"

struct ss_wire {
	gss_ctx_id_t ctx;
	uint8_t handle[SS_HANDLE_MAX];
	uint32_t handle_len;
	uint32_t gss_proc, seq;
	uint32_t service, body_service; /* of the credential, and of the body */
	enum ss_spoil spoil;		/* becomes SS_WHOLE if the defect would change nothing */
	uint8_t where, value;
	bool padded; /* set by sealing: the arguments are no whole words */
};

/* Seals the call in msg. Returns its length; 0: it has no whole credential and verifier. */
size_t ss_wire_seal(struct ss_wire *w, const uint8_t *msg, size_t len, uint8_t *out);
/* INIT with that token; null: a NULL call. spoil: 0 for none, 1 to 4. */
size_t ss_wire_init(const uint8_t null[40], const gss_buffer_desc *token, unsigned spoil,
		    uint8_t where, uint8_t *out);

struct ss_wire_reply {
	bool denied;
	uint32_t mismatch; /* denied: not 0 if by the version of RPC */
	uint32_t stat;	   /* auth_stat, or accept_stat */
	uint32_t xid;
	const uint8_t *mic, *body;
	uint32_t mic_len; /* 0: no verifier of RPCSEC_GSS */
	size_t body_len;
};
/* False: it is none that RFC 5531 knows. */
bool ss_wire_read(const uint8_t *msg, size_t len, struct ss_wire_reply *r);
/* True if the verifier is that of a word. */
bool ss_wire_signs(gss_ctx_id_t ctx, const struct ss_wire_reply *r, uint32_t word);
/* The reply as it would be without RPCSEC_GSS, until the next call; NULL: it is not protected by that service. */
const uint8_t *ss_wire_open(gss_ctx_id_t ctx, const struct ss_wire_reply *r, uint32_t service,
			    uint32_t seq, size_t *len);

struct ss_wire_made {
	const uint8_t *handle, *token;
	uint32_t handle_len, token_len, major, window;
};
bool ss_wire_made(const struct ss_wire_reply *r, struct ss_wire_made *out);

#endif
