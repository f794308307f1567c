/* SPDX-License-Identifier: BSD-2-Clause */
/* The credential of RPCSEC_GSS version 1 (RFC 2203 section 5). */
#ifndef RN_GSS_GSS_WIRE_H
#define RN_GSS_GSS_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define GSS_VERSION 1u
#define GSS_HANDLE_SIZE 16u
#define GSS_SEQ_MAX 0x80000000u /* section 5.3.3.1: numbers from here on end the context */

enum gss_proc { GSS_DATA = 0, GSS_INIT = 1, GSS_CONTINUE_INIT = 2, GSS_DESTROY = 3 };
enum gss_service { GSS_NONE = 1, GSS_INTEGRITY = 2, GSS_PRIVACY = 3 };

struct gss_cred {
	uint32_t version;
	uint32_t proc;
	uint32_t seq;
	uint32_t service;
	const uint8_t *handle; /* in the credential's body */
	uint32_t handle_len;
};

/* False: the body has another form or version, or bytes behind it. */
bool gss_get_cred(const uint8_t *body, uint32_t len, struct gss_cred *out);

#endif
