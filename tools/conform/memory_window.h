/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory whose handle the server may invalidate (RFC 8797 section 3.2): a memory window of type 2
 * on a region, which lives as long as the connection. Where a device has no such windows, a plain
 * region, as iWARP's can be invalidated.
 */
#ifndef RN_CONFORM_MEMORY_WINDOW_H
#define RN_CONFORM_MEMORY_WINDOW_H

#include "tools/conform/conform.h"

/* NULL: verdict. */
struct cf_window *cf_window_invalidatable(struct cf_test *t, size_t len);

#endif
