/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of NFSv3 whose replies are longer than 1024 bytes, and checks of those replies: for the
 * groups that need long replies of every kind.
 */
#ifndef RN_CONFORM_LONG_REPLY_H
#define RN_CONFORM_LONG_REPLY_H

#include "tools/conform/conform_call.h"

enum cf_long { CF_LONG_READDIR, CF_LONG_READDIRPLUS, CF_LONG_READ, CF_LONG_READLINK };

/* Makes the object to be read, and the call. NULL: verdict. */
struct cf_call *cf_long_call(struct cf_test *t, enum cf_long kind);
/* The call again, for the object that cf_long_call has made in the same case. */
struct cf_call *cf_long_again(struct cf_test *t, enum cf_long kind);
/* Checks that a successful reply decodes to its end and has the right content; fewer entries or
 * bytes than exist are allowed. */
bool cf_long_check(struct cf_test *t, enum cf_long kind, struct cf_reply *r);

#endif
