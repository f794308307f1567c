/* SPDX-License-Identifier: BSD-2-Clause */
#include "ctl/print.h"

#include <inttypes.h>
#include <stdio.h>

const char *print_size(uint64_t bytes, char text[PRINT_MAX])
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	unsigned unit = 0;

	if (bytes < 1024) {
		snprintf(text, PRINT_MAX, "%" PRIu64 " B", bytes);
		return text;
	}
	/* The last step's rest is kept for the digit behind the point; it is cut, not rounded up. */
	while (bytes >= UINT64_C(1024) * 1024) {
		bytes /= 1024;
		unit++;
	}
	snprintf(text, PRINT_MAX, "%" PRIu64 ".%u %s", bytes / 1024,
		 (unsigned)(bytes % 1024 * 10 / 1024), units[unit]);
	return text;
}

const char *print_age(uint64_t s, char text[PRINT_MAX])
{
	if (s < 60)
		snprintf(text, PRINT_MAX, "%" PRIu64 " s", s);
	else if (s < 3600)
		snprintf(text, PRINT_MAX, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else if (s < 86400)
		snprintf(text, PRINT_MAX, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s % 3600 / 60);
	else
		snprintf(text, PRINT_MAX, "%" PRIu64 " d %" PRIu64 " h", s / 86400,
			 s % 86400 / 3600);
	return text;
}

const char *print_duration(uint64_t ns, char text[PRINT_MAX])
{
	if (ns < 1000000)
		snprintf(text, PRINT_MAX, "%" PRIu64 " us", ns / 1000);
	else if (ns < UINT64_C(10000000000))
		snprintf(text, PRINT_MAX, "%.1f ms", (double)ns / 1e6);
	else
		snprintf(text, PRINT_MAX, "%.1f s", (double)ns / 1e9);
	return text;
}
