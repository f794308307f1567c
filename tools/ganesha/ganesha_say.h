/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages about a configuration of nfs-ganesha: comments beside the lines of exports(5) that are made of it. */
#ifndef RN_GANESHA_SAY_H
#define RN_GANESHA_SAY_H

#include <stdio.h>

struct ganesha_said {
	const char *file; /* name of what is read */
	FILE *out;	  /* lines and comments */
	FILE *err;	  /* errors and warnings again */
	unsigned errors, warnings;
};

enum ganesha_weight { GANESHA_NOTE, GANESHA_WARNING, GANESHA_ERROR };

/* Says it; what is no printable text becomes \NNN, so that no message is more than a comment. */
void ganesha_say(struct ganesha_said *to, enum ganesha_weight weight, unsigned line,
		 const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
