/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers as people read them. */
#ifndef RN_CTL_PRINT_H
#define RN_CTL_PRINT_H

#include <stdint.h>

enum { PRINT_MAX = 32 };

/* "0 B", "1023 B", "1.5 KiB", "12.0 GiB" */
const char *print_size(uint64_t bytes, char text[PRINT_MAX]);
/* The two largest units: "0 s", "59 s", "1 min 5 s", "2 h 0 min", "3 d 4 h" */
const char *print_age(uint64_t seconds, char text[PRINT_MAX]);
/* "0 us", "999 us", "1.0 ms", "9999.9 ms", "10.0 s" */
const char *print_duration(uint64_t ns, char text[PRINT_MAX]);

#endif
