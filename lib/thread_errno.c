/* SPDX-License-Identifier: BSD-2-Clause */
#include "lib/thread_errno.h"

__attribute__((noinline)) int *rn_thread_errno(void)
{
	__asm__ volatile("");
	return __errno_location();
}
