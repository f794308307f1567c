/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity that a peer has proved by a certificate: the names in it, and its fingerprint. */
#ifndef RN_LIB_CERTIFICATE_H
#define RN_LIB_CERTIFICATE_H

#include <stdatomic.h>
#include <stdint.h>

#define RN_CERT_NAMES_MAX 16u	 /* names that are kept; a certificate may have more */
#define RN_CERT_NAME_MAX 255u	 /* bytes; longer names are not kept */
#define RN_CERT_SUBJECT_MAX 256u /* with the NUL; longer subjects are cut */
#define RN_CERT_SHA256_HEX 64u

enum rn_cert_kind { RN_CERT_DNS, RN_CERT_EMAIL, RN_CERT_URI };

/* A subject alternative name. No byte of it is 0 or another control character. */
struct rn_cert_name {
	enum rn_cert_kind kind;
	char text[RN_CERT_NAME_MAX + 1];
};

/* Constant but for the last member. */
struct rn_certificate {
	char subject[RN_CERT_SUBJECT_MAX];   /* printable, in the form of RFC 2253 */
	char sha256[RN_CERT_SHA256_HEX + 1]; /* lower-case digits, without colons */
	int64_t expires;		     /* seconds since 1970 */
	unsigned nnames;
	struct rn_cert_name names[RN_CERT_NAMES_MAX];
	/* Answer of the last look-up in the map of users, and the map's number: the daemon's. */
	_Atomic uint64_t found;
};

#endif
