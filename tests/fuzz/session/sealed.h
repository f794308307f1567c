/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls under RPCSEC_GSS (RFC 2203), right and spoiled, and what each may be answered with. Tickets are those of a realm
 * in this process (tests/fuzz/gss/realm.h). The window of sequence numbers, the life of each context and the bytes on the wire are worked
 * out here, independently of gss/.
 */
#ifndef RN_TESTS_FUZZ_SESSION_SEALED_H
#define RN_TESTS_FUZZ_SESSION_SEALED_H

#include "tests/fuzz/session/stream.h"

#define SS_CONTEXTS 4u
#define SS_SEALED_MORE 1024u /* octets by which a call grows, at most */

/* Defects of a call. */
enum ss_spoil {
	SS_WHOLE,
	SS_MIC_BENT,
	SS_MIC_CUT,
	SS_MIC_OTHER, /* the MIC of the context's call before */
	SS_HANDLE,    /* another context's handle, or none */
	SS_XID,	      /* another xid than that which was signed */
	SS_PROC,      /* another procedure */
	SS_CRED_CUT,
	SS_VERSION,
	SS_GSS_PROC, /* a procedure of RPCSEC_GSS that there is not */
	SS_SERVICE,  /* the credential names another service than the body has */
	SS_BODY_BENT,
	SS_BODY_CUT,
	SS_INNER_NUMBER, /* another sequence number within the protected body */
	SS_VERF_NONE,
	SS_TAIL, /* octets behind the body */
	SS_SPOILS
};

/* How calls of a connection are sealed. */
struct ss_sealing {
	unsigned context, service; /* service 0: not at all; 1 to 3: krb5, krb5i, krb5p */
	enum ss_spoil spoil;	   /* of the next call */
	uint8_t where, value;	   /* place and extent of the defect */
	uint8_t number;		   /* choice of the next call's sequence number */
};

/* Makes the realm, once. Path of the keytab, as the server takes it. */
void ss_gss_start(void);
/* Forgets the contexts and calls of the session before. */
void ss_gss_reset(void);
/* True if the session has asked for a context. */
bool ss_gss_was_used(void);

/* The first token of a new context of the realm's client `who`; spoil: some defect. Returns the length of the call in
 * out, or 0. */
size_t ss_gss_init(unsigned context, unsigned who, bool spoil, const struct ss_sealing *how,
		   uint32_t xid, uint8_t *out);
size_t ss_gss_destroy(const struct ss_sealing *how, uint32_t xid, uint8_t *out);
/* The call in msg, sealed; out has room for SS_SEALED_MORE octets more than it. 0: it cannot be, or the context is not
 * there. */
size_t ss_gss_seal(const struct ss_sealing *how, const uint8_t *msg, size_t len, uint8_t *out);

/* The server's clock has skipped so much. */
void ss_gss_time(unsigned seconds);
/* A call was sent once more, or may have been cut or changed on its way. */
void ss_gss_repeated(uint32_t xid);
void ss_gss_bent(uint32_t xid);
/* The call may stay unanswered. */
bool ss_gss_may_drop(uint32_t xid);
/* Principal and claims of a call that was sealed. */
struct ss_who ss_gss_who(uint32_t xid);
uint8_t ss_gss_claims(uint32_t xid);
/* krb5p. */
bool ss_gss_is_private(uint32_t xid);

enum ss_opened {
	SS_OPENED,  /* *plain is the reply as it would be without RPCSEC_GSS */
	SS_JUDGED,  /* there is nothing in it to look at */
	SS_REFUSED, /* *bad says why it is wrong */
};
struct ss_plain {
	const uint8_t *msg;
	size_t len;
	bool wrapped; /* no data went by chunks */
	const char *bad;
};
enum ss_opened ss_gss_open(const struct ss_call *call, const uint8_t *msg, size_t len,
			   struct ss_plain *plain);

#endif
