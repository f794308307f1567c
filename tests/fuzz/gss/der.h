/* SPDX-License-Identifier: BSD-2-Clause */
/* Kerberos tickets in DER (RFC 4120 section 5.3). */
#ifndef RN_TESTS_FUZZ_GSS_DER_H
#define RN_TESTS_FUZZ_GSS_DER_H

#include <krb5.h>
#include <stddef.h>
#include <stdint.h>

/* Written from the end of the buffer to its beginning, so that lengths are known when they are written. */
struct der {
	uint8_t buf[1024];
	size_t at; /* first octet that is written */
};

/* A principal's name, of one or two parts. */
struct der_name {
	const char *first, *second; /* second: NULL, or the other part */
};

#define DER_TIME 15u /* octets of a time: "20370101000000Z" */

/* The part of a ticket that is encrypted. */
void der_enc_ticket_part(struct der *d, const char *realm, const struct der_name *client,
			 const krb5_keyblock *key, const char *end_time);
void der_ticket(struct der *d, const char *realm, const struct der_name *service,
		const krb5_enc_data *secret);

#endif
