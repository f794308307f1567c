/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one test body in each minor version, with a session in 4.1 and 4.2. */
#ifndef RN_TESTS_NFS4_MINORS_H
#define RN_TESTS_NFS4_MINORS_H

#include "tests/unit/nfs4_fixture.h"

#define FOR_MINORS(check)                                                                          \
	do {                                                                                       \
		check(NULL, 0);                                                                    \
		for (uint32_t minor = 1; minor <= 2; minor++) {                                    \
			struct fix4_session session;                                               \
			char owner[] = { 'o', 'w', (char)('0' + minor), '\0' };                    \
			uint32_t made = fix4_session_new(f, &session, minor, owner, true);         \
                                                                                                   \
			cr_assert_eq(made, NFS4_OK);                                               \
			check(&session, minor);                                                    \
		}                                                                                  \
	} while (0)

#endif
