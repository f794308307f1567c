/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RN_GANESHA_EXPORTS_H
#define RN_GANESHA_EXPORTS_H

#include "tools/ganesha/ganesha_say.h"

#include <stddef.h>

/*
 * Writes lines of exports(5) for the EXPORT blocks of a configuration of nfs-ganesha, and comments about what has no
 * counterpart. A line that would let somebody in whom nfs-ganesha keeps out is a comment, and so is one that cannot be.
 * Counts in said tell how it went. 0, -EINVAL: the text is wrong, which was said; or -ENOMEM.
 */
int ganesha_to_exports(const char *text, size_t len, struct ganesha_said *said);

#endif
