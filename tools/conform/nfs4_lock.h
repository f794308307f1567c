/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An open file and byte-range locks of several lock-owners (RFC 8881 sections 18.2, 18.10, 18.12 and
 * 18.16), minor versions 1 and up. It exists to have the server call the client: a lock-owner that
 * was refused a lock may be told of the unlock.
 */
#ifndef RN_CONFORM_NFS4_LOCK_H
#define RN_CONFORM_NFS4_LOCK_H

#include "tools/conform/nfs4.h"

#define CF4_STATEID 16u
#define CF4_OWNER_MAX 1024u /* NFS4_OPAQUE_LIMIT */

struct cf4_open {
	struct cf_fh fh;
	uint8_t stateid[CF4_STATEID];
	uint32_t rflags;
};

#define CF4_MAY_NOTIFY_LOCK 0x20u /* in rflags */

/* Opens the file to read and to write, when the server's grace period has ended. False: verdict; a
 * skip if it does not end. */
bool cf4_open_file(struct cf_test *t, struct cf4_session *s, const struct cf_fh *fh,
		   struct cf4_open *o);
/* No verdict whatever the server says. */
void cf4_close_file(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o);

enum { CF4_WRITE_LT = 2, CF4_WRITEW_LT = 4 };

struct cf4_lock {
	const void *owner; /* a lock-owner that has no lock yet */
	uint32_t owner_len;
	uint32_t type;
	uint64_t offset, length;
};

/* The lock is given, and stateid is the lock-owner's. */
bool cf4_lock(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
	      const struct cf4_lock *l, uint8_t stateid[CF4_STATEID]);
/* The lock is refused, because of another lock-owner's. */
bool cf4_lock_denied(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
		     const struct cf4_lock *l);
bool cf4_unlock(struct cf_test *t, struct cf4_session *s, const struct cf4_open *o,
		const struct cf4_lock *l, const uint8_t stateid[CF4_STATEID]);

#endif
