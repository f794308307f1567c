/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * errno for code that runs in fibers (lib/fiber.h), included in front of each file of the library. The C library
 * says that errno's address never changes, so compilers keep it within a function. After a wait it is another
 * thread's.
 */
#ifndef RN_LIB_THREAD_ERRNO_H
#define RN_LIB_THREAD_ERRNO_H

#include <errno.h>

int *rn_thread_errno(void);
#undef errno
#define errno (*rn_thread_errno())

#endif
