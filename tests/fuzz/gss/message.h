/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a client under RPCSEC_GSS, whole or spoiled, and the answers to them; read independently of gss/. */
#ifndef RN_TESTS_FUZZ_GSS_MESSAGE_H
#define RN_TESTS_FUZZ_GSS_MESSAGE_H

#include <gssapi/gssapi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MESSAGE_MAX 8192u
#define HANDLE_MAX 64u

enum { PROC_DATA, PROC_INIT, PROC_CONTINUE, PROC_DESTROY };
enum { SERVICE_NONE = 1, SERVICE_INTEGRITY, SERVICE_PRIVACY };

/* One defect of a call. */
enum spoil {
	SPOIL_NOTHING,
	SPOIL_MIC,	 /* a bit of the verifier's MIC */
	SPOIL_MIC_CUT,	 /* the MIC is shorter */
	SPOIL_HANDLE,	 /* another handle, signed */
	SPOIL_XID,	 /* another xid than that which was signed */
	SPOIL_PROC,	 /* another procedure than that which was signed */
	SPOIL_CRED_CUT,	 /* the credential is shorter, signed */
	SPOIL_VERSION,	 /* another version, signed */
	SPOIL_GSS_PROC,	 /* another procedure of RPCSEC_GSS, signed */
	SPOIL_SERVICE,	 /* the credential names another service than the body has, signed */
	SPOIL_BODY,	 /* a bit of the body */
	SPOIL_BODY_CUT,	 /* the body is shorter */
	SPOIL_INNER_SEQ, /* the protected body has another sequence number */
	SPOIL_VERF_NONE, /* the verifier is AUTH_NONE */
	SPOIL_TAIL,	 /* octets behind the body */
	SPOIL_PLACED,	 /* a part of the body came by a Read chunk */
	SPOILS
};

struct outgoing {
	gss_ctx_id_t ctx;
	uint8_t handle[HANDLE_MAX];
	uint32_t handle_len;
	uint32_t xid, seq, service, gss_proc, proc;
	const uint8_t *args;
	size_t args_len; /* a multiple of four */
	enum spoil spoil;
	uint8_t where, value; /* place and extent of the defect */
};

struct message {
	uint8_t bytes[MESSAGE_MAX];
	size_t len, body_at;
	bool harmless; /* the defect has changed nothing */
};

void message_make(const struct outgoing *o, struct message *m);
/* INIT or CONTINUE_INIT with a token; claimed: the length that the message tells. */
void message_establish(const struct outgoing *o, const gss_buffer_desc *token, uint32_t claimed,
		       struct message *m);

enum reply_kind {
	REPLY_BAD, /* not a reply that RFC 5531 and RFC 2203 know */
	REPLY_SUCCESS,
	REPLY_GARBAGE,
	REPLY_OTHER, /* another accept_stat */
	REPLY_DENIED
};

struct reply {
	enum reply_kind kind;
	uint32_t stat; /* auth_stat, or accept_stat */
	bool verified; /* there is a verifier of RPCSEC_GSS */
	const uint8_t *mic, *body;
	size_t mic_len, body_len;
};

void reply_read(const uint8_t *p, size_t len, uint32_t xid, struct reply *r);
/* True if the verifier is that of a word. */
bool reply_signs(gss_ctx_id_t ctx, const struct reply *r, uint32_t word);
/* The results in plain text, at most MESSAGE_MAX * 4 bytes; -1: they are not protected as they should be. */
long reply_results(gss_ctx_id_t ctx, const struct reply *r, const struct outgoing *o, uint8_t *to);

struct made {
	const uint8_t *handle, *token;
	uint32_t handle_len, major, window, token_len;
};
/* Results of INIT. */
bool reply_made(const struct reply *r, struct made *out);

#endif
