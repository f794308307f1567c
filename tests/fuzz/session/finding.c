/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/fuzz/session/finding.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void ss_finding(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	fputs("FINDING: ", stderr);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
	abort();
}

int64_t ss_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}
